//! `status`: what is protected, what is not, what is going on.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use takeback_core::worktree::scope::OutReason;
use takeback_store::{PointKind, WorkPath};

use crate::args::Options;
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, STRONG, Screen, bytes, count, plain};
use crate::time::{ago, now};
use crate::wire::WireNote;

pub(crate) fn status(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let mut place = place::open_mended(options, Store::MustExist)?;
    let workspace = &mut place.workspace;
    let surveyed = takeback_core::look_around(workspace)?;
    let points = workspace.store.points()?;
    let sessions = workspace.store.sessions()?;
    let calls = workspace.store.live_calls()?;
    let listed = points.iter().filter(|point| point.kind != PointKind::Safety).count();
    let size = folder_size(&workspace.store_dir);
    let stats = surveyed.recorded.stats;
    if screen.json {
        let skipped: Vec<_> =
            surveyed.skipped.iter().map(|(path, reason)| WireNote::new(path, reason)).collect();
        screen.json(&json!({
            "root": workspace.root.path().to_string_lossy(),
            "store": workspace.store_dir.to_string_lossy(),
            "storeBytes": size,
            "files": stats.files,
            "folders": stats.folders,
            "points": listed,
            "seq": workspace.store.head()?.seq,
            "sessions": sessions.len(),
            "openTurns": sessions.iter().filter(|session| session.open_turn.is_some()).count(),
            "openCalls": calls.len(),
            "notCovered": skipped,
        }))?;
        return Ok(0);
    }
    let out = &mut screen.out;
    writeln!(out, "{STRONG}{}{STRONG:#}", workspace.root.path().display())?;
    writeln!(
        out,
        "  {} in {} protected, {} kept in {}",
        count(usize::try_from(stats.files).unwrap_or(usize::MAX), "file"),
        count(usize::try_from(stats.folders).unwrap_or(usize::MAX), "folder"),
        bytes(size),
        count(listed, "point"),
    )?;
    let time = now();
    for session in sessions.iter().filter(|session| session.open_turn.is_some()) {
        let agent = session.agent.as_deref().unwrap_or("agent");
        writeln!(
            out,
            "  {NAME}{}{NAME:#} {} is at work {HINT}(since {}){HINT:#}",
            plain(agent),
            plain(&session.id.0),
            ago(session.started_at, time)
        )?;
    }
    print_skipped(out, &surveyed.skipped, screen.verbose)?;
    Ok(0)
}

fn print_skipped(
    out: &mut dyn std::io::Write,
    skipped: &[(WorkPath, OutReason)],
    all: bool,
) -> std::io::Result<()> {
    const MOST: usize = 5;
    if skipped.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot covered:")?;
    let mut by_reason: BTreeMap<OutReason, Vec<&WorkPath>> = BTreeMap::new();
    for (path, reason) in skipped {
        by_reason.entry(*reason).or_default().push(path);
    }
    for (reason, paths) in by_reason {
        let most = if all { paths.len() } else { MOST };
        let mut names: Vec<String> = paths.iter().take(most).map(|path| path.display()).collect();
        if paths.len() > most {
            names.push(format!("and {} more (-v shows all)", paths.len() - most));
        }
        writeln!(out, "  {}  {HINT}{}{HINT:#}", names.join(", "), reason.reason())?;
    }
    Ok(())
}

/// Bytes in a store's folder.
fn folder_size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, metadata)| if metadata.is_dir() { folder_size(&path) } else { metadata.len() })
        .sum()
}
