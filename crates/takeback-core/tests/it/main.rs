//! What Takeback promises, behaviour by behaviour.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

mod authors;
mod example;
mod index;
mod recording;
mod rewind;
mod scope;
mod shown;
mod undo;
mod untouched;
mod waiting;
