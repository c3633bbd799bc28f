// The files that the session has changed, with their hunks, to keep or undo.
import { diff, stat } from "./diff.js";
import { h, icon } from "./dom.js";
import { count } from "./words.js";

export class Files {
  #place;
  #command; // (type, fields) → { problem, conflicts, files }
  #files = [];
  #review = new Map(); // path → FileReview, for the files that are unfolded
  #unfolded = new Set();
  #outcomes = new Map(); // path → { problem, conflicts, hunk }: the result of the last command
  #sure = false; // "Undo all" was pressed once

  constructor(place, command) {
    this.#place = place;
    this.#command = command;
  }

  // Called when the changed files differ, and when another session is shown (`anew`).
  async draw(files, anew = false) {
    if (anew) [this.#review, this.#outcomes, this.#unfolded] = [new Map(), new Map(), new Set()];
    const paths = new Set(files.map(({ path }) => path));
    for (const path of this.#unfolded) if (!paths.has(path)) this.#unfolded.delete(path);
    this.#files = files;
    this.#show();
    if (this.#unfolded.size) await this.#look();
  }

  async #look() {
    const { files, problem } = await this.#command("review", {});
    if (files) this.#review = new Map(files.map((file) => [file.path, file]));
    if (problem) for (const path of this.#unfolded) this.#outcomes.set(path, { problem, conflicts: [] });
    this.#show();
  }

  async #do(type, { path = "", hunk = "", force = false }) {
    this.#outcomes.delete(path);
    this.#sure = false;
    const { problem, conflicts = [] } = await this.#command(
      type,
      type === "undo" ? { path, hunk, force } : { path, hunk },
    );
    if (problem || conflicts.length) this.#outcomes.set(path, { problem, conflicts, hunk });
    this.#show();
  }

  #show() {
    const focused = document.activeElement?.closest?.("[data-focus]")?.dataset.focus;
    const sum = (name) => this.#files.reduce((total, file) => total + file[name], 0);
    const total = { added: sum("added"), removed: sum("removed") };
    this.#place.replaceChildren(
      h("header", {}, h("h2", {}, "Files changed"), this.#files.length > 0 && stat(total)),
      this.#files.length
        ? this.#all()
        : h("p", { class: "empty" }, "Nothing to review. Changes of the agent are listed here, to be kept or undone."),
      ...this.#files.map((file) => this.#file(file)),
    );
    if (focused) this.#place.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
  }

  #button(type, title, fields, extra = {}) {
    const focus = `${type}:${fields.path ?? ""}:${fields.hunk ?? ""}`;
    return h(
      "button",
      { type: "button", class: "small", "data-focus": focus, onclick: () => this.#do(type, fields), ...extra },
      icon(type),
      title,
    );
  }

  #all() {
    const sure = () => ((this.#sure = true), this.#show());
    const undo = this.#sure
      ? this.#button("undo", `Undo ${count(this.#files.length, "file")}?`, {}, { class: "small danger" })
      : this.#button("undo", "Undo all", {}, { onclick: sure });
    return h("div", { class: "all" }, this.#button("keep", "Keep all", {}), undo, this.#outcome(""));
  }

  #file(file) {
    const { path, state } = file;
    const review = this.#review.get(path);
    const open = this.#unfolded.has(path);
    const unfold = () => {
      if (open) this.#unfolded.delete(path);
      else this.#unfolded.add(path);
      this.#show();
      if (!open) this.#look();
    };
    const title = [
      h("span", { class: "path", title: path }, h("bdi", {}, path)),
      state !== "changed" && h("em", {}, state === "created" ? "new" : state),
      stat(file),
    ];
    return h(
      "section",
      { class: "changed", "aria-label": path },
      h(
        "header",
        {},
        h(
          "button",
          {
            type: "button",
            class: "toggle",
            "aria-expanded": String(open),
            "data-focus": `file:${path}`,
            onclick: unfold,
          },
          title,
        ),
        this.#button("keep", "", { path }, { "aria-label": `Keep ${path}`, title: "Keep" }),
        this.#button("undo", "", { path }, { "aria-label": `Undo ${path}`, title: "Undo" }),
      ),
      review?.changed_by_user && h("p", { class: "disturbed" }, "You have changed this file since."),
      this.#outcome(path),
      open && (review ? review.hunks.map((hunk) => this.#hunk(path, hunk)) : h("p", { class: "empty" }, "Loading…")),
    );
  }

  #hunk(path, { id, text, added, removed }) {
    const actions = [
      stat({ added, removed }),
      this.#button("keep", "Keep", { path, hunk: id }),
      this.#button("undo", "Undo", { path, hunk: id }),
    ];
    return h("section", { class: "hunk", "aria-label": "Part" }, h("div", { class: "actions" }, actions), diff(text));
  }

  #outcome(path) {
    const outcome = this.#outcomes.get(path);
    if (!outcome) return null;
    const leave = () => (this.#outcomes.delete(path), this.#show());
    return h(
      "div",
      { class: "conflict", role: "alert" },
      [outcome.problem, ...outcome.conflicts].filter(Boolean).map((line) => h("p", {}, line)),
      outcome.conflicts.length > 0 &&
        this.#button(
          "undo",
          "Undo anyway",
          { path, hunk: outcome.hunk, force: true },
          { class: "small danger", "data-focus": `force:${path}` },
        ),
      h("button", { type: "button", class: "small", onclick: leave }, outcome.conflicts.length ? "Cancel" : "Dismiss"),
    );
  }
}
