//! The thread that talks with `claude`: it owns the process and the recorder, and handles the
//! host's commands and the program's messages one at a time.
//!
//! A hook is answered after its event was recorded, so the program continues only when that is
//! durable.

mod heard;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::ClaudeOptions;
use super::command_line::arguments;
use super::conversation::Conversation;
use super::orphans::Left;
use super::permission::Leave;
use super::process::{Ended, Process};
use super::recorder::Recorder;
use super::shared::Shared;
use super::show::Show;
use super::wire::{WireGiven, WireIn, WireRequest};
use crate::chat_agent::{
    AgentError, ChatEvent, Decision, NativeFiles, NativeFilesError, PromptPoint, Trial, TurnResult,
};

/// A message to the thread.
pub(super) enum Item {
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
        trial: Trial,
        reply: Sender<Result<NativeFiles, NativeFilesError>>,
    },
    /// Continues another conversation with a new process.
    Restart {
        conversation: Conversation,
        reply: Sender<Result<(), AgentError>>,
    },
    /// Kills the process, which is dead when `reply` is received.
    GiveUp {
        why: &'static str,
        reply: Sender<()>,
    },
    Close,
}

/// How long an interrupted turn may take to end before its process is killed.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a process may take to write its transcript.
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
    say: Sender<ChatEvent>,
    shared: Arc<Shared>,
    inbox: Receiver<Item>,
    outbox: Sender<Item>,
    process: Option<Process>,
    processes: u64,
    requests: u64,
    /// Requests without an answer, by their id.
    waiting: HashMap<String, Waiting>,
    turn: Option<Turn>,
    /// Subagents that run in the background.
    background: Vec<String>,
    show: Show,
    leave: Leave,
    /// Calls that were denied.
    denied: HashSet<String>,
    complained: bool,
}

enum Waiting {
    /// `before`: the conversation to return to if this one cannot be resumed.
    Start {
        before: Conversation,
        tried: Tried,
        reply: Option<Sender<Result<(), AgentError>>>,
    },
    Rewind(Sender<Result<NativeFiles, NativeFilesError>>),
    /// A request to stop something in the background.
    Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    AsItWas,
    WithoutTheLastTurn,
}

struct Turn {
    /// `None`: the program started the turn itself, or its background work is being stopped.
    prompt: Option<Prompt>,
    /// The program is still in a turn of its own while a prompt waits.
    of_its_own: bool,
    /// When its interrupt was requested.
    interrupted: Option<Instant>,
}

struct Prompt {
    message: String,
    text: String,
    point: Option<PromptPoint>,
    taken_in: bool,
}

