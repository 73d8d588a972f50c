//! A second, plain implementation of Takeback's rules: maps of whole values, without digests, an index,
//! or any code of the planner, the merge or the log.
//!
//! The rules are those of the documentation. Where they leave a choice, a comment names it.

mod tree_scan;

use self::tree_scan::{FolderContext, Scan, ignored_folders};
use std::collections::{BTreeMap, BTreeSet};

use takeback_store::PointId;
use takeback_testkit::Thing;

use super::steps::{CONTINUES, IGNORE_FILE, PARTS};

mod retention;
mod rules;
mod rewind;

pub(crate) type Tree = BTreeMap<String, Thing>;

/// The last known state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathState {
    Unknown,
    Absent,
    Present(Thing),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelAuthor {
    Human,
    Agent(&'static str),
    /// One of these, or a human.
    Ambiguous(Vec<&'static str>),
    Rewind(usize),
    /// A session that was deleted.
    Deleted,
}

/// One entry of the log. Its number is its place in the log, counted from 1.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) before: PathState,
    pub(crate) after: PathState,
    pub(crate) author: ModelAuthor,
    /// The call of the agent that made it, by its place in the list.
    call: Option<usize>,
    /// Whether that call was not known to be running when the change was recorded.
    was_in_doubt: bool,
    pub(crate) cancels: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) id: PointId,
    /// The length of the log when it was made.
    pub(crate) at: usize,
    pub(crate) session: Option<&'static str>,
    /// The whole tree, if it was scanned for this point.
    pub(crate) tree: Option<Tree>,
    /// The rewind before which it was made.
    pub(crate) safety_of: Option<usize>,
    pub(crate) pinned: bool,
    kind: PointKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointKind {
    Prompt,
    /// Of a turn without a prompt.
    Nameless,
    /// By hand, or before a rewind.
    Other,
}

#[derive(Debug, Clone)]
struct Call {
    session: &'static str,
    id: String,
    /// None: a shell, which may write anything.
    paths: Option<Vec<String>>,
    state: CallState,
    was_in_background: bool,
    /// Whether its end was reported.
    reported: bool,
}

impl Call {
    fn names(&self, path: &str) -> bool {
        self.paths.iter().flatten().any(|named| named == path)
    }

    /// Whether changes recorded as uncertain are certain by now.
    fn clears_doubts(&self) -> bool {
        self.reported && !self.was_in_background
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open,
    /// Another of its session began or ended after it.
    Overtaken,
    Background,
    /// Assumed to be over, although its end was not reported.
    GivenUp,
    Ended,
}

/// What the event that causes a look says about calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallNews {
    Nothing,
    /// All calls of this session are over, since an unknown time.
    CutOff(&'static str),
    /// This call has ended.
    Ends(usize),
}

/// A call that could have written since the last look.
struct Writer<'a> {
    place: usize,
    call: &'a Call,
    /// The session that it counts for.
    whole: &'static str,
    cut_off: bool,
    ends: bool,
}

impl Writer<'_> {
    fn could_write(&self, path: &str) -> bool {
        self.call.paths.is_none() || self.names(path)
    }

    /// Whether it names the path and has not answered yet.
    fn names(&self, path: &str) -> bool {
        let in_background = match self.ends {
            true => self.call.was_in_background,
            false => self.call.state == CallState::Background,
        };
        !in_background && self.call.names(path)
    }

    /// Whether it ran until now, as far as that is known before its end.
    fn ran(&self) -> bool {
        let ran = if self.ends {
            !self.call.was_in_background
        } else {
            self.call.state == CallState::Open
        };
        ran && !self.cut_off
    }

    /// A command is known to have written only once it has ended.
    fn is_sure_of(&self, path: &str) -> bool {
        if self.names(path) { !self.cut_off } else { self.ends && !self.call.was_in_background }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) disk: Tree,
    pub(crate) log: Vec<Change>,
    pub(crate) points: Vec<Point>,
    parents: BTreeMap<&'static str, &'static str>,
    in_turn: BTreeSet<&'static str>,
    calls: Vec<Call>,
    rewinds: Vec<RewindRecord>,
    /// Paths dropped from the store, with the length of the log at that time.
    forgotten: BTreeMap<String, usize>,
    // Results of earlier looks.
    known: Tree,
    known_absent: BTreeSet<String>,
    skipped: BTreeSet<String>,
    listed: BTreeSet<String>,
}

