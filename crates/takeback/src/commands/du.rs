//! `du`: where the space of the store goes.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;

use serde_json::json;
use takeback_store::{Digest, Entry, Seq, WorkPath};

use crate::args::{DuArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, STRONG, Screen, bytes, count, fit, width};

pub(crate) fn du(
    options: &Options,
    args: &DuArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    let workspace = &place.workspace;
    let usage = workspace.store.usage()?;
    let unused = usage.packs.saturating_sub(usage.kept);
    let index = std::fs::metadata(workspace.index_file()).map_or(0, |file| file.len());
    let total = usage.packs + usage.database + index;
    let largest = largest(&*workspace.store, args.limit)?;
    if screen.json {
        let paths: Vec<_> = largest
            .iter()
            .map(|(path, versions, size)| {
                let file_path = String::from_utf8_lossy(path.as_bytes());
                json!({ "filePath": file_path, "versions": versions, "bytes": size })
            })
            .collect();
        screen.json(&json!({
            "root": workspace.root.path().to_string_lossy(),
            "storeBytes": total,
            "contentBytes": usage.contents,
            "keptBytes": usage.kept,
            "unusedBytes": unused,
            "databaseBytes": usage.database,
            "indexBytes": index,
            "contents": usage.blobs,
            "changes": usage.changes,
            "paths": paths,
        }))?;
        return Ok(0);
    }
    let out = &mut screen.out;
    writeln!(out, "{STRONG}{}{STRONG:#}  {}", bytes(total), workspace.root.path().display())?;
    let blobs = usize::try_from(usage.blobs).unwrap_or(usize::MAX);
    let changes = usize::try_from(usage.changes).unwrap_or(usize::MAX);
    let versions = count(blobs, "version");
    for (size, what) in [
        (usage.kept, format!("contents: {versions}, {} as they were", bytes(usage.contents))),
        (unused, "of no use any more; given back once it is half of a file".to_owned()),
        (usage.database, format!("log: {}", count(changes, "change"))),
        (index, "index".to_owned()),
    ] {
        writeln!(out, "  {:>9}  {HINT}{what}{HINT:#}", bytes(size))?;
    }
    if !largest.is_empty() {
        writeln!(out, "\nMost is kept of:")?;
    }
    let column = width().saturating_sub(2 + 9 + 2 + 2 + 14).clamp(20, 80);
    for (path, versions, size) in largest {
        writeln!(
            out,
            "  {:>9}  {NAME}{}{NAME:#}  {HINT}{}{HINT:#}",
            bytes(size),
            fit(&path.display(), column),
            count(versions, "version"),
        )?;
    }
    Ok(0)
}

/// The paths of which most bytes are kept, as they were: with how many versions and bytes.
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
