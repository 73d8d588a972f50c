//! Agents on Takeback.
//!
//! [`reference`](mod@reference) is an agent without a model: a list of steps, run so that a failed or
//! killed step costs nothing but its own work. It is there to be used, and to be read by whoever
//! writes an agent of their own.
//!
//! [`talk`] is what can be asked of an agent that somebody talks to, and what it says. [`claude`] is
//! the `claude` program, [`builtin`] an agent of Takeback's own. [`metadata`] is the list of a session's
//! checkpoints as a file, [`restore`](mod@restore) goes back with an agent that is live.
//!
//! [`hook`] is for agents that are used as they are: what their hooks tell, agent by agent ([`claude`],
//! [`codex`], [`gemini`], [`qwen`], [`opencode`], [`copilot`]), and how it gets into the log. [`install`] puts those hooks into
//! the agents' settings, and takes them out again.

pub mod talk;
pub mod capture;
pub mod hook;
pub mod install;
pub mod claude;
pub mod codex;
pub mod gemini;
pub mod qwen;
pub mod opencode;
pub mod copilot;
pub mod cut;
pub mod builtin;
pub mod reference;
pub mod metadata;
pub mod restore;

pub use reference::{Agent, Ambiguous, Effects, Happening, RunError, Step, StepError};

/// The page for authors, so that its code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/execution-state.md")]
struct ExecutionState;
