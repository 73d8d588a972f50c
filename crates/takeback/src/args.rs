//! The command line: commands, arguments and options.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{
    Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
};

mod agent;
pub(crate) mod examples;
pub(crate) mod groups;
#[cfg(test)]
mod doc_examples;
#[cfg(test)]
mod hints;
mod notes;
mod point;
mod state;
mod store;
mod synonyms;

pub(crate) use agent::{
    AgentName, ChatArgs, FinishEventArgs, HookArgs, InitArgs, McpArgs, RecordArgs, RunArgs,
    ScopeName, ServeArgs,
};
pub(crate) use notes::{NotesCommand, NotesShowArgs, NotesWriteArgs};
pub(crate) use point::{
    AdoptArgs, Ambiguous, ApplyArgs, BisectArgs, BlameArgs, CatArgs, CheckpointArgs, CompareArgs,
    Conflicts, DiffArgs, ForkPointArgs, HistoryArgs, LabelArgs, LogArgs, PointArgs, RedoArgs,
    ResolveArgs, RestoreArgs, RevertArgs, RewindArgs, ShowArgs, Side, StatsArgs, UndoArgs, WhyArgs,
};
pub(crate) use state::{
    EffectArgs, ForkArgs, ListStateArgs, ResumeArgs, RollbackArgs, SaveArgs, StateArgs,
    StateCommand, StateDeleteArgs, StateDiffArgs, StateExportArgs,
};
pub(crate) use store::{
    CleanupArgs, CompleteArgs, CompletionsArgs, ConfigArgs, ConfigCommand, ConfigSetArgs,
    ConfigUnsetArgs, DeleteArgs, DoctorArgs, DuArgs, ExportArgs, ForgetArgs, ImportArgs,
    ImportFrom, PurgeArgs, RecoverArgs, RelocateArgs, SessionArgs, SessionCommand, SessionsArgs,
    ShellName, StatusArgs,
};

/// Checkpoint and rewind for coding agents
#[derive(Debug, Parser)]
#[command(
    name = "takeback",
    version,
    long_version = env!("TAKEBACK_VERSION"),
    propagate_version = true,
    disable_help_subcommand = true
)]
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
            None => Self::parse_any(words),
        }
    }

    fn parse_any(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut matches =
            command_line().try_get_matches_from(words).map_err(|error| explain(error, words))?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command_line()))
    }
}

/// All commands, as help, completions and manual pages show them.
pub(crate) fn command_line() -> clap::Command {
    groups::with_groups(examples::with_examples(Args::command()))
}

