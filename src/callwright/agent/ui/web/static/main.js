// Connects the parts of the page: one session at a time, its events folded and drawn.
import { Chat } from "./chat.js";
import { Connection } from "./connection.js";
import { icon } from "./dom.js";
import { Files } from "./files.js";
import { begin, fold, now } from "./fold.js";
import { Sessions } from "./sessions.js";

const $ = (id) => document.getElementById(id);
const NEAR = 60; // pixels from the end at which the page follows what is added

let state = begin();
let link = { session: "", open: false, busy: false };
let connection = null;
let chat = null;
let following = true; // keep the end visible until the user scrolls away
let shown = { files: null, asked: "", session: null, busy: false };
let planned = false;

// The user may be quicker than the sign-in: commands before the connection is open wait for it.
let markReady;
const ready = new Promise((resolve) => (markReady = resolve));
const command = async (type, fields = {}) => {
  await ready;
  return connection.command(type, fields);
};
const answer = async (approval, reply) => (await command("answer", { approval, reply })).problem;
const files = new Files($("files"), command);
const sessions = new Sessions({ place: $("sessions"), search: $("search"), open: go });

// ── one session ─────────────────────────────────────────────────────────────────────────────────
function go(session) {
  history.pushState(null, "", session ? `/?session=${encodeURIComponent(session)}` : "/");
  show(session);
  if (!session) $("words").focus();
}

function show(session) {
  connection?.leave();
  state = begin();
  link = { session, open: false, busy: false };
  following = true;
  shown = { files: null, asked: "", session: null, busy: false };
  $("log").replaceChildren();
  $("trouble").textContent = "";
  document.body.dataset.pane = "chat";
  chat = new Chat($("log"), answer);
  connection = new Connection({ session, after: () => state.seq, take, tell });
  plan();
}

function take(message) {
  if (message.type === "trouble") $("trouble").textContent = message.text;
  else if (message.type === "state") link = message;
  else for (const stamped of message.events) fold(state, stamped);
  if (!message.more) plan();
}

function tell(what) {
  if (what === "open") $("banner").hidden = true;
  if (what === "lost") {
    $("banner").hidden = false;
    $("banner").textContent = "Connection lost. Trying again…";
    look();
  }
  if (what === "closed") go("");
}

// ── drawing ────────────────────────────────────────────────────────────────────────────────
function plan() {
  if (planned) return;
  planned = true;
  // A hidden page gets no frames, but its title must show that an approval is waiting.
  if (document.hidden) setTimeout(draw, 200);
  else requestAnimationFrame(draw);
}

function draw() {
  planned = false;
  chat.draw(state);
  drawHead();
  drawWork();
  if (shown.files !== state.files) files.draw((shown.files = state.files), shown.session !== link.session);
  if (shown.session !== link.session || shown.busy !== link.busy) listed();
  follow();
  focusApproval();
}

function listed() {
  [shown.session, shown.busy] = [link.session, link.busy];
  sessions.current = link.session;
  if (link.session) history.replaceState(null, "", `/?session=${encodeURIComponent(link.session)}`);
  sessions.load();
}

function follow() {
  if (following) $("scroll").scrollTop = $("scroll").scrollHeight;
}

function drawHead() {
  $("title").textContent = state.title || (link.session ? "Session" : "New session");
  const { workspace, model, sandbox } = state.session ?? {};
  $("about").textContent = [workspace, model, sandbox].filter(Boolean).join(" · ");
  $("about").title = $("about").textContent;
  $("empty").hidden = state.items.length > 0 || Boolean(link.session && !state.session);
  $("show-files").dataset.count = state.files.length || "";
  document.title = state.asked
    ? `(!) Approval: ${state.asked.view}`
    : [state.title, "Callwright"].filter(Boolean).join(" · ");
}

function drawWork() {
  const doing = link.busy ? now(state) : "";
  if ($("now").textContent !== doing) $("now").textContent = doing;
  $("now").hidden = !doing;
  $("now").classList.toggle("asks", Boolean(state.asked));
  $("interrupted").hidden = !state.working || link.busy;
  $("stop").hidden = !link.busy;
  $("send").hidden = link.busy;
}

// A new approval gets the focus, on its card and not on a button: a key that was meant for something else must not
// answer it. A user who is typing is not interrupted.
function focusApproval() {
  const asked = state.asked?.asked.approval ?? "";
  if (asked === shown.asked) return;
  shown.asked = asked;
  if (!asked) return;
  const card = $("log").querySelector(`[data-approval="${CSS.escape(asked)}"]`);
  const writing = document.activeElement?.matches("textarea, input") && document.activeElement.value;
  if (!writing) card?.focus({ preventScroll: true });
  card?.scrollIntoView({ block: "nearest" });
}

// ── user actions ────────────────────────────────────────────────────────────────────────
async function send() {
  const text = $("words").value.trim();
  if (!text || link.busy) return;
  following = true;
  $("words").value = ""; // at once: further input is the next task
  const { problem } = await command("task", { text });
  $("trouble").textContent = problem ?? "";
  if (problem) $("words").value ||= text;
  grow();
}

function grow() {
  $("words").rows = Math.min(10, $("words").value.split("\n").length);
}

async function run(type) {
  $("trouble").textContent = (await command(type)).problem ?? "";
}

function pane(name) {
  document.body.dataset.pane = document.body.dataset.pane === name ? "chat" : name;
}

function listen() {
  $("composer").addEventListener("submit", (event) => (event.preventDefault(), send()));
  $("words").addEventListener("input", grow);
  $("words").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  $("stop").addEventListener("click", () => run("stop"));
  $("resume").addEventListener("click", () => run("resume"));
  $("new").addEventListener("click", () => go(""));
  $("show-list").addEventListener("click", () => pane("list"));
  $("show-files").addEventListener("click", () => pane("files"));
  $("down").addEventListener("click", () => ((following = true), follow()));
  let top = 0;
  $("scroll").addEventListener("scroll", () => {
    const { scrollTop, scrollHeight, clientHeight } = $("scroll");
    const near = scrollHeight - scrollTop - clientHeight < NEAR;
    if (near || scrollTop < top) following = near; // growth below does not count as scrolling away
    top = scrollTop;
    $("down").hidden = following;
  });
  // Items get their final height when they first become visible.
  new ResizeObserver(follow).observe($("log"));
  new ResizeObserver(follow).observe($("scroll"));
  addEventListener("popstate", start);
  $("new").prepend(icon("plus"));
  for (const [id, sign] of [
    ["send", "send"],
    ["stop", "stop"],
    ["show-list", "menu"],
    ["show-files", "files"],
    ["down", "down"],
  ])
    $(id).prepend(icon(sign));
}

// ── sign-in ────────────────────────────────────────────────────────────────────────────────────
async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", `/${location.search}`);
  const body = JSON.stringify({ token });
  const { ok } = await fetch("/enter", { method: "POST", body });
  if (!ok)
    $("why-locked").textContent =
      "This URL is not valid, or no longer valid. Open the latest one that the terminal printed.";
}

// Whether the page is signed in; a restarted server has a new token.
async function look() {
  const status = await fetch("/sessions").then(
    (reply) => reply.status,
    () => 0,
  );
  if (status !== 403) return true;
  connection?.leave();
  document.body.dataset.pane = "locked";
  $("locked").hidden = false;
  return false;
}

function start() {
  show(new URLSearchParams(location.search).get("session") ?? "");
  markReady();
}

listen();
await enter();
if (await look()) start();
