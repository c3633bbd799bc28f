// Draws the items of a session. Only items that changed are redrawn; the result is the same as drawing all at once.
import { card } from "./card.js";
import { stat } from "./diff.js";
import { coded, h, icon } from "./dom.js";
import { blocks } from "./markdown.js";
import { ENDINGS, clock, count, duration, number } from "./words.js";

const FEW = 4; // calls of a finished group that stay visible

// Foldable sections; their content is built when they are first opened.
export class Folds {
  #open = new Map();

  fold(key, open, summary, draw, fields = {}) {
    const inside = h("div", { class: "inside" });
    const details = h("details", { ...fields, open: this.#open.get(key) ?? open }, h("summary", {}, summary), inside);
    const fill = () => !inside.hasChildNodes() && inside.append(...[draw()].flat());
    if (details.open) fill();
    details.addEventListener("toggle", () => {
      if (details.open) fill();
      if (details.open !== (this.#open.get(key) ?? open)) this.#open.set(key, details.open);
    });
    return details;
  }
}

export class Chat {
  #log;
  #tools;
  #drawn = new Map(); // key → { rev, node, entries }

  constructor(log, answer) {
    this.#log = log;
    this.#tools = { answer, folds: new Folds() };
  }

  draw(state) {
    for (const item of state.items) {
      const drawn = this.#drawn.get(item.key);
      if (!drawn) {
        const made = { rev: item.rev, ...this.#make(item) };
        this.#drawn.set(item.key, made);
        this.#log.append(made.node);
      } else if (drawn.rev !== item.rev) {
        drawn.rev = item.rev;
        this.#renew(item, drawn);
      }
    }
  }

  #make(item) {
    if (item.kind === "text") return text(item);
    if (item.kind === "group") return this.#group(item);
    return { node: this.#still(item) };
  }

  #renew(item, drawn) {
    if (item.kind === "text") patchText(item, drawn);
    else if (item.kind === "group") this.#patchGroup(item, drawn);
    else {
      const node = this.#still(item);
      drawn.node.replaceWith(node);
      drawn.node = node;
    }
  }

  #still(item) {
    if (item.kind === "task") return task(item);
    if (item.kind === "thinking") return thinking(item, this.#tools.folds);
    if (item.kind === "ending") return ending(item);
    return h("p", { class: "note", "data-tone": item.tone }, icon(item.sign), h("span", {}, coded(item.text)));
  }

  // A changed group keeps the cards of its other calls: the user may be typing an answer into one of them.
  #group(item) {
    const made = { entries: new Map(), list: h("div", { class: "cards" }), title: h("span"), was: null };
    if (item.loose) made.node = h("section", { class: "group" }, made.list);
    else made.node = h("details", { class: "group", open: true }, h("summary", {}, made.title), made.list);
    this.#patchGroup(item, made);
    return made;
  }

  #patchGroup(item, drawn) {
    for (const entry of item.entries) {
      const known = drawn.entries.get(entry.key);
      if (known?.rev === entry.rev) continue;
      const node = card(entry, this.#tools);
      if (known) known.node.replaceWith(node);
      else drawn.list.append(node);
      drawn.entries.set(entry.key, { rev: entry.rev, node });
    }
    drawn.title.textContent = groupTitle(item);
    if (item.closed && !drawn.closed) {
      drawn.closed = true;
      if (item.entries.length > FEW && item.entries.every(({ status }) => status === "ok")) drawn.node.open = false;
    }
  }
}

const task = ({ text: words, at }) =>
  h(
    "article",
    { class: "task", "aria-label": "You" },
    h("p", {}, words),
    h("time", { datetime: new Date(at * 1000).toISOString() }, clock(at)),
  );

function thinking({ key, text: words, seconds, streaming }, folds) {
  const title = streaming
    ? "Thinking"
    : ["Thought", seconds !== null && duration(seconds) && ` for ${duration(seconds)}`].filter(Boolean).join("");
  return folds.fold(`${key}:thinking`, false, [icon("think"), title].flat(), () => h("p", {}, words), {
    class: "thinking",
    "aria-busy": streaming && "true",
  });
}

function text(item) {
  const drawn = { node: h("article", { class: "text" }), sources: [] };
  patchText(item, drawn);
  return drawn;
}

// While a text grows only its last blocks change: the others stay, and so does the user's selection.
function patchText(item, drawn) {
  const now = blocks(item.text);
  let same = 0;
  while (same < now.length && drawn.sources[same] === now[same].source) same += 1;
  while (drawn.node.childElementCount > same) drawn.node.lastElementChild.remove();
  drawn.node.append(...now.slice(same).map(({ draw }) => draw()));
  drawn.sources = now.map(({ source }) => source);
  if (item.streaming) drawn.node.setAttribute("aria-busy", "true");
  else drawn.node.removeAttribute("aria-busy");
}

function groupTitle({ title, calls, entries, closed }) {
  const seconds = entries.reduce((sum, entry) => sum + entry.seconds, 0);
  const all = count(Math.max(calls, entries.length), "call");
  return [title, closed ? all : `${entries.filter(({ ended }) => ended).length} of ${all}`, closed && duration(seconds)]
    .filter(Boolean)
    .join(" · ");
}

function ending({ reason, text: words, summary }) {
  const part = (name, lines) =>
    lines.length > 0 && [
      h("h4", {}, name),
      h(
        "ul",
        {},
        lines.map((line) => h("li", {}, line)),
      ),
    ];
  return h(
    "article",
    { class: "ending", "data-reason": reason, "aria-label": "Summary" },
    h("h3", {}, icon(reason === "done" ? "keep" : "note"), ENDINGS[reason]),
    words && h("p", {}, coded(words)),
    summary && [
      part("Did", summary.done),
      part("Failed", summary.failed),
      part("Denied", summary.denied),
      summary.files.length > 0 && [
        h("h4", {}, "Files"),
        h(
          "ul",
          { class: "files" },
          summary.files.map((file) => h("li", {}, h("span", {}, file.path), stat(file))),
        ),
      ],
      h(
        "p",
        { class: "spent" },
        [count(summary.turns, "turn"), `${number(summary.tokens)} tokens`, duration(summary.seconds)]
          .filter(Boolean)
          .join(" · "),
      ),
    ],
  );
}
