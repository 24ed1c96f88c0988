// The page is a fold of the events of /events (see docs/event.schema.json): it keeps nothing
// itself. Loaded anew, it begins with a snapshot and what followed; a connection that breaks
// is made again by the browser, which sends the id of the last event that it saw.

const $ = (id) => document.getElementById(id);
const log = $("log");

let answer = null; // the message of the model that is being written
let cards = new Map(); // the cards of the tool calls, by the call's id
let running = false;

// add appends an element. Everything that others said goes in as text, never as markup.
function add(parent, tag, className, text = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  parent.append(element);
  return element;
}

// Block is a part of an answer that grows: text or thinking.
class Block {
  constructor(parent, kind) {
    this.kind = kind;
    this.root = add(parent, kind === "thinking" ? "details" : "div", kind);
    if (kind === "thinking") add(this.root, "summary", "", "Thinking");
    this.text = (kind === "thinking" ? add(this.root, "div", "") : this.root).appendChild(new Text());
  }
  grow(delta) { this.text.appendData(delta); }
  set(text) { this.text.data = text; }
}

// Card is a tool call: its arguments as they are written, its progress, its result.
class Card {
  constructor(parent, kind) {
    this.kind = kind;
    this.root = add(parent, "section", "tool");
    const header = add(this.root, "header", "");
    this.name = add(header, "strong", "name");
    this.stateText = add(header, "span", "state");
    this.args = add(this.root, "pre", "args").appendChild(new Text());
    this.bar = add(this.root, "progress", "");
    this.report = add(this.root, "div", "note report");
    this.result = add(this.root, "pre", "result");
    this.state("writing");
  }
  grow(delta) { this.args.appendData(delta); }
  set(text) { this.args.data = text; }
  called(id, name) {
    if (id) cards.set(id, this);
    if (name) this.name.textContent = name;
  }
  state(state) {
    this.root.dataset.state = this.stateText.textContent = state;
    this.bar.hidden = this.report.hidden = state !== "running";
  }
  progress({ text, count, of }) {
    if (of) { this.bar.max = of; this.bar.value = count || 0; }
    if (text) this.report.textContent = text;
  }
  end(text, failed) {
    this.result.textContent = text;
    this.state(failed ? "failed" : "done");
  }
}

// Answer is a message of the model.
class Answer {
  constructor() {
    this.root = add(log, "article", "assistant");
    this.blocks = [];
  }
  // block is the block at an index, which has a kind of its own from its first increment on.
  block(index, kind) {
    const old = this.blocks[index];
    if (old?.kind === kind) return old;
    const block = new (kind === "tool_call" ? Card : Block)(this.root, kind);
    old?.root.replaceWith(block.root);
    return (this.blocks[index] = block);
  }
  grow(ev) {
    const block = this.block(ev.content_index || 0, ev.delta_kind || "text");
    if (block.kind === "tool_call") block.called(ev.tool_id, ev.tool);
    block.grow(ev.delta || "");
  }
  // set makes it what message says; blocks that are there already stay as the reader left them.
  set(message) {
    (message.content || []).forEach((content, i) => {
      const call = content.tool_call;
      const block = this.block(i, content.type);
      if (call) block.called(call.id, call.name);
      block.set(call ? call.raw_args || JSON.stringify(call.args || {}) : content[content.type] || "");
    });
    if (!["stop", "tool_use", undefined].includes(message.stop_reason)) add(this.root, "p", "note", message.stop_reason);
  }
}

const textOf = (content, json) =>
  content ? content.map((block) => block.text || "").join("") : json === undefined ? "" : JSON.stringify(json);

// whole draws a message that is complete.
function whole(message) {
  if (message.custom) add(log, "p", "note", message.text);
  else if (message.role === "assistant") new Answer().set(message);
  else if (message.role === "tool") cards.get(message.tool_call_id)?.end(textOf(message.content), message.is_error);
  else add(log, "article", "user", textOf(message.content));
}

