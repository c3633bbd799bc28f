// The card on which a person decides: what, why, how dangerous, and exactly what "always" would remember.
import { diff } from "./diff.js";
import { coded, h, icon } from "./dom.js";
import { TIERS } from "./words.js";

const WHO = { person: "You", policy: "The policy", remembered: "What you allowed before", settings: "The settings" };
// Characters that are not seen, or that turn the order of others around: what is approved must be what is read.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g;
const NAMES = { command: "command", edit: "edit", read: "read", tool: "tool", again: "repetition", server: "server" };

// `answer(approval, reply)` returns what is wrong with the answer, or nothing.
export function approvalCard(asked, answer) {
  const field =
    asked.command &&
    h("textarea", {
      class: "mono",
      rows: Math.min(8, asked.command.split("\n").length),
      spellcheck: "false",
      "aria-label": "Command",
    });
  const words = h("input", {
    type: "text",
    placeholder: "Tell the model why (optional)",
    "aria-label": "What the model is told",
  });
  const problem = h("p", { class: "problem", role: "alert" });
  if (field) field.value = asked.command;
  const before = field && field.value; // browsers change the ends of lines
  const changed = () => Boolean(field) && field.value !== before;

  async function say(verdict) {
    buttons.forEach((each) => (each.disabled = true));
    const command = changed() && verdict === "once" ? field.value : "";
    problem.textContent = await answer(asked.approval, { verdict, command, words: words.value.trim() });
    buttons.forEach((each) => (each.disabled = false));
    follow();
  }
  const button = (verdict, title, kind) =>
    h("button", { type: "button", class: kind, onclick: () => say(verdict) }, title);
  const once = button("once", "Allow once", "primary");
  const always = asked.remember.length > 0 && button("always", "Always", "");
  const buttons = [once, always, button("deny", "Deny", ""), button("stop", "Deny and stop", "quiet")].filter(Boolean);

  function follow() {
    once.textContent = changed() ? "Allow as changed" : "Allow once";
    if (always) always.disabled = changed();
    once.disabled = changed() && !field.value.trim();
  }
  if (field) field.addEventListener("input", follow);

  return h(
    "section",
    {
      class: "approval",
      tabindex: "-1",
      role: "group",
      "aria-label": `Approval: ${asked.title}`,
      "data-tier": asked.tier,
      "data-approval": asked.approval,
    },
    h(
      "header",
      {},
      icon("shield"),
      h("h3", {}, asked.title),
      h("span", { class: "tier", title: `What this ${NAMES[asked.subject]} could do` }, TIERS[asked.tier]),
    ),
    asked.why && h("p", { class: "why" }, coded(asked.why)),
    field && [
      field,
      h(
        "p",
        { class: "hint" },
        asked.folder ? `Runs in ${asked.folder}. ` : "",
        "You may change it; what you change is judged again.",
      ),
    ],
    asked.diff && diff(asked.diff),
    unseen([asked.title, asked.why, asked.command, asked.diff].join("")),
    asked.remember.length > 0 && remembered(asked),
    words,
    h("footer", {}, buttons),
    problem,
  );
}

function unseen(text) {
  const found = new Set(text.match(UNSEEN));
  const code = (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  return (
    found.size > 0 &&
    h("p", { class: "unseen" }, `It holds characters that are not seen: ${[...found].map(code).join(", ")}.`)
  );
}

// A server's file is remembered for good, and its question says so; everything else until the session ends.
const remembered = ({ subject, remember }) =>
  h(
    "p",
    { class: "remember" },
    "“Always” allows",
    subject !== "server" && ", until this session ends",
    ": ",
    listed(remember),
  );

const listed = (rules) => rules.map((rule, at) => [at > 0 && ", ", inWords(rule)]);

// What a policy's pattern means. What is none of the known forms is shown as it is.
function inWords(rule) {
  const tool = /^\{ tool = "([^"\\]*)" \}$/.exec(rule);
  if (tool) return ["every call of ", h("code", {}, tool[1])];
  if (!rule.startsWith("[")) return h("code", {}, rule);
  try {
    const words = JSON.parse(rule).map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word)));
    return ["commands that begin with ", h("code", {}, words.join(" "))];
  } catch {
    return h("code", {}, rule);
  }
}

// What was decided, in a line; nothing for what the rules allow anyway.
export function decision({ verdict, by, why, words, remembered: rules }, { changed, command }) {
  if (verdict === "allow" && by === "policy") return null;
  const allowed = changed ? "changed it, and allowed that" : "allowed it";
  const what = { allow: allowed, deny: "denied it", stop: "stopped here" }[verdict];
  const more = [by !== "person" && why, words && !(changed && words.includes(command)) && `“${words}”`]
    .filter(Boolean)
    .join(" ");
  return h(
    "p",
    { class: "decision", "data-verdict": verdict },
    `${WHO[by]} ${what}`,
    more && [": ", coded(more)],
    rules.length > 0 && [", and until this session ends ", listed(rules)],
  );
}
