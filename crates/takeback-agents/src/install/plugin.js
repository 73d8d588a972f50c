// From here on the file is the same for every agent: how it reports to Takeback. AGENT is defined above.

import { spawn } from "node:child_process";
import { connect } from "node:net";

const TAKEBACK = "takeback";

/** Takeback keeps to deadlines of its own (`hookDeadlineMs`, `scanBudgetMs`); this is for one that hangs. */
const WAIT_MS = 12000;
/** So long for the server to be there; what is left of the time is for `takeback hook`. */
const CONNECT_MS = 700;
/** Not sooner than this is a server looked for again that could not be had. */
const AGAIN_MS = 30000;

/** `takeback serve`, and `takeback hook` for when there is no server. */
class Server {
  /** A promise of the connection; `undefined`: there is none, and none is sought. */
  found = undefined;
  soughtAt = -Infinity;
  answers = new Map();
  pending = new Set();
  asked = 0;
  hooks = Promise.resolve();
  isGone = false;
  // The program that started the agent may record it already: `takeback hook` knows that, the server does not.
  isRecorded = process.env.TAKEBACK_SESSION !== undefined;

  seek() {
    if (this.found || this.isRecorded || Date.now() - this.soughtAt < AGAIN_MS) return;
    this.soughtAt = Date.now();
    this.found = this.connect().catch(() => this.lose());
  }

  lose() {
    this.found = undefined;
    for (const answer of this.answers.values()) answer(false);
    this.answers.clear();
  }

  async connect() {
    const { code, output } = await run(["serve", "--ensure"]);
    const path = output.trim().split("\n").pop();
    if (code !== 0 || !path) return this.lose();
    return new Promise((resolve) => {
      const socket = connect(path);
      socket.setEncoding("utf8");
      let rest = "";
      socket.on("connect", () => resolve(socket));
      socket.on("data", (data) => {
        const lines = (rest + data).split("\n");
        rest = lines.pop();
        lines.forEach((line) => this.hear(line));
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(this.lose()));
      socket.unref();
    });
  }

  hear(line) {
    try {
      const { id, error } = JSON.parse(line);
      this.answers.get(id)?.(error === undefined);
      this.answers.delete(id);
    } catch {
      // No answer to anything.
    }
  }

  /** Ends when Takeback has recorded it, or has taken too long. It never fails. */
  tell(payload) {
    const told = within(WAIT_MS + CONNECT_MS, this.send(payload)).catch(() => {});
    this.pending.add(told);
    return told.finally(() => this.pending.delete(told));
  }

  async send(payload) {
    if (this.isGone) return;
    this.seek();
    const socket = await within(CONNECT_MS, this.found);
    const isTold = socket !== undefined && (await within(WAIT_MS, this.ask(socket, payload)));
    if (isTold === undefined) {
      // It hangs. What it was asked may be recorded yet; from now on `takeback hook` is told.
      this.lose();
      socket.destroy();
      return;
    }
    if (!isTold) await this.hook(payload);
  }

  ask(socket, payload) {
    const id = (this.asked += 1);
    const params = { agent: AGENT, payload, pid: process.pid };
    const line = JSON.stringify({ jsonrpc: "2.0", id, method: "event:hook", params });
    const answer = new Promise((resolve) => this.answers.set(id, resolve));
    socket.write(line + "\n");
    return answer;
  }

  /** One after the other, in the order in which things happened. */
  hook(payload) {
    const input = JSON.stringify(payload);
    const start = () => run(["hook", "--agent", AGENT], input);
    this.hooks = this.hooks.then(start).catch((error) => {
      this.isGone = error?.code === "ENOENT";
    });
    return this.hooks;
  }

  /** Ends when everything was reported. */
  async leave() {
    await Promise.all(this.pending);
    (await within(0, this.found))?.end();
  }
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

/** What comes of it, or `undefined` when it takes longer. */
function within(ms, promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function quietly(hook) {
  return async (...given) => {
    try {
      await hook(...given);
    } catch {
      // The agent goes on as if this file was not there.
    }
  };
}
