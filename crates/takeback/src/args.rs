//! The command line: commands, arguments and options.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use takeback_agents::agent_names;
use takeback_core::exchange::BundleLimits;

#[cfg(test)]
mod hints;
mod state;

pub(crate) use state::{
    EffectArgs, ForkArgs, ListStateArgs, ResumeArgs, RollbackArgs, SaveArgs, StateArgs,
    StateCommand, StateDeleteArgs, StateDiffArgs, StateExportArgs,
};

/// Checkpoint and rewind for coding agents.
///
/// Records every change in a folder with its author, and takes back exactly what you ask.
#[derive(Debug, Parser)]
#[command(name = "takeback", version, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Parses the command line. The error is ready to print.
    pub(crate) fn of(words: &[OsString]) -> Result<Self, clap::Error> {
        match FrequentArgs::of(words) {
            Some(args) => Ok(args),
            None => Self::try_parse_from(words),
        }
    }
}

/// The commands that agents run at every turn. Building clap's parser for all other commands would take
/// longer than recording a file.
#[derive(Debug, Parser)]
#[command(disable_help_subcommand = true)]
struct FrequentArgs {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: FrequentCommand,
}

#[derive(Debug, Subcommand)]
enum FrequentCommand {
    Record(RecordArgs),
    Hook(HookArgs),
    Status(StatusArgs),
}

