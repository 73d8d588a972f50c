//! Takeback's own agent: five tools, and a model behind an endpoint or a scenario file.
//!
//! It is small enough to read, and shows what Takeback expects of an agent: every prompt and call
//! is recorded before it is acted on, and the conversation is saved at each step. A failed step
//! costs only its own work, and a killed process can be resumed.
//!
//! One thread does the work (`work`). It receives commands through a channel, and interrupts and decisions
//! through `signals`.

mod permissions;
mod anthropic;
mod conversation;
mod draft;
mod endpoint;
mod http;
mod model;
mod openai;
pub(crate) mod scenario;
mod signals;
mod steps;
mod tools;
mod tour;
mod work;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use takeback_store::state::ExecutionId;

pub use self::endpoint::{ApiKey, ApiStyle, Endpoint, EndpointError, ProxyAddress};
pub use self::scenario::{Scenario, ScenarioError};
pub use self::steps::last_memory;

use self::conversation::Conversation;
use self::model::Model;
use self::permissions::GrantedPermissions;
use self::signals::Signals;
use self::steps::Steps;
use self::tools::Call;
use self::work::{Command, Worker};
use crate::capture::Capture;
use crate::chat_agent::{
    AgentError, ChatAgent, ChatEvent, Decision, NativeFiles, NativeFilesError, RestoreMode,
};

const NAME: &str = "builtin";

/// Where the model's messages come from.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// A model behind an HTTP API.
    Endpoint(Endpoint),
    /// A scenario file.
    Scenario(Scenario),
    /// The scripted tour.
    Tour,
}

/// What the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// Read.
    Ask,
    /// Read and edit files.
    AcceptEdits,
    /// Everything.
    AllowAll,
}

/// How to start the built-in agent.
#[derive(Debug, Clone)]
pub struct BuiltinOptions {
    /// Where the model's messages come from.
    pub source: ModelSource,
    /// What the agent may do without asking.
    pub permissions: Permissions,
    /// A conversation from [`ChatAgent::memory`] to continue; `null` for a new one.
    pub memory: Value,
    /// The time limit of a shell command.
    pub shell_limit: Duration,
    /// The number of model messages after which a turn is ended.
    pub most_messages: usize,
}

impl BuiltinOptions {
    /// The defaults: a script needs no permissions, a model asks for each.
    #[must_use]
    pub fn new(source: ModelSource) -> Self {
        let permissions = match source {
            ModelSource::Endpoint(_) => Permissions::Ask,
            ModelSource::Scenario(_) | ModelSource::Tour => Permissions::AllowAll,
        };
        Self {
            source,
            permissions,
            memory: Value::Null,
            shell_limit: Duration::from_secs(120),
            most_messages: 200,
        }
    }
}

/// A running conversation with the built-in agent.
pub struct Builtin {
    commands: Sender<Command>,
    signals: Arc<Signals>,
    memory: Arc<Mutex<Conversation>>,
    working: Mutex<Option<JoinHandle<()>>>,
}

impl Builtin {
    /// Starts the agent on its own thread; [`ChatEvent::Ready`] follows. The session's start and
    /// end are recorded through `capture`, and its states are saved under the session's name.
    pub fn start(
        options: BuiltinOptions,
        capture: Capture,
        say: Sender<ChatEvent>,
    ) -> Result<Self, AgentError> {
        let conversation =
            Conversation::from_memory(&options.memory).ok_or(AgentError::ForeignMemory(NAME))?;
        let model = model(options.source, capture.workspace.root.path(), &conversation);
        let refused = |why: String| AgentError::Refused(why);
        let execution = ExecutionId::new(capture.session.to_string())
            .map_err(|error| refused(error.to_string()))?;
        let steps = Steps::load(&*capture.workspace.states, execution, model.name())
            .map_err(|error| refused(error.to_string()))?;
        let (signals, memory) = (Arc::default(), Arc::new(Mutex::new(conversation.clone())));
        let worker = Worker {
            capture: capture.into(),
            say: say.clone(),
            model,
            conversation,
            steps,
            signals: Arc::clone(&signals),
            memory: Arc::clone(&memory),
            allowed: GrantedPermissions::new(options.permissions),
            shell_limit: options.shell_limit,
            most_messages: options.most_messages,
            run_tool: Call::run,
        };
        let (commands, received) = mpsc::channel();
        let work = move || {
            if catch_unwind(AssertUnwindSafe(|| worker.run(&received))).is_err() {
                drop(say.send(ChatEvent::Ended("an internal error".to_owned())));
            }
        };
        let working = std::thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(work)
            .map_err(|source| AgentError::CannotStart { program: NAME.to_owned(), source })?;
        Ok(Self { commands, signals, memory, working: Mutex::new(Some(working)) })
    }

