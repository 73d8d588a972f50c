//! The thread that talks with `claude`: it owns the process and the recording, and takes what the host
//! wants and what the program says one after the other.
//!
//! A hook is answered after what it tells has been recorded, so the program goes on only when that is
//! durable.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;
use takeback_store::PointId;

use super::command_line::arguments;
use super::conversation::Conversation;
use super::permission::{Asked, Leave};
use super::process::Process;
use super::recorder::{Recorder, outcome_of};
use super::shared::Shared;
use super::show::Show;
use super::wire::{
    WireAnswer, WireAsked, WireBlock, WireContent, WireGiven, WireHook, WireIn, WireMessage,
    WireOut, WireRequest, WireResult, WireRewound, WireSystem,
};
use super::{ClaudeOptions, words};
use crate::talk::{AgentError, Decision, Ending, OwnFiles, OwnFilesError, Permission, Said, Trial};

/// What reaches the thread.
pub(super) enum Item {
    /// From the process of that number.
    Line(u64, String),
    Ended(u64),
    Command(Command),
}

pub(super) enum Command {
    Prompt {
        message: String,
        text: String,
    },
    Interrupt,
    Decide {
        request: String,
        decision: Decision,
    },
    RewindFiles {
        message: String,
        trial: Trial,
        reply: Sender<Result<OwnFiles, OwnFilesError>>,
    },
    /// Goes on from another conversation, with a new process.
    Restart {
        conversation: Conversation,
        reply: Sender<Result<(), AgentError>>,
    },
    Close,
}

/// How long an interrupted turn may take to end before its process is ended.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(15);
/// How long a process may take to write down what was said.
const END_PATIENCE: Duration = Duration::from_secs(5);

const HOOKS: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "SubagentStart",
    "SubagentStop",
];

pub(super) struct Driver {
    options: ClaudeOptions,
    recorder: Recorder,
    say: Sender<Said>,
    shared: Arc<Shared>,
    inbox: Receiver<Item>,
    outbox: Sender<Item>,
    process: Option<Process>,
    processes: u64,
    requests: u64,
    /// Who waits for an answer to which request.
    waiting: HashMap<String, Waiting>,
    turn: Option<Turn>,
    show: Show,
    leave: Leave,
    complained: bool,
}

enum Waiting {
    /// `before`: the conversation that counts again if this one cannot be gone on with.
    Start {
        before: Conversation,
        reply: Option<Sender<Result<(), AgentError>>>,
    },
    Rewind(Sender<Result<OwnFiles, OwnFilesError>>),
}

struct Turn {
    /// `None`: the program began it by itself.
    prompt: Option<Prompt>,
    /// While a prompt waits, the program is still busy with a turn of its own.
    of_its_own: bool,
    /// Since when it is asked to end.
    interrupted: Option<Instant>,
}

struct Prompt {
    message: String,
    text: String,
    point: Option<PointId>,
    taken_in: bool,
}

impl Driver {
    pub(super) fn new(
        options: ClaudeOptions,
        recorder: Recorder,
        say: Sender<Said>,
        shared: Arc<Shared>,
        (outbox, inbox): (Sender<Item>, Receiver<Item>),
    ) -> Self {
        let show = Show::new(say.clone(), options.folder.clone());
        Self {
            options,
            recorder,
            say,
            shared,
            inbox,
            outbox,
            process: None,
            processes: 0,
            requests: 0,
            waiting: HashMap::new(),
            turn: None,
            show,
            leave: Leave::default(),
            complained: false,
        }
    }

    /// Starts a process for this conversation. It can be talked to at once; [`Said::Ready`] follows.
    pub(super) fn start(
        &mut self,
        conversation: Conversation,
        reply: Option<Sender<Result<(), AgentError>>>,
    ) -> Result<(), AgentError> {
        let arguments = arguments(&self.options, &conversation);
        self.processes += 1;
        let process = Process::start(&self.options, &arguments, self.processes, &self.outbox)?;
        self.shared.started(process.pid());
        self.process = Some(process);
        let before = self.shared.conversation(|current| std::mem::replace(current, conversation));
        let waiting = Waiting::Start { before, reply };
        self.request(WireRequest::initialize(HOOKS), Some(waiting));
        Ok(())
    }

