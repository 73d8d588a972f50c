//! Arguments of the commands for sessions, stores, settings and bundles.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use takeback_core::exchange::BundleLimits;

use super::ScopeName;

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Stop reporting histories that you know are lost
    #[arg(long)]
    pub(crate) acknowledge: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ForgetArgs {
    /// The folder, even if it no longer exists [default: the current workspace]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PurgeArgs {
    /// The file or folder, even if it no longer exists
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RelocateArgs {
    /// Where the folder was
    pub(crate) old: PathBuf,
    /// Where it is now [default: the current folder]
    pub(crate) new: Option<PathBuf>,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    override_usage = "takeback config [OPTIONS] [KEY]\n       takeback config [OPTIONS] <COMMAND>"
)]
pub(crate) struct ConfigArgs {
    /// Show only this setting's value
    pub(crate) key: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show a setting's value
    Get(ConfigGetArgs),
    /// Change a setting in your settings file, or in the project's
    ///
    /// Comments and the order of the file are kept. `takeback config -v` explains each setting.
    Set(ConfigSetArgs),
    /// Remove a setting from the file, so that the default applies again
    Unset(ConfigUnsetArgs),
    /// Edit a settings file in VISUAL, EDITOR or vi
    ///
    /// The editor gets a copy, which replaces the file if it is valid.
    Edit(ConfigFileArgs),
    /// Print the path of a settings file
    Path(ConfigFileArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigGetArgs {
    /// The setting
    pub(crate) key: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigSetArgs {
    /// The setting
    pub(crate) key: String,
    /// Its value; a list is written with commas
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigUnsetArgs {
    /// The setting
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigFileArgs {
    /// Which settings file
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: ScopeName,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: ShellName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellName {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompleteArgs {
    /// The words of the command line up to the cursor, the last one possibly empty
    #[arg(last = true)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RecoverArgs {
    /// Show whether a rewind is unfinished, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// The file to write; `-` is standard output. With --git: the name of the new branch
    pub(crate) file: PathBuf,
    /// Only this point [default: all points, and the changes since]; with --agent-trace: the files as
    /// they were at this point [default: as they are now]; with --patch and --git: only its turn
    pub(crate) point: Option<String>,
    /// Write the turns as patches for `git am` instead
    #[arg(long, conflicts_with_all = ["git", "agent_trace"])]
    pub(crate) patch: bool,
    /// Write the turns as commits on a new branch instead
    #[arg(long, conflicts_with_all = ["agent_trace", "force"])]
    pub(crate) git: bool,
    /// Write Agent Trace records instead: who wrote which lines
    #[arg(long)]
    pub(crate) agent_trace: bool,
    /// Only the points of this session, and the changes until it ended; with --agent-trace: only its lines;
    /// with --patch and --git: its turns, and what others changed between them
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Include ignored files and files outside the workspace
    #[arg(long)]
    pub(crate) include_ignored: bool,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    /// One short line for shell prompts and status bars: reads no files, empty without a store
    #[arg(long)]
    pub(crate) line: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// An exported file; `-` is standard input. With --from: a session or its transcript (default:
    /// all sessions of this workspace)
    #[arg(required_unless_present = "from")]
    pub(crate) file: Option<PathBuf>,
    /// Import this agent's own session history
    #[arg(long, value_name = "AGENT")]
    pub(crate) from: Option<ImportFrom>,
    /// Include files outside the workspace
    #[arg(long)]
    pub(crate) include_ignored: bool,
    /// Refuse a file whose unpacked contents are larger than this
    #[arg(long, value_name = "BYTES", default_value_t = BundleLimits::CONTENTS)]
    pub(crate) max_size: u64,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl ImportArgs {
    pub(crate) fn of(file: &Path) -> Self {
        let max_size = BundleLimits::CONTENTS;
        let file = Some(file.to_owned());
        Self { file, from: None, include_ignored: false, max_size, dry_run: false }
    }
}

/// An agent whose own records can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    Claude,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    /// Show at most N
    #[arg(short = 'n', long, value_name = "N", default_value_t = Self::LIMIT)]
    pub(crate) limit: usize,
}

impl SessionsArgs {
    pub(crate) const LIMIT: usize = 20;
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// End a session and delete its data after some days (the setting archiveDays); if the session
    /// continues, it is no longer archived
    Archive(SessionArgs),
    /// Delete a session with all its points, even labelled and pinned ones; files are not touched
    Delete(DeleteArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionArgs {
    /// The session's id, a prefix of it, or its name in `takeback sessions`
    #[arg(value_name = "ID")]
    pub(crate) session: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    /// The session's id, a prefix of it, or its name in `takeback sessions`
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CleanupArgs {
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Continue even if the clock seems to have jumped or gone back
    #[arg(long)]
    pub(crate) trust_clock: bool,
    /// Only remove the points beyond `pointsPerSession`
    #[arg(long, hide = true)]
    pub(crate) only_too_many: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DuArgs {
    /// List N paths
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
}
