//! The binary as a user drives it.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

mod agents;
mod at_work;
mod barrier;
mod covered;
mod chat;
mod claude_history;
mod demo;
mod errors;
mod exchange;
mod gone;
mod home;
mod hook;
mod keeping;
mod library;
mod line;
mod look;
mod mcp;
mod own_rules;
mod pager;
mod patch;
mod purge;
mod record;
mod reference;
mod direction;
mod doctor;
mod init;
mod rewind;
mod room;
mod run;
mod scale;
mod schema;
mod serve;
mod session_delete;
mod settings;
mod state;
mod terminal;
mod unclear;
mod unwritable;
mod versions;
mod waiting;
mod widths;
mod workspaces;
mod zone;
