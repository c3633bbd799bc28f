// The connection to one session. It comes back by itself, and asks for the events after the last one that the page has,
// so none is lost and none comes twice.

const RETRY = { first: 250, longest: 5_000 }; // milliseconds
const FINAL = 4400; // codes from here on mean: do not come back
const LOST = "The connection was lost. What came of this is shown when it is back.";

export class Connection {
  #socket;
  #timer;
  #wait = RETRY.first;
  #left = false;
  #number = 0;
  #waiting = new Map(); // command number → resolve

  // `after()` is the number of the last event that the page has; `take` gets what the server says; `tell` gets
  // "connecting", "open", "lost", or "closed" with a reason.
  constructor({ session, after, take, tell }) {
    Object.assign(this, { session, after, take, tell });
    this.hurry = () => this.#timer && this.#connect();
    addEventListener("online", this.hurry);
    addEventListener("focus", this.hurry);
    this.#connect();
  }

  // Says a command, as soon as the connection is there; what came of it.
  command(type, fields) {
    const socket = this.#socket;
    if (socket.readyState > WebSocket.OPEN) return Promise.resolve({ problem: "There is no connection." });
    const id = (this.#number += 1);
    const say = () => socket.send(JSON.stringify({ type, id, ...fields }));
    if (socket.readyState === WebSocket.OPEN) say();
    else socket.addEventListener("open", say, { once: true });
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
