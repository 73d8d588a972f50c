//! The table.

mod kinds;
mod links;
mod modes;
mod names;
mod others;
mod repositories;

use std::fs;
use std::path::Path;

use takeback_testkit::Sandbox;

use crate::listing::Listing;

/// One thing that must come back.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) before: fn(&Sandbox),
    /// What the agent's shell call does.
    pub(crate) damage: fn(&Sandbox),
    /// What people do after it.
    pub(crate) then: fn(&Sandbox),
    /// Where the tree afterwards is not the one before: makes of that, and of the damaged one, what
    /// is expected.
    pub(crate) but: fn(&mut Listing, &Listing),
    /// Where the tree after an undo is not the damaged one.
    pub(crate) but_undone: fn(&mut Listing),
    /// All that the receipt says but what is restored and deleted.
    pub(crate) says: &'static [&'static str],
    /// Looks at what lies outside, and makes the sandbox one that can be removed.
    pub(crate) put_away: fn(&Sandbox),
}

pub(crate) fn all() -> Vec<Row> {
    [
        modes::rows(),
        kinds::rows(),
        names::rows(),
        links::rows(),
        repositories::rows(),
        others::rows(),
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
        then: |_| {},
        but: |_, _| {},
        but_undone: |_| {},
        says: &[],
        put_away: |_| {},
    }
}

/// Does something in a folder that cannot be written to as it is.
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
