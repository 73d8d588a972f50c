// Tells Takeback what opencode does. `takeback init` installs this file, `takeback uninstall` removes it;
// without Takeback it does nothing.
//
// Before a tool runs, opencode waits until Takeback has saved what the tool may change, at most WAIT_MS.
// Nothing in here throws into opencode or prints.

const AGENT = "opencode";

const EVENTS = ["session.created", "session.idle", "session.deleted"];

export const Takeback = async ({ directory, worktree }) => {
  const server = new Server();
  server.open();
  /** The parent session of each subagent's session. */
  const parents = new Map();
  const sessions = new Set();
  /** The calls that wait for a permission, by the question; and when a call was last allowed. */
  const waiting = new Map();
  const allowedAt = new Map();

  const send = (hook, sessionID, what) => {
    const parent = parents.get(sessionID);
    if (parent === undefined && sessionID !== undefined) sessions.add(sessionID);
    return server.report({ hook, directory, worktree, ...(parent && { parent }), ...what });
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
    // `tool.execute.after` is not called for a tool that failed.
    const failed = event.type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error";
    if (failed) return send("event", part.sessionID, { event, ...ran(part.callID) });
  };

  return {
    event: quietly(({ event }) => onEvent(event)),
    "chat.message": quietly(async (input, output) => {
      const text = await send("chat.message", input.sessionID, { input, output });
      if (text) output.parts.push(part(text, output.message));
    }),
    "tool.execute.before": quietly((input, output) =>
      send("tool.execute.before", input.sessionID, { input, output }),
    ),
    // The tool's output is not sent: it may be long, and Takeback does not read it.
    "tool.execute.after": quietly((input) =>
      send("tool.execute.after", input.sessionID, { input, ...ran(input.callID) }),
    ),
    dispose: quietly(async () => {
      for (const sessionID of sessions) send("dispose", sessionID, { sessionID });
      await server.close();
    }),
  };
};

/** A part of a message that the model reads and the person does not see. */
function part(text, { id, sessionID }) {
  const random = crypto.randomUUID().replaceAll("-", "").slice(0, 26);
  return { id: `prt_${random}`, messageID: id, sessionID, type: "text", text, synthetic: true };
}
