// The connection to one session. It reconnects by itself and requests the events after the last one that the page has,
// so that no event is lost or repeated.

const RETRY = { first: 250, longest: 5_000 }; // milliseconds
const FINAL = 4400; // codes from here on mean: do not reconnect
const LOST = "The connection was lost. The result is shown after reconnecting.";

export class Connection {
  #socket;
  #timer;
  #wait = RETRY.first;
  #left = false;
  #number = 0;
  #waiting = new Map(); // command number → resolve

  // `after()` is the number of the last event that the page has; `take` receives messages; `tell` receives
  // "connecting", "open", "lost", or "closed" with a reason.
  constructor({ session, after, take, tell }) {
    Object.assign(this, { session, after, take, tell });
    this.hurry = () => this.#timer && this.#connect();
    addEventListener("online", this.hurry);
    addEventListener("focus", this.hurry);
    this.#connect();
  }

  // Sends a command, as soon as the connection is open; resolves to its result.
  command(type, fields) {
    const socket = this.#socket;
    if (socket.readyState > WebSocket.OPEN) return Promise.resolve({ problem: "Not connected." });
    const id = (this.#number += 1);
    const sendCommand = () => socket.send(JSON.stringify({ type, id, ...fields }));
    if (socket.readyState === WebSocket.OPEN) sendCommand();
    else socket.addEventListener("open", sendCommand, { once: true });
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  leave() {
    this.#left = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.hurry);
    removeEventListener("focus", this.hurry);
    this.#socket.close(1000);
    this.#fail();
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#timer = null;
    const query = new URLSearchParams({ session: this.session, after: this.after() });
    const socket = (this.#socket = new WebSocket(`ws://${location.host}/ws?${query}`));
    this.tell("connecting");
    socket.onmessage = ({ data }) => !this.#left && this.#socket === socket && this.#take(JSON.parse(data));
    socket.onclose = ({ code }) => {
      this.#fail();
      if (this.#left || this.#socket !== socket) return;
      if (code >= FINAL) return this.tell("closed");
      this.tell("lost");
      this.#timer = setTimeout(() => this.#connect(), this.#wait * (0.5 + Math.random() / 2));
      this.#wait = Math.min(this.#wait * 2, RETRY.longest);
    };
  }

  #take(message) {
    if (message.type === "done") {
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
      return;
    }
    if (message.type === "state") {
      this.session = message.session;
      this.#wait = RETRY.first;
      this.tell("open");
    }
    this.take(message);
  }

  #fail() {
    for (const resolve of this.#waiting.values()) resolve({ problem: LOST });
    this.#waiting.clear();
  }
}