impl Driver {
    pub(super) fn new(
        options: ClaudeOptions,
        recorder: Recorder,
        say: Sender<ChatEvent>,
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
            background: Vec::new(),
            show,
            leave: Leave::default(),
            denied: HashSet::new(),
            complained: false,
        }
    }

    /// Starts a process for this conversation. It accepts input at once; [`ChatEvent::Ready`]
    /// follows.
    pub(super) fn start(
        &mut self,
        conversation: Conversation,
        tried: Tried,
        reply: Option<Sender<Result<(), AgentError>>>,
    ) -> Result<(), AgentError> {
        let arguments = arguments(&self.options, &conversation);
        self.processes += 1;
        let process = Process::start(&self.options, &arguments, self.processes, &self.outbox)?;
        self.shared.started(process.pid());
        self.process = Some(process);
        let before = self.shared.conversation(|current| std::mem::replace(current, conversation));
        let waiting = Waiting::Start { before, tried, reply };
        self.request(WireRequest::initialize(HOOKS), Some(waiting));
        Ok(())
    }

    /// Runs until it is closed.
    pub(super) fn run(mut self) {
        loop {
            match self.next() {
                Some(Item::Line(number, line)) if self.is_current(number) => self.line(&line),
                Some(Item::Ended(number)) if self.is_current(number) => self.died(None),
                Some(Item::Line(..) | Item::Ended(_)) => {}
                Some(Item::Command(Command::Close)) => break,
                Some(Item::Command(command)) => self.command(command),
                None => self.give_up("it did not stop when it was interrupted"),
            }
        }
        if self.turn.is_some() {
            self.request(WireRequest::Interrupt, None);
        }
        if let Some(process) = self.process.take() {
            self.shared.ended("it was closed");
            let ended = process.end(END_PATIENCE);
            self.bury(&ended);
        }
        self.turn_over(TurnResult::Interrupted);
        self.recorder.end();
    }

    /// `None`: an interrupted turn did not end in time.
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

    // --- commands of the host
    // ---------------------------------------------------------------------

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
                    let ended = process.end(END_PATIENCE);
                    self.left_behind(&Ended { why: "it was started anew".to_owned(), ..ended });
                }
                if let Err(error) = self.start(conversation, Tried::AsItWas, Some(reply.clone())) {
                    self.shared.ended(&error.to_string());
                    drop(reply.send(Err(error)));
                }
            }
            Command::GiveUp { why, reply } => {
                self.give_up(why);
                // The dropped sender reports the end.
                drop(reply);
            }
            Command::Close => {}
        }
    }

    fn prompt(&mut self, message: String, text: String) {
        let point = self.recorder.prompt(&message, &text);
        self.shared.conversation(|conversation| conversation.prompted(&message));
        let line = WireIn::prompt(&message, &text);
        // The program may have just started a turn of its own; the prompt then follows it.
        let of_its_own = self.turn.is_some();
        let interrupted = None;
        let prompt = Some(Prompt { message, text, point, taken_in: false });
        self.turn = Some(Turn { prompt, of_its_own, interrupted });
        match &mut self.process {
            Some(process) => process.send(&line),
            None => self.turn_over(TurnResult::Failed("the agent has ended".to_owned())),
        }
    }

    fn interrupt(&mut self) {
        if self.turn.is_none() {
            if self.background.is_empty() {
                // The host may have taken an event for a turn.
                return self.tell(ChatEvent::TurnEnd(TurnResult::Interrupted));
            }
            self.shared.busy();
            self.turn = Some(Turn { prompt: None, of_its_own: false, interrupted: None });
        }
        if let Some(turn) = &mut self.turn {
            turn.interrupted.get_or_insert_with(Instant::now);
        }
        self.request(WireRequest::Interrupt, None);
        for task_id in self.background.clone() {
            self.request(WireRequest::StopTask { task_id }, Some(Waiting::Stop));
        }
    }

    fn decide(&mut self, request: &str, decision: Decision) {
        let Some(asked) = self.shared.answered(request) else { return };
        let permission = self.leave.given(&asked, decision);
        if permission.is_allowed() {
            self.recorder.resume(&asked.call);
        } else {
            self.denied.insert(asked.call);
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

    fn answer(&mut self, id: &str, given: WireGiven) {
        if let Some(process) = &mut self.process {
            process.send(&WireIn::reply(id, given));
        }
    }

    // --- the end of the process
    // -------------------------------------------------------------------

    fn turn_over(&mut self, ending: TurnResult) {
        if ending == TurnResult::Interrupted {
            self.recorder.subagents_end();
        }
        self.recorder.turn_end();
        if self.turn.take().is_none() {
            return;
        }
        self.shared.forget_asked();
        self.denied.clear();
        self.show.turn_end(&ending);
        self.shared.idle();
        self.tell(ChatEvent::TurnEnd(ending));
    }

    fn give_up(&mut self, why: &str) {
        self.process.as_ref().map(Process::kill);
        self.died(Some(why));
    }

    fn died(&mut self, why: Option<&str>) {
        let Some(process) = self.process.take() else { return };
        let ended = process.end(END_PATIENCE);
        let why = why.map_or(ended.why, str::to_owned);
        let ended = Ended { why, ..ended };
        self.shared.ended(&ended.why);
        self.left_behind(&ended);
        if self.process.is_none() {
            self.tell(ChatEvent::Gone(ended.why));
        }
    }

    /// Closes what a process left open, in the log and for the host.
    fn left_behind(&mut self, ended: &Ended) {
        let why = ended.why.as_str();
        self.background.clear();
        self.bury(ended);
        let asked_to = self.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some());
        self.turn_over(match asked_to {
            true => TurnResult::Interrupted,
            false => TurnResult::Failed(why.to_owned()),
        });
        for (_, waiting) in std::mem::take(&mut self.waiting) {
            match waiting {
                Waiting::Start { before, tried, reply } => {
                    self.not_started(before, tried, reply, why);
                }
                Waiting::Stop => {}
                Waiting::Rewind(reply) => {
                    drop(reply.send(Err(AgentError::Gone(why.to_owned()).into())));
                }
            }
        }
    }

    /// Closes in the log what the process was doing; if it was killed, also the commands it ran.
    fn bury(&mut self, ended: &Ended) {
        let left = match &ended.orphaned {
            Some(mark) if self.recorder.may_write() => mark.end_commands(),
            _ => Left::AsTold,
        };
        self.recorder.died(left);
    }

    /// A conversation could not be resumed. A killed program may not have written its last messages
    /// to the transcript; then the conversation continues before that turn.
    fn not_started(
        &mut self,
        before: Conversation,
        tried: Tried,
        reply: Option<Sender<Result<(), AgentError>>>,
        why: &str,
    ) {
        let wanted = self.shared.conversation(|current| std::mem::replace(current, before));
        let is_lost = tried == Tried::AsItWas && why.starts_with("No message found");
        let shorter = if is_lost { wanted.without_last_turn() } else { None };
        let mut error = AgentError::Refused(why.to_owned());
        if let Some(shorter) = shorter {
            match self.start(shorter, Tried::WithoutTheLastTurn, reply.clone()) {
                Ok(()) => {
                    let note = "claude has not kept the last turn, and goes on from before it";
                    return self.tell(ChatEvent::Note(note.to_owned()));
                }
                Err(failed) => error = failed,
            }
        }
        reply.map(|reply| reply.send(Err(error)));
    }

    fn tell(&self, said: ChatEvent) {
        // The receiver is gone while the host closes.
        drop(self.say.send(said));
    }
}
