// Lets a page serve conversations to Callwright; docs/bridge.md in its repository describes the frames.
//
//   const bridge = new CallwrightBridge({
//     url: "ws://127.0.0.1:8787/bridge",
//     token: "…",
//     async create({ prompt, model, system, signal, opened }) { opened("42"); return "all of the answer"; },
//     async *send({ conversation, prompt, model, system, signal }) { yield "a "; yield "streamed answer"; },
//   });
//   bridge.start();
//
// `create` names its conversation with `opened(id)`. Both return the answer, or give it piece by piece, and stop when
// `signal` is aborted. To say that a conversation is not known: throw new CallwrightBridge.UnknownConversation().
"use strict";

const CallwrightBridge = (() => {
  const RETRY = { first: 250, longest: 15_000 }; // milliseconds
  const KEPT = 60_000; // how long an answer that is over can be sent again after a broken connection
  const FINAL = 4400; // codes from here on mean: do not come back

  class UnknownConversation extends Error {}

  // A request and all that was said about it, to be sent again from where the gateway lost it.
  class Serving {
    constructor(id, send) {
      this.id = id;
      this.frames = [];
      this.abort = new AbortController();
      this.send = send;
    }
    tell(type, fields) {
      const frame = { type, id: this.id, n: this.frames.length, ...fields };
      this.frames.push(frame);
      this.send(frame);
    }
  }

  class CallwrightBridge {
    constructor({ url, token, create, send, models = [], slots = 1, onstate = () => {} }) {
      Object.assign(this, { url, token, models, slots, onstate, handlers: { create, send } });
      this.page = crypto.getRandomValues(new Uint32Array(4)).join("-");
      this.serving = new Map();
      this.wait = RETRY.first;
      this.wanted = false;
    }

    start() {
      this.wanted = true;
      this.connect();
    }

    stop() {
      this.wanted = false;
      clearTimeout(this.timer);
      this.socket?.close(1000);
    }

    connect() {
      const socket = (this.socket = new WebSocket(this.url));
      this.onstate("connecting");
      socket.onopen = () => {
        const { token, page, slots, models } = this;
        socket.send(JSON.stringify({ type: "hello", token, page, slots, models }));
      };
      socket.onmessage = ({ data }) => this.socket === socket && this.take(JSON.parse(data));
      socket.onclose = ({ code, reason }) => {
        if (this.socket !== socket) return;
        this.ready = false;
        if (!this.wanted || code >= FINAL) return this.onstate("closed", reason);
        this.onstate("waiting");
        this.timer = setTimeout(() => this.connect(), this.wait * (0.5 + Math.random() / 2));
        this.wait = Math.min(this.wait * 2, RETRY.longest);
      };
    }

    tell(frame) {
      // What cannot be sent now is sent when the gateway says, in its welcome, that it has not got it.
      if (this.ready) this.socket.send(JSON.stringify(frame));
    }

    take(frame) {
      if (frame.type === "welcome") this.welcome(frame.requests);
      else if (frame.type === "ping") this.socket.send('{"type":"pong"}');
      else if (frame.type === "stop") this.drop(frame.id);
      else if (frame.type in this.handlers && !this.serving.has(frame.id)) this.serve(frame);
    }

    welcome(requests) {
      this.ready = true;
      this.wait = RETRY.first;
      this.onstate("open");
      for (const [id, { frames }] of this.serving)
        if (id in requests) frames.slice(requests[id]).forEach((frame) => this.tell(frame));
        else this.drop(id);
    }

    drop(id) {
      this.serving.get(id)?.abort.abort();
      this.serving.delete(id);
    }

    async serve({ type, id, ...request }) {
      const serving = new Serving(id, (frame) => this.tell(frame));
      this.serving.set(id, serving);
      const { signal } = serving.abort;
      const opened = (conversation) => serving.tell("opened", { conversation: String(conversation) });
      try {
        const answer = (await this.handlers[type]({ ...request, signal, opened })) ?? "";
        for await (const text of typeof answer === "object" ? answer : [answer]) {
          if (signal.aborted) break;
          serving.tell("text", { text: String(text) });
        }
        if (!signal.aborted) serving.tell("done");
      } catch (error) {
        const code = error instanceof UnknownConversation ? "unknown_conversation" : "";
        if (!signal.aborted) serving.tell("error", { message: error?.message || String(error), code });
      }
      setTimeout(() => this.serving.get(id) === serving && this.serving.delete(id), KEPT);
    }
  }

  CallwrightBridge.UnknownConversation = UnknownConversation;
  return CallwrightBridge;
})();
