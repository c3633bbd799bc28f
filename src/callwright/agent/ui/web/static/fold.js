// The view of a session: a pure fold over its events, so a reopened session looks as it did while it ran. `rev` counts
// the changes of an item: what was drawn at the same rev is current.

const OUTPUT = 65_536; // characters kept of a running tool's output

export const begin = () => ({
  seq: 0,
  session: null, // { session, workspace, model, sandbox }
  title: "",
  items: [], // the items of the log, in order: { key, rev, kind, … }
  files: [], // neither kept nor undone
  working: false,
  purpose: "turn", // why the model is called
  text: null, // the item that is being written
  writing: null, // the call that is being written: { name, characters }
  group: null, // the item that calls go into
  calls: new Map(), // the calls of that group, by id
  asked: null, // the call that waits for approval
});

export function fold(state, { seq, at, event }) {
  if (seq <= state.seq) return state;
  state.seq = seq;
  EVENTS[event.type]?.(state, event, { key: seq, at });
  return state;
}

// The current activity as text; empty when no task is running.
export function now(state) {
  if (state.asked) return "Waiting for your answer"; // also before a task, to start a server
  if (!state.working) return "";
  if (state.writing) return `Writing ${state.writing.name}, ${state.writing.characters.toLocaleString()} characters`;
  const running = state.group?.entries.findLast(({ status }) => status === "running");
  if (running) return running.view;
  if (state.text?.kind === "thinking") return "Thinking";
  if (state.text) return "Answering";
  return state.purpose === "condense" ? "Summarizing earlier messages" : "Waiting for the model";
}

const touch = (item) => ((item.rev += 1), item);

function add(state, key, kind, fields) {
  closeText(state);
  if (state.group?.loose) state.group = null;
  const item = { key, rev: 0, kind, ...fields };
  state.items.push(item);
  return item;
}

const note = (state, key, sign, text, tone = "plain") => add(state, key, "note", { sign, text, tone });

function closeText(state) {
  if (state.text) touch(state.text).streaming = false;
  state.text = null;
}

function write(state, key, kind, text) {
  state.writing = null;
  if (state.text?.kind !== kind) state.text = add(state, key, kind, { text: "", seconds: null, streaming: true });
  touch(state.text).text += text;
}

function openGroup(state, key, fields) {
  state.group = add(state, key, "group", { entries: [], closed: false, ...fields });
  state.calls = new Map();
  return state.group;
}

// The card of a call. Outside a group (to start a server) a call gets a group without a title.
function entry(state, key, call, name = "") {
  let found = state.calls.get(call);
  if (!found || found.ended) {
    const group = state.group ?? openGroup(state, key, { title: "", calls: 0, loose: true });
    found = { key, rev: 0, group, name, view: name, status: "waiting", ...EMPTY };
    group.entries.push(found);
    state.calls.set(call, found);
  }
  closeText(state);
  touch(found.group);
  return touch(found);
}

const EMPTY = {
  command: "",
  output: "",
  cut: false,
  content: "",
  diff: "",
  files: [],
  seconds: 0,
  exit: null,
  asked: null,
  decided: null,
  changed: false,
  ended: false,
};

function settle(state, call) {
  if (state.asked === call) state.asked = null;
}

const listed = (paths, hunk) => `${hunk ? "a part of " : ""}${paths.join(", ")}`;

