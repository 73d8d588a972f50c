//! Arguments of the commands that make, show and restore points.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointArgs {
    /// A name for the point
    pub(crate) label: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogArgs {
    /// Show at most N
    #[arg(short = 'n', long, value_name = "N", default_value_t = Self::LIMIT)]
    pub(crate) limit: usize,
    /// Show only the points of this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Include the safety points made before rewinds (-n still applies)
    #[arg(short, long)]
    pub(crate) all: bool,
}

impl LogArgs {
    pub(crate) const LIMIT: usize = 20;
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00)
    #[arg(default_value = "@")]
    pub(crate) point: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// From this point
    #[arg(default_value = "@")]
    pub(crate) from: String,
    /// To this point [default: the current files]
    pub(crate) to: Option<String>,
    /// Only this path and everything below it, or a glob; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Show only how many lines changed
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RewindArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00)
    /// [default: choose it from a menu]
    pub(crate) point: Option<String>,
    /// Take back everything since the point, including your own and others' changes
    #[arg(long, conflicts_with_all = ["session", "all_agents", "ambiguous"])]
    pub(crate) exact: bool,
    /// Only this path and everything below it, or a glob; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Take back only what this session did; may be repeated
    #[arg(long, value_name = "SESSION", conflicts_with = "all_agents")]
    pub(crate) session: Vec<String>,
    /// Take back what any agent did
    #[arg(long)]
    pub(crate) all_agents: bool,
    /// What to do with a file whose author is unclear
    #[arg(long, value_name = "POLICY", default_value = "leave")]
    pub(crate) ambiguous: Ambiguous,
    /// The agent changed this path or glob: take it back, and remember that; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) take: Vec<String>,
    /// I changed this path or glob: keep it, and remember that; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) mine: Vec<String>,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    /// Restore every file, including those changed since
    #[arg(long)]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct ApplyArgs {
    /// Overwrite PATH even though its current contents could not be saved; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) discard: Vec<PathBuf>,
    /// Also restore files outside the workspace that the agent edited
    #[arg(long)]
    pub(crate) outside: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also show how the files would change
    #[arg(long)]
    pub(crate) diff: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ambiguous {
    /// Restore deleted files, leave the others as they are
    Leave,
    /// Take it back, as if an agent had changed it
    Take,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PointArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00)
    pub(crate) point: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LabelArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00)
    pub(crate) point: String,
    /// The new label
    #[arg(required_unless_present = "remove")]
    pub(crate) label: Option<String>,
    /// Remove the label
    #[arg(long, conflicts_with = "label")]
    pub(crate) remove: bool,
}
