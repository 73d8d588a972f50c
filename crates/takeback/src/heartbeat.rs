//! Traces of hook runs: `<home>/hooks/<agent>/<hash of session>.json`, one file per session.
//!
//! A hook in a settings file may still not run. Each run of `takeback hook` leaves a trace here, even if
//! recording fails, and `doctor` reads it. The file also holds the session's workspaces: a session stays in
//! the one in which it began.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_store::{SessionId, Timestamp, disk};

/// A session of an agent, as its hooks saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Heartbeat {
    pub(crate) agent: String,
    pub(crate) session: String,
    /// Its workspaces, starting with the one in which it began; empty if none could be opened.
    #[serde(default)]
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) first_at: Timestamp,
    pub(crate) last_at: Timestamp,
    /// How often each hook has run.
    pub(crate) events: BTreeMap<String, u64>,
    /// How many of these events were recorded.
    pub(crate) recorded: u64,
    /// The last problem, and when it happened.
    pub(crate) problem: Option<Problem>,
    /// The last prompt whose other ids are known.
    pub(crate) learnt: Option<String>,
    /// The agent's transcript, as named by the last payload.
    #[serde(default)]
    pub(crate) transcript: Option<PathBuf>,
    /// It is a fork of another session that is not known yet.
    #[serde(default)]
    pub(crate) is_orphan: bool,
    /// The problems that the user was notified of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) told: Vec<String>,
    /// The files that it was last seen to read, newest last. Kept only with `warnOnOverwrite`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reads: Vec<FileRead>,
    /// The last time a store was too new for the Takeback that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<Refusal>,
    pub(crate) version: String,
}

/// A file that an agent has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileRead {
    pub(crate) path: PathBuf,
    /// Who read it: the session, or a subagent of it.
    pub(crate) session: SessionId,
    pub(crate) at: Timestamp,
}

/// A Takeback that was too old for a store and recorded nothing in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) at: Timestamp,
    /// The store's folder, for display.
    pub(crate) store: String,
    pub(crate) version: String,
    /// The program's path, if known.
    pub(crate) program: Option<String>,
}

impl Refusal {
    fn of_this_program(store: &Path, now: Timestamp) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let program = std::env::current_exe().ok().as_deref().map(text);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { at: now, store: text(store), version, program }
    }

    /// `takeback 0.1.0 (/usr/bin/takeback)`
    pub(crate) fn program(&self) -> String {
        match &self.program {
            Some(program) => format!("takeback {} ({program})", self.version),
            None => format!("takeback {}", self.version),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) at: Timestamp,
    pub(crate) what: String,
}

const FOLDER: &str = "hooks";
/// Traces kept per agent.
const MOST: usize = 200;
/// Files that a session read, in its trace.
const MOST_READS: usize = 100;

/// Older problems are not reported.
pub(crate) const LATELY_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// The session id for payloads that could not be parsed.
pub(crate) const NOT_UNDERSTOOD: &str = "not-understood";

/// What one hook run adds.
#[derive(Debug, Default)]
pub(crate) struct Beat {
    /// The agent's name for the event; empty if unknown.
    pub(crate) event: String,
    /// The workspaces in which it was recorded.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) recorded: bool,
    pub(crate) problem: Option<String>,
    /// The last prompt whose other ids are known.
    pub(crate) learnt: Option<String>,
    pub(crate) transcript: Option<PathBuf>,
    /// Whether the session is a fork of an unknown session; `None`: unchanged.
    pub(crate) is_orphan: Option<bool>,
    /// The problem that the user was notified of.
    pub(crate) notice: Option<&'static str>,
    /// The files that it read.
    pub(crate) reads: Vec<FileRead>,
    /// The store, if it is too new.
    pub(crate) refused_by: Option<PathBuf>,
}

impl Heartbeat {
    /// The trace of a session.
    pub(crate) fn of(home: &Path, agent: &str, session: &str) -> Option<Self> {
        read(&file(home, agent, session)).filter(|found| found.session == session)
    }

    /// Whether the user was notified of this problem.
    pub(crate) fn was_told(&self, cause: &str) -> bool {
        self.told.iter().any(|told| told == cause)
    }

    fn new(agent: &str, session: &str, now: Timestamp) -> Self {
        Self {
            agent: agent.to_owned(),
            session: session.to_owned(),
            roots: Vec::new(),
            first_at: now,
            last_at: now,
            events: BTreeMap::new(),
            recorded: 0,
            problem: None,
            learnt: None,
            transcript: None,
            is_orphan: false,
            told: Vec::new(),
            reads: Vec::new(),
            refusal: None,
            version: String::new(),
        }
    }

