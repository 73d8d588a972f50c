//! Arguments of the commands that make, show and restore points.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointArgs {
    /// A name for the point
    pub(crate) label: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogArgs {
    /// Only points after which this path changed: a file, a folder, or a glob
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Show at most N
    #[arg(short = 'n', long, value_name = "N", default_value_t = Self::LIMIT)]
    pub(crate) limit: usize,
    /// Show only the points of this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Include the safety points made before rewinds (-n still applies)
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Show only operations: rewinds, undos and redos
    #[arg(long, conflicts_with_all = ["session", "all", "by", "tool"])]
    pub(crate) ops: bool,
    /// Only points after which AUTHOR changed something: "you", "agent" (any), an agent's name, or a session
    #[arg(long, value_name = "AUTHOR")]
    pub(crate) by: Option<String>,
    /// Only points made at or after TIME (10m, 2h, 14:00, 2026-11-19)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only points made at or before TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only points with this text in the prompt or label
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    /// Only points after which this text appeared in or disappeared from a file
    #[arg(short = 'S', value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Only points after which this tool changed something
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Draw sessions as lines, side by side
    #[arg(long)]
    pub(crate) graph: bool,
    /// Show what changed after each point as a diff
    #[arg(short, long, conflicts_with_all = ["format", "graph"])]
    pub(crate) patch: bool,
    /// Show the files that changed after each point
    #[arg(long, conflicts_with_all = ["patch", "format", "graph"])]
    pub(crate) stat: bool,
    /// Print each row with this template; {field} is a field of the JSON: '{id} {byAuthor.agent.insertions}'
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "graph")]
    pub(crate) format: Option<String>,
}

impl LogArgs {
    pub(crate) const LIMIT: usize = 20;