const EVENTS = {
  session_opened(state, { session, workspace, model, sandbox }) {
    state.session = { session, workspace, model, sandbox };
  },
  session_resumed(state, { model }, { key }) {
    if (state.session) state.session = { ...state.session, model };
    note(state, key, "note", "Reopened");
  },
  task_started(state, { text }, { key, at }) {
    state.title ||= text.split("\n", 1)[0];
    state.working = true;
    add(state, key, "task", { text, at });
  },
  branch_created(state, { branch, previous }, { key }) {
    note(state, key, "branch", `On branch ${branch}, created from ${previous}`);
  },
  turn_started(state, { purpose }) {
    closeText(state);
    state.purpose = purpose;
  },
  thinking(state, { text }, { key }) {
    write(state, key, "thinking", text);
  },
  thinking_ended(state, { seconds }) {
    const last = state.items.findLast(({ kind }) => kind === "thinking");
    if (last) touch(last).seconds = seconds;
    if (state.text === last) closeText(state);
  },
  text(state, { text }, { key }) {
    write(state, key, "text", text);
  },
  call_progress(state, { name, characters }) {
    closeText(state);
    state.writing = { name, characters };
  },
  model_answered(state, { problem }, { key }) {
    closeText(state);
    state.writing = null;
    state.purpose = "turn";
    if (problem) note(state, key, "warning", problem, "bad");
  },
  group_opened(state, { title, calls }, { key }) {
    openGroup(state, key, { title, calls, loose: false });
  },
  group_closed(state) {
    if (state.group) touch(state.group).closed = true;
    state.group = null;
  },
  approval_requested(state, event, { key }) {
    const call = entry(state, key, event.call, event.title);
    Object.assign(call, { status: "asked", asked: event, decided: null });
    state.asked = call;
  },
  call_decided(state, { call, verdict, by, why, words, remembered }, { key }) {
    const found = entry(state, key, call.id, call.name);
    found.name = call.name;
    found.decided = { verdict, by, why, words, remembered };
    found.status = "waiting";
    if (found.asked?.subject === "server") {
      found.status = verdict === "allow" ? "ok" : "denied"; // it is not a call: no result follows
      found.ended = true;
    }
    settle(state, found);
  },
  checkpoint_saved() {},
  tool_started(state, { call, name, view, command }, { key }) {
    const found = entry(state, key, call, name);
    const changed = Boolean(found.asked?.command) && command !== found.asked.command;
    Object.assign(found, { name, view, command, changed, status: "running" });
  },
  tool_output(state, { call, text }, { key }) {
    const found = entry(state, key, call);
    const output = found.output + text;
    found.cut ||= output.length > OUTPUT;
    found.output = output.slice(-OUTPUT);
  },
  tool_finished(state, { call, exit_code: exit, ...ended }, { key }) {
    const found = entry(state, key, call, ended.name);
    Object.assign(found, { ...ended, exit, ended: true });
    settle(state, found);
  },
  model_nudged(state, { text }, { key }) {
    note(state, key, "note", `Message to the model: ${text}`);
  },
  history_condensed(state, { before, after }, { key }) {
    note(
      state,
      key,
      "note",
      `Earlier messages were shortened, from about ${before.toLocaleString()} to ${after.toLocaleString()} tokens`,
    );
  },
  files_changed(state, { files }) {
    state.files = files;
  },
  changes_kept(state, { paths, hunk }, { key }) {
    if (paths.length) note(state, key, "keep", `You kept ${listed(paths, hunk)}`);
  },
  changes_undone(state, { paths, hunk, conflicts }, { key }) {
    if (paths.length) note(state, key, "undo", `You undid ${listed(paths, hunk)}`);
    for (const [at, conflict] of conflicts.entries()) note(state, `${key}.${at}`, "warning", conflict, "bad");
  },
  warning_issued(state, { text }, { key }) {
    note(state, key, "warning", text, "warn");
  },
  task_stopped(state, { reason, text }, { key }) {
    add(state, key, "ending", { reason, text, summary: null });
    if (state.asked) {
      touch(state.asked.group);
      touch(state.asked).status = "stopped";
    }
    Object.assign(state, { working: false, writing: null, asked: null, group: null, calls: new Map() });
  },
  task_summarized(state, event, { key }) {
    const last = state.items.findLast(({ kind }) => kind === "ending");
    const ending = last && !last.summary ? last : add(state, key, "ending", { reason: "done", text: "" });
    touch(ending).summary = event;
  },
};
