//! `du`: what uses the store's disk space.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use takeback_store::{Digest, Entry, Seq, WorkPath};

use super::disk_limits;
use crate::answers;
use crate::args::{DuArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{
    HEADING, HINT, NAME, Screen, WARNING, bytes, count, name, plain_bytes, width, wrap,
};
use crate::size::folder_bytes;
use crate::stores;
use crate::table::{Cell, Overflow, Table};

pub(crate) fn du(
    options: &Options,
    args: &DuArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    // Measured before the store is opened: an open SQLite database has extra files.
    let total = folder_bytes(&stores::store_of(&location.root, &location.home));
    let place = place::open(options, Store::MustExist)?;
    let workspace = &place.workspace;
    let usage = workspace.store.usage()?;
    let unused = usage.packs.saturating_sub(usage.kept);
    let index = std::fs::metadata(workspace.index_file()).map_or(0, |file| file.len());
    let journal = total.saturating_sub(usage.packs + usage.database + index);
    let home = disk_limits::Home::of(&location.home, &place.settings);
    let limit = place.settings.max_store_bytes();
    let over = disk_limits::over(&*workspace.store, total, &place.settings)?;
    let largest = largest(&*workspace.store, args.limit)?;
    if screen.json {
        let path = |(path, versions, bytes): &(WorkPath, usize, u64)| answers::DuPath {
            path: answers::path(path),
            versions: *versions,
            bytes: *bytes,
        };
        screen.json(&answers::DuAnswer {
            root: answers::place(workspace.root.path()),
            store_bytes: total,
            content_bytes: usage.contents,
            kept_bytes: usage.kept,
            unused_bytes: unused,
            database_bytes: usage.database,
            index_bytes: index,
            journal_bytes: journal,
            max_store_bytes: limit,
            over: over.as_ref().map(disk_limits::answer),
            home_bytes: home.used,
            max_home_bytes: home.limit,
            contents: usage.blobs,
            changes: usage.changes,
            paths: largest.iter().map(path).collect(),
        })?;
        return Ok(0);
    }
    let root = plain_bytes(workspace.root.path().as_os_str().as_bytes());
    screen.page()?;
    let out = &mut screen.out;
    writeln!(out, "{HEADING}{}{HEADING:#}  {root}", bytes(total))?;
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let versions = count(number(usage.blobs), "version");
    let mut table = Table::new(2, [Overflow::Nothing, Overflow::End(20)]);
    for (size, what) in [
        (usage.kept, format!("contents: {versions}, {} uncompressed", bytes(usage.contents))),
        (unused, "unused (reclaimed when half of a segment is)".to_owned()),
        (usage.database, format!("log: {}", count(number(usage.changes), "change"))),
        (index, "index".to_owned()),
        (journal, "inbox and locks".to_owned()),
    ] {
        let size = format!("{:>9}", bytes(size));
        table.rows.push([Cell::plain(size), Cell::new(HINT, what)]);
    }
    table.print(out)?;
    let at_most = |limit: u64| match limit {
        0 => "without a limit".to_owned(),
        limit => format!("of at most {}", bytes(limit)),
    };
    let (own, all) = (at_most(limit), at_most(home.limit));
    writeln!(out, "\n{own}; all workspaces: {} {all}", bytes(home.used))?;
    let all_over = home.is_over().then(|| home.words());
    for words in over.as_ref().map(disk_limits::words).into_iter().chain(all_over) {
        for line in wrap(&words, width()) {
            writeln!(out, "{WARNING}{line}{WARNING:#}")?;
        }
    }
    if !largest.is_empty() {
        writeln!(out, "\nLargest paths:")?;
    }
    let mut table = Table::new(2, [Overflow::Nothing, Overflow::Start(12), Overflow::All(1)]);
    for (path, versions, size) in largest {
        table.rows.push([
            Cell::plain(format!("{:>9}", bytes(size))),
            Cell::new(NAME, name(&path)),
            Cell::new(HINT, count(versions, "version")),
        ]);
    }
    table.print(out)?;
    Ok(0)
}

/// The paths with the most stored bytes, before compression, with their versions and bytes.
fn largest(
    store: &dyn takeback_store::Store,
    limit: usize,
) -> Result<Vec<(WorkPath, usize, u64)>, CommandError> {
    let mut versions: BTreeMap<WorkPath, HashMap<Digest, u64>> = BTreeMap::new();
    for change in store.changes_after(Seq(0))? {
        for entry in [&change.before, &change.after] {
            if let Entry::File { digest, size, .. } = entry {
                versions.entry(change.path.clone()).or_default().insert(*digest, *size);
            }
        }
    }
    let mut largest: Vec<(WorkPath, usize, u64)> = versions
        .into_iter()
        .map(|(path, versions)| (path, versions.len(), versions.values().sum()))
        .collect();
    largest.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    largest.truncate(limit);
    Ok(largest)
}
