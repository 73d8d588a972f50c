//! Thousands of random runs of agents, people, rewinds, undos and redos, each compared step by step
//! with an oracle that is a plain map.
//!
//! `TAKEBACK_TEST_RUNS` sets the number of runs, `TAKEBACK_TEST_SEED` does one of them. A run that
//! fails is told with its seed and the fewest of its steps that still fail.

#![expect(
    clippy::disallowed_methods,
    reason = "the test plays the people and agents who change files"
)]

#[path = "model/rewinding.rs"]
mod rewinding;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use takeback_core::history::settle;
use takeback_core::retention::{Clock, Occasion, Policy, clean_up, delete_session};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{self, AmbiguousPolicy, Receipt, RewindError, RewindRequest, preview};
use takeback_core::{
    AgentEvent, CallTargets, Mark, Outcome, RecordOutcome, checkpoint, look_around, mark,
};
use takeback_store::{
    Author, CallId, Digest, Entry, Evidence, RewindId, Seq, SessionId, StoreError, WorkPath,
};
use takeback_testkit::{Sandbox, Thing};

#[path = "model/deeds.rs"]
mod deeds;
#[path = "model/oracle.rs"]
mod oracle;

use deeds::{
    Asked, AskedWhose, By, CONTINUES, Deed, Ending, Past, SESSIONS, Step, act, can_be_edited, draw,
    tree,
};
use oracle::{Ask, Expected, Oracle, Seen, Target, Tree, Who, Whose};

const RUNS: u64 = 3000;
/// So many runs use the store in memory for one that uses the store on disk.
const MEMORY_RUNS: u64 = 20;

/// No event is to come late.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many failures are told.
const TELL: usize = 3;

#[test]
fn every_run_goes_as_the_oracle_says() {
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("TAKEBACK_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TAKEBACK_TEST_RUNS").unwrap_or(RUNS),
    };
    // On a disk the runs would mostly wait for it.
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        drop(tempfile::env::override_temp_dir(memory));
    }
    let next = AtomicU64::new(seeds.start);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failures.lock().expect("nobody panics with it").len() < TELL {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let failure = check_seed(seed).err();
                    failures.lock().expect("nobody panics with it").extend(failure);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panics with it");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn check_seed(seed: u64) -> Result<(), String> {
    let steps = draw(seed);
    let Err(first) = check(&steps, seed) else { return Ok(()) };
    let (steps, failure) = fewest(steps, first, seed);
    let list: String = steps.iter().map(|step| format!("    {step:?}\n")).collect();
    Err(format!("the run with seed {seed} fails; these of its steps are enough:\n{list}{failure}"))
}

/// Drops steps as long as what is left still fails.
fn fewest(mut steps: Vec<Step>, mut failure: String, seed: u64) -> (Vec<Step>, String) {
    let mut size = steps.len() / 2;
    loop {
        let mut at = 0;
        let mut dropped = false;
        while size > 0 && at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            if !begins_with_a_look(&fewer) {
                at += size;
                continue;
            }
            match check(&fewer, seed) {
                Err(still) => (steps, failure, dropped) = (fewer, still, true),
                Ok(()) => at += size,
            }
        }
        if size <= 1 && !dropped {
            return (steps, failure);
        }
        size = (size / 2).max(1);
    }
}

/// Every run that is drawn does: without one, it is another failure.
fn begins_with_a_look(steps: &[Step]) -> bool {
    let told = steps.iter().find(|step| !matches!(step, Step::Quiet(_)));
    matches!(told, Some(Step::Prompt(_) | Step::Checkpoint))
}

/// What goes wrong in a run, if anything does.
fn check(steps: &[Step], seed: u64) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| {
        let sandbox =
            if seed.is_multiple_of(MEMORY_RUNS) { Sandbox::new() } else { Sandbox::in_memory() };
        let mut run = Run::new(sandbox, steps.iter().any(Step::changes_scope));
        for (at, step) in steps.iter().enumerate() {
            run.step(step).map_err(|failure| format!("at step {}, {step:?}: {failure}", at + 1))?;
        }
        run.same_log()
    }))
    .unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

