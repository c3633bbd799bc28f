// A unified diff as a table: old and new line numbers, the sign, the line.
import { h } from "./dom.js";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)/;
const FILE = /^diff --git a\/.* b\/(.*)$/;
const HEAD = /^(index |--- |\+\+\+ )/; // headers that repeat what the card of a file shows
const KINDS = { "+": ["added", "+", 0, 1], "-": ["removed", "−", 1, 0] };

export function diff(text) {
  const rows = [];
  const several = text.split("\ndiff --git ").length > 1;
  let [before, after, olds, news] = [0, 0, 0, 0]; // the numbers of the next lines, and how many the hunk has left
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [before, olds, after, news] = [hunk[1], hunk[2] ?? 1, hunk[3], hunk[4] ?? 1].map(Number);
      rows.push(row("place", "", "", "", hunk[5] || `line ${after}`));
    } else if ((olds <= 0 && news <= 0) || line[0] === "\\") {
      const file = FILE.exec(line);
      if (file ? several : !HEAD.test(line)) rows.push(row("head", "", "", "", file?.[1] ?? line));
    } else {
      const [kind, sign, old, fresh] = KINDS[line[0]] ?? ["same", "", 1, 1];
      rows.push(row(kind, old ? before : "", fresh ? after : "", sign, line.slice(1)));
      [before, olds, after, news] = [before + old, olds - old, after + fresh, news - fresh];
    }
  }
  return h(
    "div",
    { class: "diff", tabindex: "0", role: "region", "aria-label": "Changes" },
    h("table", {}, h("tbody", {}, rows)),
  );
}

const row = (kind, before, after, sign, text) =>
  h(
    "tr",
    { class: kind },
    h("td", { class: "no" }, before),
    h("td", { class: "no" }, after),
    h("td", { class: "sign" }, sign),
    h("td", { class: "line" }, text),
  );

// +3 −1, in colour, with a label for screen readers.
export const stat = ({ added, removed }) =>
  h(
    "span",
    { class: "stat", "aria-label": `${added} added, ${removed} removed` },
    h("b", { class: "added" }, `+${added}`),
    h("b", { class: "removed" }, `−${removed}`),
  );
