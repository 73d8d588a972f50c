//! What agents give their hooks, as the real programs gave it, and what is understood of it.

mod claude;
mod codex;
mod gemini;
mod recorded;
