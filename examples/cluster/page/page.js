// The page draws one session. It knows nothing of workers: when one dies, its stream begins
// anew with a snapshot of what was kept, and goes on with what the next one says.
const $ = (id) => document.getElementById(id);
let open = null; // the message that streams

function draw(message) {
  const text = (message.content || []).map((block) => block.text || "").join("");
  const item = document.createElement("article");
  item.className = message.role;
  item.textContent = text;
  if (message.model) item.dataset.who = message.model;
  return $("log").appendChild(item);
}

const on = {
  snapshot({ state }) {
    $("log").replaceChildren();
    (state.messages || []).forEach(draw);
    open = state.stream_message ? draw(state.stream_message) : null;
    $("status").value = state.is_running ? "running" : "ready";
  },
  agent_start() { $("status").value = "running"; },
  agent_end({ summary, err }) { $("status").value = summary.end_reason + (err ? `: ${err.message}` : ""); },
  message_start({ message }) {
    open = draw(message);
    if (message.role === "assistant") open.textContent = ""; // it comes as deltas
  },
  message_update({ delta, delta_kind }) {
    if (open && (delta_kind || "text") === "text") open.textContent += delta || "";
  },
  message_end({ message }) {
    open?.replaceWith(draw(message));
    open = null;
  },
  message_discard() {
    open?.remove();
    open = null;
  },
};

const source = new EventSource("events");
source.onmessage = (message) => {
  const ev = JSON.parse(message.data);
  if (!ev.parent_run_id) on[ev.type]?.(ev);
};
source.onerror = () => { $("status").value = "the stream ended, it comes back"; };

const post = (path, body) => fetch(path, { method: "POST", body: JSON.stringify(body) });

$("form").onsubmit = async (event) => {
  event.preventDefault();
  const text = $("prompt").value.trim() || $("prompt").placeholder;
  $("prompt").value = "";
  await post("prompt", { text });
};
$("abort").onclick = () => post("abort");
