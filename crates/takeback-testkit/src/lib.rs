//! Test support: a sandbox with a workspace and a fixed clock, trees to compare, and a scripted model.
//!
//! ```
//! use takeback_testkit::Sandbox;
//!
//! let mut sandbox = Sandbox::new();
//! let point = sandbox.prompt("session", "write a file");
//! sandbox.agent_writes("session", "a.txt", "text\n");
//! sandbox.rewind_to(point);
//! assert!(!sandbox.exists("a.txt"));
//! ```

#![warn(missing_docs)]
#![expect(clippy::disallowed_methods, reason = "tests create their own files")]
#![expect(clippy::missing_panics_doc, reason = "a test that cannot continue panics")]

mod memory_map;
pub mod model;
mod sandbox;
mod tree;

pub use memory_map::MemoryMap;
pub use sandbox::{Sandbox, SandboxImage};
pub use tree::{Thing, path, tree};
