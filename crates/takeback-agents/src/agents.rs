//! The table of supported agents. Each has a folder here, which is the only code that knows it.

pub(crate) mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;
mod pi;
mod qwen;

pub use self::claude::CLAUDE;
pub use self::codex::CODEX;
pub use self::copilot::COPILOT;
pub use self::gemini::GEMINI;
pub use self::opencode::OPENCODE;
pub use self::pi::PI;
pub use self::qwen::QWEN;
use crate::kind::AgentKind;

/// Every supported agent, in the order in which commands list them.
pub static AGENTS: &[&AgentKind] = &[&CLAUDE, &CODEX, &GEMINI, &QWEN, &OPENCODE, &COPILOT, &PI];

/// The agent of this name.
#[must_use]
pub fn agent_named(name: &str) -> Option<&'static AgentKind> {
    AGENTS.iter().copied().find(|agent| agent.name == name)
}

/// The names of all agents, separated by `, `.
#[must_use]
pub fn agent_names() -> String {
    let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    names.join(", ")
}
