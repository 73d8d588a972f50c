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
mod native_files;
mod permission;
mod process;
mod recorder;
mod shared_state;
mod output;
mod transcript;
mod wire;
mod call_text;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::Value;

pub use self::command_line::{claude_environment, find_claude};
use self::conversation::Conversation;
use self::driver::{Command, Driver, DriverMessage, StartAttempt};
pub use self::history::{
    ClaudeHistoryError, PastSession, claude_transcript, claude_transcripts, past_session,
};
pub use self::kind::CLAUDE;
use self::recorder::Recorder;
use self::shared_state::SharedState;
use crate::capture::Capture;
use crate::chat_agent::{
    AgentError, ChatAgent, ChatEvent, Decision, NativeFiles, NativeFilesError, RestoreMode,
};

const NAME: &str = "claude";

/// How long `rewind_files` may take.
const FILES_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a start may take.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long closing may take before the process is killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How to start `claude`.
#[derive(Debug, Clone)]
pub struct ClaudeOptions {
    /// The program; see [`find_claude`].
    pub program: PathBuf,
    /// Passed to the program, except those that conflict with what the driver needs.
    pub extra_args: Vec<OsString>,
    /// The working folder.
    pub folder: PathBuf,
    /// The model, unless `extra_args` name one.
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
    shared: Arc<SharedState>,
    inbox: Sender<DriverMessage>,
    checkpointing: bool,
    files_timeout: Duration,
    driver: Mutex<Option<JoinHandle<()>>>,
}

impl Claude {
    /// Starts the program and returns at once; [`ChatEvent::Ready`] or [`ChatEvent::Ended`] follows.
    pub fn start(
        options: ClaudeOptions,
        capture: Capture,
        say: Sender<ChatEvent>,
    ) -> Result<Self, AgentError> {
        let conversation = Conversation::from_memory(&options.resume)?;
        let shared = Arc::new(SharedState::default());
        shared.conversation(|current| *current = conversation.clone());
        let (inbox, items) = channel();
        let (checkpointing, program) =
            (options.checkpointing, options.program.display().to_string());
        let recorder = Recorder::new(capture);
        let state = Arc::clone(&shared);
        let mut driver = Driver::new(options, recorder, say, state, (inbox.clone(), items));
        driver.start(conversation, StartAttempt::Full, None)?;
        let driver = std::thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || driver.run())
            .map_err(|source| AgentError::CannotStart { program, source })?;
        let (files_timeout, driver) = (FILES_TIMEOUT, Mutex::new(Some(driver)));
        Ok(Self { shared, inbox, checkpointing, files_timeout, driver })
    }

    /// Sets how long [`ChatAgent::rewind_files`] waits.
    #[must_use]
    pub fn with_files_timeout(mut self, files_timeout: Duration) -> Self {
        self.files_timeout = files_timeout;
        self
    }

    fn send(&self, command: Command) -> Result<(), AgentError> {
        self.inbox.send(DriverMessage::Command(command)).map_err(|_closed| closed())
    }

    /// Sends a command and waits for its answer.
    fn ask<R, E: From<AgentError>>(
        &self,
        timeout: Duration,
        command: impl FnOnce(Sender<Result<R, E>>) -> Command,
    ) -> Result<R, E> {
        let (reply, answer) = channel();
        self.send(command(reply))?;
        match answer.recv_timeout(timeout) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(AgentError::Timeout(timeout.as_secs()).into()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.shared.check_live().err().unwrap_or_else(closed).into())
            }
        }
    }

    /// Ends a process that may still write, and waits for its end.
    fn kill_and_wait(&self) {
        let (reply, ended) = channel::<()>();
        let sent = self.send(Command::Kill { why: "it did not answer in time", reply });
        // A driver that has ended has also ended the process.
        if sent.is_ok()
            && ended.recv_timeout(CLOSE_TIMEOUT) == Err(RecvTimeoutError::Timeout)
            && let Some(pid) = self.shared.pid()
        {
            // The driver is blocked writing to a process that no longer reads.
            process::kill_group(pid);
            for () in ended {}
        }
    }

    fn restart(&self, conversation: Conversation) -> Result<(), AgentError> {
        self.ask(START_TIMEOUT, |reply| Command::Restart { conversation, reply })
    }
}

fn closed() -> AgentError {
    AgentError::Ended("it was closed".to_owned())
}

impl ChatAgent for Claude {
    fn name(&self) -> &'static str {
        NAME
    }

    fn prompt(&self, message: &str, text: &str) -> Result<(), AgentError> {
        self.shared.begin_turn()?;
        self.send(Command::Prompt { message: message.to_owned(), text: text.to_owned() })
    }

    fn interrupt(&self) -> Result<(), AgentError> {
        self.send(Command::Interrupt)
    }

    fn decide(&self, request: &str, decision: Decision) -> Result<(), AgentError> {
        if !self.shared.has_request(request) {
            return Err(AgentError::Refused(format!(
                "no permission request is open under {request}"
            )));
        }
        self.send(Command::Decide { request: request.to_owned(), decision })
    }

    fn is_live(&self) -> bool {
        self.shared.check_live().is_ok()
    }

    fn rewind_files(
        &self,
        message: &str,
        mode: RestoreMode,
    ) -> Result<Option<NativeFiles>, NativeFilesError> {
        self.shared.check_live()?;
        if !self.checkpointing {
            return Ok(None);
        }
        if mode == RestoreMode::Apply {
            self.shared.check_idle()?;
        }
        let message = message.to_owned();
        let asked = |reply| Command::RewindFiles { message, mode, reply };
        let answer = self.ask(self.files_timeout, asked);
        if mode == RestoreMode::Apply
            && let Err(NativeFilesError::Agent(AgentError::Timeout(_))) = answer
        {
            self.kill_and_wait();
        }
        answer.map(Some)
    }

    fn cut(&self, message: &str) -> Result<(), AgentError> {
        self.shared.check_idle()?;
        let left = self.shared.conversation(|conversation| conversation.before(message));
        self.restart(left.ok_or_else(|| AgentError::UnknownMessage(message.to_owned()))?)
    }

    fn memory(&self) -> Value {
        self.shared.conversation(|conversation| conversation.memory())
    }

    fn load(&self, memory: &Value) -> Result<(), AgentError> {
        let conversation = Conversation::from_memory(memory)?;
        self.shared.check_idle()?;
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
        if ended.recv_timeout(CLOSE_TIMEOUT) == Err(RecvTimeoutError::Timeout)
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
