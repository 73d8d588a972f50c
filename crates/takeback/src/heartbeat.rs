//! Signs of life of agents' hooks: `<home>/hooks/<agent>/<hash of session>.json`, one file a session.
//!
//! That a settings file names a hook does not show that it runs. Each run of `takeback hook` leaves its
//! trace here, whatever becomes of what it was told; `doctor` reads them. The file also holds the
//! session's root, which stays what it was when the session began.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_store::{Timestamp, disk};

/// A session of an agent, as its hooks have seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Heartbeat {
    pub(crate) agent: String,
    pub(crate) session: String,
    /// The workspace that it was found to work in; none, if none could be opened.
    pub(crate) root: Option<PathBuf>,
    pub(crate) first_at: Timestamp,
    pub(crate) last_at: Timestamp,
    /// How often which hook has run.
    pub(crate) events: BTreeMap<String, u64>,
    /// How many of them went into the log.
    pub(crate) recorded: u64,
    /// The last thing that went wrong, and when.
    pub(crate) problem: Option<Problem>,
    /// The prompt whose further names have been learnt.
    pub(crate) learnt: Option<String>,
    pub(crate) version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) at: Timestamp,
    pub(crate) what: String,
}

const FOLDER: &str = "hooks";
/// Sessions of an agent of which a trace is kept.
const MOST: usize = 200;

impl Heartbeat {
    /// The session's, or a new one.
    pub(crate) fn of(home: &Path, agent: &str, session: &str, now: Timestamp) -> Self {
        read(&file(home, agent, session)).filter(|found| found.session == session).unwrap_or(Self {
            agent: agent.to_owned(),
            session: session.to_owned(),
            root: None,
            first_at: now,
            last_at: now,
            events: BTreeMap::new(),
            recorded: 0,
            problem: None,
            learnt: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    pub(crate) fn beat(&mut self, event: &str, now: Timestamp) {
        *self.events.entry(event.to_owned()).or_default() += 1;
        self.last_at = now;
        env!("CARGO_PKG_VERSION").clone_into(&mut self.version);
    }

    pub(crate) fn went_wrong(&mut self, what: String, now: Timestamp) {
        self.problem = Some(Problem { at: now, what });
    }

    /// Leaves the trace. Two hooks of a session at once: the later one's stands.
    pub(crate) fn save(&self, home: &Path) -> std::io::Result<()> {
        let path = file(home, &self.agent, &self.session);
        let folder = path.parent().unwrap_or(home);
        disk::make_private_folder(folder)?;
        let is_new = !path.exists();
        disk::replace_private_file(&path, &serde_json::to_vec(self)?)?;
        if is_new {
            forget_oldest(folder)?;
        }
        Ok(())
    }
}

/// Every trace, the newest first.
pub(crate) fn heartbeats(home: &Path) -> Vec<Heartbeat> {
    let folders = names_in(&home.join(FOLDER));
    let files = folders.iter().flat_map(|folder| names_in(folder));
    let mut found: Vec<Heartbeat> = files.filter_map(|file| read(&file)).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.last_at));
    found
}

fn file(home: &Path, agent: &str, session: &str) -> PathBuf {
    let hash = blake3::hash(session.as_bytes()).to_hex();
    home.join(FOLDER).join(agent).join(format!("{}.json", &hash[..16]))
}

fn read(path: &Path) -> Option<Heartbeat> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn names_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(names) = std::fs::read_dir(folder) else { return Vec::new() };
    names.filter_map(Result::ok).map(|name| name.path()).collect()
}

fn forget_oldest(folder: &Path) -> std::io::Result<()> {
    let mut files: Vec<_> = names_in(folder)
        .into_iter()
        .filter_map(|file| Some((std::fs::metadata(&file).ok()?.modified().ok()?, file)))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(MOST);
    files.iter().take(surplus).try_for_each(|(_, file)| disk::remove_store_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_found_again_and_the_oldest_are_forgotten() {
        let home = tempfile::tempdir().unwrap();
        let session = |n: i64| format!("s{n}");
        for n in 0..=i64::try_from(MOST).unwrap() {
            let mut beat = Heartbeat::of(home.path(), "claude", &session(n), Timestamp(n));
            beat.beat("Stop", Timestamp(n));
            beat.save(home.path()).unwrap();
            let file = file(home.path(), "claude", &session(n));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(n.unsigned_abs());
            std::fs::File::open(file).unwrap().set_modified(time).unwrap();
        }
        let found = heartbeats(home.path());
        assert_eq!(found.len(), MOST);
        assert_eq!(found[0].session, session(200));
        assert_eq!(found[MOST - 1].session, session(1));
        let mut again = Heartbeat::of(home.path(), "claude", &session(7), Timestamp(900));
        again.beat("Stop", Timestamp(900));
        assert_eq!((again.first_at, again.last_at), (Timestamp(7), Timestamp(900)));
        assert_eq!(again.events["Stop"], 2);
    }
}
