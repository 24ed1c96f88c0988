// Package workspace is the tools of a coding agent within one folder: read, write, edit, list,
// search, and run a command.
//
// What the files' tools touch is inside the folder, always: they go through an [os.Root], so
// that neither "..", nor an absolute path, nor a symbolic link leads out of it, also where the
// link is made while a call runs. A file that exists is changed only by a call that knows what
// is in it: it must have been read, or written, and not changed since.
//
// What a command touches is not confined: Run starts a shell with the rights of the process.
// It begins in the folder and may go anywhere from there. A harness must ask a person before
// each command ([RunName] tells them apart), or run the whole program where it can do no harm.
// What is bounded is the time that a command may take, after which its process group is
// killed, and how much of its output is kept; and it does not see the variables of the
// environment that look like keys.
package workspace
