//! The user's files: how they are reached, which belong to the workspace, what is there, and the one
//! place that changes them.

pub mod root;
pub mod fingerprint;
pub mod budget;
pub mod look;
pub mod scope;
pub mod index;
pub mod scan;
pub mod write;

pub use root::Root;
