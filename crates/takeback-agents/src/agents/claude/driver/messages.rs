//! Handles the program's messages, line by line: records, shows and answers them.

use serde_json::Value;
use takeback_core::Outcome;

use super::{Driver, PendingRequest, Prompt, Turn};
use crate::agents::claude::call_text;
use crate::agents::claude::native_files::parse_rewind_answer;
use crate::agents::claude::output::CallMaker;
use crate::agents::claude::permission::{PendingCall, PermissionScope};
use crate::agents::claude::recorder::outcome_of;
use crate::agents::claude::wire::{
    WireAnswer, WireBlock, WireContent, WireControlRequest, WireHook, WireIn, WireMessage, WireOut,
    WireReplyBody, WireRequest, WireResult, WireSystem, WireTask,
};
use crate::chat_agent::{ChatEvent, PermissionRequest, TurnResult};

impl Driver {
    pub(super) fn handle_line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        match serde_json::from_str::<WireOut>(line) {
            Ok(message) => self.handle_message(message),
            Err(error) if error.is_data() => {}
            Err(_) => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    let line: String = line.trim().chars().take(200).collect();
                    self.send_event(ChatEvent::Note(format!(
                        "claude printed a line that is not JSON: {line}"
                    )));
                }
            }
        }
    }

    fn handle_message(&mut self, message: WireOut) {
        match message {
            WireOut::System(system) => self.handle_system(system),
            WireOut::User(message) => self.handle_user(message),
            WireOut::Assistant(message) => {
                self.remember(&message);
                if message.parent_tool_use_id.is_none() {
                    self.recorder.answered_by(message.message.model.as_deref());
                }
                self.output.message(&message);
            }
            WireOut::StreamEvent { event, parent_tool_use_id: None } => self.output.event(event),
            WireOut::Result(result) => self.handle_result(&result),
            WireOut::ControlRequest { request_id, request } => {
                self.handle_request(&request_id, request);
            }
            WireOut::ControlResponse { response } => self.handle_answer(response),
            WireOut::ControlCancelRequest { request_id } => {
                self.shared.take_request(&request_id);
            }
            WireOut::CommandLifecycle { command_uuid, state, session_id } => {
                self.shared.set_session(session_id);
                if state == "started" {
                    self.accept_prompt(|prompt| prompt.message == command_uuid);
                }
            }
            WireOut::StreamEvent { .. } | WireOut::Other => {}
        }
    }

    fn handle_system(&mut self, system: WireSystem) {
        match (system.subtype.as_str(), system.tool_use_id) {
            ("init", _) if self.shared.announce_session(system.session_id.as_deref()) => {
                let (session, model) = (system.session_id, system.model);
                self.send_event(ChatEvent::Ready { session, model });
            }
            ("background_tasks_changed", _) => self.set_background_tasks(system.tasks),
            ("task_notification", Some(call)) => {
                self.recorder.after(&call, Outcome::Done);
            }
            _ => {}
        }
    }

    fn set_background_tasks(&mut self, tasks: Vec<WireTask>) {
        let agents = tasks.into_iter().filter(|task| task.task_type == "local_agent");
        self.background = agents.map(|task| task.task_id).collect();
    }

    fn handle_user(&mut self, message: WireMessage) {
        self.remember(&message);
        if message.is_replay {
            let uuid = message.uuid.as_deref();
            self.accept_prompt(|prompt| Some(prompt.message.as_str()) == uuid);
            return;
        }
        let WireContent::Blocks(blocks) = message.message.content else { return };
        for block in blocks {
            let WireBlock::ToolResult { tool_use_id, content, is_error } = block else { continue };
            if self.output.is_open(&tool_use_id) {
                // Without a hook for its end, the call was refused or interrupted.
                let changes = self.recorder.after(&tool_use_id, Outcome::Failed);
                let line = match self.denied.remove(&tool_use_id) {
                    true => call_text::NOT_ALLOWED.to_owned(),
                    false => call_text::cut_short(&call_text::text_of(&content)),
                };
                self.output.call_ended(&tool_use_id, !is_error, line, changes);
            }
        }
    }

    /// Notes a message of the conversation itself, not of a subagent.
    fn remember(&self, message: &WireMessage) {
        if let (None, Some(session), Some(uuid)) =
            (&message.parent_tool_use_id, &message.session_id, &message.uuid)
        {
            self.shared.conversation(|conversation| conversation.add_message(session, uuid));
        }
    }

    /// The turn of the prompt has started.
    fn accept_prompt(&mut self, is_it: impl Fn(&Prompt) -> bool) {
        let Some(turn) = &mut self.turn else { return };
        let Some(prompt) = turn.prompt.as_mut().filter(|prompt| is_it(prompt)) else { return };
        if std::mem::replace(&mut prompt.is_accepted, true) {
            return;
        }
        let event = ChatEvent::PromptAccepted {
            message: prompt.message.clone(),
            session: self.shared.session(),
            point: prompt.point,
        };
        turn.is_own = false;
        let again = turn.interrupted.is_some();
        self.send_event(event);
        if again {
            // The first request may have arrived before the turn started.
            self.request(WireRequest::Interrupt, None);
        }
    }

    fn handle_result(&mut self, result: &WireResult) {
        let Some(turn) = &mut self.turn else { return self.recorder.turn_end() };
        let waits = turn.prompt.as_ref().is_some_and(|prompt| !prompt.is_accepted);
        if turn.is_own && waits {
            turn.is_own = false;
            return;
        }
        let aborted =
            result.terminal_reason.as_deref().is_some_and(|why| why.starts_with("aborted"));
        let ending = if aborted || turn.interrupted.is_some() && result.is_error {
            TurnResult::Interrupted
        } else if result.is_error || result.subtype != "success" {
            let why = result.result.clone().or_else(|| result.errors.first().cloned());
            TurnResult::Failed(call_text::failure(&why.unwrap_or_else(|| result.subtype.clone())))
        } else {
            TurnResult::Done
        };
        self.end_turn(ending);
    }

    fn handle_request(&mut self, id: &str, request: Value) {
        let is_hook = request["subtype"] == "hook_callback";
        match serde_json::from_value(request) {
            Ok(WireControlRequest::HookCallback { input }) => {
                self.handle_hook(input);
                self.answer(id, WireReplyBody::Nothing {});
            }
            Ok(WireControlRequest::CanUseTool { tool_name, input, tool_use_id, description }) => {
                let scope = PermissionScope::of(&input, |path| self.recorder.is_inside(path));
                let asked = PendingCall { tool: tool_name, input, call: tool_use_id, scope };
                if let Some(permission) = self.permissions.stored_decision(&asked) {
                    return self.answer(id, WireReplyBody::Permission(permission));
                }
                self.recorder.suspend(&asked.call);
                let permission = PermissionRequest {
                    request: id.to_owned(),
                    title: call_text::title(&asked.tool, &asked.input, &self.options.folder),
                    detail: call_text::detail(&asked.tool, &asked.input, description.as_deref()),
                };
                self.shared.add_request(id, asked);
                self.send_event(ChatEvent::PermissionRequest(permission));
            }
            Err(error) => {
                if is_hook {
                    self.send_event(ChatEvent::NotRecorded(format!(
                        "claude sent an unknown hook event: {error}"
                    )));
                }
                let line = WireIn::error_reply(id, &format!("not understood: {error}"));
                if let Some(process) = &mut self.process {
                    process.send(&line);
                }
            }
        }
    }

    fn handle_hook(&mut self, hook: WireHook) {
        match hook {
            WireHook::UserPromptSubmit { prompt, session_id } => {
                self.shared.set_session(session_id);
                self.accept_prompt(|ours| ours.text.trim() == prompt.trim());
                self.begin_own_turn(&prompt);
            }
            WireHook::PreToolUse(call) => {
                let maker =
                    if call.agent_id.is_some() { CallMaker::Subagent } else { CallMaker::Agent };
                self.output.call(&call.tool_use_id, &call.tool_name, &call.tool_input, maker);
                self.recorder.before(&call);
            }
            WireHook::PostToolUse { call, tool_response } => {
                let outcome = outcome_of(&call, &tool_response);
                let changes = self.recorder.after(&call.tool_use_id, outcome);
                let line = call_text::result(&call.tool_name, &tool_response);
                self.output.call_ended(&call.tool_use_id, true, line, changes);
            }
            WireHook::PostToolUseFailure { call, error } => {
                let outcome = Outcome::Failed;
                let changes = self.recorder.after(&call.tool_use_id, outcome);
                self.output.call_ended(
                    &call.tool_use_id,
                    false,
                    call_text::failure(&error),
                    changes,
                );
            }
            WireHook::SubagentStart { agent_id } => self.recorder.subagent_start(&agent_id),
            WireHook::SubagentStop { agent_id } => self.recorder.subagent_stop(&agent_id),
            WireHook::Stop {} => self.recorder.may_stop(),
            WireHook::Other => {}
        }
    }

    /// A prompt that the host did not send: a background task has ended, and the program continues.
    fn begin_own_turn(&mut self, prompt: &str) {
        match &mut self.turn {
            Some(turn) => {
                let waits = turn.prompt.as_ref().is_some_and(|prompt| !prompt.is_accepted);
                turn.is_own |= waits || turn.prompt.is_none();
            }
            None => {
                self.shared.set_busy();
                self.recorder.own_prompt(prompt);
                self.turn = Some(Turn { prompt: None, is_own: true, interrupted: None });
                self.send_event(ChatEvent::TurnBegin);
                self.send_event(ChatEvent::Note("claude continues by itself".to_owned()));
            }
        }
    }

    fn handle_answer(&mut self, answer: WireAnswer) {
        let (id, answer) = match answer {
            WireAnswer::Success { request_id, response } => (request_id, Ok(response)),
            WireAnswer::Error { request_id, error } => (request_id, Err(error)),
        };
        match self.pending.remove(&id) {
            Some(PendingRequest::Start { reply, .. }) => {
                let session = self.shared.conversation(|current| current.session.clone());
                self.send_event(ChatEvent::Ready { session, model: self.options.model.clone() });
                reply.map(|reply| reply.send(Ok(())));
            }
            Some(PendingRequest::Rewind(reply)) => drop(reply.send(parse_rewind_answer(answer))),
            Some(PendingRequest::Stop) => {
                let is_last = !self.pending.values().any(|one| matches!(one, PendingRequest::Stop));
                let only_stops = |turn: &Turn| turn.prompt.is_none() && !turn.is_own;
                if is_last && self.turn.as_ref().is_some_and(only_stops) {
                    self.end_turn(TurnResult::Interrupted);
                }
            }
            None => {}
        }
    }
}