    /// The newest points, and the operations between them.
    pub(crate) fn newest(limit: usize) -> Self {
        Self {
            paths: Vec::new(),
            limit,
            session: None,
            all: false,
            ops: false,
            by: None,
            since: None,
            until: None,
            grep: None,
            text: None,
            tool: None,
            graph: false,
            patch: false,
            stat: false,
            format: None,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00)
    #[arg(default_value = "@")]
    pub(crate) point: String,
    /// Show what changed as a diff, split by author
    #[arg(short, long)]
    pub(crate) patch: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// The file; it may have been deleted
    pub(crate) path: PathBuf,
    /// Show at most N
    #[arg(short = 'n', long, value_name = "N", default_value_t = LogArgs::LIMIT)]
    pub(crate) limit: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BlameArgs {
    /// The file
    pub(crate) path: PathBuf,
    /// Only these lines: 12 or 10-20
    #[arg(short = 'L', long = "lines", value_name = "LINES")]
    pub(crate) lines: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    /// A file and a line number: src/main.rs:12
    #[arg(value_name = "PATH:LINE")]
    pub(crate) line: OsString,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BisectArgs {
    /// A point at which COMMAND succeeds [default: the oldest point]
    #[arg(long, value_name = "POINT")]
    pub(crate) good: Option<String>,
    /// A point at which COMMAND fails [default: the current files]
    #[arg(long, value_name = "POINT")]
    pub(crate) bad: Option<String>,
    /// Copy PATH into the scratch folder first, for files that are not recorded such as node_modules (can
    /// be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) with: Vec<PathBuf>,
    /// The command: exit code 0 is good, 125 skips, any other is bad
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ForkPointArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00); or now, for the
    /// files as they are
    pub(crate) point: String,
    /// A new or empty folder, outside the workspace
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Make N forks, in DIR-1 to DIR-N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=99))]
    pub(crate) count: Option<u16>,
    /// Also copy what is not recorded, such as .git and build output, as it is now
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompareArgs {
    /// The forks' folders
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Run COMMAND in so many forks at once
    #[arg(long, value_name = "N", default_value_t = 1, requires = "command", value_parser = clap::value_parser!(u16).range(1..=99))]
    pub(crate) jobs: u16,
    /// A command to run in each fork, such as its tests
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CatArgs {
    /// A point and a path: @~2:src/main.rs
    #[arg(value_name = "POINT:PATH")]
    pub(crate) file: OsString,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    /// Only between two points: @~5..@, @~5.. or ..@
    #[arg(value_name = "A..B")]
    pub(crate) range: Option<String>,
    /// Only what was written since TIME (2h, 14:00, 2026-11-19)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// The older point; POINT! shows what that point's turn changed
    #[arg(default_value = "@")]
    pub(crate) from: String,
    /// The newer point [default: the current files]
    pub(crate) to: Option<String>,
    /// Only this path and everything below it, or a glob (can be repeated)
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Show only how many lines changed
    #[arg(long)]
    pub(crate) stat: bool,
    /// Only what AUTHOR changed: you, agent, an agent's name or a session
    #[arg(long, value_name = "AUTHOR")]
    pub(crate) by: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RewindArgs {
    /// The point: @, @~N, an id or a prefix of it, a label, a message id, a time (10m, 14:00)
    /// [default: choose it from a menu]
    pub(crate) point: Option<String>,
    /// Take back everything since the point, including your own and others' changes
    #[arg(long, conflicts_with_all = ["session", "all_agents", "ambiguous"])]
    pub(crate) exact: bool,
    /// Only this path and everything below it, or a glob (can be repeated)
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Take back only what this session did (can be repeated)
    #[arg(long, value_name = "SESSION", conflicts_with = "all_agents")]
    pub(crate) session: Vec<String>,
    /// Take back what any agent did
    #[arg(long)]
    pub(crate) all_agents: bool,
    /// What to do with a file whose author is unclear
    #[arg(long, value_name = "POLICY", default_value = "leave")]
    pub(crate) ambiguous: Ambiguous,
    /// What to do with lines that the agent wrote and you changed since
    #[arg(long, value_name = "POLICY", default_value = "keep")]
    pub(crate) conflicts: Conflicts,
    /// The agent changed this path or glob: take it back, and remember that (can be repeated)
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) take: Vec<String>,
    /// I changed this path or glob: keep it, and remember that (can be repeated)
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) mine: Vec<String>,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

/// What becomes of lines that two authors changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Conflicts {
    /// Keep your version of these lines, change the rest of the file
    #[default]
    Keep,
    /// Leave a file with such lines as it is
    File,
    /// Replace your version, too
    Take,
    /// Write both versions between conflict markers
    Markers,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RevertArgs {
    /// A turn by its point (@, @~2, an id), a call of it (@~2.3), or a range (@~5..@~2, @~5..)
    #[arg(value_name = "TURN|CALL|A..B")]
    pub(crate) what: String,
    /// Only this path and everything below it, or a glob (can be repeated)
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// In a range: take back only what this session did (can be repeated)
    #[arg(long, value_name = "SESSION", conflicts_with = "all_agents")]
    pub(crate) session: Vec<String>,
    /// In a range: take back what any agent did
    #[arg(long)]
    pub(crate) all_agents: bool,
    /// What to do with a file whose author is unclear
    #[arg(long, value_name = "POLICY", default_value = "leave")]
    pub(crate) ambiguous: Ambiguous,
    /// What to do with lines that were changed again since
    #[arg(long, value_name = "POLICY", default_value = "keep")]
    pub(crate) conflicts: Conflicts,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestoreArgs {
    /// A file, a folder or a glob; also one that is deleted now
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<String>,
    /// The point to restore from
    #[arg(long, value_name = "POINT", default_value = "@")]
    pub(crate) from: String,
    /// Choose hunk by hunk, in the terminal
    #[arg(long, conflicts_with_all = ["yes", "dry_run"])]
    pub(crate) hunk: bool,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResolveArgs {
    /// Only this path and everything below it, or a glob [default: every conflict]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Settle every conflict in the same way, without asking
    #[arg(long, value_name = "SIDE")]
    pub(crate) take: Option<Side>,
    /// Open each file in the merge tool of your git settings (merge.tool)
    #[arg(long, conflicts_with = "take")]
    pub(crate) tool: bool,
    /// List the open conflicts
    #[arg(long, conflicts_with_all = ["take", "tool"])]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

/// One of the two versions of lines in conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// What is there now
    Mine,
    /// What was there before the change that is taken back
    Before,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AdoptArgs {
    /// The fork, made with `takeback fork`
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Only this path and everything below it, or a glob (can be repeated)
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// What to do with lines that were changed in the fork and here
    #[arg(long, value_name = "POLICY", default_value = "keep")]
    pub(crate) conflicts: Conflicts,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    /// The operation, by its id in `takeback log --ops` [default: the last one that is not undone]
    #[arg(value_name = "OPERATION")]
    pub(crate) operation: Option<String>,
    /// What to do with lines that were changed again since
    #[arg(long, value_name = "POLICY", default_value = "keep")]
    pub(crate) conflicts: Conflicts,
    #[command(flatten)]
    pub(crate) how: RedoArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RedoArgs {
    /// Restore every file, including those changed since
    #[arg(long)]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) doing: ApplyArgs,
}

#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct ApplyArgs {
    /// Overwrite PATH even though its current contents could not be saved (can be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) discard: Vec<PathBuf>,
    /// Also restore files outside the workspace that the agent edited
    #[arg(long)]
    pub(crate) outside: bool,
    /// Show what would happen without changing anything
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
