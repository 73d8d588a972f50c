//! Handles the program's messages, line by line: records, shows and answers them.

use serde_json::Value;
use takeback_core::Outcome;

use super::{Driver, Prompt, Turn, Waiting};
use crate::agents::claude::own_files::rewound;
use crate::agents::claude::permission::{Asked, Reach};
use crate::agents::claude::recorder::outcome_of;
use crate::agents::claude::show::Whose;
use crate::agents::claude::wire::{
    WireAnswer, WireAsked, WireBlock, WireContent, WireGiven, WireHook, WireIn, WireMessage,
    WireOut, WireRequest, WireResult, WireSystem, WireTask,
};
use crate::agents::claude::words;
use crate::chat_agent::{ChatEvent, PermissionRequest, TurnResult};

impl Driver {
    pub(super) fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        match serde_json::from_str::<WireOut>(line) {
            Ok(said) => self.said(said),
            Err(error) if error.is_data() => {}
            Err(_) => {
                if !std::mem::replace(&mut self.complained, true) {
                    let line: String = line.trim().chars().take(200).collect();
                    self.tell(ChatEvent::Note(format!(
                        "claude said something that is no JSON: {line}"
                    )));
                }
            }
        }
    }

    fn said(&mut self, said: WireOut) {
        match said {
            WireOut::System(system) => self.system(system),
            WireOut::User(message) => self.user(message),
            WireOut::Assistant(message) => {
                self.remember(&message);
                self.show.message(&message);
            }
            WireOut::StreamEvent { event, parent_tool_use_id: None } => self.show.event(event),
            WireOut::Result(result) => self.result(&result),
            WireOut::ControlRequest { request_id, request } => self.asked(&request_id, request),
            WireOut::ControlResponse { response } => self.answered(response),
            WireOut::ControlCancelRequest { request_id } => {
                self.shared.answered(&request_id);
            }
            WireOut::CommandLifecycle { command_uuid, state, session_id } => {
                self.shared.called(session_id);
                if state == "started" {
                    self.taken_in(|prompt| prompt.message == command_uuid);
                }
            }
            WireOut::StreamEvent { .. } | WireOut::Other => {}
        }
    }

    fn system(&mut self, system: WireSystem) {
        match (system.subtype.as_str(), system.tool_use_id) {
            ("init", _) if self.shared.is_news(system.session_id.as_deref()) => {
                let (session, model) = (system.session_id, system.model);
                self.tell(ChatEvent::Ready { session, model });
            }
            ("background_tasks_changed", _) => self.in_the_background(system.tasks),
            ("task_notification", Some(call)) => {
                self.recorder.after(&call, Outcome::Done);
            }
            _ => {}
        }
    }

    fn in_the_background(&mut self, tasks: Vec<WireTask>) {
        let agents = tasks.into_iter().filter(|task| task.task_type == "local_agent");
        self.background = agents.map(|task| task.task_id).collect();
    }

    fn user(&mut self, message: WireMessage) {
        self.remember(&message);
        if message.is_replay {
            let uuid = message.uuid.as_deref();
            self.taken_in(|prompt| Some(prompt.message.as_str()) == uuid);
            return;
        }
        let WireContent::Blocks(blocks) = message.message.content else { return };
        for block in blocks {
            let WireBlock::ToolResult { tool_use_id, content, is_error } = block else { continue };
            if self.show.is_open(&tool_use_id) {
                // Without a hook for its end, the call was refused or interrupted.
                let changes = self.recorder.after(&tool_use_id, Outcome::Failed);
                let line = match self.denied.remove(&tool_use_id) {
                    true => words::NOT_ALLOWED.to_owned(),
                    false => words::cut_short(&words::text_of(&content)),
                };
                self.show.ended(&tool_use_id, !is_error, line, changes);
            }
        }
    }

    /// Notes a message of the conversation itself, not of a subagent.
    fn remember(&self, message: &WireMessage) {
        if let (None, Some(session), Some(uuid)) =
            (&message.parent_tool_use_id, &message.session_id, &message.uuid)
        {
            self.shared.conversation(|conversation| conversation.saw(session, uuid));
        }
    }

    /// The turn of the prompt has started.
    fn taken_in(&mut self, is_it: impl Fn(&Prompt) -> bool) {
        let Some(turn) = &mut self.turn else { return };
        let Some(prompt) = turn.prompt.as_mut().filter(|prompt| is_it(prompt)) else { return };
        if std::mem::replace(&mut prompt.taken_in, true) {
            return;
        }
        let said = ChatEvent::Prompted {
            message: prompt.message.clone(),
            session: self.shared.session(),
            point: prompt.point,
        };
        turn.of_its_own = false;
        let again = turn.interrupted.is_some();
        self.tell(said);
        if again {
            // The first request may have arrived before the turn started.
            self.request(WireRequest::Interrupt, None);
        }
    }

    fn result(&mut self, result: &WireResult) {
        let Some(turn) = &mut self.turn else { return self.recorder.turn_end() };
        let waits = turn.prompt.as_ref().is_some_and(|prompt| !prompt.taken_in);
        if turn.of_its_own && waits {
            turn.of_its_own = false;
            return;
        }
        let aborted =
            result.terminal_reason.as_deref().is_some_and(|why| why.starts_with("aborted"));
        let ending = if aborted || turn.interrupted.is_some() && result.is_error {
            TurnResult::Interrupted
        } else if result.is_error || result.subtype != "success" {
            let why = result.result.clone().or_else(|| result.errors.first().cloned());
            TurnResult::Failed(words::failure(&why.unwrap_or_else(|| result.subtype.clone())))
        } else {
            TurnResult::Done
        };
        self.turn_over(ending);
    }

    fn asked(&mut self, id: &str, request: Value) {
        let is_hook = request["subtype"] == "hook_callback";
        match serde_json::from_value(request) {
            Ok(WireAsked::HookCallback { input }) => {
                self.hook(input);
                self.answer(id, WireGiven::Nothing {});
            }
            Ok(WireAsked::CanUseTool { tool_name, input, tool_use_id, description }) => {
                let reach = Reach::of(&input, |path| self.recorder.is_inside(path));
                let asked = Asked { tool: tool_name, input, call: tool_use_id, reach };
                if let Some(permission) = self.leave.standing(&asked) {
                    return self.answer(id, WireGiven::Permission(permission));
                }
                self.recorder.suspend(&asked.call);
                let permission = PermissionRequest {
                    request: id.to_owned(),
                    title: words::title(&asked.tool, &asked.input, &self.options.folder),
                    detail: words::detail(&asked.tool, &asked.input, description.as_deref()),
                };
                self.shared.asks(id, asked);
                self.tell(ChatEvent::Asks(permission));
            }
            Err(error) => {
                if is_hook {
                    self.tell(ChatEvent::Unrecorded(format!("claude told something new: {error}")));
                }
                let line = WireIn::cannot(id, &format!("not understood: {error}"));
                if let Some(process) = &mut self.process {
                    process.send(&line);
                }
            }
        }
    }

    fn hook(&mut self, hook: WireHook) {
        match hook {
            WireHook::UserPromptSubmit { prompt, session_id } => {
                self.shared.called(session_id);
                self.taken_in(|ours| ours.text.trim() == prompt.trim());
                self.begun_by_itself(&prompt);
            }
            WireHook::PreToolUse(call) => {
                let whose = if call.agent_id.is_some() { Whose::Subagents } else { Whose::Agents };
                self.show.call(&call.tool_use_id, &call.tool_name, &call.tool_input, whose);
                self.recorder.before(&call);
            }
            WireHook::PostToolUse { call, tool_response } => {
                let outcome = outcome_of(&call, &tool_response);
                let changes = self.recorder.after(&call.tool_use_id, outcome);
                let line = words::result(&call.tool_name, &tool_response);
                self.show.ended(&call.tool_use_id, true, line, changes);
            }
            WireHook::PostToolUseFailure { call, error } => {
                let outcome = Outcome::Failed;
                let changes = self.recorder.after(&call.tool_use_id, outcome);
                self.show.ended(&call.tool_use_id, false, words::failure(&error), changes);
            }
            WireHook::SubagentStart { agent_id } => self.recorder.subagent_start(&agent_id),
            WireHook::SubagentStop { agent_id } => self.recorder.subagent_stop(&agent_id),
            WireHook::Stop {} => self.recorder.may_stop(),
            WireHook::Other => {}
        }
    }

    /// A prompt that the host did not send: a background task has ended, and the program continues.
    fn begun_by_itself(&mut self, prompt: &str) {
        match &mut self.turn {
            Some(turn) => {
                let waits = turn.prompt.as_ref().is_some_and(|prompt| !prompt.taken_in);
                turn.of_its_own |= waits || turn.prompt.is_none();
            }
            None => {
                self.shared.busy();
                self.recorder.prompt_of_its_own(prompt);
                self.turn = Some(Turn { prompt: None, of_its_own: true, interrupted: None });
                self.tell(ChatEvent::TurnBegin);
                self.tell(ChatEvent::Note("claude goes on by itself".to_owned()));
            }
        }
    }

    fn answered(&mut self, answer: WireAnswer) {
        let (id, answer) = match answer {
            WireAnswer::Success { request_id, response } => (request_id, Ok(response)),
            WireAnswer::Error { request_id, error } => (request_id, Err(error)),
        };
        match self.waiting.remove(&id) {
            Some(Waiting::Start { reply, .. }) => {
                let session = self.shared.conversation(|current| current.session.clone());
                self.tell(ChatEvent::Ready { session, model: self.options.model.clone() });
                reply.map(|reply| reply.send(Ok(())));
            }
            Some(Waiting::Rewind(reply)) => drop(reply.send(rewound(answer))),
            Some(Waiting::Stop) => {
                let is_last = !self.waiting.values().any(|one| matches!(one, Waiting::Stop));
                let only_stops = |turn: &Turn| turn.prompt.is_none() && !turn.of_its_own;
                if is_last && self.turn.as_ref().is_some_and(only_stops) {
                    self.turn_over(TurnResult::Interrupted);
                }
            }
            None => {}
        }
    }
}