/// A rewind, undo or redo that changed something.
#[derive(Debug, Clone)]
struct RewindRecord {
    kind: Kind,
    at: usize,
    /// Whether the whole tree was scanned before it.
    everywhere: bool,
    /// Whether it can no longer be undone.
    forgotten: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rewind,
    /// Of which.
    Undo(usize),
    Redo(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) target: Target,
    pub(crate) scope: Option<Scope>,
    pub(crate) exact: bool,
    pub(crate) take_ambiguous: bool,
    pub(crate) paths: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// By its place in the list.
    Point(usize),
    Undo,
    Redo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    Only(BTreeSet<&'static str>),
}

/// What a rewind must do and report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReceiptPaths {
    pub(crate) restored: BTreeSet<String>,
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) kept: BTreeSet<String>,
    pub(crate) conflicts: BTreeSet<String>,
    pub(crate) ambiguous: BTreeSet<String>,
    pub(crate) not_captured: BTreeSet<String>,
}

/// Where to look in addition to the named paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Nowhere,
    Everywhere,
}

// --- recording ----------------------------------------------------------------------------------

impl Oracle {
    pub(crate) fn start(&mut self, session: &'static str) {
        let (named, shell) = self.doing(session);
        if shell || !named.is_empty() {
            self.record(Look::Everywhere, &named, CallNews::CutOff(session));
        }
        self.give_up(session);
        let parent = CONTINUES.iter().find(|(child, _)| *child == session);
        self.parents.extend(parent.copied());
    }

    pub(crate) fn prompt(&mut self, session: &'static str, id: PointId) {
        let (named, _) = self.doing(session);
        self.record(Look::Everywhere, &named, CallNews::CutOff(session));
        self.give_up(session);
        self.in_turn.insert(session);
        self.add_point(id, Some(session), true, PointKind::Prompt);
    }

    /// `id`: of the point that it makes, if it makes one.
    pub(crate) fn before_edit(
        &mut self,
        session: &'static str,
        call: &str,
        path: &str,
        id: Option<PointId>,
    ) {
        let missing = folders_above(path).filter(|folder| !self.disk.contains_key(*folder));
        let paths: Vec<String> = missing.chain([path]).map(str::to_owned).collect();
        let (mut named, shell) = self.certainly_doing(session);
        named.extend_from_slice(&paths);
        let look = if shell { Look::Everywhere } else { Look::Nowhere };
        self.record(look, &named, CallNews::Nothing);
        self.open_call((session, call), Some(paths), id, shell);
    }

    pub(crate) fn before_shell(&mut self, session: &'static str, call: &str, id: Option<PointId>) {
        let (named, _) = self.certainly_doing(session);
        self.record(Look::Everywhere, &named, CallNews::Nothing);
        self.open_call((session, call), None, id, true);
    }

    /// What the session's calls have named, and whether one of them may be writing anything.
    fn doing(&self, session: &'static str) -> (Vec<String>, bool) {
        let calls: Vec<&Call> = self.live_calls().filter(|call| call.session == session).collect();
        Self::named_by(&calls)
    }

    /// The same without overtaken calls.
    fn certainly_doing(&self, session: &'static str) -> (Vec<String>, bool) {
        let calls = self.live_calls().filter(|call| call.session == session);
        let calls: Vec<&Call> = calls.filter(|call| call.state != CallState::Overtaken).collect();
        Self::named_by(&calls)
    }

    fn named_by(calls: &[&Call]) -> (Vec<String>, bool) {
        let named = calls.iter().flat_map(|call| call.paths.iter().flatten().cloned()).collect();
        let is_shell = |call: &&Call| call.paths.is_none() && call.state != CallState::Background;
        (named, calls.iter().any(is_shell))
    }

