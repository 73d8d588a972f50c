//! The words of `takeback state`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use takeback_core::execution::MOST_RETRIES;

use super::{Ambiguous, DoingArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Save a step: one checkpoint as JSON on standard input, with the files as they are
    ///
    /// Fields: execution_id, step_name, step_index, state, context; and if you like variables, status
    /// (success, failed or pending), error, metadata, timestamp, id, parent, expect, branch, attempt,
    /// session.
    Save(SaveArgs),
    /// List the executions, newest first, or the checkpoints of one, in the order of its steps
    List(ListStateArgs),
    /// Show a checkpoint with its values
    Show(StateArgs),
    /// Show what differs between the values of two checkpoints
    Diff(StateDiffArgs),
    /// Hand back the state to go on from: of a checkpoint, or of an execution's last success
    Resume(ResumeArgs),
    /// Take state and files back to a checkpoint: both, or nothing at all
    Rollback(RollbackArgs),
    /// Go on from a checkpoint on a branch of its own, which becomes the current one
    Fork(ForkArgs),
    /// Delete a checkpoint, or an execution with all of its checkpoints
    Delete(StateDeleteArgs),
    /// Write an execution with all its checkpoints and effects as one JSON document
    Export(StateExportArgs),
    /// Note that something that cannot be taken back is about to happen, or has happened
    ///
    /// Standard input: what is intended, as JSON; with --receipt, what came of it. An effect that was
    /// noted before is told as it stands.
    Effect(EffectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The session that it belongs to [default: the field session, TAKEBACK_SESSION, or the execution]
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Save the state alone, without a point of the files
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
    /// Every attempt on every branch, and what was left behind
    #[arg(short, long, requires = "execution", conflicts_with = "branch")]
    pub(crate) all: bool,
    /// Only what comes after this checkpoint
    #[arg(long, value_name = "ID", requires = "execution")]
    pub(crate) after: Option<String>,
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The checkpoint: ckpt-EXECUTION-STEP, with .aN its Nth attempt; or an execution: its newest
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct StateDiffArgs {
    /// From this checkpoint
    pub(crate) from: String,
    /// To this one
    pub(crate) to: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// An execution, or a checkpoint: ckpt-EXECUTION-STEP, with .aN its Nth attempt
    #[arg(value_name = "EXECUTION|ID")]
    pub(crate) name: String,
    /// The last success on this branch, which becomes the current one
    #[arg(long, value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// The last success before this step, to try the step again; what succeeded from this step on is
    /// left behind, and `state rollback` goes back to it
    #[arg(long, value_name = "N")]
    pub(crate) from_step: Option<u32>,
    /// Try a step again at most this many times, counted over restarts
    #[arg(long, value_name = "N", default_value_t = MOST_RETRIES, requires = "from_step")]
    pub(crate) max_retries: u32,
    /// Only the newest N of each list `messages` in the state and the context, or fewer: a tool call
    /// is never parted from its result
    #[arg(long, value_name = "N")]
    pub(crate) last_messages: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The checkpoint: ckpt-EXECUTION-STEP, with .aN its Nth attempt; or an execution: its newest
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Take back every file, also what you and others changed
    #[arg(long, conflicts_with_all = ["partial", "state_only"])]
    pub(crate) exact: bool,
    /// Take back as many files as can be; what others changed stays
    #[arg(long, conflicts_with = "state_only")]
    pub(crate) partial: bool,
    /// Take back the state alone; files stay as they are
    #[arg(long)]
    pub(crate) state_only: bool,
    /// What to do where it is not certain who changed a file [default: take back what only the
    /// sessions of this execution may have changed, leave the rest]
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["exact", "state_only"])]
    pub(crate) ambiguous: Option<Ambiguous>,
    #[command(flatten)]
    pub(crate) doing: DoingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The checkpoint: ckpt-EXECUTION-STEP, with .aN its Nth attempt; or an execution: its newest
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The branch's name [default: fork-N]
    pub(crate) branch: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StateDeleteArgs {
    /// A checkpoint: ckpt-EXECUTION-STEP, with .aN its Nth attempt; or an execution
    #[arg(value_name = "ID|EXECUTION")]
    pub(crate) name: String,
    /// Show what would be deleted and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StateExportArgs {
    /// The execution
    pub(crate) execution: String,
    /// Where to; replaces no other file [default: standard output]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EffectArgs {
    /// The execution
    pub(crate) execution: String,
    /// Your own name for the effect: the same whenever it is tried again
    pub(crate) key: String,
    /// The step that it belongs to
    #[arg(long, value_name = "N", conflicts_with_all = ["receipt", "withdraw"])]
    pub(crate) step: Option<u32>,
    /// It has happened
    #[arg(long, conflicts_with = "withdraw")]
    pub(crate) receipt: bool,
    /// It did not happen, and may be tried again
    #[arg(long)]
    pub(crate) withdraw: bool,
}
