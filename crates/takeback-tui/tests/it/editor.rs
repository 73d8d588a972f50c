//! Editing.