struct Run {
    sandbox: Sandbox,
    oracle: Oracle,
    past: Past,
    calls: u64,
    /// Then a point's tree may not be all in the log.
    scope_changes: bool,
    /// The tree before the last rewind and what brings it back, while nothing has happened since.
    just_before: Option<(Target, Tree)>,
    /// The last rewind found nothing to do.
    rewound_nothing: bool,
    rewinds: Vec<RewindId>,
    /// The log is no longer what the oracle has, only what kept points need of it.
    thinned: bool,
}

impl Run {
    /// In a run next to no time passes, and files have no dates: what is decided by time is tested
    /// elsewhere.
    fn new(mut sandbox: Sandbox, scope_changes: bool) -> Self {
        sandbox.slow_the_clock(1);
        // However busy the machine is.
        sandbox.workspace.limits.recorder_patience = PATIENCE;
        let (oracle, past, rewinds) = (Oracle::default(), Past::default(), Vec::new());
        Self {
            sandbox,
            oracle,
            past,
            calls: 0,
            scope_changes,
            just_before: None,
            rewound_nothing: false,
            rewinds,
            thinned: false,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if !matches!(step, Step::Rewind(_) | Step::Undo { .. } | Step::Redo | Step::Reopen) {
            self.just_before = None;
        }
        match step {
            Step::Start(session) => {
                let parent = CONTINUES.iter().find(|(child, _)| child == session);
                let recorded = self.sandbox.tell(&AgentEvent::SessionStart {
                    session: SessionId::from(*session),
                    agent: None,
                    parent: parent.map(|(_, parent)| SessionId::from(*parent)),
                    owner: None,
                });
                self.oracle.start(session);
                self.same_length(&recorded)
            }
            Step::Prompt(session) => {
                let event = AgentEvent::Prompt {
                    session: SessionId::from(*session),
                    message: None,
                    text: "a prompt".to_owned(),
                };
                let recorded = self.sandbox.tell(&event);
                self.oracle.prompt(session, recorded.point.ok_or("a prompt makes a point")?);
                self.same_length(&recorded)
            }
            Step::Edit(session, deed) => {
                let Some(call) = self.open_edit(session, deed.path)? else { return Ok(()) };
                self.act(deed, By::EditTool);
                self.close(session, &call, Ending::Done)
            }
            Step::Shell(session, deeds) => {
                let call = self.open_shell(session)?;
                for deed in deeds {
                    self.act(deed, By::Anybody);
                }
                self.close(session, &call, Ending::Done)
            }
            Step::OpenEdit(session, path) => self.open_edit(session, path).map(drop),
            Step::OpenShell(session) => self.open_shell(session).map(drop),
            Step::Close(session, ending) => match self.oracle.newest_unended(session) {
                Some(call) => self.close(session, &call, *ending),
                None => Ok(()),
            },
            Step::TurnEnd(session) => {
                let recorded =
                    self.sandbox.tell(&AgentEvent::TurnEnd { session: SessionId::from(*session) });
                self.oracle.turn_end(session);
                self.same_length(&recorded)
            }
            Step::End(session) => {
                let recorded = self
                    .sandbox
                    .tell(&AgentEvent::SessionEnd { session: SessionId::from(*session) });
                self.oracle.session_end(session);
                self.same_length(&recorded)
            }
            Step::Quiet(deed) => {
                self.act(deed, By::Anybody);
                Ok(())
            }
            Step::Checkpoint => {
                let recorded =
                    checkpoint(&mut self.sandbox.workspace, None).map_err(|e| e.to_string())?;
                self.oracle.checkpoint(recorded.point.ok_or("a checkpoint is a point")?);
                self.same_length(&recorded)
            }
            Step::LookAround => {
                let surveyed =
                    look_around(&mut self.sandbox.workspace).map_err(|e| e.to_string())?;
                self.oracle.look_around();
                self.same_length(&surveyed.recorded)
            }
            Step::Reopen => {
                self.sandbox.reopen();
                self.sandbox.workspace.limits.recorder_patience = PATIENCE;
                Ok(())
            }
            Step::Rewind(asked) => self.rewind_as(asked),
            Step::Undo { exact } => self.rewind(&ask(Target::Undo, *exact), false),
            Step::Redo => self.rewind(&ask(Target::Redo, false), false),
            Step::CleanUp(most) => self.clean_up(*most),
            Step::Pin(which) => self.pin(*which),
            Step::DeleteSession(session) => self.delete_session(session),
        }
    }

    // --- keeping --------------------------------------------------------------------------------

    fn clean_up(&mut self, most: usize) -> Result<(), String> {
        let policy = Policy { points_per_session: most, ..Policy::default() };
        clean_up(&mut self.sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted)
            .map_err(|e| e.to_string())?;
        self.oracle.clean_up(most);
        self.everything_kept_is_whole()
    }

    fn pin(&mut self, which: usize) -> Result<(), String> {
        let mut listed: Vec<_> =
            self.oracle.points.iter_mut().filter(|point| point.safety_of.is_none()).collect();
        if listed.is_empty() {
            return Ok(());
        }
        let at = which % listed.len();
        listed[at].pinned = true;
        let marked = mark(&mut self.sandbox.workspace, listed[at].id, Mark::Pin);
        marked.map(drop).map_err(|e| e.to_string())
    }

    fn delete_session(&mut self, session: &'static str) -> Result<(), String> {
        let id = SessionId::from(session);
        let known = self.sandbox.workspace.store.session(&id).map_err(|e| e.to_string())?;
        if self.oracle.is_at_work(session) || known.is_none() {
            return Ok(());
        }
        delete_session(&mut self.sandbox.workspace, &id).map_err(|e| e.to_string())?;
        self.oracle.delete_session(session);
        self.everything_kept_is_whole()
    }

    /// After something was dropped: the points that stay are those that should, with all that stood
    /// at each of them, every byte of it in the store.
    fn everything_kept_is_whole(&mut self) -> Result<(), String> {
        self.thinned = true;
        let store = &*self.sandbox.workspace.store;
        let failed = |error: StoreError| error.to_string();
        let mut points = store.points().map_err(failed)?;
        points.sort_by_key(|point| point.id);
        let ids: BTreeSet<_> = points.iter().map(|point| point.id).collect();
        let expected = self.oracle.points.iter().map(|point| point.id).collect();
        same("the points that are kept", &ids, &expected)?;
        same("damage", &store.check().map_err(failed)?, &Vec::new())?;
        same("unneeded contents", &store.unreferenced().map_err(failed)?.digests.len(), &0)?;
        let latest = store.latest().map_err(failed)?;
        for point in &self.oracle.points {
            let seq = points.iter().find(|kept| kept.id == point.id).expect("it is kept").seq;
            let mut state: BTreeMap<String, Entry> =
                latest.iter().map(|(path, entry)| (text(path), entry.clone())).collect();
            for change in store.changes_after(seq).map_err(failed)?.iter().rev() {
                state.insert(text(&change.path), change.before.clone());
            }
            let mut expected: BTreeMap<String, Entry> = self
                .oracle
                .state_at(point.at)
                .iter()
                .map(|(path, seen)| (path.clone(), entry(seen)))
                .collect();
            // That nothing stood somewhere need not be said.
            state.retain(|_, entry| *entry != Entry::Absent);
            expected.retain(|_, entry| *entry != Entry::Absent);
            same("what stood at a kept point", &state, &expected)
                .map_err(|failure| format!("{failure}\n{}", self.told_log()))?;
        }
        let still_known = latest.iter().map(|(path, _)| text(path)).collect();
        self.oracle.forget_absent(&still_known);
        Ok(())
    }

    // --- agents and people ----------------------------------------------------------------------

    fn act(&mut self, deed: &Deed, by: By) {
        act(&self.sandbox, deed, by, &self.past);
        self.oracle.disk = tree(&self.sandbox);
        for (path, thing) in &self.oracle.disk {
            if let Thing::File { bytes, .. } = thing {
                let past = self.past.entry(path.clone()).or_default();
                if past.last() != Some(bytes) {
                    past.push(bytes.clone());
                }
            }
        }
    }

    fn open_edit(&mut self, session: &'static str, path: &str) -> Result<Option<String>, String> {
        if !can_be_edited(&self.sandbox, path) {
            return Ok(None);
        }
        let touches = CallTargets::Paths(vec![self.sandbox.at(path)]);
        let (call, recorded) = self.open(session, "Edit", touches);
        self.oracle.before_edit(session, &call, path, recorded.point);
        self.same_length(&recorded)?;
        Ok(Some(call))
    }

    fn open_shell(&mut self, session: &'static str) -> Result<String, String> {
        let (call, recorded) = self.open(session, "Bash", CallTargets::anything(None));
        self.oracle.before_shell(session, &call, recorded.point);
        self.same_length(&recorded)?;
        Ok(call)
    }

    fn open(&mut self, session: &str, tool: &str, touches: CallTargets) -> (String, RecordOutcome) {
        self.calls += 1;
        let call = format!("call {}", self.calls);
        let recorded = self.sandbox.tell(&AgentEvent::BeforeTool {
            session: SessionId::from(session),
            call: CallId::from(call.as_str()),
            tool: tool.to_owned(),
            touches,
        });
        (call, recorded)
    }

    fn close(&mut self, session: &'static str, call: &str, ending: Ending) -> Result<(), String> {
        let outcome = match ending {
            Ending::Done => Outcome::Done,
            Ending::Failed => Outcome::Failed,
            Ending::Background => Outcome::Background,
        };
        let recorded = self.sandbox.after_as(session, call, outcome);
        self.oracle.after(session, call, ending == Ending::Background);
        self.same_length(&recorded)
    }

    fn same_length(&self, recorded: &RecordOutcome) -> Result<(), String> {
        if recorded.seq == Seq(self.oracle.log.len() as u64) { Ok(()) } else { self.same_log() }
    }

    // --- taking back ----------------------------------------------------------------------------

    /// The log as it is and as the oracle has it, path by path: in which order paths are recorded
    /// that were looked at together means nothing.
    fn same_log(&self) -> Result<(), String> {
        if self.thinned {
            let seq = self.sandbox.workspace.store.head().map_err(|e| e.to_string())?.seq.0;
            let expected = self.oracle.log.len() as u64;
            return same("the length of the log", &seq, &expected)
                .map_err(|failure| format!("{failure}\n{}", self.told_log()));
        }
        let store = &*self.sandbox.workspace.store;
        let mut changes = store.changes_after(Seq(0)).map_err(|e| e.to_string())?;
        settle(store, &mut changes).map_err(|e| e.to_string())?;
        let mut is: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for change in changes {
            let lines = is.entry(text(&change.path)).or_default();
            places.insert(change.seq, lines.len());
            let cancels = change.cancels.iter().map(|seq| places[seq]).collect();
            let mut call = None;
            let mut in_doubt = false;
            let who = match change.author {
                Author::Human => Who::Human,
                Author::Agent { session, call: by, .. } => {
                    call = Some(by.0);
                    in_doubt = change.evidence == Evidence::OpenWindow;
                    Who::Agent(known(&session))
                }
                Author::Ambiguous { sessions } => {
                    in_doubt = true;
                    Who::Perhaps(sessions.iter().map(known).collect())
                }
                Author::Rewind { id } => {
                    let place = self.rewinds.iter().position(|rewind| *rewind == id);
                    Who::Rewind(place.ok_or("a rewind that no receipt tells of")?)
                }
                Author::Deleted | Author::Import => {
                    return Err("no session was deleted, nothing imported".to_owned());
                }
            };
            let (before, after) = (change.before, change.after);
            lines.push(Line { before, after, who, call, in_doubt, cancels });
        }
        let mut expected: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        let mut places = Vec::new();
        for change in &self.oracle.log {
            let lines = expected.entry(change.path.clone()).or_default();
            places.push(lines.len());
            let cancels = change.cancels.iter().map(|number| places[number - 1]).collect();
            let (before, after) = (entry(&change.before), entry(&change.after));
            let who = change.who.clone();
            let call = self.oracle.call_of(change).map(str::to_owned);
            let in_doubt = self.oracle.is_in_doubt(change);
            lines.push(Line { before, after, who, call, in_doubt, cancels });
        }
        let paths: BTreeSet<&String> = is.keys().chain(expected.keys()).collect();
        for path in paths {
            same(&format!("the log of {path}"), &is.get(path), &expected.get(path))
                .map_err(|failure| format!("{failure}\n{}", self.told_log()))?;
        }
        Ok(())
    }

    fn told_log(&self) -> String {
        let told = |seen: &Seen| match seen {
            Seen::A(Thing::File { bytes, mode }) => {
                let sections = deeds::parts(bytes).map(|(_, sections)| sections.join("; "));
                let told = sections.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
                format!("file {mode:o} [{told}]")
            }
            other => format!("{other:?}"),
        };
        let changes = self.oracle.log.iter().enumerate().map(|(at, change)| {
            let (before, after) = (told(&change.before), told(&change.after));
            format!(
                "  {}: {} by {:?}{}, cancels {:?}\n      {before}\n   -> {after}\n",
                at + 1,
                change.path,
                change.who,
                if self.oracle.is_in_doubt(change) { ", in doubt" } else { "" },
                change.cancels
            )
        });
        let points: Vec<usize> = self.oracle.points.iter().map(|point| point.at).collect();
        let log: String = changes.collect();
        format!("the log, as the oracle has it (points after {points:?}):\n{log}")
    }
}

/// A change of one path; what it cancels by its place among the changes of that path.
#[derive(Debug, PartialEq)]
struct Line {
    before: Entry,
    after: Entry,
    who: Who,
    call: Option<String>,
    in_doubt: bool,
    cancels: Vec<usize>,
}

fn known(session: &SessionId) -> &'static str {
    SESSIONS.into_iter().find(|known| *known == session.0).expect("no other sessions took part")
}