impl FrequentArgs {
    /// `None`: another command, invalid arguments, or a request for help.
    fn of(words: &[OsString]) -> Option<Args> {
        let first = words.get(1)?.to_str()?;
        if !["record", "hook", "status"].contains(&first) {
            return None;
        }
        let Self { options, command } = Self::try_parse_from(words).ok()?;
        let command = match command {
            FrequentCommand::Record(args) => Command::Record(args),
            FrequentCommand::Hook(args) => Command::Hook(args),
            FrequentCommand::Status(args) => Command::Status(args),
        };
        Some(Args { options, command })
    }
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Options {
    /// Work in this folder instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Options for all")]
    pub(crate) directory: Option<PathBuf>,
    /// Where Takeback keeps its data [default: ~/.takeback, or TAKEBACK_HOME]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Options for all")]
    pub(crate) home: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long, global = true, help_heading = "Options for all")]
    pub(crate) json: bool,
    /// When to use color
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = "Options for all"
    )]
    pub(crate) color: Color,
    /// Print only errors
    #[arg(short, long, global = true, help_heading = "Options for all")]
    pub(crate) quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, help_heading = "Options for all")]
    pub(crate) verbose: bool,
    /// Do not use a pager for long output
    #[arg(long, global = true, help_heading = "Options for all")]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch Takeback work in a temporary folder (takes a few seconds)
    Demo,
    /// Make a point, run a command, and list what it changed
    ///
    /// Your own edits while it runs are attributed to the command. Agents that report their tool calls
    /// (`takeback record`) can be distinguished from you.
    Run(RunArgs),
    /// Chat with an agent in the terminal; press Esc twice to go back to any prompt
    ///
    /// Without --agent, uses `claude` if it is on PATH. Otherwise uses the built-in agent: with a model if
    /// ANTHROPIC_API_KEY or OPENAI_API_KEY is set, else as a short tour that needs neither.
    Chat(ChatArgs),
    /// Install Takeback's hooks in your coding agents
    ///
    /// Shows the change to each settings file and asks first. Other settings are not touched, and a
    /// backup is written next to each file. It is safe to run again.
    Init(InitArgs),
    /// Remove Takeback's hooks from your coding agents
    ///
    /// A settings file that has not changed since `takeback init` gets its original bytes back.
    /// Recorded history is kept; `takeback forget` deletes it.
    Uninstall(InitArgs),
    /// Check that hooks run and the store is healthy
    ///
    /// An installed hook may still not run, for example because the agent does not trust it. Each
    /// hook run is noted, and the agents' own session records show which sessions ran without
    /// hooks. Exits with 1 if something is broken.
    Doctor(DoctorArgs),
    /// Record an agent's events: JSON lines on standard input, one answer per line
    ///
    /// Calls that are still open when the input ends are closed.
    Record(RecordArgs),
    /// Record a hook payload from standard input; `takeback init` installs this command
    Hook(HookArgs),
    /// Serve other programs: JSON-RPC on a private socket, or on standard input and output
    ///
    /// One server serves all workspaces. docs/design/protocol.md lists the methods.
    Serve(ServeArgs),
    /// Run an MCP server for an agent, on standard input and output
    Mcp(McpArgs),
    /// Make a point
    Checkpoint(CheckpointArgs),
    /// List the points, newest first
    Log(LogArgs),
    /// Show a point and each change after it, with its author
    Show(ShowArgs),
    /// Show what changed since a point, or between two
    Diff(DiffArgs),
    /// Take back what an agent did since a point
    Rewind(RewindArgs),
    /// Take back the last rewind
    Undo(UndoArgs),
    /// Take back the last undo
    Redo(UndoArgs),
    /// Label a point, or remove its label
    Label(LabelArgs),
    /// Pin a point so that it never expires
    Pin(PointArgs),
    /// Unpin a point; normal retention applies again
    Unpin(PointArgs),
    /// List the sessions, newest first
    Sessions(SessionsArgs),
    /// Archive or delete a session
    #[command(subcommand)]
    Session(SessionCommand),
    /// Delete expired points and reclaim disk space
    Cleanup(CleanupArgs),
    /// Show what uses the store's disk space
    Du(DuArgs),
    /// Show what is protected, what is not, and which agents are working
    Status(StatusArgs),
    /// Finish a rewind that a crash interrupted
    Recover(RecoverArgs),
    /// Read and check everything in the store
    Verify,
    /// Show every setting, its value, and where it was set
    Config(ConfigArgs),
    /// List the protected folders
    Workspaces,
    /// Delete a folder's history; its files are not touched
    Forget(ForgetArgs),
    /// Remove a file or folder from all history; the file on disk is not touched
    Purge(PurgeArgs),
    /// Reconnect a store after its folder was moved
    Relocate(RelocateArgs),
    /// Export points and their changes to one file, for another workspace
    Export(ExportArgs),
    /// Import points from an exported file; your files are not touched
    Import(ImportArgs),
    /// Save, inspect and roll back an agent's state, step by step
    #[command(subcommand)]
    State(StateCommand),
    /// Finish recording an event after its hook has returned; started by `takeback hook`
    #[command(hide = true)]
    FinishEvent(FinishEventArgs),
    /// Watch for the command that an agent asks permission for; started by `takeback hook`
    #[command(hide = true, name = "watch-command")]
    WatchCommand,
    /// Print help
    #[command(hide = true)]
    Help(HelpArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HelpArgs {
    /// The command to explain
    pub(crate) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Stop reporting a history that you know is gone
    #[arg(long)]
    pub(crate) acknowledge: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ForgetArgs {
    /// The folder; it may be gone already [default: the current workspace]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Show what would be deleted, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PurgeArgs {
    /// The file or folder; it may be gone already
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Show what would be removed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RelocateArgs {
    /// Where the folder was
    pub(crate) old: PathBuf,
    /// Where it is now [default: the current folder]
    pub(crate) new: Option<PathBuf>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigArgs {
    /// Show only this setting's value
    pub(crate) key: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ChatArgs {
    /// The first prompt
    pub(crate) prompt: Option<String>,
    /// The agent to talk to
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Continue the last conversation in this folder
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Continue the conversation of this session
    #[arg(short, long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// The model to use
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The `claude` program, if it is not on PATH
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub(crate) program: Option<PathBuf>,
    /// Play this scenario file with the built-in agent
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Arguments passed on to `claude`
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) extra: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentName {
    Claude,
    Builtin,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RecordArgs {
    /// The agent's process; its sessions end when it exits, unless session_start names another
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HookArgs {
    #[arg(long, value_name = "NAME", help = format!("The agent that runs the hook: {}", agent_names()))]
    pub(crate) agent: String,
    /// The hook event, for agents whose payload does not name it
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FinishEventArgs {
    /// The event, whose file is locked on standard input [default: only finish a scan]
    pub(crate) event: Option<String>,
    /// The agent that ran the hook
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The session, as the agent calls it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Serve the program that started this one, until it closes standard input
    #[arg(long, conflicts_with_all = ["ensure", "idle_exit"])]
    pub(crate) stdio: bool,
    /// Start a server in the background if none is running, and print its socket
    #[arg(long)]
    pub(crate) ensure: bool,
    /// Exit after this many seconds without a client [default with --ensure: 1800]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) idle_exit: Option<u64>,
    /// Watch active workspaces, so that a point reads only paths that changed; a full scan still
    /// runs every five minutes
    #[arg(long)]
    pub(crate) watch: bool,
    /// Started by --ensure
    #[arg(long, hide = true, conflicts_with_all = ["stdio", "ensure"])]
    pub(crate) detached: bool,
}

impl ServeArgs {
    pub(crate) const IDLE_EXIT: u64 = 1800;
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    #[arg(
        long = "agent",
        value_name = "NAME",
        help = format!("Only this agent ({}); may be repeated [default: all installed agents]", agent_names())
    )]
    pub(crate) agents: Vec<String>,
    /// Which settings to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: ScopeName,
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// Your own settings, for all projects
    User,
    /// The project's settings, shared with everyone who works in it
    Project,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    /// Let the model rewind without asking you (the setting allowAgentRewind)
    #[arg(long)]
    pub(crate) allow_rewind: bool,
}

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
    /// To this one [default: the files as they are]
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
    /// The agent changed this path: take it back, and remember that; a glob; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) take: Vec<String>,
    /// I changed this path: keep it, and remember that; a glob; may be repeated
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
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ambiguous {
    /// Restore deleted files, leave the others
    Leave,
    /// Take it back, as if an agent had changed it
    Take,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RecoverArgs {
    /// Show whether a rewind is unfinished, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// The file to write; `-` is standard output
    pub(crate) file: PathBuf,
    /// Only this point [default: all points, and the changes since]
    #[arg(conflicts_with = "session")]
    pub(crate) point: Option<String>,
    /// Only the points of this session, and the changes until it ended
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Also ignored files, and files outside the workspace
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
    /// Import the session history that this agent keeps itself
    #[arg(long, value_name = "AGENT")]
    pub(crate) from: Option<ImportFrom>,
    /// Also files outside the workspace
    #[arg(long)]
    pub(crate) include_ignored: bool,
    /// Refuse a file whose unpacked contents are larger than this
    #[arg(long, value_name = "BYTES", default_value_t = BundleLimits::CONTENTS)]
    pub(crate) max_size: u64,
    /// Show what would be added, and change nothing
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
    /// Show what would be deleted, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CleanupArgs {
    /// Show what would be removed, and change nothing
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_start_is_read_as_everything_else_is() {
        for (line, is_known) in [
            ("takeback record", true),
            ("takeback record --pid 7 --json", true),
            ("takeback record --pid seven", false),
            ("takeback record --json -C a --home b -q -v --no-pager --color never", true),
            ("takeback hook --agent claude", true),
            ("takeback hook --agent gemini --event BeforeTool -q", true),
            ("takeback status", true),
            ("takeback status --line", true),
            ("takeback status --line --color=always", true),
            ("takeback record --help", false),
            ("takeback record --version", false),
            ("takeback record more", false),
            ("takeback hook", false),
            ("takeback status --lin", false),
            ("takeback -C a record", false),
            ("takeback log", false),
            ("takeback", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let often = FrequentArgs::of(&words);
            assert_eq!(often.is_some(), is_known, "{line}");
            if let Some(often) = often {
                let whole = Args::try_parse_from(&words).unwrap();
                assert_eq!(format!("{often:?}"), format!("{whole:?}"), "{line}");
            }
        }
    }
}
