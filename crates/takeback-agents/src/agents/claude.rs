//! Drives the `claude` program over its standard input and output.
//!
//! One process per conversation, with its input kept open. It calls back at each prompt and before
//! and after each tool, and waits until that is recorded; permissions are asked of the host. To
//! forget a message, the program is restarted from a message in the middle of its session.

mod command_line;
mod conversation;
mod cut;
mod driver;
mod history;
mod hook;
mod kind;
mod orphans;
mod own_files;
mod permission;
mod process;
mod recorder;
mod shared;
mod show;
mod transcript;
mod wire;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::Value;

pub use self::command_line::{claude_environment, find_claude};
use self::conversation::Conversation;
use self::driver::{Command, Driver, Item, Tried};
pub use self::history::{
    ClaudeHistoryError, PastSession, claude_transcript, claude_transcripts, past_session,
};
pub use self::kind::CLAUDE;
use self::recorder::Recorder;
use self::shared::Shared;
use crate::capture::Capture;
use crate::chat_agent::{
    AgentError, ChatAgent, ChatEvent, Decision, NativeFiles, NativeFilesError, Trial,
};

const NAME: &str = "claude";

/// How long `rewind_files` may take.
const FILES_PATIENCE: Duration = Duration::from_secs(30);
/// How long a start may take.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long closing may take before the process is killed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct ClaudeOptions {
    pub program: PathBuf,
    /// Passed to the program, except those that conflict with what the driver needs.
    pub extra_args: Vec<OsString>,
    /// The working folder.
    pub folder: PathBuf,
    pub model: Option<String>,
    /// The complete environment; see [`claude_environment`].
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the program keeps its own copies of files.
    pub checkpointing: bool,
    /// A conversation from [`ChatAgent::memory`]; `null`: a new one.
    pub resume: Value,
}

/// A running conversation with `claude`.
pub struct Claude {
    shared: Arc<Shared>,
    inbox: Sender<Item>,
    checkpointing: bool,
    files_patience: Duration,
    driver: Mutex<Option<JoinHandle<()>>>,
}

impl Claude {
    /// Starts the program and returns at once; [`ChatEvent::Ready`] or [`ChatEvent::Gone`] follows.
    pub fn start(
        options: ClaudeOptions,
        capture: Capture,
        say: Sender<ChatEvent>,
    ) -> Result<Self, AgentError> {
        let conversation = Conversation::from_memory(&options.resume)?;
        let shared = Arc::new(Shared::default());
        shared.conversation(|current| *current = conversation.clone());
        let (inbox, items) = channel();
        let (checkpointing, program) =
            (options.checkpointing, options.program.display().to_string());
        let recorder = Recorder::new(capture);
        let told = Arc::clone(&shared);
        let mut driver = Driver::new(options, recorder, say, told, (inbox.clone(), items));
        driver.start(conversation, Tried::AsItWas, None)?;
        let driver = std::thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || driver.run())
            .map_err(|source| AgentError::CannotStart { program, source })?;
        let (files_patience, driver) = (FILES_PATIENCE, Mutex::new(Some(driver)));
        Ok(Self { shared, inbox, checkpointing, files_patience, driver })
    }

    /// Sets how long [`ChatAgent::rewind_files`] waits.
    #[must_use]
    pub fn with_files_patience(mut self, files_patience: Duration) -> Self {
        self.files_patience = files_patience;
        self
    }

    fn send(&self, command: Command) -> Result<(), AgentError> {
        self.inbox.send(Item::Command(command)).map_err(|_closed| closed())
    }

    /// Sends a command and waits for its answer.
    fn ask<R, E: From<AgentError>>(
        &self,
        patience: Duration,
        command: impl FnOnce(Sender<Result<R, E>>) -> Command,
    ) -> Result<R, E> {
        let (reply, answer) = channel();
        self.send(command(reply))?;
        match answer.recv_timeout(patience) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(AgentError::Silent(patience.as_secs()).into()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.shared.live().err().unwrap_or_else(closed).into())
            }
        }
    }

    /// Ends a process that may still write, and waits for its end.
    fn silence(&self) {
        let (reply, ended) = channel::<()>();
        let told = self.send(Command::GiveUp { why: "it did not answer in time", reply });
        // A driver that has ended has also ended the process.
        if told.is_ok()
            && ended.recv_timeout(CLOSE_PATIENCE) == Err(RecvTimeoutError::Timeout)
            && let Some(pid) = self.shared.pid()
        {
            // The driver is blocked writing to a process that no longer reads.
            process::kill_group(pid);
            for () in ended {}
        }
    }

    fn restart(&self, conversation: Conversation) -> Result<(), AgentError> {
        self.ask(START_PATIENCE, |reply| Command::Restart { conversation, reply })
    }
}

fn closed() -> AgentError {
    AgentError::Gone("it was closed".to_owned())
}

impl ChatAgent for Claude {
    fn name(&self) -> &'static str {
        NAME
    }

    fn prompt(&self, message: &str, text: &str) -> Result<(), AgentError> {
        self.shared.begin()?;
        self.send(Command::Prompt { message: message.to_owned(), text: text.to_owned() })
    }

    fn interrupt(&self) -> Result<(), AgentError> {
        self.send(Command::Interrupt)
    }

    fn decide(&self, request: &str, decision: Decision) -> Result<(), AgentError> {
        if !self.shared.is_asked(request) {
            return Err(AgentError::Refused("nobody waits for this answer".to_owned()));
        }
        self.send(Command::Decide { request: request.to_owned(), decision })
    }

    fn is_live(&self) -> bool {
        self.shared.live().is_ok()
    }

    fn rewind_files(
        &self,
        message: &str,
        trial: Trial,
    ) -> Result<Option<NativeFiles>, NativeFilesError> {
        self.shared.live()?;
        if !self.checkpointing {
            return Ok(None);
        }
        if trial == Trial::Real {
            self.shared.is_idle()?;
        }
        let message = message.to_owned();
        let asked = |reply| Command::RewindFiles { message, trial, reply };
        let answer = self.ask(self.files_patience, asked);
        if trial == Trial::Real
            && let Err(NativeFilesError::Agent(AgentError::Silent(_))) = answer
        {
            self.silence();
        }
        answer.map(Some)
    }

    fn cut(&self, message: &str) -> Result<(), AgentError> {
        self.shared.is_idle()?;
        let left = self.shared.conversation(|conversation| conversation.before(message));
        self.restart(left.ok_or_else(|| AgentError::UnknownMessage(message.to_owned()))?)
    }

    fn memory(&self) -> Value {
        self.shared.conversation(|conversation| conversation.memory())
    }

    fn load(&self, memory: &Value) -> Result<(), AgentError> {
        let conversation = Conversation::from_memory(memory)?;
        self.shared.is_idle()?;
        self.restart(conversation)
    }

    fn close(&self) {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(driver) = driver else { return };
        // Fails if the driver has ended already.
        drop(self.send(Command::Close));
        let (done, ended) = channel::<()>();
        let join = Builder::new().spawn(move || {
            drop(driver.join());
            drop(done);
        });
        if ended.recv_timeout(CLOSE_PATIENCE) == Err(RecvTimeoutError::Timeout)
            && let Some(pid) = self.shared.pid()
        {
            // The driver is blocked writing to a process that no longer reads.
            process::kill_group(pid);
        }
        // If the joining thread could not be spawned, the driver ends with this process.
        drop(join.map(JoinHandle::join));
    }
}

impl Drop for Claude {
    fn drop(&mut self) {
        self.close();
    }
}
