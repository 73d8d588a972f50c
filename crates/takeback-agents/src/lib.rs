//! Agents on Takeback.
//!
//! **Agents that run hooks.** [`AGENTS`] is the table of supported agents. An [`AgentKind`] says where an
//! agent's settings are ([`add_hooks`], [`remove_hooks`], [`find_hooks`]), parses what its hooks send
//! ([`AgentKind::parse`]) and reads its transcripts ([`Transcript`]); [`to_agent_event`] makes a log event
//! of a [`HookEvent`].
//!
//! **Agents in `takeback chat`.** [`ChatAgent`] is an agent that a person talks to: [`Claude`] is the `claude`
//! program, [`Builtin`] Takeback's own agent. [`Metadata`] is the list of a session's checkpoints as a file,
//! [`restore_with_agent`] rewinds together with a running agent.
//!
//! **Agents made of steps.** [`StepAgent`] is an agent without a model: a list of steps, run so that a failed
//! or killed step costs only its own work. Use it, or read it before you write your own agent.
//!
//! # Examples
//!
//! ```
//! use takeback_agents::{HookEventKind, agent_named};
//!
//! let codex = agent_named("codex").expect("a supported agent");
//! let payload = br#"{"hook_event_name": "Stop", "session_id": "s", "cwd": "/project"}"#;
//! let event = codex.parse(payload, None)?;
//! assert_eq!(event.kind, HookEventKind::TurnEnd);
//! # Ok::<(), takeback_agents::PayloadError>(())
//! ```

#![warn(missing_docs)]

mod agents;
mod builtin;
mod capture;
mod chat_agent;
mod conversation_copy;
mod cut;
mod hook;
mod install;
mod kind;
mod metadata;
mod restore;
mod step_agent;
mod tools;
mod transcript;

pub use agents::claude::{
    Claude, ClaudeHistoryError, ClaudeOptions, PastSession, claude_environment, claude_transcript,
    claude_transcripts, find_claude, past_session,
};
pub use agents::*;
pub use builtin::{
    ApiKey, ApiStyle, Builtin, BuiltinOptions, Endpoint, EndpointError, ModelSource, Permissions,
    ProxyAddress, Scenario, ScenarioError, last_memory,
};
pub use capture::Capture;
pub use chat_agent::{
    AgentError, ChatAgent, ChatEvent, Decision, NativeFiles, NativeFilesError, PermissionRequest,
    PromptPoint, RestoreMode, TurnResult,
};
pub use conversation_copy::{ConversationCopy, CopyExtent, CopyFinder};
pub use cut::{Cut, CutError, CutFinder, PointPrompt};
pub use hook::{
    CallEnd, HookEvent, HookEventKind, HookSource, PayloadError, PermissionQuestion, ToolCall,
    call_targets, ends_nothing, has_other_post_edit_hook, introduce_session, paths_of_patch,
    to_agent_event,
};
pub use install::{
    HookCommand, HookFormat, HookInFile, HookPosition, HookProblem, HookProgram, HookScope,
    HooksInFile, InstalledFile, JsonDialect, OwnFile, ProgramWord, Remainder, SessionInfo,
    SettingsError, SettingsFormat, TimeUnit, TrustSite, add_hooks, command_line, find_hooks,
    is_takeback_command, parse_settings, read_session, remove_hooks, settings_refusal,
};
pub use kind::{
    AgentKind, HomeFolder, Homes, HookContext, HookSpec, HooksFile, SessionFiles, SettingsFiles,
    TrustCheck,
};
pub use metadata::{
    Checkpoint, DamagedMetadata, Metadata, MetadataError, checkpoint_description,
    checkpoints_in_log, rewrite_metadata, session_folder,
};
pub use restore::{NativeFilesResult, RestoreError, RestoreReport, restore_with_agent};
pub use step_agent::{EffectDecision, Effects, RunError, RunEvent, Step, StepAgent, StepError};
pub use tools::{ToolNames, default_tools};
pub use transcript::{
    IdsLookup, Lookup, ModelLookup, PathLookup, Transcript, TranscriptEnd, TranscriptEndKind,
};

/// The page for authors, so that its code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/execution-state.md")]
struct ExecutionState;