    fn add(&mut self, beat: &Beat, now: Timestamp) {
        if !beat.event.is_empty() {
            *self.events.entry(beat.event.clone()).or_default() += 1;
        }
        for root in &beat.roots {
            if !self.roots.contains(root) {
                self.roots.push(root.clone());
            }
        }
        self.recorded += u64::from(beat.recorded);
        if let Some(what) = beat.problem.clone() {
            self.problem = Some(Problem { at: now, what });
        }
        self.learnt = beat.learnt.clone().or(self.learnt.take());
        self.transcript = beat.transcript.clone().or(self.transcript.take());
        self.is_orphan = beat.is_orphan.unwrap_or(self.is_orphan);
        if let Some(cause) = beat.notice
            && !self.was_told(cause)
        {
            self.told.push(cause.to_owned());
        }
        for read in &beat.reads {
            self.reads.retain(|known| known.path != read.path || known.session != read.session);
            self.reads.push(read.clone());
        }
        self.reads.drain(..self.reads.len().saturating_sub(MOST_READS));
        if let Some(store) = &beat.refused_by {
            self.refusal = Some(Refusal::of_this_program(store, now));
        }
        self.last_at = self.last_at.max(now);
        env!("CARGO_PKG_VERSION").clone_into(&mut self.version);
    }
}

/// Writes the trace of one run. A failure is ignored: recording does not depend on it.
pub(crate) fn leave(home: &Path, agent: &str, session: &str, now: Timestamp, beat: &Beat) {
    let save = || -> std::io::Result<()> {
        let path = file(home, agent, session);
        let folder = path.parent().unwrap_or(home);
        disk::make_private_folder(folder)?;
        // Hooks of one session may run at the same time: the lock keeps all their traces.
        let lock = disk::open_private_file(&folder.with_extension("lock"))?;
        lock.lock()?;
        let found = Heartbeat::of(home, agent, session);
        let is_new = found.is_none();
        let mut heartbeat = found.unwrap_or_else(|| Heartbeat::new(agent, session, now));
        heartbeat.add(beat, now);
        disk::replace_private_file(&path, &serde_json::to_vec(&heartbeat)?)?;
        if is_new {
            forget_oldest(folder)?;
        }
        Ok(())
    };
    drop(save());
}

/// All traces, newest first.
pub(crate) fn heartbeats(home: &Path) -> Vec<Heartbeat> {
    let folders = names_in(&home.join(FOLDER));
    let files = folders.iter().flat_map(|folder| names_in(folder));
    let mut found: Vec<Heartbeat> = files.filter_map(|file| read(&file)).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.last_at));
    found
}

/// For each agent, the last time within a week that a Takeback was too old for `store`, or for any store, and
/// whether no hook of that agent has run since.
pub(crate) fn refusals<'b>(
    beats: &'b [Heartbeat],
    store: Option<&Path>,
    now: Timestamp,
) -> Vec<(&'b Heartbeat, &'b Refusal, bool)> {
    let is_meant = |refusal: &&Refusal| {
        store.is_none_or(|store| store.to_string_lossy() == refusal.store)
            && refusal.at.0 > now.0.saturating_sub(LATELY_MS)
    };
    let mut found: BTreeMap<&str, (&Heartbeat, &Refusal, bool)> = BTreeMap::new();
    for beat in beats {
        let Some(refusal) = beat.refusal.as_ref().filter(is_meant) else { continue };
        let since = |other: &Heartbeat| other.agent == beat.agent && other.last_at > refusal.at;
        let is_last = !beats.iter().any(since);
        let newest = found.entry(&beat.agent).or_insert((beat, refusal, is_last));
        if newest.1.at < refusal.at {
            *newest = (beat, refusal, is_last);
        }
    }
    found.into_values().collect()
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
        let beat = |session: &str, now| {
            let beat = Beat { event: "Stop".to_owned(), ..Beat::default() };
            leave(home.path(), "claude", session, Timestamp(now), &beat);
        };
        for n in 0..=i64::try_from(MOST).unwrap() {
            beat(&session(n), n);
            let file = file(home.path(), "claude", &session(n));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(n.unsigned_abs());
            std::fs::File::open(file).unwrap().set_modified(time).unwrap();
        }
        let found = heartbeats(home.path());
        assert_eq!(found.len(), MOST);
        assert_eq!(found[0].session, session(200));
        assert_eq!(found[MOST - 1].session, session(1));
        beat(&session(7), 900);
        let again = Heartbeat::of(home.path(), "claude", &session(7)).unwrap();
        assert_eq!((again.first_at, again.last_at), (Timestamp(7), Timestamp(900)));
        assert_eq!(again.events["Stop"], 2);
    }
}
