//! The words of the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
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
    /// The words of the command line; an error is to be shown.
    pub(crate) fn of(words: &[OsString]) -> Result<Self, clap::Error> {
        match Often::of(words) {
            Some(args) => Ok(args),
            None => Self::try_parse_from(words),
        }
    }
}

/// The commands that agents start at every turn. To learn of all the others takes clap longer than to
/// keep a file.
#[derive(Debug, Parser)]
#[command(disable_help_subcommand = true)]
struct Often {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: OftenCommand,
}

#[derive(Debug, Subcommand)]
enum OftenCommand {
    Record(RecordArgs),
    Hook(HookArgs),
    Status(StatusArgs),
}

impl Often {
    /// `None`: it is none of them, or wrong, or asks for help.
    fn of(words: &[OsString]) -> Option<Args> {
        let first = words.get(1)?.to_str()?;
        if !["record", "hook", "status"].contains(&first) {
            return None;
        }
        let Self { options, command } = Self::try_parse_from(words).ok()?;
        let command = match command {
            OftenCommand::Record(args) => Command::Record(args),
            OftenCommand::Hook(args) => Command::Hook(args),
            OftenCommand::Status(args) => Command::Status(args),
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
    /// Answer with one JSON value
    #[arg(long, global = true, help_heading = "Options for all")]
    pub(crate) json: bool,
    /// When to use colours
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = "Options for all"
    )]
    pub(crate) color: Color,
    /// Say only what went wrong
    #[arg(short, long, global = true, help_heading = "Options for all")]
    pub(crate) quiet: bool,
    /// Say more
    #[arg(short, long, global = true, help_heading = "Options for all")]
    pub(crate) verbose: bool,
    /// Do not send long answers through a pager
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
    /// Show in a few seconds what Takeback does, in a temporary folder
    Demo,
    /// Run a command under protection: a point before, what changed after
    ///
    /// What you change yourself while it runs counts as the command's, since nobody can tell. Agents that
    /// report their tool calls (`takeback record`) are told apart from you.
    Run(RunArgs),
    /// Work with an agent in the terminal; Esc twice goes back to any prompt
    ///
    /// Without --agent: `claude`, if it is on PATH; else the built-in agent, with the model that
    /// ANTHROPIC_API_KEY or OPENAI_API_KEY give access to; else a short tour that needs neither.
    Chat(ChatArgs),
    /// Plug Takeback into the agents that are installed: puts its hooks into their settings
    ///
    /// Shows the change to each file and asks first. Everything else in the files stays as it is, and the
    /// bytes of before are kept beside them. Can be run again at any time.
    Init(InitArgs),
    /// Take Takeback's hooks out of the agents' settings again
    ///
    /// A file that nobody else has changed since gets back the very bytes that it had. What was recorded
    /// stays: `takeback forget` deletes that.
    Uninstall(InitArgs),
    /// Tell whether hooks have run, and whether all else is well
    ///
    /// That hooks stand in a settings file does not mean that they run: agents may not trust them. So each run
    /// leaves a sign of life, and the agents' own records show which sessions have left none. Exits with 1 if
    /// something is broken.
    Doctor(DoctorArgs),
    /// Record events of an agent: JSON lines on standard input, an answer for each
    ///
    /// The end of the input ends the calls that were opened through it.
    Record(RecordArgs),
    /// Record what an agent's hook was given on standard input; `takeback init` puts it there
    Hook(HookArgs),
    /// Serve other programs: JSON-RPC on a socket that is yours alone, or on standard input and output
    ///
    /// One server serves all folders. docs/design/protocol.md tells what can be asked.
    Serve(ServeArgs),
    /// Serve an agent's model over the Model Context Protocol, on standard input and output
    Mcp(McpArgs),
    /// Make a point by hand
    Checkpoint(CheckpointArgs),
    /// List the points, newest first
    Log(LogArgs),
    /// Show a point and what was changed after it, by whom
    Show(ShowArgs),
    /// Show what changed since a point, or between two
    Diff(DiffArgs),
    /// Take back what an agent did since a point
    Rewind(RewindArgs),
    /// Take back the last rewind
    Undo(AgainArgs),
    /// Take back the last undo
    Redo(AgainArgs),
    /// Give a point a name, or take it away
    Label(LabelArgs),
    /// Keep a point for good
    Pin(PointArgs),
    /// Keep a point only as long as others
    Unpin(PointArgs),
    /// List the sessions, newest first
    Sessions(SessionsArgs),
    /// Archive or delete a session
    #[command(subcommand)]
    Session(SessionCommand),
    /// Remove what is no longer to be kept, and give its space back
    Cleanup(CleanupArgs),
    /// Show where the store's space goes
    Du(DuArgs),
    /// Show what is protected, what is not, and what is going on
    Status(StatusArgs),
    /// Finish what a crash interrupted
    Recover(RecoverArgs),
    /// Check everything in the store
    Verify,
    /// Show every setting with its value and where that comes from
    Config(ConfigArgs),
    /// List the folders that are protected
    Workspaces,
    /// Delete all that was recorded in a folder; its files stay as they are
    Forget(ForgetArgs),
    /// Remove a file or folder from all history: its contents and names; on disk it stays as it is
    Purge(PurgeArgs),
    /// Tell that a protected folder has moved
    Relocate(RelocateArgs),
    /// Write points and the changes between them into one file, for another workspace
    Export(ExportArgs),
    /// Add the points of an exported file to this workspace; restores nothing by itself
    Import(ImportArgs),
    /// Save, look at and take back the state of an agent, step by step
    #[command(subcommand)]
    State(StateCommand),
    /// Look at the tree for an event whose hook has answered, and at what was left; what `takeback hook` starts
    #[command(hide = true)]
    GoOn(GoOnArgs),
    /// Watch for the command that an agent asks permission for; what `takeback hook` starts
    #[command(hide = true, name = "watch-command")]
    WatchFor,
    /// Print help
    #[command(hide = true)]
    Help(HelpArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HelpArgs {
    /// About this command
    pub(crate) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// You know that a history is gone: report it no longer
    #[arg(long)]
    pub(crate) acknowledge: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ForgetArgs {
    /// The folder; it need not exist any more [default: the workspace you are in]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Show what would be deleted and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PurgeArgs {
    /// The file or folder; it need not exist any more
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Show what would be removed and do nothing
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
    /// Show what would be done and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigArgs {
    /// Only this setting's value
    pub(crate) key: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ChatArgs {
    /// The first prompt
    pub(crate) prompt: Option<String>,
    /// Who answers
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentName>,
    /// Go on with the last conversation in this folder
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub(crate) continue_last: bool,
    /// Go on with the conversation of this session
    #[arg(short, long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// The model that answers
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The `claude` program, if it is not on PATH
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub(crate) program: Option<PathBuf>,
    /// Let the built-in agent play this file
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Further arguments for `claude`, as they are
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
    /// The agent's process: its death ends the sessions, unless session_start names another
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HookArgs {
    /// Whose hook it is: claude, codex, gemini, qwen, opencode or copilot
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: String,
    /// Which hook it is, where the agent does not say so itself
    #[arg(long, value_name = "EVENT")]
    pub(crate) event: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GoOnArgs {
    /// The event, whose file is locked on standard input [default: only what is left to read]
    pub(crate) event: Option<String>,
    /// Whose hook it was
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The session, as the agent calls it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ServeArgs {
    /// Serve the one program that has started this, until it closes standard input
    #[arg(long, conflicts_with_all = ["ensure", "idle_exit"])]
    pub(crate) stdio: bool,
    /// Start a server in the background if none answers; print where its socket is
    #[arg(long)]
    pub(crate) ensure: bool,
    /// End after so many seconds without a client [default with --ensure: 1800]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) idle_exit: Option<u64>,
    /// Watch the workspaces that are worked in: a snapshot then looks only where something happened,
    /// and at everything every five minutes
    #[arg(long)]
    pub(crate) watch: bool,
    /// What --ensure starts
    #[arg(long, hide = true, conflicts_with_all = ["stdio", "ensure"])]
    pub(crate) detached: bool,
}

impl ServeArgs {
    pub(crate) const IDLE_EXIT: u64 = 1800;
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Only this agent: claude, codex, gemini, qwen, opencode or copilot; may be repeated [default:
    /// all that are found]
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// In whose settings
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: ScopeName,
    /// Show what would be changed and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// Yours, for all that you do
    User,
    /// The project's, for all who work in it
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
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = Self::LIMIT)]
    pub(crate) limit: usize,
    /// Show only the points of this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Also the safety points before rewinds; -n still limits how many
    #[arg(short, long)]
    pub(crate) all: bool,
}

impl LogArgs {
    pub(crate) const LIMIT: usize = 20;
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// The point: @, @~N, an id or its beginning, a label, a message id, a time (10m, 14:00)
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
    /// Only this path and what is below it; a glob; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Show only how many lines changed
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RewindArgs {
    /// The point: @, @~N, an id or its beginning, a label, a message id, a time (10m, 14:00)
    /// [default: choose it from a menu]
    pub(crate) point: Option<String>,
    /// Take back everything since, also what you and others did
    #[arg(long, conflicts_with_all = ["session", "all_agents", "ambiguous"])]
    pub(crate) exact: bool,
    /// Only this path and what is below it; a glob; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Take back only what this session did; may be repeated
    #[arg(long, value_name = "SESSION", conflicts_with = "all_agents")]
    pub(crate) session: Vec<String>,
    /// Take back what any agent did
    #[arg(long)]
    pub(crate) all_agents: bool,
    /// What to do where it is not certain who changed a file
    #[arg(long, value_name = "POLICY", default_value = "leave")]
    pub(crate) ambiguous: Ambiguous,
    /// The changes of this path are the agent's: take them back, and remember it; a glob; may be
    /// repeated
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) take: Vec<String>,
    /// The changes of this path are mine: keep them, and remember it; a glob; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "exact")]
    pub(crate) mine: Vec<String>,
    #[command(flatten)]
    pub(crate) doing: DoingArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AgainArgs {
    /// Bring back everything as it was, also what was changed since
    #[arg(long)]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) doing: DoingArgs,
}

#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct DoingArgs {
    /// Give up what stands at PATH, although it could not be kept; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) discard: Vec<PathBuf>,
    /// Write also to files outside the workspace that the agent edited
    #[arg(long)]
    pub(crate) outside: bool,
    /// Show what would be done and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show also how the files would change
    #[arg(long)]
    pub(crate) diff: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ambiguous {
    /// Bring back what is missing, leave the rest
    Leave,
    /// Take it back like an agent's
    Take,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RecoverArgs {
    /// Show whether there is something to finish and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    /// Where to; `-` is standard output
    pub(crate) file: PathBuf,
    /// Only this point [default: all, and what was changed since]
    #[arg(conflicts_with = "session")]
    pub(crate) point: Option<String>,
    /// Only the points of this session, and what was changed until its work ended
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Also ignored files, and files outside the workspace
    #[arg(long)]
    pub(crate) include_ignored: bool,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    /// One short line, at once, for prompts and status bars: looks at no files, empty without a store
    #[arg(long)]
    pub(crate) line: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// What `takeback export` wrote; `-` is standard input. With --from: a session or its transcript
    /// (default: all sessions that worked in this workspace)
    #[arg(required_unless_present = "from")]
    pub(crate) file: Option<PathBuf>,
    /// Take what this agent kept of its sessions itself
    #[arg(long, value_name = "AGENT")]
    pub(crate) from: Option<ImportFrom>,
    /// Also files outside the workspace
    #[arg(long)]
    pub(crate) include_ignored: bool,
    /// Refuse a file with more contents than this, unpacked
    #[arg(long, value_name = "BYTES", default_value_t = BundleLimits::CONTENTS)]
    pub(crate) max_size: u64,
    /// Show what would be added and add nothing
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
    /// The point: @, @~N, an id or its beginning, a label, a message id, a time (10m, 14:00)
    pub(crate) point: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LabelArgs {
    /// The point: @, @~N, an id or its beginning, a label, a message id, a time (10m, 14:00)
    pub(crate) point: String,
    /// Its name from now on
    #[arg(required_unless_present = "remove")]
    pub(crate) label: Option<String>,
    /// Take its name away
    #[arg(long, conflicts_with = "label")]
    pub(crate) remove: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = Self::LIMIT)]
    pub(crate) limit: usize,
}

impl SessionsArgs {
    pub(crate) const LIMIT: usize = 20;
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// End it and keep its data only for some days more (the setting archiveDays); if it goes on, it is
    /// kept again
    Archive(SessionArgs),
    /// Delete it with all its points, labelled and pinned ones too; files are not touched
    Delete(DeleteArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionArgs {
    /// The session's id, its beginning, or what `takeback sessions` calls it
    #[arg(value_name = "ID")]
    pub(crate) session: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    /// The session's id, its beginning, or what `takeback sessions` calls it
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// Show what would be deleted and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CleanupArgs {
    /// Show what would be removed and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on although the clock seems to have gone back, or to have jumped
    #[arg(long)]
    pub(crate) trust_clock: bool,
    /// Only remove the points beyond `pointsPerSession`
    #[arg(long, hide = true)]
    pub(crate) only_too_many: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DuArgs {
    /// Name this many paths
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
            let often = Often::of(&words);
            assert_eq!(often.is_some(), is_known, "{line}");
            if let Some(often) = often {
                let whole = Args::try_parse_from(&words).unwrap();
                assert_eq!(format!("{often:?}"), format!("{whole:?}"), "{line}");
            }
        }
    }
}