function history(messages) {
  log.replaceChildren();
  cards = new Map();
  answer = null;
  (messages || []).forEach(whole);
}

function setRunning(now) {
  running = now;
  $("send").hidden = now;
  $("steer").hidden = $("abort").hidden = !now;
  say(now ? "running" : "ready");
}

const count = (n = 0, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

function say(text) { $("status").value = text; }

// unqueue drops a message from those that wait for the run to take them.
function unqueue(text) {
  [...$("queued").children].find((item) => item.textContent === text)?.remove();
}

const on = {
  snapshot({ state, runs }) {
    history(state.messages);
    setRunning(state.is_running);
    if (state.err) say(state.err.message);
    if (state.stream_message) {
      answer = new Answer();
      answer.set(state.stream_message);
      // The first text of a message stands on its start and comes again as a delta.
      const sums = runs?.find((run) => run.run_id === state.run_id)?.sums || [];
      answer.blocks.forEach((block, i) => sums[i] || block.set(""));
    }
    for (const id of state.pending_tool_calls || []) cards.get(id)?.state("running");
  },
  context({ context }) { history(context.messages); },
  agent_start() {
    on.message_discard(); // of a run that died, which the snapshot before it may have shown
    setRunning(true);
  },
  agent_end({ summary, err }) {
    setRunning(false);
    if (summary.end_reason === "aborted") $("queued").replaceChildren();
    const seconds = (summary.duration_ms / 1000).toFixed(1);
    say(`${summary.end_reason}: ${count(summary.turn_count, "turn")}, ${count(summary.tool_calls, "tool call")}, ` +
      `${count(summary.usage.total, "token")}, ${seconds} s${err ? ` (${err.message})` : ""}`);
  },
  retry({ err, retry_info }) { say(`failed, next attempt in ${Math.round(retry_info.delay_ms)} ms: ${err?.message}`); },
  message_start({ message }) {
    if (message.role === "assistant" && !message.custom) answer = new Answer();
    else whole(message);
    if (message.role === "user") unqueue(textOf(message.content));
  },
  message_update(ev) { answer?.grow(ev); },
  message_end({ message }) {
    if (message.role !== "assistant" || message.custom) return;
    answer?.set(message);
    answer = null;
  },
  message_discard() {
    answer?.root.remove();
    answer = null;
  },
  tool_exec_start({ tool_id }) { cards.get(tool_id)?.state("running"); },
  tool_exec_update({ tool_id, progress }) { cards.get(tool_id)?.progress(progress); },
  tool_exec_end({ tool_id, result, is_error }) {
    cards.get(tool_id)?.end(textOf(result.content, result.json), is_error);
  },
};

function draw(ev) {
  if (ev.parent_run_id) return; // what an agent does that the model has asked
  const page = document.documentElement;
  const atEnd = page.scrollTop + page.clientHeight > page.scrollHeight - 50;
  on[ev.type]?.(ev);
  if (atEnd) page.scrollTop = page.scrollHeight;
}

let last = ""; // the id of the last event

function connect() {
  const source = new EventSource(last ? `events?last_event_id=${encodeURIComponent(last)}` : "events");
  source.onopen = () => say(running ? "running" : "ready");
  source.onmessage = (message) => {
    last = message.lastEventId;
    draw(JSON.parse(message.data));
  };
  source.onerror = () => {
    say("no connection, trying again");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000); // the server refused
  };
}

// post tells the server something, and whether it took it.
async function post(path, body) {
  try {
    const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) say(await response.text());
    return response.ok;
  } catch {
    say("no connection");
    return false;
  }
}

$("form").onsubmit = async (event) => {
  event.preventDefault();
  const text = $("prompt").value.trim();
  if (!text) return;
  $("prompt").value = "";
  if (running) add($("queued"), "li", "", text);
  if (await post(running ? "steer" : "prompt", { text })) return;
  unqueue(text);
  $("prompt").value ||= text;
};
$("prompt").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("form").requestSubmit();
};
$("abort").onclick = () => post("abort");

connect();
