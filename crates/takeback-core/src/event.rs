//! What agents do, in one vocabulary for all agents.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use takeback_store::{CallId, Process, SessionId};

/// Something an agent did or is about to do. Every adapter turns what it sees into these;
/// [`crate::record`](mod@crate::record) is the one place that records them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent {
    /// A conversation began or was resumed.
    SessionStart {
        /// Its id.
        session: SessionId,
        /// The agent's name.
        agent: Option<String>,
        /// The session it was resumed or forked from, or is a part of.
        parent: Option<SessionId>,
        /// The process whose death ends the session, where that is known.
        owner: Option<Process>,
        /// The model, if the agent names it.
        #[serde(default)]
        model: Option<String>,
    },
    /// The user sent a prompt: a turn begins, and a point is made before it.
    Prompt {
        /// The session.
        session: SessionId,
        /// The agent's id of the message.
        message: Option<String>,
        /// The prompt.
        text: String,
        /// The model that gets it, if the agent names it.
        #[serde(default)]
        model: Option<String>,
    },
    /// A tool is about to run: what it may overwrite is saved.
    BeforeTool {
        /// The session.
        session: SessionId,
        /// The agent's id of the call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// What the call may write.
        touches: CallTargets,
    },
    /// A tool has run: what it changed is recorded as its work.
    AfterTool {
        /// The session.
        session: SessionId,
        /// The call's id in [`Self::BeforeTool`].
        call: CallId,
        /// How the call ended.
        outcome: Outcome,
        /// What the agent says about the call.
        #[serde(default)]
        report: CallReport,
    },
    /// The agent saves its state, together with the files as they are. Running calls continue.
    Step {
        /// The session.
        session: SessionId,
        /// The step's name.
        name: String,
    },
    /// The agent has finished its answer.
    TurnEnd {
        /// The session.
        session: SessionId,
        /// The model that answered, if that is known.
        #[serde(default)]
        model: Option<String>,
    },
    /// The conversation ended. A resumed one begins again.
    SessionEnd {
        /// The session.
        session: SessionId,
        /// The model that answered last, if that is known.
        #[serde(default)]
        model: Option<String>,
    },
}

impl AgentEvent {
    /// The session that the event is about.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::SessionStart { session, .. }
            | Self::Prompt { session, .. }
            | Self::BeforeTool { session, .. }
            | Self::AfterTool { session, .. }
            | Self::Step { session, .. }
            | Self::TurnEnd { session, .. }
            | Self::SessionEnd { session, .. } => session,
        }
    }

    /// The model that the event names.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        match self {
            Self::SessionStart { model, .. }
            | Self::Prompt { model, .. }
            | Self::TurnEnd { model, .. }
            | Self::SessionEnd { model, .. } => model.as_deref(),
            Self::BeforeTool { .. } | Self::AfterTool { .. } | Self::Step { .. } => None,
        }
    }

    /// The same of a session with another name.
    #[must_use]
    pub(crate) fn renamed(mut self, name: SessionId) -> Self {
        match &mut self {
            Self::SessionStart { session, .. }
            | Self::Prompt { session, .. }
            | Self::BeforeTool { session, .. }
            | Self::AfterTool { session, .. }
            | Self::Step { session, .. }
            | Self::TurnEnd { session, .. }
            | Self::SessionEnd { session, .. } => *session = name,
        }
        self
    }
}

/// What a tool call may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallTargets {
    /// No files.
    Nothing,
    /// These, and nothing else. Absolute, or relative to the workspace's root.
    Paths(#[serde(with = "path_list")] Vec<PathBuf>),
    /// Anything, including `paths`, which a scan may not cover. The command is for display.
    Anything {
        /// The command line.
        command: Option<String>,
        /// Paths that it is known to write, absolute or relative to the workspace's root.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "path_list")]
        paths: Vec<PathBuf>,
    },
}

impl CallTargets {
    /// Anything; no path is named.
    #[must_use]
    pub fn anything(command: Option<String>) -> Self {
        Self::Anything { command, paths: Vec::new() }
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It failed. It may have written before.
    Failed,
    /// It answered, but what it started still runs.
    Background,
    /// The person stopped it. What it wrote until then is its work.
    Interrupted,
    /// The person refused it: it never ran.
    Rejected,
}

/// What the agent reports about a call in addition to its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallReport {
    /// How long ago it began to run. Before that it waited for the person's permission.
    #[serde(default)]
    pub ran_for: Option<Duration>,
    /// It waited for the person's permission, and it is not known when it began to run.
    #[serde(default)]
    pub waited: bool,
    /// A hook of the agent itself, such as a formatter, may be changing the named paths right now.
    #[serde(default)]
    pub formatter: bool,
}

/// Which tools write what, by name. A tool that is in no list may write anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Write the paths in their input, and nothing else.
    pub edit: Vec<String>,
    /// May write anything.
    pub shell: Vec<String>,
    /// Write nothing.
    pub read_only: Vec<String>,
}

impl Tools {
    /// From lists of names.
    #[must_use]
    pub fn new(edit: &[&str], shell: &[&str], read_only: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self { edit: owned(edit), shell: owned(shell), read_only: owned(read_only) }
    }

    /// What a call of `tool` may write. A tool that is neither a known edit with a path, nor known
    /// to only read, may write anything. The paths of an unknown tool do not count as written: it may name
    /// what it reads, anywhere.
    #[must_use]
    pub fn touches(&self, tool: &str, paths: Vec<PathBuf>, command: Option<String>) -> CallTargets {
        let is = |names: &[String]| names.iter().any(|name| name == tool);
        if is(&self.shell) {
            CallTargets::Anything { command, paths }
        } else if is(&self.edit) && !paths.is_empty() {
            CallTargets::Paths(paths)
        } else if is(&self.read_only) && command.is_none() {
            CallTargets::Nothing
        } else {
            CallTargets::anything(command)
        }
    }
}

/// A path as text, or as its bytes in base64 when it is not UTF-8.
mod path_list {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::PathBuf;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum WirePath {
        Text(String),
        Bytes { base64: String },
    }

    pub(super) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| match path.to_str() {
            Some(text) => WirePath::Text(text.to_owned()),
            None => WirePath::Bytes { base64: STANDARD.encode(path.as_os_str().as_bytes()) },
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let wire = Vec::<WirePath>::deserialize(deserializer)?;
        wire.into_iter()
            .map(|path| match path {
                WirePath::Text(text) => Ok(PathBuf::from(text)),
                WirePath::Bytes { base64 } => STANDARD
                    .decode(base64)
                    .map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
                    .map_err(serde::de::Error::custom),
            })
            .collect()
    }
}
