//! The thread that talks with `claude`: it owns the process and the recorder, and handles the
//! host's commands and the program's messages one at a time.
//!
//! A hook is answered after its event was recorded, so the program continues only when that is
//! durable.

mod messages;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::ClaudeOptions;
use super::command_line::arguments;
use super::conversation::Conversation;
use super::orphans::OrphanState;
use super::output::ChatOutput;
use super::permission::SessionPermissions;
use super::process::{Process, ProcessEnd};
use super::recorder::Recorder;
use super::shared_state::SharedState;
use super::wire::{WireIn, WireReplyBody, WireRequest};
use crate::chat_agent::{
    AgentError, ChatEvent, Decision, NativeFiles, NativeFilesError, PromptPoint, RestoreMode,
    TurnResult,
};

/// A message to the thread.
pub(super) enum DriverMessage {
    /// From the process with this number.
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
        mode: RestoreMode,
        reply: Sender<Result<NativeFiles, NativeFilesError>>,
    },
    /// Continues another conversation with a new process.
    Restart {
        conversation: Conversation,
        reply: Sender<Result<(), AgentError>>,
    },
    /// Kills the process, which is dead when `reply` is received.
    Kill {
        why: &'static str,
        reply: Sender<()>,
    },
    Close,
}

/// How long an interrupted turn may take to end before its process is killed.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a process may take to write its transcript.
const END_TIMEOUT: Duration = Duration::from_secs(5);

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
    say: Sender<ChatEvent>,
    shared: Arc<SharedState>,
    inbox: Receiver<DriverMessage>,
    outbox: Sender<DriverMessage>,
    process: Option<Process>,
    processes: u64,
    requests: u64,
    /// Requests without an answer, by their id.
    pending: HashMap<String, PendingRequest>,
    turn: Option<Turn>,
    /// Subagents that run in the background.
    background: Vec<String>,
    output: ChatOutput,
    permissions: SessionPermissions,
    /// Calls that were denied.
    denied: HashSet<String>,
    has_complained: bool,
}

/// A request to the program, and who waits for its answer.
enum PendingRequest {
    /// `before`: the conversation to return to if this one cannot be resumed.
    Start {
        before: Conversation,
        attempt: StartAttempt,
        reply: Option<Sender<Result<(), AgentError>>>,
    },
    Rewind(Sender<Result<NativeFiles, NativeFilesError>>),
    /// A request to stop something in the background.
    Stop,
}

/// How much of a conversation a start resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartAttempt {
    Full,
    WithoutLastTurn,
}

struct Turn {
    /// `None`: the program started the turn itself, or its background work is being stopped.
    prompt: Option<Prompt>,
    /// The program is still in a turn of its own while a prompt waits.
    is_own: bool,
    /// When its interrupt was requested.
    interrupted: Option<Instant>,
}

struct Prompt {
    message: String,
    text: String,
    point: Option<PromptPoint>,
    /// The program has started its turn.
    is_accepted: bool,
}

