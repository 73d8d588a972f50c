//! What Takeback promises, behaviour by behaviour.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod adjacent_lines;
mod attribution;
mod concurrency;
mod authors;
mod blame;
mod budget;
mod damage;
mod deep_trees;
mod deleted_session;
mod models;
mod named_paths;
mod native_restore;
mod events;
mod evidence;
mod example;
mod exchange;
mod bundle_damage;
mod file_checkpoints;
mod follow_up;
mod fork;
mod ignored_files;
mod inbox;
mod index;
mod overwrite;
mod own_rules;
mod notice;
mod point_names;
mod questions;
mod progress;
mod prompts;
mod question_looks;
mod recording;
mod repeated_rewinds;
mod retention;
mod rewind;
mod rollback;
mod store_size;
mod scope;
mod take_back;
mod text;
mod stages;
mod stat_cache;
mod undo;
mod boundaries;
mod watch;
mod watcher;
