// From here on the file is the same for every agent: how it reports to Takeback. AGENT is defined above.

import { spawn } from "node:child_process";
import { connect } from "node:net";

const TAKEBACK = "takeback";

/** Takeback has its own deadlines (`hookDeadlineMs`, `scanBudgetMs`); this limit is for one that hangs. */
const WAIT_MS = 12000;
/** How long to wait for a connection; the rest of the time is for `takeback hook`. */
const CONNECT_MS = 700;
/** How long to wait after a failed connection before the next attempt. */
const RETRY_MS = 30000;

/** `takeback serve`, and `takeback hook` for when there is no server. */
class Server {
  /** A promise of the connection; `undefined`: there is none, and none is being opened. */
  connection = undefined;
  openedAt = -Infinity;
  answers = new Map();
  pending = new Set();
  asked = 0;
  hooks = Promise.resolve();
  isGone = false;
  // The program that started the agent may record it already; `takeback hook` checks that, the server does not.
  isRecorded = process.env.TAKEBACK_SESSION !== undefined;

  open() {
    if (this.connection || this.isRecorded || Date.now() - this.openedAt < RETRY_MS) return;
    this.openedAt = Date.now();
    this.connection = this.connect().catch(() => this.disconnect());
  }

  disconnect() {
    this.connection = undefined;
    for (const answer of this.answers.values()) answer(undefined);
    this.answers.clear();
  }

  async connect() {
    const { code, output } = await run(["serve", "--ensure"]);
    const path = output.trim().split("\n").pop();
    if (code !== 0 || !path) return this.disconnect();
    return new Promise((resolve) => {
      const socket = connect(path);
      socket.setEncoding("utf8");
      let rest = "";
      socket.on("connect", () => resolve(socket));
      socket.on("data", (data) => {
        const lines = (rest + data).split("\n");
        rest = lines.pop();
        lines.forEach((line) => this.receive(line));
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(this.disconnect()));
      socket.unref();
    });
  }

  receive(line) {
    try {
      const { id, error, result } = JSON.parse(line);
      this.answers.get(id)?.(error === undefined ? (result ?? {}) : undefined);
      this.answers.delete(id);
    } catch {
      // Not an answer.
    }
  }

  /**
   * Resolves when Takeback has recorded the payload, or has taken too long: to a text for the model, if there is
   * one. Never rejects.
   */
  report(payload) {
    const sent = within(WAIT_MS + CONNECT_MS, this.send(payload)).catch(() => {});
    this.pending.add(sent);
    return sent.finally(() => this.pending.delete(sent));
  }

  async send(payload) {
    if (this.isGone) return;
    this.open();
    const socket = await within(CONNECT_MS, this.connection);
    if (socket === undefined) return this.hook(payload);
    const asked = this.ask(socket, payload).then((answer) => answer ?? "refused");
    const answer = await within(WAIT_MS, asked);
    if (answer === undefined) {
      // The server hangs. It may still record the payload; later ones are sent to `takeback hook`.
      this.disconnect();
      socket.destroy();
      return;
    }
    return answer === "refused" ? this.hook(payload) : answer.context;
  }

  ask(socket, payload) {
    const id = (this.asked += 1);
    const params = { agent: AGENT, payload, pid: process.pid };
    const line = JSON.stringify({ jsonrpc: "2.0", id, method: "event:hook", params });
    const answer = new Promise((resolve) => this.answers.set(id, resolve));
    socket.write(line + "\n");
    return answer;
  }

  /** One at a time, in the order of the events. */
  hook(payload) {
    const input = JSON.stringify(payload);
    const start = () => run(["hook", "--agent", AGENT], input);
    const answer = this.hooks.then(start).then(({ output }) => contextIn(output));
    this.hooks = answer.catch((error) => {
      this.isGone = error?.code === "ENOENT";
    });
    return this.hooks;
  }

  /** Resolves when everything was reported. */
  async close() {
    await Promise.all(this.pending);
    (await within(0, this.connection))?.end();
  }
}

/** The text for the model in what `takeback hook` printed. */
function contextIn(output) {
  return output.trim() ? JSON.parse(output).context : undefined;
}

function run(args, input) {
  return new Promise((resolve, reject) => {
    const stdio = [input === undefined ? "ignore" : "pipe", "pipe", "ignore"];
    const child = spawn(TAKEBACK, args, { stdio });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/** The value of a promise, or `undefined` if it takes longer than `ms`. */
function within(ms, promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function quietly(hook) {
  return async (...args) => {
    try {
      await hook(...args);
    } catch {
      // The agent continues as if this file did not exist.
    }
  };
}