impl Driver {
    pub(super) fn new(
        options: ClaudeOptions,
        recorder: Recorder,
        say: Sender<ChatEvent>,
        shared: Arc<SharedState>,
        (outbox, inbox): (Sender<DriverMessage>, Receiver<DriverMessage>),
    ) -> Self {
        let output = ChatOutput::new(say.clone(), options.folder.clone());
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
            pending: HashMap::new(),
            turn: None,
            background: Vec::new(),
            output,
            permissions: SessionPermissions::default(),
            denied: HashSet::new(),
            has_complained: false,
        }
    }

    /// Starts a process for this conversation. It accepts input at once; [`ChatEvent::Ready`]
    /// follows.
    pub(super) fn start(
        &mut self,
        conversation: Conversation,
        attempt: StartAttempt,
        reply: Option<Sender<Result<(), AgentError>>>,
    ) -> Result<(), AgentError> {
        let arguments = arguments(&self.options, &conversation);
        self.processes += 1;
        let process = Process::start(&self.options, &arguments, self.processes, &self.outbox)?;
        self.shared.set_started(process.pid());
        self.process = Some(process);
        let before = self.shared.conversation(|current| std::mem::replace(current, conversation));
        let pending = PendingRequest::Start { before, attempt, reply };
        self.request(WireRequest::initialize(HOOKS), Some(pending));
        Ok(())
    }

    /// Runs until it is closed.
    pub(super) fn run(mut self) {
        loop {
            match self.next() {
                Some(DriverMessage::Line(number, line)) if self.is_current(number) => {
                    self.handle_line(&line);
                }
                Some(DriverMessage::Ended(number)) if self.is_current(number) => {
                    self.handle_exit(None);
                }
                Some(DriverMessage::Line(..) | DriverMessage::Ended(_)) => {}
                Some(DriverMessage::Command(Command::Close)) => break,
                Some(DriverMessage::Command(command)) => self.handle_command(command),
                None => self.kill_process("it did not stop when it was interrupted"),
            }
        }
        if self.turn.is_some() {
            self.request(WireRequest::Interrupt, None);
        }
        if let Some(process) = self.process.take() {
            self.shared.set_ended("it was closed");
            let ended = process.end(END_TIMEOUT);
            self.record_exit(&ended);
        }
        self.end_turn(TurnResult::Interrupted);
        self.recorder.end();
    }

    /// `None`: an interrupted turn did not end in time.
    fn next(&self) -> Option<DriverMessage> {
        let since = self.turn.as_ref().and_then(|turn| turn.interrupted);
        let Some(since) = since.filter(|_| self.process.is_some()) else {
            return self.inbox.recv().ok().or(Some(DriverMessage::Command(Command::Close)));
        };
        match self.inbox.recv_timeout(INTERRUPT_TIMEOUT.saturating_sub(since.elapsed())) {
            Ok(item) => Some(item),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(DriverMessage::Command(Command::Close)),
        }
    }

    fn is_current(&self, number: u64) -> bool {
        self.process.as_ref().is_some_and(|process| process.number == number)
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Prompt { message, text } => self.prompt(message, text),
            Command::Interrupt => self.interrupt(),
            Command::Decide { request, decision } => self.decide(&request, decision),
            Command::RewindFiles { message, mode, reply } => {
                let request = WireRequest::RewindFiles {
                    user_message_id: message,
                    dry_run: mode == RestoreMode::DryRun,
                };
                self.request(request, Some(PendingRequest::Rewind(reply)));
            }
            Command::Restart { conversation, reply } => {
                if let Some(process) = self.process.take() {
                    self.shared.set_ended("it is being restarted");
                    let ended = process.end(END_TIMEOUT);
                    self.close_process(&ProcessEnd { why: "it was restarted".to_owned(), ..ended });
                }
                if let Err(error) =
                    self.start(conversation, StartAttempt::Full, Some(reply.clone()))
                {
                    self.shared.set_ended(&error.to_string());
                    drop(reply.send(Err(error)));
                }
            }
            Command::Kill { why, reply } => {
                self.kill_process(why);
                // The dropped sender reports the end.
                drop(reply);
            }
            Command::Close => {}
        }
    }

    fn prompt(&mut self, message: String, text: String) {
        let point = self.recorder.prompt(&message, &text);
        self.shared.conversation(|conversation| conversation.add_prompt(&message));
        let line = WireIn::prompt(&message, &text);
        // The program may have just started a turn of its own; the prompt then follows it.
        let is_own = self.turn.is_some();
        let interrupted = None;
        let prompt = Some(Prompt { message, text, point, is_accepted: false });
        self.turn = Some(Turn { prompt, is_own, interrupted });
        match &mut self.process {
            Some(process) => process.send(&line),
            None => self.end_turn(TurnResult::Failed("the agent has ended".to_owned())),
        }
    }

    fn interrupt(&mut self) {
        if self.turn.is_none() {
            if self.background.is_empty() {
                // The host may have taken an event for a turn.
                return self.send_event(ChatEvent::TurnEnd(TurnResult::Interrupted));
            }
            self.shared.set_busy();
            self.turn = Some(Turn { prompt: None, is_own: false, interrupted: None });
        }
        if let Some(turn) = &mut self.turn {
            turn.interrupted.get_or_insert_with(Instant::now);
        }
        self.request(WireRequest::Interrupt, None);
        for task_id in self.background.clone() {
            self.request(WireRequest::StopTask { task_id }, Some(PendingRequest::Stop));
        }
    }

    fn decide(&mut self, request: &str, decision: Decision) {
        let Some(asked) = self.shared.take_request(request) else { return };
        let permission = self.permissions.apply(&asked, decision);
        if permission.is_allowed() {
            self.recorder.resume(&asked.call);
        } else {
            self.denied.insert(asked.call);
        }
        self.answer(request, WireReplyBody::Permission(permission));
    }

    fn request(&mut self, request: WireRequest, pending: Option<PendingRequest>) {
        self.requests += 1;
        let id = format!("takeback-{}", self.requests);
        let Some(process) = &mut self.process else { return };
        process.send(&WireIn::request(&id, request));
        if let Some(pending) = pending {
            self.pending.insert(id, pending);
        }
    }

    fn answer(&mut self, id: &str, given: WireReplyBody) {
        if let Some(process) = &mut self.process {
            process.send(&WireIn::reply(id, given));
        }
    }

    fn end_turn(&mut self, ending: TurnResult) {
        if ending == TurnResult::Interrupted {
            self.recorder.subagents_end();
        }
        self.recorder.turn_end();
        if self.turn.take().is_none() {
            return;
        }
        self.shared.clear_requests();
        self.denied.clear();
        self.output.turn_end(&ending);
        self.shared.set_idle();
        self.send_event(ChatEvent::TurnEnd(ending));
    }

    fn kill_process(&mut self, why: &str) {
        self.process.as_ref().map(Process::kill);
        self.handle_exit(Some(why));
    }

    fn handle_exit(&mut self, why: Option<&str>) {
        let Some(process) = self.process.take() else { return };
        let ended = process.end(END_TIMEOUT);
        let why = why.map_or(ended.why, str::to_owned);
        let ended = ProcessEnd { why, ..ended };
        self.shared.set_ended(&ended.why);
        self.close_process(&ended);
        if self.process.is_none() {
            self.send_event(ChatEvent::Ended(ended.why));
        }
    }

    /// Closes what a process left open, in the log and for the host.
    fn close_process(&mut self, ended: &ProcessEnd) {
        let why = ended.why.as_str();
        self.background.clear();
        self.record_exit(ended);
        let asked_to = self.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some());
        self.end_turn(match asked_to {
            true => TurnResult::Interrupted,
            false => TurnResult::Failed(why.to_owned()),
        });
        for (_, pending) in std::mem::take(&mut self.pending) {
            match pending {
                PendingRequest::Start { before, attempt, reply } => {
                    self.handle_failed_start(before, attempt, reply, why);
                }
                PendingRequest::Stop => {}
                PendingRequest::Rewind(reply) => {
                    drop(reply.send(Err(AgentError::Ended(why.to_owned()).into())));
                }
            }
        }
    }

    /// Closes in the log what the process was doing; if it was killed, also the commands it ran.
    fn record_exit(&mut self, ended: &ProcessEnd) {
        let orphans = match &ended.orphaned {
            Some(mark) if self.recorder.may_write() => mark.end_commands(),
            _ => OrphanState::None,
        };
        self.recorder.program_ended(orphans);
    }

    /// A conversation could not be resumed. A killed program may not have written its last messages
    /// to the transcript; then the conversation continues before that turn.
    fn handle_failed_start(
        &mut self,
        before: Conversation,
        attempt: StartAttempt,
        reply: Option<Sender<Result<(), AgentError>>>,
        why: &str,
    ) {
        let wanted = self.shared.conversation(|current| std::mem::replace(current, before));
        let is_lost = attempt == StartAttempt::Full && why.starts_with("No message found");
        let shorter = if is_lost { wanted.without_last_turn() } else { None };
        let mut error = AgentError::Refused(why.to_owned());
        if let Some(shorter) = shorter {
            match self.start(shorter, StartAttempt::WithoutLastTurn, reply.clone()) {
                Ok(()) => {
                    let note = "claude did not save the last turn and continues from before it";
                    return self.send_event(ChatEvent::Note(note.to_owned()));
                }
                Err(failed) => error = failed,
            }
        }
        reply.map(|reply| reply.send(Err(error)));
    }

    fn send_event(&self, event: ChatEvent) {
        // The receiver is gone while the host closes.
        drop(self.say.send(event));
    }
}
