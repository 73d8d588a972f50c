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
  /** A text for the model that belongs to the message of the person that is being added. */
  let note;

  const send = (event, { cwd, sessionManager }) => {
    const parent = sessionManager.getHeader()?.parentSession;
    const session = { id: sessionManager.getSessionId(), file: sessionManager.getSessionFile(), parent };
    return server.report({ event, cwd, session });
  };
  const on = (type, handler) => pi.on(type, quietly(handler));

  on("session_start", send);
  // Includes messages typed during a turn: they arrive when the model is about to read them.
  on("message_start", async ({ type, message }, context) => {
    const { role, content, timestamp } = message;
    if (role !== "user") return;
    note = await send({ type, message: { role, content: withoutImages(content), timestamp } }, context);
  });
  // pi waits for the handlers of a message's start before it ends.
  pi.on("message_end", ({ message }) => {
    if (!note || message.role !== "user") return;
    const content = withText(message.content, note);
    note = undefined;
    return { message: { ...message, content } };
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

function withText(content, text) {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return [...parts, { type: "text", text }];
}

function withoutImages(content) {
  return typeof content === "string" ? content : content.filter(({ type }) => type === "text");
}
