// Plays both opencode and Takeback for the plugin in the folder that is the argument: `takeback` is a
// script that records its input, the server a socket of this test.

import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

const folder = process.argv[2];
const at = (name) => join(folder, name);

/** The plugin, with these timeouts. */
const pluginWith = async (wait, connect) => {
  const text = readFileSync(at("takeback.js"), "utf8")
    .replace(/^const WAIT_MS = .*;$/m, `const WAIT_MS = ${wait};`)
    .replace(/^const CONNECT_MS = .*;$/m, `const CONNECT_MS = ${connect};`);
  writeFileSync(at(`plugin-${wait}.mjs`), text);
  return (await import(at(`plugin-${wait}.mjs`))).Takeback;
};
const Takeback = await pluginWith(30_000, 30_000);
const Hasty = await pluginWith(300, 30_000);
const folders = { directory: "/p/sub", worktree: "/p" };

/** Installs a `takeback`: `serve --ensure` runs the script `serve`, `hook` records its input. */
const takeback = (serve, says = "true") => {
  const hook = `echo "$*" >> '${at("args")}'; cat >> '${at("sent")}'; echo >> '${at("sent")}'; ${says}`;
  writeFileSync(at("takeback"), `#!/bin/sh\nif [ "$1" = serve ]; then ${serve}; fi\n${hook}\n`);
  chmodSync(at("takeback"), 0o755);
};
const sent = () => {
  const lines = existsSync(at("sent")) ? readFileSync(at("sent"), "utf8").trim().split("\n") : [];
  rmSync(at("sent"), { force: true });
  return lines.map((line) => JSON.parse(line));
};
const before = [{ tool: "write", sessionID: "s", callID: "c" }, { args: { filePath: "/p/a" } }];
const sentBefore = { hook: "tool.execute.before", ...folders, input: before[0], output: before[1] };

/** A server that answers each request as `answer` says. */
const startServer = async (answer) => {
  const requests = [];
  const server = createServer((socket) => {
    let rest = "";
    socket.on("data", (data) => {
      const lines = (rest + data).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const request = JSON.parse(line);
        requests.push(request);
        answer(request, socket);
      }
    });
  });
  const path = at(`socket-${startServer.count = (startServer.count ?? 0) + 1}`);
  await new Promise((resolve) => server.listen(path, resolve));
  takeback(`echo '${path}'; exit 0`);
  return { requests, close: () => server.close() };
};
const done = ({ id }, socket) => socket.write(JSON.stringify({ jsonrpc: "2.0", id, result: {} }) + "\n");

