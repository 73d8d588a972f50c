//! What agents give their hooks, as the real programs gave it, and what is understood of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod claude;
mod codex;
mod copilot;
mod ends;
mod formatters;
mod gemini;
mod opencode;
mod pi;
mod qwen;
mod recorded;