    /// Until it is closed.
    pub(super) fn run(mut self) {
        loop {
            match self.next() {
                Some(Item::Line(number, line)) if self.is_current(number) => self.line(&line),
                Some(Item::Ended(number)) if self.is_current(number) => self.died(None),
                Some(Item::Line(..) | Item::Ended(_)) => {}
                Some(Item::Command(Command::Close)) => break,
                Some(Item::Command(command)) => self.command(command),
                None => {
                    self.process.as_ref().map(Process::kill);
                    self.died(Some("it did not stop when it was interrupted"));
                }
            }
        }
        if self.turn.is_some() {
            self.request(WireRequest::Interrupt, None);
        }
        if let Some(process) = self.process.take() {
            self.shared.ended("it was closed");
            process.end(END_PATIENCE);
        }
        self.turn_over(Ending::Interrupted);
        self.recorder.end();
    }

    /// `None`: an interrupted turn does not end.
    fn next(&self) -> Option<Item> {
        let since = self.turn.as_ref().and_then(|turn| turn.interrupted);
        let Some(since) = since.filter(|_| self.process.is_some()) else {
            return self.inbox.recv().ok().or(Some(Item::Command(Command::Close)));
        };
        match self.inbox.recv_timeout(INTERRUPT_PATIENCE.saturating_sub(since.elapsed())) {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Item::Command(Command::Close)),
        }
    }

    fn is_current(&self, number: u64) -> bool {
        self.process.as_ref().is_some_and(|process| process.number == number)
    }

    // --- what the host wants ----------------------------------------------------------------------

    fn command(&mut self, command: Command) {
        match command {
            Command::Prompt { message, text } => self.prompt(message, text),
            Command::Interrupt => self.interrupt(),
            Command::Decide { request, decision } => self.decide(&request, decision),
            Command::RewindFiles { message, trial, reply } => {
                let request = WireRequest::RewindFiles {
                    user_message_id: message,
                    dry_run: trial == Trial::Dry,
                };
                self.request(request, Some(Waiting::Rewind(reply)));
            }
            Command::Restart { conversation, reply } => {
                if let Some(process) = self.process.take() {
                    self.shared.ended("it is being started anew");
                    process.end(END_PATIENCE);
                    self.left_behind("it was started anew");
                }
                if let Err(error) = self.start(conversation, Some(reply.clone())) {
                    self.shared.ended(&error.to_string());
                    drop(reply.send(Err(error)));
                }
            }
            Command::Close => {}
        }
    }

    fn prompt(&mut self, message: String, text: String) {
        let point = self.recorder.prompt(&message, &text);
        self.shared.conversation(|conversation| conversation.prompted(&message));
        let line = WireIn::prompt(&message, &text);
        // The program may have begun a turn of its own just now: then this one comes after it.
        let of_its_own = self.turn.is_some();
        let interrupted = None;
        let prompt = Some(Prompt { message, text, point, taken_in: false });
        self.turn = Some(Turn { prompt, of_its_own, interrupted });
        match &mut self.process {
            Some(process) => process.send(&line),
            None => self.turn_over(Ending::Failed("the agent has ended".to_owned())),
        }
    }

    fn interrupt(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        turn.interrupted.get_or_insert_with(Instant::now);
        self.request(WireRequest::Interrupt, None);
    }

    fn decide(&mut self, request: &str, decision: Decision) {
        let Some(asked) = self.shared.answered(request) else { return };
        let permission = self.leave.given(&asked, decision);
        if permission.is_allowed() {
            self.recorder.resume(&asked.call);
        }
        self.answer(request, WireGiven::Permission(permission));
    }

    fn request(&mut self, request: WireRequest, waiting: Option<Waiting>) {
        self.requests += 1;
        let id = format!("takeback-{}", self.requests);
        let Some(process) = &mut self.process else { return };
        process.send(&WireIn::request(&id, request));
        if let Some(waiting) = waiting {
            self.waiting.insert(id, waiting);
        }
    }

    // --- what the program says --------------------------------------------------------------------

    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        match serde_json::from_str::<WireOut>(line) {
            Ok(said) => self.said(said),
            Err(error) if error.is_data() => {}
            Err(_) => {
                if !std::mem::replace(&mut self.complained, true) {
                    let line: String = line.trim().chars().take(200).collect();
                    self.tell(Said::Note(format!("claude said something that is no JSON: {line}")));
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
                self.tell(Said::Ready { session, model });
            }
            ("task_notification", Some(call)) => {
                self.recorder.after(&call, takeback_core::Outcome::Done);
            }
            _ => {}
        }
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
                // No hook told its end: it was refused, or cut short.
                let changes = self.recorder.after(&tool_use_id, takeback_core::Outcome::Failed);
                let text = words::failure(&words::text_of(&content));
                self.show.ended(&tool_use_id, !is_error, text, changes);
            }
        }
    }

    /// Notes a message of the conversation itself, not of a subagent's.
    fn remember(&self, message: &WireMessage) {
        if let (None, Some(session), Some(uuid)) =
            (&message.parent_tool_use_id, &message.session_id, &message.uuid)
        {
            self.shared.conversation(|conversation| conversation.saw(session, uuid));
        }
    }

    /// The turn of the prompt has begun.
    fn taken_in(&mut self, is_it: impl Fn(&Prompt) -> bool) {
        let Some(turn) = &mut self.turn else { return };
        let Some(prompt) = turn.prompt.as_mut().filter(|prompt| is_it(prompt)) else { return };
        if std::mem::replace(&mut prompt.taken_in, true) {
            return;
        }
        let said = Said::Prompted {
            message: prompt.message.clone(),
            session: self.shared.session(),
            point: prompt.point,
        };
        turn.of_its_own = false;
        let again = turn.interrupted.is_some();
        self.tell(said);
        if again {
            // The first request may have come while the prompt was still waiting.
            self.request(WireRequest::Interrupt, None);
        }
    }

    fn result(&mut self, result: &WireResult) {
        let Some(turn) = &mut self.turn else { return };
        let waits = turn.prompt.as_ref().is_some_and(|prompt| !prompt.taken_in);
        if turn.of_its_own && waits {
            turn.of_its_own = false;
            return;
        }
        let aborted =
            result.terminal_reason.as_deref().is_some_and(|why| why.starts_with("aborted"));
        let ending = if aborted || turn.interrupted.is_some() && result.is_error {
            Ending::Interrupted
        } else if result.is_error || result.subtype != "success" {
            let why = result.result.clone().or_else(|| result.errors.first().cloned());
            Ending::Failed(words::failure(&why.unwrap_or_else(|| result.subtype.clone())))
        } else {
            Ending::Done
        };
        self.turn_over(ending);
    }

    fn turn_over(&mut self, ending: Ending) {
        self.recorder.turn_end();
        if self.turn.take().is_none() {
            return;
        }
        self.shared.forget_asked();
        self.show.turn_end();
        self.shared.idle();
        self.tell(Said::TurnEnd(ending));
    }

    fn asked(&mut self, id: &str, request: Value) {
        match serde_json::from_value(request) {
            Ok(WireAsked::HookCallback { input }) => {
                self.hook(input);
                self.answer(id, WireGiven::Nothing {});
            }
            Ok(WireAsked::CanUseTool { tool_name, input, tool_use_id, description }) => {
                let asked = Asked { tool: tool_name, input, call: tool_use_id };
                if let Some(permission) = self.leave.standing(&asked) {
                    return self.answer(id, WireGiven::Permission(permission));
                }
                self.recorder.suspend(&asked.call);
                let permission = Permission {
                    request: id.to_owned(),
                    title: words::title(&asked.tool, &asked.input, &self.options.folder),
                    detail: words::detail(&asked.tool, &asked.input, description.as_deref()),
                };
                self.shared.asks(id, asked);
                self.tell(Said::Asks(permission));
            }
            Err(error) => {
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
                self.show.call(&call.tool_use_id, &call.tool_name, &call.tool_input);
                self.recorder.before(&call);
            }
            WireHook::PostToolUse { call, tool_response } => {
                let outcome = outcome_of(&call, &tool_response);
                let changes = self.recorder.after(&call.tool_use_id, outcome);
                let line = words::result(&call.tool_name, &tool_response);
                self.show.ended(&call.tool_use_id, true, line, changes);
            }
            WireHook::PostToolUseFailure { call, error } => {
                let outcome = takeback_core::Outcome::Failed;
                let changes = self.recorder.after(&call.tool_use_id, outcome);
                self.show.ended(&call.tool_use_id, false, words::failure(&error), changes);
            }
            WireHook::SubagentStart { agent_id } => self.recorder.subagent_start(&agent_id),
            WireHook::SubagentStop { agent_id } => self.recorder.subagent_stop(&agent_id),
            WireHook::Stop {} => self.recorder.turn_end(),
            WireHook::Other => {}
        }
    }

    /// A prompt that is none of ours: a task in the background has ended, and the program goes on.
    fn begun_by_itself(&mut self, prompt: &str) {
        match &mut self.turn {
            Some(turn) => {
                let waits = turn.prompt.as_ref().is_some_and(|prompt| !prompt.taken_in);
                turn.of_its_own |= waits;
            }
            None => {
                self.shared.busy();
                self.recorder.prompt_of_its_own(prompt);
                self.turn = Some(Turn { prompt: None, of_its_own: true, interrupted: None });
                self.tell(Said::Note("claude goes on by itself".to_owned()));
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
                self.tell(Said::Ready { session, model: self.options.model.clone() });
                reply.map(|reply| reply.send(Ok(())));
            }
            Some(Waiting::Rewind(reply)) => drop(reply.send(rewound(answer))),
            None => {}
        }
    }

    fn answer(&mut self, id: &str, given: WireGiven) {
        if let Some(process) = &mut self.process {
            process.send(&WireIn::reply(id, given));
        }
    }

    // --- its end ----------------------------------------------------------------------------------

    fn died(&mut self, why: Option<&str>) {
        let Some(process) = self.process.take() else { return };
        let ended = process.end(END_PATIENCE);
        let why = why.map_or(ended, str::to_owned);
        self.shared.ended(&why);
        self.left_behind(&why);
        self.tell(Said::Gone(why));
    }

    /// Ends in the log and for the host what a process left open.
    fn left_behind(&mut self, why: &str) {
        self.recorder.died();
        let asked_to = self.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some());
        self.turn_over(match asked_to {
            true => Ending::Interrupted,
            false => Ending::Failed(why.to_owned()),
        });
        for (_, waiting) in self.waiting.drain() {
            match waiting {
                Waiting::Start { before, reply } => {
                    self.shared.conversation(|current| *current = before);
                    reply.map(|reply| reply.send(Err(AgentError::Refused(why.to_owned()))));
                }
                Waiting::Rewind(reply) => {
                    drop(reply.send(Err(AgentError::Gone(why.to_owned()).into())));
                }
            }
        }
    }

    fn tell(&self, said: Said) {
        // Nobody listens any more when the host is closing.
        drop(self.say.send(said));
    }
}

fn rewound(answer: Result<Value, String>) -> Result<OwnFiles, OwnFilesError> {
    let answer = answer.map_err(|error| why_not(&error))?;
    let rewound: WireRewound =
        serde_json::from_value(answer).map_err(|error| OwnFilesError::Failed(error.to_string()))?;
    match rewound {
        WireRewound { can_rewind: true, files_changed, .. } => {
            Ok(OwnFiles { paths: files_changed })
        }
        WireRewound { error, .. } => Err(why_not(&error.unwrap_or_default())),
    }
}

fn why_not(error: &str) -> OwnFilesError {
    if error.contains("No file checkpoint found") {
        OwnFilesError::NoCheckpoint
    } else if error.contains("not enabled") {
        OwnFilesError::NotEnabled
    } else {
        OwnFilesError::Failed(error.trim_start_matches("Failed to rewind: ").to_owned())
    }
}
