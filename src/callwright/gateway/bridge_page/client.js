// Serves conversations of this page to Callwright; docs/bridge.md in its repository describes the frames.
//
//   const bridge = new CallwrightBridge({
//     url: "ws://127.0.0.1:8787/bridge",
//     token: "…",
//     async create({ prompt, model, system, signal, opened }) { opened("42"); return "all of the answer"; },
//     async *send({ conversation, prompt, model, system, signal }) { yield "a "; yield "streamed answer"; },
//   });
//   bridge.start();
//
// `create` names its conversation with `opened(id)`. Both return the answer, or yield it in pieces, and stop when
// `signal` is aborted. For a conversation that does not exist, throw new CallwrightBridge.UnknownConversation().
"use strict";

const CallwrightBridge = (() => {
  const RETRY = { first: 250, longest: 15_000 }; // milliseconds
  const RESEND_MS = 60_000; // how long a finished answer can be sent again after a lost connection
  const FINAL = 4400; // from this close code on, do not reconnect

  class UnknownConversation extends Error {}

  // One request and the frames sent for it, to be sent again from the first that the gateway lost.
  class PendingRequest {
    constructor(id, send) {
      this.id = id;
      this.frames = [];
      this.abort = new AbortController();
      this.send = send;
    }
    push(type, fields) {
      const frame = { type, id: this.id, n: this.frames.length, ...fields };
      this.frames.push(frame);
      this.send(frame);
    }
  }

  class CallwrightBridge {
    constructor({ url, token, create, send, models = [], slots = 1, onstate = () => {} }) {
      Object.assign(this, { url, token, models, slots, onstate, handlers: { create, send } });
      this.page = crypto.getRandomValues(new Uint32Array(4)).join("-");
      this.pending = new Map();
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
      socket.onmessage = ({ data }) => this.socket === socket && this.receive(JSON.parse(data));
      socket.onclose = ({ code, reason }) => {
        if (this.socket !== socket) return;
        this.ready = false;
        if (!this.wanted || code >= FINAL) return this.onstate("closed", reason);
        this.onstate("waiting");
        this.timer = setTimeout(() => this.connect(), this.wait * (0.5 + Math.random() / 2));
        this.wait = Math.min(this.wait * 2, RETRY.longest);
      };
    }

    sendFrame(frame) {
      // A frame that cannot be sent now is sent when the gateway's welcome shows that it is missing.
      if (this.ready) this.socket.send(JSON.stringify(frame));
    }

    receive(frame) {
      if (frame.type === "welcome") this.welcome(frame.requests);
      else if (frame.type === "ping") this.socket.send('{"type":"pong"}');
      else if (frame.type === "stop") this.drop(frame.id);
      else if (frame.type in this.handlers && !this.pending.has(frame.id)) this.serve(frame);
    }

    welcome(requests) {
      this.ready = true;
      this.wait = RETRY.first;
      this.onstate("open");
      for (const [id, { frames }] of this.pending)
        if (id in requests) frames.slice(requests[id]).forEach((frame) => this.sendFrame(frame));
        else this.drop(id);
    }

    drop(id) {
      this.pending.get(id)?.abort.abort();
      this.pending.delete(id);
    }

    async serve({ type, id, ...request }) {
      const pending = new PendingRequest(id, (frame) => this.sendFrame(frame));
      this.pending.set(id, pending);
      const { signal } = pending.abort;
      const opened = (conversation) => pending.push("opened", { conversation: String(conversation) });
      try {
        const answer = (await this.handlers[type]({ ...request, signal, opened })) ?? "";
        for await (const text of typeof answer === "object" ? answer : [answer]) {
          if (signal.aborted) break;
          pending.push("text", { text: String(text) });
        }
        if (!signal.aborted) pending.push("done");
      } catch (error) {
        const code = error instanceof UnknownConversation ? "unknown_conversation" : "";
        if (!signal.aborted) pending.push("error", { message: error?.message || String(error), code });
      }
      setTimeout(() => this.pending.get(id) === pending && this.pending.delete(id), RESEND_MS);
    }
  }

  CallwrightBridge.UnknownConversation = UnknownConversation;
  return CallwrightBridge;
})();
