// The card of one call: its description, its status, and its result, folded.
import { approvalCard, decision } from "./approval.js";
import { diff, stat } from "./diff.js";
import { h, icon } from "./dom.js";
import { STATUSES, count, duration } from "./words.js";

const KINDS = {
  read_file: "read",
  write_file: "edit",
  edit_file: "edit",
  apply_patch: "edit",
  list_files: "list",
  search_workspace: "search",
  run_terminal_command: "command",
  get_diagnostics: "check",
};
const SHORT = 14; // lines of a diff that is shown unfolded
const TAIL = 8; // lines of output shown while it runs, and after a failure

// `folds` remembers what the user unfolded: fold(key, initially open, summary, draw).
export function card(entry, { answer, folds }) {
  const asks = entry.asked && entry.status === "asked";
  return h(
    "article",
    { class: "card", "data-status": entry.status },
    !asks && line(entry),
    entry.command && entry.command !== entry.view && h("pre", { class: "command", tabindex: "0" }, entry.command),
    asks && approvalCard(entry.asked, answer),
    entry.decided && decision(entry.decided, entry),
    !asks && [changes(entry, folds), output(entry, folds)],
  );
}

function line({ name, view, status, seconds, files, exit }) {
  return h(
    "header",
    {},
    icon(KINDS[name] ?? "tool"),
    h("span", { class: "view", title: view }, view),
    files.map((file) => h("span", { class: "file" }, files.length > 1 && file.path, stat(file))),
    exit !== null && exit !== 0 && h("span", { class: "exit" }, `exit ${exit}`),
    h("span", { class: "seconds" }, duration(seconds)),
    h("span", { class: "status" }, STATUSES[status]),
  );
}

function changes({ key, diff: text }, folds) {
  if (!text) return null;
  const lines = text.split("\n").length;
  return folds.fold(`${key}:changes`, lines <= SHORT, "Changes", () => diff(text));
}

function output({ key, status, output: progress, cut, content, diff: text, ended }, folds) {
  const words = (ended && content) || progress;
  const lines = words.replace(/\n$/, "").split("\n");
  if (!words.trim() || (text && lines.length === 1)) return null;
  const whole = () => h("pre", { class: "output", tabindex: "0" }, !ended && cut && "…\n", words);
  const inSight = status === "running" || status === "error";
  const tail = inSight && h("pre", { class: "output" }, lines.slice(-TAIL).join("\n"));
  if (tail && lines.length <= TAIL) return tail;
  return [folds.fold(`${key}:output`, false, `Output, ${count(lines.length, "line")}`, whole), tail];
}
