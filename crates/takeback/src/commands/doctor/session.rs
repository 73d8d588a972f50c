//! The newest session in an agent's own records.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use takeback_agents::{AgentKind, Homes, read_session};
use takeback_store::Timestamp;

use crate::time::parse_iso;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) began: Timestamp,
    /// When the agent last wrote about it.
    pub(super) last: Timestamp,
}

/// Directory entries read at most, so that years of sessions do not slow `doctor` down.
const NAMES: usize = 50_000;
/// Files to try before giving up.
const TRIES: usize = 8;

pub(super) fn newest(agent: &AgentKind, homes: &Homes) -> Option<Session> {
    let mut files = Vec::new();
    let mut names = NAMES;
    let folder = agent.sessions.folder.path(homes);
    for pattern in agent.sessions.patterns {
        find(&folder, pattern, &mut names, &mut files);
    }
    files.sort();
    files.iter().rev().take(TRIES).find_map(|(last, path)| {
        let seen = read_session(&agent.sessions, &beginning(path)?)?;
        Some(Session { id: seen.id, began: parse_iso(&seen.began)?, last: *last })
    })
}

fn find(folder: &Path, levels: &[&str], names: &mut usize, found: &mut Vec<(Timestamp, PathBuf)>) {
    let Some((level, below)) = levels.split_first() else { return };
    if !level.contains('*') && !below.is_empty() {
        return find(&folder.join(level), below, names, found);
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if *names == 0 {
            return;
        }
        *names -= 1;
        let fits = match level.strip_prefix('*') {
            Some(end) => entry.file_name().to_string_lossy().ends_with(end),
            None => entry.file_name().to_str() == Some(level),
        };
        if !fits {
            continue;
        }
        if below.is_empty() {
            found.extend(modified(&entry.path()).map(|time| (time, entry.path())));
        } else {
            find(&entry.path(), below, names, found);
        }
    }
}

/// When a file was last written to.
pub(super) fn modified(path: &Path) -> Option<Timestamp> {
    let time = std::fs::metadata(path).ok()?.modified().ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(Timestamp(i64::try_from(since).ok()?))
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    const MOST: u64 = 256 << 10;
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
