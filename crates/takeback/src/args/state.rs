//! The arguments of `takeback state`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use takeback_core::execution::MOST_RETRIES;

use super::{Ambiguous, ApplyArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Save a step: one checkpoint as JSON on standard input, together with the files
    ///
    /// Fields: execution_id, step_name, step_index, state, context. Optional: variables, status
    /// (success, failed or pending), error, metadata, timestamp, id, parent, expect, branch, attempt,
    /// session.
    Save(SaveArgs),
    /// List the executions, newest first, or the checkpoints of one, in step order
    List(ListStateArgs),
    /// Show a checkpoint with its values
    Show(StateArgs),
    /// Show what differs between the values of two checkpoints
    Diff(StateDiffArgs),
    /// Print the state to continue from: a checkpoint's, or that of an execution's last success
    Resume(ResumeArgs),
    /// Roll state and files back to a checkpoint: both or neither
    Rollback(RollbackArgs),
    /// Start a new branch at a checkpoint and make it the current one
    Fork(ForkArgs),
    /// Delete a checkpoint, or an execution with all of its checkpoints
    Delete(StateDeleteArgs),
    /// Write an execution with all its checkpoints and effects as one JSON document
    Export(StateExportArgs),
    /// Record a side effect that cannot be taken back: once before it happens, once after
    ///
    /// Standard input: the intended effect as JSON; with --receipt, its result. If the effect was noted
    /// before, prints what is known about it.
    Effect(EffectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The checkpoint's session [default: the field session, TAKEBACK_SESSION, or the execution]
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Save only the state, without a point of the files
    #[arg(long)]
    pub(crate) no_files: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListStateArgs {
    /// The execution [default: list the executions]
    pub(crate) execution: Option<String>,
    /// The checkpoints of this branch [default: the current one]
    #[arg(long, value_name = "BRANCH", requires = "execution")]
    pub(crate) branch: Option<String>,
    /// Every attempt on every branch, including abandoned ones
    #[arg(short, long, requires = "execution", conflicts_with = "branch")]
    pub(crate) all: bool,
    /// Only checkpoints after this one
    #[arg(long, value_name = "ID", requires = "execution")]
    pub(crate) after: Option<String>,
    /// Show at most N
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The checkpoint: ckpt-EXECUTION-STEP (.aN for its Nth attempt), or an execution for its newest
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct StateDiffArgs {
    /// From this checkpoint
    pub(crate) from: String,
    /// To this checkpoint
    pub(crate) to: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// An execution, or a checkpoint: ckpt-EXECUTION-STEP (.aN for its Nth attempt)
    #[arg(value_name = "EXECUTION|ID")]
    pub(crate) name: String,
    /// The last success on this branch, which becomes the current one
    #[arg(long, value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// The last success before this step, to retry the step; later successes are abandoned, and
    /// `state rollback` returns to them
    #[arg(long, value_name = "N")]
    pub(crate) from_step: Option<u32>,
    /// Retry a step at most N times, counted across restarts
    #[arg(long, value_name = "N", default_value_t = MOST_RETRIES, requires = "from_step")]
    pub(crate) max_retries: u32,
    /// Keep at most the newest N of each list `messages` in the state and the context: a tool call is never
    /// separated from its result
    #[arg(long, value_name = "N")]
    pub(crate) last_messages: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The checkpoint: ckpt-EXECUTION-STEP (.aN for its Nth attempt), or an execution for its newest
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Take back every file, including your own and others' changes
    #[arg(long, conflicts_with_all = ["partial", "state_only"])]
    pub(crate) exact: bool,
    /// Take back as many files as possible; keep others' changes
    #[arg(long, conflicts_with = "state_only")]
    pub(crate) partial: bool,
    /// Roll back only the state; files are not changed
    #[arg(long)]
    pub(crate) state_only: bool,
    /// What to do with a file whose author is unclear [default: take it back if only this
    /// execution's sessions may have changed it, else leave it]
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["exact", "state_only"])]
    pub(crate) ambiguous: Option<Ambiguous>,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The checkpoint: ckpt-EXECUTION-STEP (.aN for its Nth attempt), or an execution for its newest
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The branch's name [default: fork-N]
    pub(crate) branch: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StateDeleteArgs {
    /// A checkpoint: ckpt-EXECUTION-STEP (.aN for its Nth attempt), or an execution
    #[arg(value_name = "ID|EXECUTION")]
    pub(crate) name: String,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StateExportArgs {
    /// The execution
    pub(crate) execution: String,
    /// The file to write; must not exist [default: standard output]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EffectArgs {
    /// The execution
    pub(crate) execution: String,
    /// Your name for the effect; use the same one for every retry
    pub(crate) key: String,
    /// The step it belongs to
    #[arg(long, value_name = "N", conflicts_with_all = ["receipt", "withdraw"])]
    pub(crate) step: Option<u32>,
    /// The effect has happened
    #[arg(long, conflicts_with = "withdraw")]
    pub(crate) receipt: bool,
    /// The effect did not happen and may be tried again
    #[arg(long)]
    pub(crate) withdraw: bool,
}
