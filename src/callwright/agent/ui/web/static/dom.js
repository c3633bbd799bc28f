// Builds elements. Text only ever becomes text: nothing on this page inserts HTML.

const NAMESPACE = "http://www.w3.org/2000/svg";

// h("button", { class: "plain", onclick: go }, "Go"): children may be nodes, strings, lists, or nothing.
export function h(tag, fields = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
}

// A sentence in which `this` is code.
export function coded(text) {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, at) => (at % 2 ? h("code", {}, part) : part)) : [text];
}

// An icon of 16 by 16, drawn with lines. The text beside it has the same meaning.
export function icon(name) {
  const picture = document.createElementNS(NAMESPACE, "svg");
  picture.setAttribute("viewBox", "0 0 16 16");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(NAMESPACE, "path");
  path.setAttribute("d", LINES[name] ?? LINES.tool);
  picture.append(path);
  return picture;
}

const LINES = {
  read: "M4 1.75h5L12.25 5v9.25H4zM9 1.75V5h3.25M6 8h4.25M6 10.75h4.25",
  edit: "M10.75 2.5l2.75 2.75L5.75 13H3v-2.75zM9 4.25L11.75 7",
  list: "M1.75 4V2.75h4.5L8 4.5h6.25v8.75H1.75z",
  search: "M7 2.25a4.75 4.75 0 1 1 0 9.5a4.75 4.75 0 0 1 0-9.5zM10.5 10.5l3.5 3.5",
  command: "M1.75 2.75h12.5v10.5H1.75zM4.5 6l2.25 2L4.5 10M8.5 10.25h3",
  check: "M8 1.75l5.25 2v4c0 3.25-2.25 5.5-5.25 6.5c-3-1-5.25-3.25-5.25-6.5v-4zM5.75 8l1.75 1.75L10.5 6.5",
  tool: "M9.5 6.5L3 13M10.25 2.5a3.25 3.25 0 0 0-2.5 4.75a3.25 3.25 0 0 0 4.75 1.25a3.25 3.25 0 0 0 1.25-3.25L11.5 7L9.25 6.75L9 4.5z",
  think: "M8 1.75a4.5 4.5 0 0 0-2.5 8.25v2h5v-2A4.5 4.5 0 0 0 8 1.75zM6.25 14.25h3.5",
  shield: "M8 1.75l5.25 2v4c0 3.25-2.25 5.5-5.25 6.5c-3-1-5.25-3.25-5.25-6.5v-4zM8 5v3.5M8 10.5v.25",
  branch:
    "M4.5 5.5v5M4.5 5.5a1.75 1.75 0 1 0 0-3.5a1.75 1.75 0 0 0 0 3.5zM4.5 14a1.75 1.75 0 1 0 0-3.5a1.75 1.75 0 0 0 0 3.5zM11.5 5.5a1.75 1.75 0 1 0 0-3.5a1.75 1.75 0 0 0 0 3.5zM11.5 5.5c0 3-7 1.75-7 5",
  note: "M8 1.75a6.25 6.25 0 1 1 0 12.5a6.25 6.25 0 0 1 0-12.5zM8 7.25v4M8 4.75v.25",
  warning: "M8 2.25L14.5 13.5H1.5zM8 6.5v3.25M8 11.5v.25",
  keep: "M2.75 8.5l3.5 3.5l7-8",
  undo: "M2.75 6.25h7a3.5 3.5 0 0 1 0 7H6M5.5 3.25l-3 3l3 3",
  plus: "M8 2.75v10.5M2.75 8h10.5",
  stop: "M4 4h8v8H4z",
  send: "M8 13.5V3M3.75 7.25L8 3l4.25 4.25",
  bin: "M2.75 4.25h10.5M6.25 4V2.25h3.5V4M4.25 4.25l.5 9.5h6.5l.5-9.5",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  files: "M5.25 1.75h4.5L12.75 4.75v7.5h-7.5zM5.25 4.25h-2v10h7v-2",
  down: "M8 3v10M3.75 8.75L8 13l4.25-4.25",
};
