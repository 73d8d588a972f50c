// Tells Takeback what opencode does. `takeback init` puts this file here, `takeback uninstall` takes it
// away; without Takeback it does nothing.
//
// Before a tool runs, opencode waits until Takeback has kept what the tool may change, and never longer
// than WAIT_MS. Nothing in here throws into opencode or prints.

import { spawn } from "node:child_process";
import { connect } from "node:net";

const TAKEBACK = "takeback";

/** Takeback keeps to deadlines of its own (`hookDeadlineMs`, `scanBudgetMs`); this is for one that hangs. */
const WAIT_MS = 12000;
/** So long for the server to be there; what is left of the time is for `takeback hook`. */
const CONNECT_MS = 700;
/** Not sooner than this is a server looked for again that could not be had. */
const AGAIN_MS = 30000;

const EVENTS = ["session.created", "session.idle", "session.deleted"];

export const Takeback = async ({ directory, worktree }) => {
  const server = new Server();
  server.seek();
  /** The sessions of subagents, and whose they are. */
  const parents = new Map();
  const sessions = new Set();
  const pending = new Set();
  /** The calls that wait for a permission, by the question; and when a call was last allowed. */
  const waiting = new Map();
  const allowedAt = new Map();

  const tell = (hook, sessionID, what) => {
    const parent = parents.get(sessionID);
    if (parent === undefined && sessionID !== undefined) sessions.add(sessionID);
    const payload = { hook, directory, worktree, ...(parent && { parent }), ...what };
    const told = within(WAIT_MS + CONNECT_MS, server.tell(payload)).catch(() => {});
    pending.add(told);
    return told.finally(() => pending.delete(told));
  };

  /** Waiting for a permission is not running. */
  const onPermission = ({ type, properties }) => {
    const call = properties?.tool?.callID;
    if (type === "permission.asked" && call) waiting.set(properties.id, call);
    if (type === "permission.replied" && waiting.has(properties?.requestID)) {
      allowedAt.set(waiting.get(properties.requestID), Date.now());
      waiting.delete(properties.requestID);
    }
  };

  /** How long a call ran that had to be allowed. */
  const ran = (callID) => {
    const at = allowedAt.get(callID);
    allowedAt.delete(callID);
    return at === undefined ? {} : { ranMs: Date.now() - at };
  };

  const onEvent = (event) => {
    const { sessionID, info, part } = event.properties ?? {};
    if (info?.parentID) parents.set(info.id, info.parentID);
    onPermission(event);
    if (EVENTS.includes(event.type)) return tell("event", info?.id ?? sessionID, { event });
    // Of a tool that failed, `tool.execute.after` says nothing.
    const failed = event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error";
    if (failed) return tell("event", part.sessionID, { event, ...ran(part.callID) });
  };

  return {
    event: quietly(({ event }) => onEvent(event)),
    "chat.message": quietly((input, output) =>
      tell("chat.message", input.sessionID, { input, output }),
    ),
    "tool.execute.before": quietly((input, output) =>
      tell("tool.execute.before", input.sessionID, { input, output }),
    ),
    // What the tool answered stays here: it may be long, and nothing would be read of it.
    "tool.execute.after": quietly((input) =>
      tell("tool.execute.after", input.sessionID, { input, ...ran(input.callID) }),
    ),
    dispose: quietly(async () => {
      for (const sessionID of sessions) tell("dispose", sessionID, { sessionID });
      await Promise.all(pending);
      server.leave();
    }),
  };
};

/** `takeback serve`, and `takeback hook` for when there is no server. */
class Server {
  /** A promise of the connection; `undefined`: there is none, and none is sought. */
  found = undefined;
  soughtAt = -Infinity;
  answers = new Map();
  asked = 0;
  hooks = Promise.resolve();
  isGone = false;
  // Whoever started opencode records it already: `takeback hook` knows that, the server does not.
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

  async tell(payload) {
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
    const params = { agent: "opencode", payload, pid: process.pid };
    const line = JSON.stringify({ jsonrpc: "2.0", id, method: "event:hook", params });
    const answer = new Promise((resolve) => this.answers.set(id, resolve));
    socket.write(line + "\n");
    return answer;
  }

  /** One after the other, in the order in which things happened. */
  hook(payload) {
    const input = JSON.stringify(payload);
    const start = () => run(["hook", "--agent", "opencode"], input);
    this.hooks = this.hooks.then(start).catch((error) => {
      this.isGone = error?.code === "ENOENT";
    });
    return this.hooks;
  }

  async leave() {
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
      // opencode goes on as if this file was not there.
    }
  };
}