const tests = {
  async "without a server everything is sent to `takeback hook`, in order"() {
    takeback("exit 1");
    const plugin = await Takeback(folders);
    const event = { type: "session.created", properties: { sessionID: "s", info: { id: "s" } } };
    await plugin.event({ event });
    await plugin["tool.execute.before"](...before);
    await plugin["tool.execute.after"]({ ...before[0], args: before[1].args }, { output: "long" });
    await plugin.event({ event: { type: "file.edited", properties: { file: "/p/a" } } });
    await plugin.dispose();
    assert.deepEqual(sent(), [
      { hook: "event", ...folders, event },
      sentBefore,
      { hook: "tool.execute.after", ...folders, input: { ...before[0], args: before[1].args } },
      { hook: "dispose", ...folders, sessionID: "s" },
    ]);
    const args = readFileSync(at("args"), "utf8");
    assert.equal(args, "hook --agent opencode\n".repeat(4));
  },

  async "the model reads what the server and `takeback hook` answer"() {
    const says = ({ id, params }, socket) => {
      const result = params.payload.hook === "chat.message" ? { ok: true, context: "taken back" } : { ok: true };
      socket.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");
    };
    const prompt = async (plugin) => {
      const output = { message: { id: "msg_1", sessionID: "s" }, parts: [{ type: "text", text: "go on" }] };
      await plugin["chat.message"]({ sessionID: "s" }, output);
      return output.parts.map(({ id, ...part }) => part);
    };
    const told = { messageID: "msg_1", sessionID: "s", type: "text", text: "taken back", synthetic: true };
    const server = await startServer(says);
    assert.deepEqual((await prompt(await Takeback(folders)))[1], told);
    server.close();
    takeback("exit 1", `echo '{"context":"taken back"}'`);
    assert.deepEqual((await prompt(await Takeback(folders)))[1], told);
    takeback("exit 1");
    assert.equal((await prompt(await Takeback(folders))).length, 1);
    sent();
  },

  async "a call that needed permission runs from then on"() {
    takeback("exit 1");
    const plugin = await Takeback(folders);
    const call = { tool: "bash", sessionID: "s", callID: "c" };
    const happens = (type, properties) => plugin.event({ event: { type, properties } });
    await plugin["tool.execute.before"](call, { args: { command: "make" } });
    await happens("permission.asked", { id: "q", sessionID: "s", tool: { messageID: "m", callID: "c" } });
    await new Promise((resolve) => setTimeout(resolve, 400));
    await happens("permission.replied", { sessionID: "s", requestID: "q", reply: "once" });
    await plugin["tool.execute.after"]({ ...call, args: { command: "make" } }, {});
    // The next call needs no permission.
    await plugin["tool.execute.after"]({ ...call, args: { command: "make" } }, {});
    await plugin.dispose();
    const [, first, second] = sent();
    assert.ok(first.ranMs >= 0 && first.ranMs < 400, `${first.ranMs}`);
    assert.equal(second.ranMs, undefined);
  },

  async "the tool waits until the server has answered"() {
    let answered = false;
    const { requests, close } = await startServer((request, socket) =>
      setTimeout(() => {
        answered = true;
        done(request, socket);
      }, 100),
    );
    const plugin = await Takeback(folders);
    await plugin["tool.execute.before"](...before);
    assert.equal(answered, true);
    const params = { agent: "opencode", payload: sentBefore, pid: process.pid };
    assert.deepEqual(requests, [{ jsonrpc: "2.0", id: 1, method: "event:hook", params }]);
    assert.deepEqual(sent(), []);
    await plugin.dispose();
    assert.equal(requests[1].params.payload.hook, "dispose");
    close();
  },

  async "waiting for a server that does not answer ends"() {
    const { close } = await startServer(() => {});
    const plugin = await Hasty(folders);
    await plugin["tool.execute.before"](...before);
    assert.deepEqual(sent(), []);
    close();
  },

  async "a payload that the server refuses, or dies of, is sent to `takeback hook`"() {
    const refuses = ({ id }, socket) => {
      const error = { code: -32601, message: "no such method" };
      socket.write(JSON.stringify({ jsonrpc: "2.0", id, error }) + "\n");
    };
    for (const answer of [refuses, (_, socket) => socket.destroy()]) {
      const { close } = await startServer(answer);
      const plugin = await Takeback(folders);
      await plugin["tool.execute.before"](...before);
      assert.deepEqual(sent(), [sentBefore]);
      close();
    }
  },

  async "a subagent is sent with its parent, and a failed call as its message says"() {
    const { requests, close } = await startServer(done);
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
    assert.deepEqual(requests.map((request) => request.params.payload.hook), [
      "event",
      "tool.execute.before",
      "event",
    ]);
    assert.deepEqual(requests[1].params.payload, { ...sentBefore, parent, input });
    close();
  },

  async "without Takeback, and with values that are not JSON, nothing happens"() {
    rmSync(at("takeback"));
    const plugin = await Takeback(folders);
    await plugin["tool.execute.before"](...before);
    const circle = {};
    circle.circle = circle;
    await plugin["tool.execute.before"](before[0], circle);
    await plugin.event({ event: {} });
    await plugin.event(undefined);
    await plugin.dispose();
    assert.deepEqual(sent(), []);
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
