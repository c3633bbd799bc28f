// Markdown as nodes: headings, lists, code, quotes, tables, bold, italics and links. Everything else stays plain text.
// Links lead to http and https only, and pictures are never fetched.
import { h } from "./dom.js";

const FENCE = /^ {0,3}(`{3,}|~{3,}) *([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6}) +(.*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)]) +(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const DASHES = /^[ :|-]+$/;
const DEPTH = 5;
// Longer text stays plain: nobody writes it by hand, and some patterns take quadratic time.
const LONG_LINE = 2_000;
const LONG = 20_000;

// The blocks of a text, each with its source: an unchanged block need not be redrawn.
export function blocks(text) {
  const lines = text.split("\n");
  const found = [];
  for (let at = 0; at < lines.length;) {
    const [end, draw] = block(lines, at);
    if (draw) found.push({ source: lines.slice(at, end).join("\n"), draw });
    at = end;
  }
  return found;
}

export const markdown = (text) => blocks(text).map(({ draw }) => draw());

function block(lines, at) {
  const line = lines[at];
  if (!line.trim()) return [at + 1, null];
  if (line.length > LONG_LINE) return [at + 1, () => paragraph(line)];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading)
    return [at + 1, () => h(`h${Math.min(heading[1].length + 2, 6)}`, {}, inline(heading[2].replace(/ +#+ *$/, "")))];
  if (RULE.test(line)) return [at + 1, () => h("hr")];
  if (QUOTE.test(line)) {
    const end = run(lines, at, (next) => QUOTE.test(next));
    const inner = lines
      .slice(at, end)
      .map((each) => each.replace(QUOTE, ""))
      .join("\n");
    return [end, () => h("blockquote", {}, paragraph(inner))];
  }
  if (ITEM.test(line)) {
    const end = run(
      lines,
      at,
      (next, index) => ITEM.test(next) || /^ +\S/.test(next) || (!next.trim() && ITEM.test(lines[index + 1] ?? "")),
    );
    return [end, () => list(items(lines.slice(at, end)))];
  }
  if (line.includes("|") && underlined(lines[at + 1] ?? "")) {
    const end = run(lines, at, (next) => next.includes("|"));
    return [end, () => table(lines.slice(at, end))];
  }
  const end = run(lines, at, (next, index) => next.trim() && !starts(lines, index));
  return [end, () => paragraph(lines.slice(at, end).join("\n"))];
}

const underlined = (line) => line.includes("|") && line.includes("-") && DASHES.test(line);

const starts = (lines, at) =>
  lines[at].length > LONG_LINE || [FENCE, HEADING, QUOTE, ITEM, RULE].some((form) => form.test(lines[at]));

function run(lines, at, belongs) {
  let end = at + 1;
  while (end < lines.length && belongs(lines[end], end)) end += 1;
  return end;
}

function fenced(lines, at, [, marks, language]) {
  const last = run(lines, at, (next) => !(next.trim().startsWith(marks) && !next.trim().replaceAll(marks[0], "")));
  const code = lines.slice(at + 1, last).join("\n");
  return [
    last + 1,
    () => h("pre", { class: "code", tabindex: "0", "data-language": language || null }, h("code", {}, code)),
  ];
}

const paragraph = (text) => h("p", {}, inline(text));

function items(lines) {
  const found = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) found.push({ indent: item[1].length, mark: item[2], text: item[3] });
    else if (line.trim()) found.at(-1).text += `\n${line.trim()}`;
  }
  return found;
}

function list(all, depth = 0) {
  const first = all[0].mark;
  const ordered = /\d/.test(first);
  const nodes = [];
  for (let at = 0; at < all.length;) {
    const inner = run(all, at, ({ indent }) => depth < DEPTH && indent > all[at].indent + 1);
    nodes.push(h("li", {}, inline(all[at].text), inner > at + 1 && list(all.slice(at + 1, inner), depth + 1)));
    at = inner;
  }
  return h(ordered ? "ol" : "ul", { start: ordered && parseInt(first) !== 1 && parseInt(first) }, nodes);
}

function table([head, , ...rows]) {
  const cells = (line) =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split("|");
  const row = (tag) => (line) =>
    h(
      "tr",
      {},
      cells(line).map((cell) => h(tag, {}, inline(cell.trim()))),
    );
  return h(
    "div",
    { class: "wide" },
    h("table", {}, h("thead", {}, row("th")(head)), h("tbody", {}, rows.map(row("td")))),
  );
}

const LINK = /^\[([^\]\n]{1,500})\]\((?:<([^>\n]{1,2000})>|([^()\s]{1,2000}))\)/;
const ADDRESS = /^https?:\/\/[^\s<>"'`]{1,2000}/;
const PAIRS = [
  ["**", "strong"],
  ["__", "strong"],
  ["*", "em"],
  ["_", "em"],
];

function inline(text, depth = 0) {
  if (depth > DEPTH || text.length > LONG) return [text];
  const nodes = [];
  const alone = new Set(); // marks without a partner in the rest of the text
  let plain = 0;
  const put = (at, end, node) => ((nodes.push(text.slice(plain, at), node), (plain = end)), end);
  for (let at = 0; at < text.length;) {
    at = code(text, at, put, alone) ?? link(text, at, put, depth) ?? pair(text, at, put, depth, alone) ?? at + 1;
  }
  nodes.push(text.slice(plain));
  return nodes;
}

function code(text, at, put, alone) {
  if (text[at] !== "`") return null;
  const marks = /^`+/.exec(text.slice(at, at + 100))[0];
  const end = alone.has(marks) ? -1 : text.indexOf(marks, at + marks.length);
  if (end < 0) return (alone.add(marks), at + marks.length);
  return put(at, end + marks.length, h("code", {}, text.slice(at + marks.length, end).replace(/^ (.+) $/, "$1")));
}

function link(text, at, put, depth) {
  if (text[at] === "[") {
    const found = LINK.exec(text.slice(at, at + 2600));
    const where = found && safe(found[2] ?? found[3]);
    return where ? put(at, at + found[0].length, anchor(where, inline(found[1], depth + 1))) : null;
  }
  if (text[at] !== "h" || /\w/.test(text[at - 1] ?? "")) return null;
  const found = ADDRESS.exec(text.slice(at, at + 2100))?.[0].replace(/[.,;:!?)\]*_]+$/, "");
  const where = found && safe(found);
  return where ? put(at, at + found.length, anchor(where, found)) : null;
}

function pair(text, at, put, depth, alone) {
  const [mark, tag] = PAIRS.find(([each]) => text.startsWith(each, at)) ?? [];
  if (!mark || alone.has(mark)) return null;
  const inWord = mark[0] === "_" && /\w/.test(text[at - 1] ?? "");
  if (inWord || !/\S/.test(text[at + mark.length] ?? "")) return at + mark.length;
  const end = text.indexOf(mark, at + mark.length + 1);
  if (end < 0) return (alone.add(mark), at + mark.length);
  if (/\s/.test(text[end - 1]) || (mark[0] === "_" && /\w/.test(text[end + mark.length] ?? "")))
    return at + mark.length;
  return put(at, end + mark.length, h(tag, {}, inline(text.slice(at + mark.length, end), depth + 1)));
}

function safe(address) {
  try {
    const { protocol, href } = new URL(address);
    return protocol === "http:" || protocol === "https:" ? href : null;
  } catch {
    return null; // not an absolute URL
  }
}

const anchor = (href, words) => h("a", { href, title: href, target: "_blank", rel: "noopener noreferrer" }, words);
