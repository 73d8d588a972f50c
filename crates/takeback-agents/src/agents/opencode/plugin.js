// Tells Takeback what opencode does. `takeback init` installs this file, `takeback uninstall` removes it;
// without Takeback it does nothing.
//
// Before a tool runs, opencode waits until Takeback has saved what the tool may change, at most WAIT_MS.
// Nothing in here throws into opencode or prints.

import { spawn } from "node:child_process";
import { connect } from "node:net";

const TAKEBACK = "takeback";

/** Takeback has its own deadlines (`hookDeadlineMs`, `scanBudgetMs`); this limit is for one that hangs. */
const WAIT_MS = 12000;
/** How long to wait for a connection; the rest of the time is for `takeback hook`. */
const CONNECT_MS = 700;
/** How long to wait after a failed connection before the next attempt. */
const RETRY_MS = 30000;

const EVENTS = ["session.created", "session.idle", "session.deleted"];

export const Takeback = async ({ directory, worktree }) => {
  const server = new Server();
  server.open();
  /** The parent session of each subagent's session. */
  const parents = new Map();
  const sessions = new Set();
  const pending = new Set();
  /** The calls that wait for a permission, by the question; and when a call was last allowed. */
  const waiting = new Map();
  const allowedAt = new Map();

  const send = (hook, sessionID, what) => {
    const parent = parents.get(sessionID);
    if (parent === undefined && sessionID !== undefined) sessions.add(sessionID);
    const payload = { hook, directory, worktree, ...(parent && { parent }), ...what };
    const sent = within(WAIT_MS + CONNECT_MS, server.send(payload)).catch(() => {});
    pending.add(sent);
    return sent.finally(() => pending.delete(sent));
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
    if (EVENTS.includes(event.type)) return send("event", info?.id ?? sessionID, { event });
    // opencode sends no `tool.execute.after` for a tool that failed.
    const failed = event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error";
    if (failed) return send("event", part.sessionID, { event, ...ran(part.callID) });
  };

  return {
    event: quietly(({ event }) => onEvent(event)),
    "chat.message": quietly((input, output) =>
      send("chat.message", input.sessionID, { input, output }),
    ),
    "tool.execute.before": quietly((input, output) =>
      send("tool.execute.before", input.sessionID, { input, output }),
    ),
    // The tool's output is not sent: it may be long, and Takeback does not read it.
    "tool.execute.after": quietly((input) =>
      send("tool.execute.after", input.sessionID, { input, ...ran(input.callID) }),
    ),
    dispose: quietly(async () => {
      for (const sessionID of sessions) send("dispose", sessionID, { sessionID });
      await Promise.all(pending);
      server.close();
    }),
  };
};

/** `takeback serve`, and `takeback hook` for when there is no server. */
class Server {
  /** A promise of the connection; `undefined`: there is none, and none is being opened. */
  connection = undefined;
  openedAt = -Infinity;
  answers = new Map();
  asked = 0;
  hooks = Promise.resolve();
  isGone = false;
  // The program that started opencode records it already; `takeback hook` checks that, the server does not.
  isRecorded = process.env.TAKEBACK_SESSION !== undefined;

  open() {
    if (this.connection || this.isRecorded || Date.now() - this.openedAt < RETRY_MS) return;
    this.openedAt = Date.now();
    this.connection = this.connect().catch(() => this.disconnect());
  }

  disconnect() {
    this.connection = undefined;
    for (const answer of this.answers.values()) answer(false);
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
      const { id, error } = JSON.parse(line);
      this.answers.get(id)?.(error === undefined);
      this.answers.delete(id);
    } catch {
      // Not an answer.
    }
  }

  async send(payload) {
    if (this.isGone) return;
    this.open();
    const socket = await within(CONNECT_MS, this.connection);
    const isSent = socket !== undefined && (await within(WAIT_MS, this.ask(socket, payload)));
    if (isSent === undefined) {
      // The server hangs. It may still record the payload; later ones are sent to `takeback hook`.
      this.disconnect();
      socket.destroy();
      return;
    }
    if (!isSent) await this.hook(payload);
  }

  ask(socket, payload) {
    const id = (this.asked += 1);
    const params = { agent: "opencode", payload, pid: process.pid };
    const line = JSON.stringify({ jsonrpc: "2.0", id, method: "event:hook", params });
    const answer = new Promise((resolve) => this.answers.set(id, resolve));
    socket.write(line + "\n");
    return answer;
  }

  /** One at a time, in the order of the events. */
  hook(payload) {
    const input = JSON.stringify(payload);
    const start = () => run(["hook", "--agent", "opencode"], input);
    this.hooks = this.hooks.then(start).catch((error) => {
      this.isGone = error?.code === "ENOENT";
    });
    return this.hooks;
  }

  async close() {
    (await within(0, this.connection))?.end();
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
      // opencode continues as if this file did not exist.
    }
  };
}
