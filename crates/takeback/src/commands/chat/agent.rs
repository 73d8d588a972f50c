//! Starts the agent of a session: the one the user chose, else `claude`, a model, or the tour.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use serde_json::Value;
use takeback_agents::{
    Builtin, BuiltinOptions, CLAUDE, Capture, ChatAgent, ChatEvent, Claude, ClaudeOptions,
    Endpoint, ModelSource, Scenario, claude_environment, find_claude, last_memory,
};
use takeback_store::SessionId;
use takeback_store::state::ExecutionId;

use super::Event;
use super::conversation::Conversation;
use crate::args::{AgentName, ChatArgs, Options};
use crate::commands::state::save::SESSION_VARIABLE;
use crate::error::{CommandError, Kind};
use crate::installed_agents;
use crate::place::{self, Store, environment};
use crate::screen::plain;

pub(super) struct AgentStart<'a> {
    pub(super) options: &'a Options,
    pub(super) args: &'a ChatArgs,
    pub(super) session: &'a SessionId,
    /// The conversation to continue.
    pub(super) previous: Option<&'a Conversation>,
    pub(super) recording: bool,
}

impl AgentStart<'_> {
    /// Starts the agent; its messages come as [`Event::Agent`].
    pub(super) fn start(&self, events: &Sender<Event>) -> Result<Arc<dyn ChatAgent>, CommandError> {
        let say = forward(events)?;
        let capture = self.capture(say.clone())?;
        let program = find_claude(environment("PATH").as_deref(), self.args.program.as_deref());
        let failed = |error| CommandError::new(Kind::CannotStart, error);
        match (self.choice(), program) {
            (Some(AgentName::Claude), None) => Err(self.not_found()),
            (Some(AgentName::Claude) | None, Some(program)) => {
                let options = ClaudeOptions {
                    program,
                    extra_args: self.args.extra.clone(),
                    folder: capture.workspace.root.path().to_owned(),
                    model: self.args.model.clone(),
                    environment: self.environment(),
                    checkpointing: self.recording,
                    resume: self.memory(),
                };
                Ok(Arc::new(Claude::start(options, capture, say).map_err(failed)?))
            }
            (Some(AgentName::Builtin), _) | (None, None) => {
                let mut options = BuiltinOptions::new(driver(self.args)?);
                options.memory = self.builtin_memory(&capture)?;
                Ok(Arc::new(Builtin::start(options, capture, say).map_err(failed)?))
            }
        }
    }

    /// Records on a connection of its own: the agent has its own threads.
    fn capture(&self, say: Sender<ChatEvent>) -> Result<Capture, CommandError> {
        let place = place::open(self.options, Store::Create)?;
        let tools = place.settings.tools();
        let mut workspace = place.workspace;
        workspace.ambient.watch = None;
        let formatter = installed_agents::has_formatter(&CLAUDE, Some(workspace.root.path()));
        let session = self.session.clone();
        Ok(Capture { workspace, session, tools, say, recording: self.recording, formatter })
    }

    fn choice(&self) -> Option<AgentName> {
        let previous = self.previous.map(|previous| previous.agent.as_str());
        self.args.agent.or(match previous {
            Some("claude") => Some(AgentName::Claude),
            Some("builtin") => Some(AgentName::Builtin),
            _ if self.args.scenario.is_some() => Some(AgentName::Builtin),
            _ if self.args.program.is_some() => Some(AgentName::Claude),
            _ => None,
        })
    }

    fn memory(&self) -> Value {
        self.previous.map_or(Value::Null, |previous| previous.memory.clone())
    }

    /// The built-in agent saves its memory at each step: after a kill, that is newer than the stored
    /// conversation.
    fn builtin_memory(&self, capture: &Capture) -> Result<Value, CommandError> {
        let execution = ExecutionId::new(self.session.0.as_str())
            .map_err(|error| CommandError::new(Kind::Usage, error))?;
        let states = &*capture.workspace.states;
        let last = match self.previous {
            Some(_) => last_memory(states, &execution)?,
            None => None,
        };
        Ok(last.unwrap_or_else(|| self.memory()))
    }

    /// The user's environment, without what would make the agent's hooks record: this session does.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = claude_environment(all_variables());
        environment.retain(|(name, _)| name != SESSION_VARIABLE);
        environment.push((SESSION_VARIABLE.into(), self.session.0.clone().into()));
        environment
    }

    fn not_found(&self) -> CommandError {
        let what = match &self.args.program {
            Some(program) => format!("{} is not a program", plain(&program.to_string_lossy())),
            None => "`claude` was not found".to_owned(),
        };
        CommandError::new(Kind::CannotStart, what)
            .hint("Install it and put it on PATH, or name it with --program FILE.")
            .hint("`takeback chat --agent builtin` does not need it.")
    }
}

/// What drives the built-in agent: a scenario, a model, or the tour.
fn driver(args: &ChatArgs) -> Result<ModelSource, CommandError> {
    if let Some(file) = &args.scenario {
        let unusable =
            |why: String| CommandError::new(Kind::Usage, format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        let scenario = Scenario::parse(&text).map_err(|error| unusable(error.to_string()))?;
        return Ok(ModelSource::Scenario(scenario));
    }
    let get = |name: &str| environment(name).and_then(|value| value.into_string().ok());
    let endpoint =
        Endpoint::from_variables(get).map_err(|error| CommandError::new(Kind::Usage, error))?;
    Ok(match endpoint {
        Some(mut endpoint) => {
            if let Some(model) = &args.model {
                endpoint.model.clone_from(model);
            }
            ModelSource::Endpoint(endpoint)
        }
        None => ModelSource::Tour,
    })
}

/// Agents know only their own messages: a thread turns them into events.
fn forward(events: &Sender<Event>) -> io::Result<Sender<ChatEvent>> {
    let (say, messages) = channel();
    let events = events.clone();
    Builder::new().spawn(move || {
        for message in messages {
            if events.send(Event::Agent(message)).is_err() {
                return;
            }
        }
    })?;
    Ok(say)
}

#[expect(clippy::disallowed_methods, reason = "an agent gets the environment of its parent")]
fn all_variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}
