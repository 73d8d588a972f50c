//! The table.

mod kinds;
mod links;
mod modes;
mod names;
mod user_edits;
mod repositories;

use std::fs;
use std::path::Path;

use takeback_testkit::Sandbox;

use crate::listing::Listing;

/// One case.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) before: fn(&Sandbox),
    /// What the agent's shell call does.
    pub(crate) damage: fn(&Sandbox),
    /// The user's edits after it.
    pub(crate) user_work: fn(&Sandbox),
    /// Turns the tree before, with the damaged one, into the expected tree after the rewind.
    pub(crate) expect: fn(&mut Listing, &Listing),
    /// Turns the damaged tree into the expected one after an undo.
    pub(crate) expect_undone: fn(&mut Listing),
    /// Everything in the receipt except restored and deleted paths.
    pub(crate) remarks: &'static [&'static str],
    /// Checks files outside, and lets the sandbox be removed.
    pub(crate) clean_up: fn(&Sandbox),
}

pub(crate) fn all() -> Vec<Row> {
    [
        modes::rows(),
        kinds::rows(),
        names::rows(),
        links::rows(),
        repositories::rows(),
        user_edits::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn row(name: &'static str, before: fn(&Sandbox), damage: fn(&Sandbox)) -> Row {
    Row {
        name,
        before,
        damage,
        user_work: |_| {},
        expect: |_, _| {},
        expect_undone: |_| {},
        remarks: &[],
        clean_up: |_| {},
    }
}

/// Runs `does` while a read-only folder is writable.
fn unlocked(sandbox: &Sandbox, folder: &str, does: impl FnOnce()) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(sandbox.at(folder)).unwrap().permissions().mode();
    sandbox.set_mode(folder, 0o755);
    does();
    sandbox.set_mode(folder, mode & 0o7777);
}

/// Replaces a file by a new one of that name, as editors and `sed -i` do.
fn replace(path: &Path, text: impl AsRef<[u8]>) {
    let beside = path.with_extension("beside");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}
