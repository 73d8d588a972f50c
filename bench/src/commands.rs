//! One module per subcommand.

pub(crate) mod capture;
pub(crate) mod fidelity;
pub(crate) mod fork;
pub(crate) mod growth;
pub(crate) mod hooks;
pub(crate) mod ignored_folder;
pub(crate) mod line;
pub(crate) mod operations;
pub(crate) mod points;
pub(crate) mod questions;
pub(crate) mod scale;
pub(crate) mod screen;
pub(crate) mod state;
pub(crate) mod trees;
pub(crate) mod watch;
