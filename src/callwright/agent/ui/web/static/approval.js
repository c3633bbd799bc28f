// The approval card: what would run, why it needs approval, how dangerous it is, and exactly what "always" allows.
import { diff } from "./diff.js";
import { coded, h, icon } from "./dom.js";
import { TIERS } from "./words.js";

const WHO = { person: "You", policy: "The policy", remembered: "An earlier answer of yours", settings: "The settings" };
// Invisible characters, and those that reorder others: the text that is read must be the text that is approved.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g;
const NAMES = { command: "command", edit: "edit", read: "read", tool: "tool", again: "repetition", server: "server" };

// `answer(approval, reply)` resolves to what is wrong with the answer, or to nothing.
export function approvalCard(request, answer) {
  const field =
    request.command &&
    h("textarea", {
      class: "mono",
      rows: Math.min(8, request.command.split("\n").length),
      spellcheck: "false",
      "aria-label": "Command",
    });
  const words = h("input", {
    type: "text",
    placeholder: "Message to the model (optional)",
    "aria-label": "Message to the model",
  });
  const problem = h("p", { class: "problem", role: "alert" });
  if (field) field.value = request.command;
  const before = field && field.value; // browsers normalize line ends
  const changed = () => Boolean(field) && field.value !== before;

  async function submit(verdict) {
    buttons.forEach((each) => (each.disabled = true));
    const command = changed() && verdict === "once" ? field.value : "";
    problem.textContent = await answer(request.approval, { verdict, command, words: words.value.trim() });
    buttons.forEach((each) => (each.disabled = false));
    follow();
  }
  const button = (verdict, title, kind) =>
    h("button", { type: "button", class: kind, onclick: () => submit(verdict) }, title);
  const once = button("once", "Allow once", "primary");
  const always = request.remember.length > 0 && button("always", "Always", "");
  const buttons = [once, always, button("deny", "Deny", ""), button("stop", "Deny and stop", "quiet")].filter(Boolean);

  function follow() {
    once.textContent = changed() ? "Allow edited command" : "Allow once";
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
      "aria-label": `Approval: ${request.title}`,
      "data-tier": request.tier,
      "data-approval": request.approval,
    },
    h(
      "header",
      {},
      icon("shield"),
      h("h3", {}, request.title),
      h("span", { class: "tier", title: `What this ${NAMES[request.subject]} could do` }, TIERS[request.tier]),
    ),
    request.why && h("p", { class: "why" }, coded(request.why)),
    field && [
      field,
      h(
        "p",
        { class: "hint" },
        request.folder ? `Runs in ${request.folder}. ` : "",
        "You can edit the command; an edited command is judged again.",
      ),
    ],
    request.diff && diff(request.diff),
    unseen([request.title, request.why, request.command, request.diff].join("")),
    request.remember.length > 0 && remembered(request),
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
    h("p", { class: "unseen" }, `It contains invisible characters: ${[...found].map(code).join(", ")}.`)
  );
}

// The approval of a server's file is permanent, and its text says so; all others last until the session ends.
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

// Describes a pattern of the policy. An unknown form is shown as it is.
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

// The decision in one line; nothing for what the policy allows.
export function decision({ verdict, by, why, words, remembered: rules }, { changed, command }) {
  if (verdict === "allow" && by === "policy") return null;
  const allowed = changed ? "edited and allowed it" : "allowed it";
  const what = { allow: allowed, deny: "denied it", stop: "stopped the task" }[verdict];
  const more = [by !== "person" && why, words && !(changed && words.includes(command)) && `“${words}”`]
    .filter(Boolean)
    .join(" ");
  return h(
    "p",
    { class: "decision", "data-verdict": verdict },
    `${WHO[by]} ${what}`,
    more && [": ", coded(more)],
    rules.length > 0 && [", and until this session ends also ", listed(rules)],
  );
}
