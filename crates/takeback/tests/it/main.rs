//! The program as a user runs it.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

mod active_agents;
mod agents;
mod background_scan;
mod chat;
mod claude_history;
mod coverage;
mod crate_dependencies;
mod deleted_store;
mod demo;
mod disk_limits;
mod doctor;
mod errors;
mod export_import;
mod hook;
mod ignore_rules;
mod inbox;
mod init;
mod inspection;
mod library;
mod mcp;
mod pager;
mod patch;
mod pty;
mod purge;
mod record;
mod reference;
mod retention;
mod rewind;
mod run;
mod scale;
mod schema;
mod serve;
mod session_delete;
mod settings;
mod state;
mod status_line;
mod store_versions;
mod terminal;
mod terminal_widths;
mod time_zone;
mod unclear_authors;
mod unwritable_home;
mod user;
mod workspaces;