/// Names the command that was probably meant, if the user wrote the word of another program.
pub(crate) fn explain(error: clap::Error, words: &[OsString]) -> clap::Error {
    synonyms::explain(error, words)
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
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Global options")]
    pub(crate) directory: Option<PathBuf>,
    /// Where Takeback keeps its data [default: ~/.takeback, or TAKEBACK_HOME]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Global options")]
    pub(crate) home: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// When to use color
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = "Global options"
    )]
    pub(crate) color: Color,
    /// Print only errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
    /// Do not use a pager for long output
    #[arg(long, global = true, help_heading = "Global options")]
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
    /// Your own edits while it runs are attributed to the command, unless it is an agent that reports its
    /// tool calls (`takeback record`).
    Run(RunArgs),
    /// Chat with an agent; press Esc twice to go back to any prompt
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
    /// Record an agent's events from JSON lines on standard input
    ///
    /// Each line is answered with a line. Calls that are still open when the input ends are closed.
    ///
    /// The events, with their fields: prompt (session, message, text), before_tool (session, call, tool, and
    /// paths or shell), after_tool (session, call, ok), turn_end (session), session_start (session, agent,
    /// parent, pid, model), session_end (session), step (session, checkpoint).
    Record(RecordArgs),
    /// Record a hook payload; `takeback init` installs this command
    Hook(HookArgs),
    /// Serve other programs over JSON-RPC, on a socket or stdio
    ///
    /// The socket is private. One server serves all workspaces. docs/design/protocol.md lists the methods.
    Serve(ServeArgs),
    /// Run an MCP server for an agent, on standard input and output
    Mcp(McpArgs),
    /// Make a point
    Checkpoint(CheckpointArgs),
    /// List the points, newest first, with who changed how much
    ///
    /// Rewinds, undos and redos are listed between the points. The options that choose points can be
    /// combined.
    Log(LogArgs),
    /// Show a point: prompt, calls, and each change with its author
    Show(ShowArgs),
    /// Show what changed since a point, or between two
    ///
    /// With --by, other authors' changes are taken out, so the patch applies to the first point. Where
    /// authors changed the same lines this is impossible: the author's changes are then shown one by one,
    /// and the patch may not apply.
    Diff(DiffArgs),
    /// Show who wrote each line of a file: you, or which prompt
    ///
    /// A line keeps its author when it is moved or indented, when the file is renamed, and through commits,
    /// rebases and stashes. For lines older than the log, blame shows git's commit, or what other tools noted
    /// about them. A question mark marks lines that were written while a command ran and may be someone
    /// else's.
    Blame(BlameArgs),
    /// Show why a line exists: its prompt, call and change
    Why(WhyArgs),
    /// List the points after which a file changed, across renames
    History(HistoryArgs),
    /// Print a file as it was at a point
    Cat(CatArgs),
    /// Count what you and each agent wrote, and what is left of it
    ///
    /// Counts what was done in the range. Lines that a git command brought in count for the one who ran it
    /// (`takeback blame` names their commit), and a renamed file counts as removed and added lines.
    Stats(StatsArgs),
    /// Find the prompt and the tool call after which a command fails
    ///
    /// Runs the command in a scratch copy of the recorded files, never in your folder. A binary search picks
    /// the points to try. Build output and .git are not in the copy.
    Bisect(BisectArgs),
    /// Copy the workspace as it was at a point into a new folder
    ///
    /// The copy has everything that is recorded, also uncommitted and ignored files such as .env; --all adds the
    /// rest. It is a workspace of its own that knows where it came from. The point is pinned. Nothing in
    /// your folder changes.
    Fork(ForkPointArgs),
    /// Compare forks: what each changed, and how a command ends in it
    Compare(CompareArgs),
    /// Take back what an agent did since a point
    Rewind(RewindArgs),
    /// Take back one turn, one call or a range, and keep what came later
    Revert(RevertArgs),
    /// Bring files back as they were, whoever changed them since
    ///
    /// Also deleted files. With --hunk you choose which changes of a file to take back.
    Restore(RestoreArgs),
    /// Settle the conflicts that the last operation left
    ///
    /// Asks about each place in the terminal: keep yours, take it back, or edit both.
    Resolve(ResolveArgs),
    /// Merge what happened in a fork back into this folder
    Adopt(AdoptArgs),
    /// Take back the last operation, or the one you name
    ///
    /// An operation is a rewind, revert, restore, adopt or resolve.
    Undo(UndoArgs),
    /// Redo the last undone operation
    Redo(RedoArgs),
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
    /// Show what is protected, what is not, and which agents are at work
    Status(StatusArgs),
    /// Finish a rewind that a crash interrupted
    Recover(RecoverArgs),
    /// Read and check everything in the store
    Verify,
    /// Show every setting, its value and its origin; or change one
    Config(ConfigArgs),
    /// List the protected folders
    Workspaces,
    /// Delete a folder's history; its files are not touched
    Forget(ForgetArgs),
    /// Remove a path from all history; the file on disk is not touched
    Purge(PurgeArgs),
    /// Reconnect a store after its folder was moved
    Relocate(RelocateArgs),
    /// Write or show who wrote the lines of commits, as git notes
    #[command(subcommand)]
    Notes(NotesCommand),
    /// Export points and changes to a file, for another workspace
    ///
    /// With --agent-trace: who wrote which lines, as Agent Trace records, one JSON object per line. Each line
    /// of a file is in the record of the commit that added it; lines that are not committed are in a record
    /// without a revision.
    ///
    /// With --patch: one patch for each turn, with the prompt as its message and the agent as its author, and
    /// one for what you or others changed until the next prompt. They apply to the files at the first point.
    ///
    /// With --git: the same as commits on a new branch, which begins at the commit that was checked out at the
    /// first point. HEAD, the index, your files and other branches are not touched. Both need git.
    Export(ExportArgs),
    /// Import points from an exported file; your files are not touched
    Import(ImportArgs),
    /// Save, inspect and roll back an agent's state, step by step
    #[command(subcommand)]
    State(StateCommand),
    /// Print a completion script for bash, zsh or fish
    ///
    /// It completes commands, options, points, sessions, settings and paths. Write it to the file that your shell reads (see the examples; zsh needs the folder in fpath before
    /// compinit), or load it in the shell's startup file: `source <(takeback completions bash)`.
    Completions(CompletionsArgs),
    /// Finish recording an event after its hook has returned; started by `takeback hook`
    #[command(hide = true)]
    FinishEvent(FinishEventArgs),
    /// Watch for the command that an agent asks permission for; started by `takeback hook`
    #[command(hide = true, name = "watch-command")]
    WatchForStart,
    /// Complete a command line; run by the script of `takeback completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// Print help
    #[command(hide = true)]
    Help(HelpArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HelpArgs {
    /// The command to explain
    pub(crate) command: Vec<String>,
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
