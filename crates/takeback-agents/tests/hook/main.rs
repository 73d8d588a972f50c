//! Recorded hook payloads of the real programs, and the events that are parsed from them.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

mod claude;
mod codex;
mod copilot;
mod ends;
mod formatters;
mod gemini;
mod models;
mod opencode;
mod pi;
mod qwen;
mod output;
mod recorded;
