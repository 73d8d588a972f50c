//! Thousands of random runs of agents, people, rewinds, undos and redos, each compared step by step
//! with an oracle that is a plain map.
//!
//! `TAKEBACK_TEST_RUNS` sets the number of runs, `TAKEBACK_TEST_SEED` picks one of them. A failing run
//! is reported with its seed and the fewest of its steps that still fail.

#![expect(
    clippy::disallowed_methods,
    reason = "the test plays the people and agents who change files"
)]

#[path = "model/rewind_steps.rs"]
mod rewind_steps;

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
    Author, CallId, Digest, Entry, Evidence, IN_PART, RewindId, Seq, SessionId, StoreError,
    WorkPath,
};
use takeback_testkit::{Sandbox, Thing};

#[path = "model/steps.rs"]
mod steps;
#[path = "model/oracle.rs"]
mod oracle;

use oracle::{ModelAuthor, Oracle, PathState, ReceiptPaths, Request, Scope, Target, Tree};
use steps::{
    CONTINUES, Editor, FileEdit, Past, RewindOptions, SESSIONS, SessionChoice, Step, act,
    can_be_edited, draw, tree,
};

const RUNS: u64 = 3000;
/// One run in this many uses a store on disk; the others use one in memory.
const MEMORY_RUNS: u64 = 20;

/// Long enough that no event is late.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many failures are reported.
const MAX_FAILURES: usize = 3;

