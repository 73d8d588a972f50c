// Tells Takeback what pi does. `takeback init` installs this file, `takeback uninstall` removes it;
// without Takeback it does nothing.
//
// Before a tool runs, pi waits until Takeback has saved what the tool may change, at most WAIT_MS.
// Nothing in here prints, or throws into pi, which would block the tool.

const AGENT = "pi";

export default function (pi) {
  const server = new Server();
  /** The calls that were announced and have not ended; and when a person last answered a dialog about one. */
  const calls = new Map();

  const send = (event, { cwd, sessionManager }) => {
    const parent = sessionManager.getHeader()?.parentSession;
    const session = { id: sessionManager.getSessionId(), file: sessionManager.getSessionFile(), parent };
    return server.report({ event, cwd, session });
  };
  const on = (type, handler) => pi.on(type, quietly(handler));

  on("session_start", send);
  // Includes messages typed during a turn: they arrive when the model is about to read them.
  on("message_start", ({ type, message }, context) => {
    const { role, content, timestamp } = message;
    if (role === "user") return send({ type, message: { role, content: withoutImages(content), timestamp } }, context);
  });
  on("tool_call", (event, context) => {
    calls.set(event.toolCallId, undefined);
    return send(event, context);
  });
  // Waiting for a person is not running. A dialog is about the calls that were announced before it.
  on("ui_prompt_end", () => {
    for (const call of calls.keys()) calls.set(call, Date.now());
  });
  // The tool's output is not sent: it may be long, and Takeback does not read it.
  on("tool_result", ({ type, toolName, toolCallId, input, isError }, context) => {
    const answeredAt = calls.get(toolCallId);
    calls.delete(toolCallId);
    const ranMs = answeredAt && Date.now() - answeredAt;
    const isAborted = context.signal?.aborted;
    return send({ type, toolName, toolCallId, input, isError, isAborted, ranMs }, context);
  });
  // A call without a result was announced and never ran.
  on("tool_execution_end", ({ type, toolName, toolCallId, isError }, context) => {
    if (calls.delete(toolCallId)) return send({ type, toolName, toolCallId, isError }, context);
  });
  on("agent_settled", send);
  on("session_shutdown", async (event, context) => {
    await send(event, context);
    await server.close();
  });
}

function withoutImages(content) {
  return typeof content === "string" ? content : content.filter(({ type }) => type === "text");
}
