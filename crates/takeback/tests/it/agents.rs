//! The real agents with their own hooks, which run this `takeback`. A test server plays their model.
//!
//! `TAKEBACK_CODEX` (and so on) names a program; without it the one that `scripts/install-agents` put into
//! `target/agents` is used. Tests of an agent that is not installed are skipped with a message. With
//! `TAKEBACK_E2E=require` they fail instead for the agents in `TAKEBACK_E2E_AGENTS` (default: `claude`).

/// One test for each scenario that an agent supports.
macro_rules! scenarios {
    ($driver:expr => $($scenario:ident $(($($argument:expr),*))?),+ $(,)?) => { $(
        #[test]
        fn $scenario() {
            crate::agents::scenarios::$scenario(&$driver $($(, $argument)*)?);
        }
    )+ };
}

mod claude;
mod codex;
mod copilot;
mod forks;
mod gemini;
mod opencode;
mod pi;
mod qwen;
mod scenarios;
mod setup;
mod terminal;

use std::process::Command;

use serde_json::{Value, json};
use takeback_agents::AgentKind;

use self::setup::AgentSetup;
use self::terminal::TerminalDriver;

/// How tests drive an agent.
#[derive(Clone, Copy)]
struct AgentDriver {
    kind: &'static AgentKind,
    /// Writes the settings with which the program finds the model and runs the hooks.
    configure: fn(&AgentSetup),
    /// The program with a prompt, without a terminal.
    command: fn(&AgentSetup, Conversation, &str) -> Command,
    /// The model's messages that create a file with the agent's edit tool: path, text.
    write: fn(&AgentSetup, &str, &str) -> Vec<Value>,
    /// The same to replace a line: path, old line, new line.
    replace: fn(&AgentSetup, &str, &str, &str) -> Vec<Value>,
    /// The same to run a shell command.
    run: fn(&str) -> Vec<Value>,
    terminal: TerminalDriver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversation {
    New,
    Continued,
}

/// A message in which the model calls one tool.
fn calls(tool: &str, input: &Value) -> Vec<Value> {
    vec![json!([{"name": tool, "input": input}])]
}