#[test]
fn every_run_agrees_with_the_oracle() {
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("TAKEBACK_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TAKEBACK_TEST_RUNS").unwrap_or(RUNS),
    };
    // On a disk the runs would mostly wait for I/O.
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
                while failures.lock().expect("the lock is not poisoned").len() < MAX_FAILURES {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let failure = check_seed(seed).err();
                    failures.lock().expect("the lock is not poisoned").extend(failure);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("the lock is not poisoned");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn check_seed(seed: u64) -> Result<(), String> {
    let steps = draw(seed);
    let Err(first) = check(&steps, seed) else { return Ok(()) };
    let (steps, failure) = fewest(steps, first, seed);
    let list: String = steps.iter().map(|step| format!("    {step:?}\n")).collect();
    Err(format!(
        "the run with seed {seed} fails; these of its steps reproduce it:\n{list}{failure}"
    ))
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

/// Every drawn run does. A run without one fails for another reason.
fn begins_with_a_look(steps: &[Step]) -> bool {
    let first = steps.iter().find(|step| !matches!(step, Step::Unreported(_)));
    matches!(first, Some(Step::Prompt(_) | Step::Checkpoint))
}

/// Plays a run and compares it with the oracle.
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
    /// Whether ignore rules change: then a point's tree may not be complete in the log.
    scope_changes: bool,
    /// The tree before the last rewind and the target that restores it, until the next step.
    before_last_rewind: Option<(Target, Tree)>,
    /// Whether the last rewind found nothing to do.
    rewound_nothing: bool,
    rewinds: Vec<RewindId>,
    /// Whether points were dropped: then the log has only the changes that kept points need.
    thinned: bool,
}

impl Run {
    /// Almost no time passes in a run, and files have no dates: decisions based on time are tested
    /// elsewhere.
    fn new(mut sandbox: Sandbox, scope_changes: bool) -> Self {
        sandbox.slow_the_clock(1);
        // Even on a busy machine.
        sandbox.workspace.limits.recorder_patience = PATIENCE;
        let (oracle, past, rewinds) = (Oracle::default(), Past::default(), Vec::new());
        Self {
            sandbox,
            oracle,
            past,
            calls: 0,
            scope_changes,
            before_last_rewind: None,
            rewound_nothing: false,
            rewinds,
            thinned: false,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if !matches!(step, Step::Rewind(_) | Step::Undo { .. } | Step::Redo | Step::Reopen) {
            self.before_last_rewind = None;
        }
        match step {
            Step::Start(session) => {
                let parent = CONTINUES.iter().find(|(child, _)| child == session);
                let recorded = self.sandbox.tell(&AgentEvent::SessionStart {
                    session: SessionId::from(*session),
                    agent: None,
                    parent: parent.map(|(_, parent)| SessionId::from(*parent)),
                    owner: None,
                    model: None,
                });
                self.oracle.start(session);
                self.same_length(&recorded)
            }
            Step::Prompt(session) => {
                let event = AgentEvent::Prompt {
                    session: SessionId::from(*session),
                    message: None,
                    text: "a prompt".to_owned(),
                    model: None,
                };
                let recorded = self.sandbox.tell(&event);
                self.oracle.prompt(session, recorded.point.ok_or("a prompt makes a point")?);
                self.same_length(&recorded)
            }
            Step::Edit(session, edit) => {
                let Some(call) = self.open_edit(session, edit.path)? else { return Ok(()) };
                self.act(edit, Editor::EditTool);
                self.close(session, &call, Outcome::Done)
            }
            Step::Shell(session, edits) => {
                let call = self.open_shell(session)?;
                for edit in edits {
                    self.act(edit, Editor::Other);
                }
                self.close(session, &call, Outcome::Done)
            }
            Step::OpenEdit(session, path) => self.open_edit(session, path).map(drop),
            Step::OpenShell(session) => self.open_shell(session).map(drop),
            Step::Close(session, outcome) => match self.oracle.newest_unended(session) {
                Some(call) => self.close(session, &call, *outcome),
                None => Ok(()),
            },
            Step::TurnEnd(session) => {
                let recorded = self
                    .sandbox
                    .tell(&AgentEvent::TurnEnd { session: SessionId::from(*session), model: None });
                self.oracle.turn_end(session);
                self.same_length(&recorded)
            }
            Step::End(session) => {
                let recorded = self.sandbox.tell(&AgentEvent::SessionEnd {
                    session: SessionId::from(*session),
                    model: None,
                });
                self.oracle.session_end(session);
                self.same_length(&recorded)
            }
            Step::Unreported(edit) => {
                self.act(edit, Editor::Other);
                Ok(())
            }
            Step::Checkpoint => {
                let recorded =
                    checkpoint(&mut self.sandbox.workspace, None).map_err(|e| e.to_string())?;
                self.oracle.checkpoint(recorded.point.ok_or("a checkpoint is a point")?);
                self.same_length(&recorded)
            }
            Step::LookAround => {
                let found = look_around(&mut self.sandbox.workspace).map_err(|e| e.to_string())?;
                self.oracle.look_around();
                self.same_length(&found.recorded)
            }
            Step::Reopen => {
                self.sandbox.reopen();
                self.sandbox.workspace.limits.recorder_patience = PATIENCE;
                Ok(())
            }
            Step::Rewind(options) => self.rewind_as(options),
            Step::Undo { exact } => self.rewind(&ask(Target::Undo, *exact), false),
            Step::Redo => self.rewind(&ask(Target::Redo, false), false),
            Step::CleanUp(most) => self.clean_up(*most),
            Step::Pin(which) => self.pin(*which),
            Step::DeleteSession(session) => self.delete_session(session),
        }
    }

    // --- retention ------------------------------------------------------------------------------

    fn clean_up(&mut self, most: usize) -> Result<(), String> {
        let policy = Policy { points_per_session: most, ..Policy::default() };
        clean_up(&mut self.sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted)
            .map_err(|e| e.to_string())?;
        self.oracle.clean_up(most);
        self.check_kept_points()
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
        self.check_kept_points()
    }

    /// After points were dropped: exactly the right ones are left, and each still has its whole tree,
    /// with every byte in the store.
    fn check_kept_points(&mut self) -> Result<(), String> {
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
                .map(|(path, state)| (path.clone(), entry(state)))
                .collect();
            // Absent paths need no record.
            state.retain(|_, entry| *entry != Entry::Absent);
            expected.retain(|_, entry| *entry != Entry::Absent);
            same("the tree at a kept point", &state, &expected)
                .map_err(|failure| format!("{failure}\n{}", self.log_text()))?;
        }
        let still_known = latest.iter().map(|(path, _)| text(path)).collect();
        self.oracle.forget_absent(&still_known);
        Ok(())
    }

    // --- agents and people ----------------------------------------------------------------------

    fn act(&mut self, edit: &FileEdit, editor: Editor) {
        act(&self.sandbox, edit, editor, &self.past);
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

    fn close(&mut self, session: &'static str, call: &str, outcome: Outcome) -> Result<(), String> {
        let recorded = self.sandbox.after_as(session, call, outcome);
        self.oracle.after(session, call, outcome == Outcome::Background);
        self.same_length(&recorded)
    }

    fn same_length(&self, recorded: &RecordOutcome) -> Result<(), String> {
        if recorded.seq == Seq(self.oracle.log.len() as u64) { Ok(()) } else { self.same_log() }
    }

    // --- the log --------------------------------------------------------------------------------

    /// Compares the log with the oracle's path by path, because paths of one look are recorded in any
    /// order.
    fn same_log(&self) -> Result<(), String> {
        if self.thinned {
            let seq = self.sandbox.workspace.store.head().map_err(|e| e.to_string())?.seq.0;
            let expected = self.oracle.log.len() as u64;
            return same("the length of the log", &seq, &expected)
                .map_err(|failure| format!("{failure}\n{}", self.log_text()));
        }
        let store = &*self.sandbox.workspace.store;
        let mut changes = store.changes_after(Seq(0)).map_err(|e| e.to_string())?;
        settle(store, &mut changes).map_err(|e| e.to_string())?;
        let mut is: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        for change in changes {
            let lines = is.entry(text(&change.path)).or_default();
            places.insert(change.seq, lines.len());
            let place = |seq: &Seq| if *seq == IN_PART { usize::MAX } else { places[seq] };
            let cancels = change.cancels.iter().map(place).collect();
            let mut call = None;
            let mut in_doubt = false;
            let author = match change.author {
                Author::Human => ModelAuthor::Human,
                Author::Agent { session, call: by, .. } => {
                    call = Some(by.0);
                    in_doubt = change.evidence == Evidence::OpenWindow;
                    ModelAuthor::Agent(known(&session))
                }
                Author::Ambiguous { sessions } => {
                    in_doubt = true;
                    ModelAuthor::Ambiguous(sessions.iter().map(known).collect())
                }
                Author::Rewind { id } => {
                    let place = self.rewinds.iter().position(|rewind| *rewind == id);
                    ModelAuthor::Rewind(place.ok_or("a rewind without a receipt")?)
                }
                Author::Deleted | Author::Import => {
                    return Err("no session was deleted, nothing imported".to_owned());
                }
            };
            let (before, after) = (change.before, change.after);
            lines.push(Line { before, after, author, call, in_doubt, cancels });
        }
        let mut expected: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        let mut places = Vec::new();
        for change in &self.oracle.log {
            let lines = expected.entry(change.path.clone()).or_default();
            places.push(lines.len());
            let place = |number: &usize| match number.checked_sub(1) {
                Some(at) => places[at],
                None => usize::MAX,
            };
            let cancels = change.cancels.iter().map(place).collect();
            let (before, after) = (entry(&change.before), entry(&change.after));
            let author = change.author.clone();
            let call = self.oracle.call_of(change).map(str::to_owned);
            let in_doubt = self.oracle.is_in_doubt(change);
            lines.push(Line { before, after, author, call, in_doubt, cancels });
        }
        let paths: BTreeSet<&String> = is.keys().chain(expected.keys()).collect();
        for path in paths {
            same(&format!("the log of {path}"), &is.get(path), &expected.get(path))
                .map_err(|failure| format!("{failure}\n{}", self.log_text()))?;
        }
        Ok(())
    }

    fn log_text(&self) -> String {
        let text_of = |state: &PathState| match state {
            PathState::Present(Thing::File { bytes, mode }) => {
                let sections = steps::parts(bytes).map(|(_, sections)| sections.join("; "));
                let text = sections.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
                format!("file {mode:o} [{text}]")
            }
            other => format!("{other:?}"),
        };
        let changes = self.oracle.log.iter().enumerate().map(|(at, change)| {
            let (before, after) = (text_of(&change.before), text_of(&change.after));
            format!(
                "  {}: {} by {:?}{}, cancels {:?}\n      {before}\n   -> {after}\n",
                at + 1,
                change.path,
                change.author,
                if self.oracle.is_in_doubt(change) { ", in doubt" } else { "" },
                change.cancels
            )
        });
        let points: Vec<usize> = self.oracle.points.iter().map(|point| point.at).collect();
        let log: String = changes.collect();
        format!("the log, as the oracle has it (points after {points:?}):\n{log}")
    }
}

/// A change of one path. `cancels` has places among the changes of that path.
#[derive(Debug, PartialEq)]
struct Line {
    before: Entry,
    after: Entry,
    author: ModelAuthor,
    call: Option<String>,
    in_doubt: bool,
    cancels: Vec<usize>,
}

fn known(session: &SessionId) -> &'static str {
    SESSIONS.into_iter().find(|known| *known == session.0).expect("no other sessions took part")
}

fn ask(target: Target, exact: bool) -> Request {
    Request { target, scope: None, exact, take_ambiguous: false, paths: Vec::new() }
}

/// A receipt's paths. The oracle does not distinguish merged files from restored ones.
fn lists(receipt: &Receipt) -> ReceiptPaths {
    let notes = |notes: &[rewind::Note]| notes.iter().map(|note| text(&note.path)).collect();
    let restored =
        receipt.restored_files.iter().chain(receipt.merged_files.iter().map(|note| &note.path));
    ReceiptPaths {
        restored: restored.map(text).collect(),
        deleted: receipt.deleted_files.iter().map(text).collect(),
        kept: notes(&receipt.kept_files),
        conflicts: notes(&receipt.conflicts),
        ambiguous: notes(&receipt.ambiguous),
        not_captured: notes(&receipt.not_captured),
    }
}

fn text(path: &WorkPath) -> String {
    String::from_utf8(path.as_bytes().to_vec()).expect("all names here are text")
}

fn entry(state: &PathState) -> Entry {
    match state {
        PathState::Unknown => Entry::Unknown,
        PathState::Absent => Entry::Absent,
        PathState::Present(Thing::File { bytes, mode }) => {
            Entry::File { digest: Digest::of(bytes), size: bytes.len() as u64, mode: *mode }
        }
        PathState::Present(Thing::Link(target)) => {
            Entry::Symlink { target: target.to_str().expect("plain text").as_bytes().to_vec() }
        }
        PathState::Present(Thing::Folder { mode }) => Entry::Dir { mode: *mode },
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, expected: &T) -> Result<(), String> {
    if is == expected {
        Ok(())
    } else {
        Err(format!("{what}:\n    is       {is:?}\n    expected {expected:?}"))
    }
}