    fn open_call(
        &mut self,
        (session, call): (&'static str, &str),
        paths: Option<Vec<String>>,
        point: Option<PointId>,
        scanned: bool,
    ) {
        self.overtake(session);
        let opens = self.in_turn.insert(session);
        let has_point = opens && !self.goes_on_from_a_prompt(session);
        assert_eq!(point.is_some(), has_point, "whether a call makes a point");
        if let Some(id) = point {
            self.add_point(id, Some(session), scanned, PointKind::Nameless);
        }
        self.calls.push(Call {
            session,
            id: call.to_owned(),
            paths,
            state: CallState::Open,
            was_in_background: false,
            reported: false,
        });
    }

    /// Work without a prompt belongs to the prompt of the whole session for a part of it, otherwise to
    /// the session's own last prompt.
    fn goes_on_from_a_prompt(&self, session: &'static str) -> bool {
        let mut own = self.points.iter().filter(|point| point.session == Some(session));
        let last = own.rfind(|point| point.kind != PointKind::Other);
        self.whole(session) != session || last.is_some_and(|last| last.kind == PointKind::Prompt)
    }

    /// The session that this one is a part of, or the session itself.
    fn whole(&self, session: &'static str) -> &'static str {
        let parent = self.parents.get(session).filter(|_| PARTS.contains(&session));
        parent.copied().unwrap_or(session)
    }

    pub(crate) fn newest_unended(&self, session: &'static str) -> Option<String> {
        let mut unended = self.calls.iter().rev().filter(|call| call.state != CallState::Ended);
        unended.find(|call| call.session == session).map(|call| call.id.clone())
    }

    pub(crate) fn after(&mut self, session: &'static str, id: &str, goes_on: bool) {
        let at = self.calls.iter().position(|call| call.id == id).expect("it was opened");
        // It may have been given up although it still ran.
        self.calls[at].state = CallState::Open;
        let (named, shell) = self.certainly_doing(session);
        let look = if shell { Look::Everywhere } else { Look::Nowhere };
        self.record(look, &named, CallNews::Ends(at));
        self.overtake(session);
        let call = &mut self.calls[at];
        call.state = if goes_on { CallState::Background } else { CallState::Ended };
        call.was_in_background |= goes_on;
        call.reported |= !goes_on;
    }

    pub(crate) fn turn_end(&mut self, session: &'static str) {
        let (named, _) = self.doing(session);
        self.record(Look::Everywhere, &named, CallNews::Nothing);
        self.give_up(session);
        self.in_turn.remove(session);
    }

    pub(crate) fn session_end(&mut self, session: &'static str) {
        self.turn_end(session);
        for call in self.calls.iter_mut().filter(|call| call.session == session) {
            if call.state == CallState::Background {
                call.state = CallState::GivenUp;
            }
        }
    }

    pub(crate) fn checkpoint(&mut self, id: PointId) {
        self.look_around();
        self.add_point(id, None, true, PointKind::Other);
    }

    pub(crate) fn look_around(&mut self) {
        self.record(Look::Everywhere, &[], CallNews::Nothing);
    }

    fn add_point(
        &mut self,
        id: PointId,
        session: Option<&'static str>,
        scanned: bool,
        kind: PointKind,
    ) {
        let tree = scanned.then(|| self.disk.clone());
        self.points.push(Point {
            id,
            at: self.log.len(),
            session,
            tree,
            safety_of: None,
            pinned: false,
            kind,
        });
    }

    fn give_up(&mut self, session: &'static str) {
        let of_session = self.calls.iter_mut().filter(|call| call.session == session);
        let unended = [CallState::Open, CallState::Overtaken];
        for call in of_session.filter(|call| unended.contains(&call.state)) {
            call.state = CallState::GivenUp;
        }
    }

    fn overtake(&mut self, session: &'static str) {
        let of_session = self.calls.iter_mut().filter(|call| call.session == session);
        for call in of_session.filter(|call| call.state == CallState::Open) {
            call.state = CallState::Overtaken;
        }
    }

    fn live_calls(&self) -> impl Iterator<Item = &Call> {
        let live = [CallState::Open, CallState::Overtaken, CallState::Background];
        self.calls.iter().filter(move |call| live.contains(&call.state))
    }

    /// Whether the author of a change is uncertain, by all that is known now.
    pub(crate) fn is_in_doubt(&self, change: &Change) -> bool {
        match change.author {
            ModelAuthor::Ambiguous(_) => true,
            ModelAuthor::Agent(_) => {
                let is_cleared = |call: usize| self.calls[call].clears_doubts();
                change.was_in_doubt && !change.call.is_some_and(is_cleared)
            }
            ModelAuthor::Human | ModelAuthor::Rewind(_) | ModelAuthor::Deleted => false,
        }
    }

    pub(crate) fn call_of(&self, change: &Change) -> Option<&str> {
        change.call.map(|call| self.calls[call].id.as_str())
    }

    /// Looks, and appends the differences.
    fn record(&mut self, look: Look, named: &[String], news: CallNews) {
        let mut found = BTreeMap::new();
        if look == Look::Everywhere {
            found = self.scan();
            found.iter().for_each(|(path, (before, now))| self.note(path, before, now.as_ref()));
        }
        let looks: Vec<_> = named
            .iter()
            .map(|path| (path, self.last_seen(path), self.disk.get(path).cloned()))
            .collect();
        for (path, before, now) in
            looks.into_iter().filter(|(_, before, now)| *before != state_of(now.clone()))
        {
            self.note(path, &before, now.as_ref());
            found.insert(path.clone(), (before, now));
        }
        let writers = self.writers(news);
        let appended = found.into_iter().map(|(path, (before, now))| {
            let (author, call, was_in_doubt) = author_of(&writers, &path);
            let (after, cancels) = (state_of(now), Vec::new());
            Change { path, before, after, author, call, was_in_doubt, cancels }
        });
        let appended: Vec<Change> = appended.collect();
        self.log.extend(appended);
    }

    /// In the order in which they began; a call that ends comes last.
    fn writers(&self, news: CallNews) -> Vec<Writer<'_>> {
        let live = [CallState::Open, CallState::Overtaken, CallState::Background];
        let calls = self.calls.iter().enumerate().filter(|(_, call)| live.contains(&call.state));
        let mut writers: Vec<Writer<'_>> = calls
            .map(|(place, call)| Writer {
                place,
                call,
                whole: self.whole(call.session),
                cut_off: news == CallNews::CutOff(call.session)
                    && call.state != CallState::Background,
                ends: news == CallNews::Ends(place),
            })
            .collect();
        writers.sort_by_key(|writer| writer.ends);
        writers
    }

    /// The last known state of the path.
    fn last_seen(&self, path: &str) -> PathState {
        if let Some(thing) = self.known.get(path) {
            return PathState::Present(thing.clone());
        }
        if self.known_absent.contains(path) {
            return PathState::Absent;
        }
        let nearest = folders_above(path).find_map(|folder| match self.known.get(folder) {
            Some(Thing::Folder { .. }) => Some(self.listed.contains(folder)),
            Some(_) => Some(true),
            None => self.skipped.contains(folder).then_some(false),
        });
        let proven =
            nearest.unwrap_or_else(|| self.listed.contains("")) && !self.skipped.contains(path);
        if proven { PathState::Absent } else { PathState::Unknown }
    }

    fn note(&mut self, path: &str, before: &PathState, now: Option<&Thing>) {
        self.skipped.remove(path);
        match now {
            // Everything found in it came with it, or later.
            Some(Thing::Folder { .. }) if *before == PathState::Absent => {
                self.listed.insert(path.to_owned());
            }
            Some(Thing::Folder { .. }) => {}
            _ => drop(self.listed.remove(path)),
        }
        match now {
            Some(thing) => {
                self.known_absent.remove(path);
                self.known.insert(path.to_owned(), thing.clone());
            }
            None => {
                self.known.remove(path);
                self.known_absent.insert(path.to_owned());
            }
        }
    }

    /// Everything in scope that differs from the known state.
    fn scan(&mut self) -> BTreeMap<String, (PathState, Option<Thing>)> {
        let mut scan = Scan {
            ignored: ignored_folders(self.disk.get(IGNORE_FILE)),
            hidden: ignored_folders(self.rules_that_hide().as_ref()),
            ..Scan::default()
        };
        scan.scan_folder(self, "", FolderContext::default());
        // Known paths stay in scope until they are gone, wherever they are.
        for (path, thing) in &self.known {
            let now = self.disk.get(path);
            if now != Some(thing) {
                scan.found.insert(path.clone(), (PathState::Present(thing.clone()), now.cloned()));
            }
        }
        // The contents of a skipped path are unknown, but its absence is not.
        for path in self.skipped.iter().filter(|path| !self.disk.contains_key(*path)) {
            scan.found.insert(path.clone(), (PathState::Unknown, None));
        }
        self.listed = scan.listed;
        self.skipped = scan.skipped;
        scan.found
    }
}

/// The author of a change, the call, and whether they are uncertain.
fn author_of(writers: &[Writer<'_>], path: &str) -> (ModelAuthor, Option<usize>, bool) {
    let mut able: Vec<&Writer<'_>> =
        writers.iter().filter(|writer| writer.could_write(path)).collect();
    // A call that names the path wins over calls that might have written it.
    if able.iter().any(|writer| writer.names(path)) {
        able.retain(|writer| writer.names(path));
    }
    let sessions: BTreeSet<&'static str> = able.iter().map(|writer| writer.whole).collect();
    let at_work = |writer: &&&Writer<'_>| match writer.names(path) {
        true => !writer.cut_off,
        false => writer.ran(),
    };
    let last = able.iter().rev().find(at_work).or(able.last());
    match last {
        None => (ModelAuthor::Human, None, false),
        Some(last) if sessions.len() == 1 => {
            (ModelAuthor::Agent(last.call.session), Some(last.place), !last.is_sure_of(path))
        }
        Some(_) => (ModelAuthor::Ambiguous(sessions.into_iter().collect()), None, true),
    }
}

fn state_of(thing: Option<Thing>) -> PathState {
    thing.map_or(PathState::Absent, PathState::Present)
}

/// Nearest first; the root is not among them.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/').map(|(above, _)| above), |path| {
        path.rsplit_once('/').map(|(above, _)| above)
    })
}
