//! What Takeback promises, behaviour by behaviour.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod adjacent;
mod at_once;
mod authors;
mod budget;
mod damaged;
mod deep;
mod deleted_session;
mod named;
mod native_restore;
mod events;
mod evidence;
mod example;
mod exchange;
mod exchange_refused;
mod file_checkpoints;
mod ignored;
mod inbox;
mod index;
mod own_rules;
mod point_names;
mod progress;
mod recording;
mod reopened;
mod retention;
mod rewind;
mod rollback;
mod room;
mod scope;
mod shown;
mod stages;
mod stat_cache;
mod undo;
mod untouched;
mod watch;
mod watcher;
