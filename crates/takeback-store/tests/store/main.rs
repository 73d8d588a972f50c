//! Tests of the stores on disk through their public interface: what only a store on disk can
//! promise.

#![expect(clippy::disallowed_methods, reason = "stores are damaged and copied here on purpose")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cascade;
mod collect;
mod crash;
mod damage;
mod durability;
mod folder;
mod format;
mod json_states;
mod processes;
mod repack;
mod altered_records;
mod sample;
mod states;
