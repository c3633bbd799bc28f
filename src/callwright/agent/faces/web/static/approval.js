// The card on which a person decides: what, why, how dangerous, and exactly what "always" would remember.
import { diff } from "./diff.js";
import { coded, h, icon } from "./dom.js";
import { TIERS } from "./words.js";

const NAMES = { command: "command", edit: "edit", read: "read", tool: "tool", again: "repetition", server: "server" };

// `answer(approval, reply)` returns what is wrong with the answer, or nothing.
export function approvalCard(asked, answer) {
  const field = asked.command && h("textarea", { class: "mono", rows: Math.min(8, asked.command.split("\n").length), spellcheck: "false", "aria-label": "Command" });
  const words = h("input", { type: "text", placeholder: "Tell the model why (optional)", "aria-label": "What the model is told" });
  const problem = h("p", { class: "problem", role: "alert" });
  const changed = () => Boolean(field) && field.value !== asked.command;

  async function say(verdict) {
    buttons.forEach((each) => (each.disabled = true));
    const command = changed() && verdict === "once" ? field.value : "";
    problem.textContent = await answer(asked.approval, { verdict, command, words: words.value.trim() });
    buttons.forEach((each) => (each.disabled = false));
    follow();
  }
  const button = (verdict, title, kind) => h("button", { type: "button", class: kind, onclick: () => say(verdict) }, title);
  const once = button("once", "Allow once", "primary");
  const always = asked.remember.length > 0 && button("always", "Always", "");
  const buttons = [once, always, button("deny", "Deny", ""), button("stop", "Deny and stop", "quiet")].filter(Boolean);

  function follow() {
    once.textContent = changed() ? "Allow as changed" : "Allow once";
    if (always) always.disabled = changed();
    once.disabled = changed() && !field.value.trim();
  }
  if (field) {
    field.value = asked.command;
    field.addEventListener("input", follow);
  }

  return h(
    "section",
    { class: "approval", tabindex: "-1", role: "group", "aria-label": `Approval: ${asked.title}`, "data-tier": asked.tier, "data-approval": asked.approval },
    h("header", {}, icon("shield"), h("h3", {}, asked.title), h("span", { class: "tier", title: `What this ${NAMES[asked.subject]} could do` }, TIERS[asked.tier])),
    asked.why && h("p", { class: "why" }, coded(asked.why)),
    field && [field, h("p", { class: "hint" }, asked.folder ? `Runs in ${asked.folder}. ` : "", "You may change it; what you change is judged again.")],
    asked.diff && diff(asked.diff),
    asked.remember.length > 0 && remembered(asked.remember),
    words,
    h("footer", {}, buttons),
    problem,
  );
}

const remembered = (rules) =>
  h("p", { class: "remember" }, "“Always” allows, until this session ends: ", rules.map((rule, at) => [at > 0 && ", ", h("code", {}, rule)]));

// What was decided, in a line; nothing for what the rules allow anyway.
export function decision({ verdict, by, why, words, remembered: rules }, changed) {
  if (verdict === "allow" && by === "policy") return null;
  const who = { person: "You", policy: "The policy", remembered: "What you allowed before", settings: "The settings" }[by];
  const what = { allow: changed ? "changed it, and allowed that" : "allowed it", deny: "denied it", stop: "stopped here" }[verdict];
  const more = [by !== "person" && why, words && `“${words}”`].filter(Boolean).join(" ");
  return h("p", { class: "decision", "data-verdict": verdict }, `${who} ${what}`, more && [": ", coded(more)], rules.length > 0 && [", and until this session ends ", rules.map((rule) => [h("code", {}, rule), " "])]);
}
