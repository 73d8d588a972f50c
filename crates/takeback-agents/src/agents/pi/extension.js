// Tells Takeback what pi does. `takeback init` puts this file here, `takeback uninstall` takes it away;
// without Takeback it does nothing.
//
// Before a tool runs, pi waits until Takeback has kept what the tool may change, and never longer than
// WAIT_MS. Nothing in here prints, or throws into pi, which would block the tool.

const AGENT = "pi";

export default function (pi) {
  const server = new Server();
  /** The calls that were announced and have not ended; and when a person last answered a dialog about one. */
  const calls = new Map();

  const tell = (event, { cwd, sessionManager }) => {
    const parent = sessionManager.getHeader()?.parentSession;
    const session = { id: sessionManager.getSessionId(), file: sessionManager.getSessionFile(), parent };
    return server.report({ event, cwd, session });
  };
  const on = (type, hear) => pi.on(type, quietly(hear));

  on("session_start", tell);
  // Also of what was typed while a turn ran: it comes when the model is about to read it.
  on("message_start", ({ type, message }, context) => {
    const { role, content, timestamp } = message;
    if (role === "user") return tell({ type, message: { role, content: withoutImages(content), timestamp } }, context);
  });
  on("tool_call", (event, context) => {
    calls.set(event.toolCallId, undefined);
    return tell(event, context);
  });
  // Waiting for a person is not running. A dialog is about the calls that were announced before it.
  on("ui_prompt_end", () => {
    for (const call of calls.keys()) calls.set(call, Date.now());
  });
  // What the tool answered stays here: it may be long, and nothing would be read of it.
  on("tool_result", ({ type, toolName, toolCallId, input, isError }, context) => {
    const answeredAt = calls.get(toolCallId);
    calls.delete(toolCallId);
    const ranMs = answeredAt && Date.now() - answeredAt;
    const isAborted = context.signal?.aborted;
    return tell({ type, toolName, toolCallId, input, isError, isAborted, ranMs }, context);
  });
  // A call without a result was announced and never ran.
  on("tool_execution_end", ({ type, toolName, toolCallId, isError }, context) => {
    if (calls.delete(toolCallId)) return tell({ type, toolName, toolCallId, isError }, context);
  });
  on("agent_settled", tell);
  on("session_shutdown", async (event, context) => {
    await tell(event, context);
    await server.close();
  });
}

function withoutImages(content) {
  return typeof content === "string" ? content : content.filter(({ type }) => type === "text");
}
