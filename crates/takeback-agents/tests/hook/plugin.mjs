// Plays opencode to the plugin in the folder that is given, and Takeback, too: `takeback` is a script
// that writes down what it is told, the server a socket of this test's.

import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

const stage = process.argv[2];
const at = (name) => join(stage, name);

/** The plugin, which waits so long. */
const waiting = async (wait, connect) => {
  const text = readFileSync(at("takeback.js"), "utf8")
    .replace(/^const WAIT_MS = .*;$/m, `const WAIT_MS = ${wait};`)
    .replace(/^const CONNECT_MS = .*;$/m, `const CONNECT_MS = ${connect};`);
  writeFileSync(at(`plugin-${wait}.mjs`), text);
  return (await import(at(`plugin-${wait}.mjs`))).Takeback;
};
const Takeback = await waiting(30_000, 30_000);
const Hasty = await waiting(300, 30_000);
const folders = { directory: "/p/sub", worktree: "/p" };

/** `takeback serve --ensure` says where the socket is, if it says so; `takeback hook` keeps its input. */
const takeback = (serve) => {
  const hook = `echo "$*" >> '${at("args")}'; cat >> '${at("told")}'; echo >> '${at("told")}'`;
  writeFileSync(at("takeback"), `#!/bin/sh\nif [ "$1" = serve ]; then ${serve}; fi\n${hook}\n`);
  chmodSync(at("takeback"), 0o755);
};
const told = () => {
  const lines = existsSync(at("told")) ? readFileSync(at("told"), "utf8").trim().split("\n") : [];
  rmSync(at("told"), { force: true });
  return lines.map((line) => JSON.parse(line));
};
const before = [{ tool: "write", sessionID: "s", callID: "c" }, { args: { filePath: "/p/a" } }];
const told_before = { hook: "tool.execute.before", ...folders, input: before[0], output: before[1] };

/** A server that answers each request as `answer` says. */
const serving = async (answer) => {
  const asked = [];
  const server = createServer((socket) => {
    let rest = "";
    socket.on("data", (data) => {
      const lines = (rest + data).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const request = JSON.parse(line);
        asked.push(request);
        answer(request, socket);
      }
    });
  });
  const path = at(`socket-${serving.count = (serving.count ?? 0) + 1}`);
  await new Promise((resolve) => server.listen(path, resolve));
  takeback(`echo '${path}'; exit 0`);
  return { asked, close: () => server.close() };
};
const done = ({ id }, socket) => socket.write(JSON.stringify({ jsonrpc: "2.0", id, result: {} }) + "\n");

const tests = {
  async "without a server everything is told to `takeback hook`, in order"() {
    takeback("exit 1");
    const plugin = await Takeback(folders);
    const event = { type: "session.created", properties: { sessionID: "s", info: { id: "s" } } };
    await plugin.event({ event });
    await plugin["tool.execute.before"](...before);
    await plugin["tool.execute.after"]({ ...before[0], args: before[1].args }, { output: "long" });
    await plugin.event({ event: { type: "file.edited", properties: { file: "/p/a" } } });
    await plugin.dispose();
    assert.deepEqual(told(), [
      { hook: "event", ...folders, event },
      told_before,
      { hook: "tool.execute.after", ...folders, input: { ...before[0], args: before[1].args } },
      { hook: "dispose", ...folders, sessionID: "s" },
    ]);
    const args = readFileSync(at("args"), "utf8");
    assert.equal(args, "hook --agent opencode\n".repeat(4));
  },

  async "a call that had to be allowed ran from then on"() {
    takeback("exit 1");
    const plugin = await Takeback(folders);
    const call = { tool: "bash", sessionID: "s", callID: "c" };
    const happens = (type, properties) => plugin.event({ event: { type, properties } });
    await plugin["tool.execute.before"](call, { args: { command: "make" } });
    await happens("permission.asked", { id: "q", sessionID: "s", tool: { messageID: "m", callID: "c" } });
    await new Promise((resolve) => setTimeout(resolve, 400));
    await happens("permission.replied", { sessionID: "s", requestID: "q", reply: "once" });
    await plugin["tool.execute.after"]({ ...call, args: { command: "make" } }, {});
    // The next one is not asked about.
    await plugin["tool.execute.after"]({ ...call, args: { command: "make" } }, {});
    await plugin.dispose();
    const [, first, second] = told();
    assert.ok(first.ranMs >= 0 && first.ranMs < 400, `${first.ranMs}`);
    assert.equal(second.ranMs, undefined);
  },

  async "the tool waits until the server has answered"() {
    let answered = false;
    const { asked, close } = await serving((request, socket) =>
      setTimeout(() => {
        answered = true;
        done(request, socket);
      }, 100),
    );
    const plugin = await Takeback(folders);
    await plugin["tool.execute.before"](...before);
    assert.equal(answered, true);
    const params = { agent: "opencode", payload: told_before, pid: process.pid };
    assert.deepEqual(asked, [{ jsonrpc: "2.0", id: 1, method: "event:hook", params }]);
    assert.deepEqual(told(), []);
    await plugin.dispose();
    assert.equal(asked[1].params.payload.hook, "dispose");
    close();
  },

  async "a server that does not answer is not waited for without end"() {
    const { close } = await serving(() => {});
    const plugin = await Hasty(folders);
    await plugin["tool.execute.before"](...before);
    assert.deepEqual(told(), []);
    close();
  },

  async "what a server refuses, or dies of, is told to `takeback hook`"() {
    const refuses = ({ id }, socket) => {
      const error = { code: -32601, message: "no such method" };
      socket.write(JSON.stringify({ jsonrpc: "2.0", id, error }) + "\n");
    };
    for (const answer of [refuses, (_, socket) => socket.destroy()]) {
      const { close } = await serving(answer);
      const plugin = await Takeback(folders);
      await plugin["tool.execute.before"](...before);
      assert.deepEqual(told(), [told_before]);
      close();
    }
  },

  async "a subagent is told with whose it is, and a call that failed as the message says it"() {
    const { asked, close } = await serving(done);
    const plugin = await Takeback(folders);
    const info = { id: "child", parentID: "s" };
    const created = { type: "session.created", properties: { sessionID: "child", info } };
    await plugin.event({ event: created });
    const input = { ...before[0], sessionID: "child" };
    await plugin["tool.execute.before"](input, before[1]);
    const part = { type: "tool", sessionID: "child", state: { status: "error" } };
    const failed = { type: "message.part.updated", properties: { sessionID: "child", part } };
    await plugin.event({ event: failed });
    part.state = { status: "completed" };
    await plugin.event({ event: failed });
    await plugin.dispose();
    const parent = "s";
    assert.deepEqual(asked.map((request) => request.params.payload.hook), [
      "event",
      "tool.execute.before",
      "event",
    ]);
    assert.deepEqual(asked[1].params.payload, { ...told_before, parent, input });
    close();
  },

  async "without Takeback, and with what is no JSON, nothing happens"() {
    rmSync(at("takeback"));
    const plugin = await Takeback(folders);
    await plugin["tool.execute.before"](...before);
    const circle = {};
    circle.circle = circle;
    await plugin["tool.execute.before"](before[0], circle);
    await plugin.event({ event: {} });
    await plugin.event(undefined);
    await plugin.dispose();
    assert.deepEqual(told(), []);
  },
};

for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
  } catch (error) {
    console.log(`${name}: ${error.stack}`);
    process.exit(1);
  }
}
process.exit(0);