    /// Like [`Self::start`], but continues from the last successful step of `capture`'s session,
    /// even if its process was killed. Starts a new conversation if there is none.
    pub fn resume(
        mut options: BuiltinOptions,
        capture: Capture,
        say: Sender<ChatEvent>,
    ) -> Result<Self, AgentError> {
        let refused = |why: String| AgentError::Refused(why);
        let execution = ExecutionId::new(capture.session.to_string())
            .map_err(|error| refused(error.to_string()))?;
        let memory = last_memory(&*capture.workspace.states, &execution)
            .map_err(|error| refused(error.to_string()))?;
        options.memory = memory.unwrap_or(Value::Null);
        Self::start(options, capture, say)
    }

    /// Reserves the agent; the worker releases it.
    fn begin(&self) -> Result<(), AgentError> {
        if self.signals.is_closed() || !self.is_live() {
            return Err(gone());
        }
        if self.signals.begin() { Ok(()) } else { Err(AgentError::Busy) }
    }

    fn send(&self, command: Command) -> Result<(), AgentError> {
        self.commands.send(command).map_err(|_unheard| gone())
    }

    /// Runs a command between two turns and waits for it.
    fn between_turns(
        &self,
        command: impl FnOnce(mpsc::SyncSender<Result<(), AgentError>>) -> Command,
    ) -> Result<(), AgentError> {
        self.begin()?;
        let (answer, answered) = mpsc::sync_channel(1);
        self.send(command(answer))?;
        answered.recv().map_err(|_unheard| gone())?
    }

    fn wait(&self) {
        let working = self.working.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(working) = working {
            // A panic was reported by the panic hook.
            drop(working.join());
        }
    }
}

fn model(source: ModelSource, root: &Path, conversation: &Conversation) -> Box<dyn Model> {
    match source {
        ModelSource::Endpoint(endpoint) => match endpoint.style {
            ApiStyle::Anthropic => Box::new(anthropic::model(&endpoint, instructions(root))),
            ApiStyle::OpenAi => Box::new(openai::model(&endpoint, instructions(root))),
        },
        ModelSource::Scenario(scenario) => Box::new(scenario),
        ModelSource::Tour => Box::new(tour::scenario(root, conversation)),
    }
}

/// The system prompt.
fn instructions(root: &Path) -> String {
    format!(
        "You are a coding agent in a terminal, and work in the folder {}. Use the tools to look before \
         you change something, change what was asked for and nothing else, and say briefly what you \
         did. Every change is recorded, and the user can take it back.",
        root.display()
    )
}

fn gone() -> AgentError {
    AgentError::Ended("it was closed".to_owned())
}

impl ChatAgent for Builtin {
    fn name(&self) -> &'static str {
        NAME
    }

    fn prompt(&self, message: &str, text: &str) -> Result<(), AgentError> {
        self.begin()?;
        self.send(Command::Prompt { message: message.to_owned(), text: text.to_owned() })
    }

    fn interrupt(&self) -> Result<(), AgentError> {
        self.signals.interrupt();
        Ok(())
    }

    fn decide(&self, request: &str, decision: Decision) -> Result<(), AgentError> {
        if self.signals.decide(request, decision) {
            Ok(())
        } else {
            Err(AgentError::Refused(format!("no permission request is open under {request}")))
        }
    }

    fn is_live(&self) -> bool {
        let working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        working.as_ref().is_some_and(|working| !working.is_finished())
    }

    /// The agent keeps no copies of files; Takeback has them.
    fn rewind_files(
        &self,
        _: &str,
        _: RestoreMode,
    ) -> Result<Option<NativeFiles>, NativeFilesError> {
        Ok(None)
    }

    fn cut(&self, message: &str) -> Result<(), AgentError> {
        self.between_turns(|answer| Command::Cut { message: message.to_owned(), answer })
    }

    fn memory(&self) -> Value {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).memory()
    }

    fn load(&self, memory: &Value) -> Result<(), AgentError> {
        let conversation =
            Conversation::from_memory(memory).ok_or(AgentError::ForeignMemory(NAME))?;
        self.between_turns(|answer| Command::Load { conversation, answer })
    }

    fn close(&self) {
        self.signals.close();
        // Fails if the worker has ended already.
        drop(self.send(Command::Close));
        self.wait();
    }
}

/// Ends the running turn and leaves the session open, like a crash.
impl Drop for Builtin {
    fn drop(&mut self) {
        self.signals.close();
        let (unheard, _) = mpsc::channel();
        self.commands = unheard;
        self.wait();
    }
}
