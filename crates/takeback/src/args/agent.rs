//! Arguments of the commands that run agents, install hooks and record events.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use takeback_agents::agent_names;

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
        help = format!("Only this agent ({}) (can be repeated) [default: all installed agents]", agent_names())
    )]
    pub(crate) agents: Vec<String>,
    /// Which settings to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: ScopeName,
    /// Show what would happen without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
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
    /// Offer the tool `bisect`, with which the model runs commands of its choice in a scratch copy
    #[arg(long)]
    pub(crate) allow_bisect: bool,
}
