// The list of sessions: search, open, create and delete.
import { stat } from "./diff.js";
import { h, icon } from "./dom.js";
import { ago } from "./words.js";

const STATES = { idle: "", working: "working", interrupted: "interrupted" };
const OFTEN = 10_000; // milliseconds

export class Sessions {
  #place;
  #open; // (session) → nothing
  #query = "";
  #rows = [];
  #more = false;
  #current = "";
  #sure = ""; // the session whose deletion waits for confirmation
  #problem = "";

  constructor({ place, search, open }) {
    this.#place = place;
    this.#open = open;
    let wait;
    search.addEventListener("input", () => {
      this.#query = search.value.trim();
      clearTimeout(wait);
      wait = setTimeout(() => this.load(), 150);
    });
    setInterval(() => document.hidden || this.load(), OFTEN);
  }

  set current(session) {
    this.#current = session;
    this.#show();
  }

  async load(offset = 0) {
    const query = this.#query;
    const limit = offset ? 0 : this.#rows.length; // rows that were loaded before stay
    try {
      let { sessions, more } = await rows(query, offset);
      while (more && !offset && sessions.length < limit) {
        const next = await rows(query, sessions.length);
        [sessions, more] = [[...sessions, ...next.sessions], next.more];
      }
      if (query !== this.#query) return;
      this.#rows = offset ? [...this.#rows, ...sessions] : sessions;
      this.#more = more;
    } catch {
      return; // the banner reports the lost connection
    }
    this.#show();
  }

  #show() {
    const focused = this.#place.contains(document.activeElement) && document.activeElement.dataset.focus;
    const nothing = this.#query ? "No matching sessions." : "No sessions yet.";
    const parts = [
      this.#problem && h("p", { class: "problem", role: "alert" }, this.#problem),
      this.#rows.length
        ? h(
            "ul",
            {},
            this.#rows.map((row) => this.#row(row)),
          )
        : h("p", { class: "empty" }, nothing),
      this.#more &&
        h("button", { type: "button", class: "small", onclick: () => this.load(this.#rows.length) }, "Show older sessions"),
    ];
    this.#place.replaceChildren(...parts.filter(Boolean));
    if (focused) this.#place.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  #row({ id, title, updated, state, added, removed }) {
    const sure = this.#sure === id;
    const name = title || "No task yet";
    const remove = () => (sure ? this.#delete(id) : ((this.#sure = id), this.#show()));
    return h(
      "li",
      { "aria-current": id === this.#current && "true" },
      h(
        "button",
        { type: "button", class: "session", title: name, "data-focus": `open:${id}`, onclick: () => this.#open(id) },
        h("span", { class: "name" }, name),
        h(
          "span",
          { class: "about" },
          ago(updated),
          STATES[state] && h("em", { "data-state": state }, STATES[state]),
          (added > 0 || removed > 0) && stat({ added, removed }),
        ),
      ),
      h(
        "button",
        {
          type: "button",
          class: sure ? "delete danger" : "delete",
          "data-focus": `delete:${id}`,
          "aria-label": sure ? `Confirm deleting ${name}` : `Delete ${name}`,
          onclick: remove,
          onblur: () => sure && (this.#sure = ""),
        },
        sure ? "Delete?" : icon("bin"),
      ),
    );
  }

  async #delete(id) {
    this.#sure = "";
    const answer = await fetch(`/sessions/${encodeURIComponent(id)}`, { method: "DELETE" });
    this.#problem = answer.ok ? "" : (await answer.json()).problem;
    if (answer.ok && id === this.#current) this.#open("");
    await this.load();
  }
}

async function rows(query, offset) {
  const answer = await fetch(`/sessions?${new URLSearchParams({ query, offset })}`);
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.json();
}