fn ask(target: Target, exact: bool) -> Ask {
    Ask { target, whose: None, exact, take_ambiguous: false, paths: Vec::new() }
}

/// A receipt's lists as the oracle tells them: it does not tell a merged file from a restored one.
fn lists(receipt: &Receipt) -> Expected {
    let notes = |notes: &[rewind::Note]| notes.iter().map(|note| text(&note.path)).collect();
    let restored =
        receipt.restored_files.iter().chain(receipt.merged_files.iter().map(|note| &note.path));
    Expected {
        restored: restored.map(text).collect(),
        deleted: receipt.deleted_files.iter().map(text).collect(),
        kept: notes(&receipt.kept_files),
        conflicts: notes(&receipt.conflicts),
        ambiguous: notes(&receipt.ambiguous),
        lacking: notes(&receipt.not_captured),
    }
}

fn text(path: &WorkPath) -> String {
    String::from_utf8(path.as_bytes().to_vec()).expect("all names here are text")
}

fn entry(seen: &Seen) -> Entry {
    match seen {
        Seen::Unknown => Entry::Unknown,
        Seen::Nothing => Entry::Absent,
        Seen::A(Thing::File { bytes, mode }) => {
            Entry::File { digest: Digest::of(bytes), size: bytes.len() as u64, mode: *mode }
        }
        Seen::A(Thing::Link(target)) => {
            Entry::Symlink { target: target.to_str().expect("plain text").as_bytes().to_vec() }
        }
        Seen::A(Thing::Folder { mode }) => Entry::Dir { mode: *mode },
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, expected: &T) -> Result<(), String> {
    if is == expected {
        Ok(())
    } else {
        Err(format!("{what}:\n    is       {is:?}\n    expected {expected:?}"))
    }
}
