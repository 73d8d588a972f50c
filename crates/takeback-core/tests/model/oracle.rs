//! What Takeback is to do, told a second time and as plainly as possible: maps of whole values, no
//! digests, no index, nothing of the planner, the merge or the reading of the log.
//!
//! The rules are those of the documentation; where they leave a choice, the comment at its place says
//! which is taken.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::PointId;
use takeback_testkit::Thing;

use super::deeds::{CONTINUES, IGNORE_FILE};

mod keeping;
mod rules;
mod taking_back;

pub(crate) type Tree = BTreeMap<String, Thing>;

/// What is known to have stood at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Unknown,
    Nothing,
    A(Thing),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    Human,
    Agent(&'static str),
    /// One of these, or a human.
    Perhaps(Vec<&'static str>),
    Rewind(usize),
    /// A session that was deleted.
    Deleted,
}

/// One entry of the log. Its number is its place in the log, counted from 1.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) before: Seen,
    pub(crate) after: Seen,
    pub(crate) who: Who,
    pub(crate) cancels: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) id: PointId,
    /// The length of the log when it was made.
    pub(crate) at: usize,
    pub(crate) session: Option<&'static str>,
    /// The whole tree as it was, if all of it was looked at for this point.
    pub(crate) tree: Option<Tree>,
    /// The rewind before which it was made. It knows for certain only what that rewind touched.
    pub(crate) safety_of: Option<usize>,
    pub(crate) pinned: bool,
}

#[derive(Debug, Clone)]
struct Call {
    session: &'static str,
    id: String,
    /// None: a shell, which may write anything.
    paths: Option<Vec<String>>,
    state: CallState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open,
    /// Another of its session began or ended after it.
    Overtaken,
    Background,
    /// Taken to be over, although nobody said so.
    GivenUp,
    Ended,
}

/// Somebody who could have written just now.
struct Writer<'a> {
    call: &'a Call,
    sure: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) disk: Tree,
    pub(crate) log: Vec<Change>,
    pub(crate) points: Vec<Point>,
    parents: BTreeMap<&'static str, &'static str>,
    in_turn: BTreeSet<&'static str>,
    calls: Vec<Call>,
    rewinds: Vec<Done>,
    // What earlier looks proved.
    known: Tree,
    known_absent: BTreeSet<String>,
    skipped: BTreeSet<String>,
    listed: BTreeSet<String>,
}

/// A rewind, undo or redo that changed something.
#[derive(Debug, Clone)]
struct Done {
    kind: Kind,
    at: usize,
    /// It can no longer be undone.
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
pub(crate) struct Ask {
    pub(crate) target: Target,
    pub(crate) whose: Option<Whose>,
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
pub(crate) enum Whose {
    All,
    Only(BTreeSet<&'static str>),
}

/// What a rewind is to do and say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) restored: BTreeSet<String>,
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) kept: BTreeSet<String>,
    pub(crate) conflicts: BTreeSet<String>,
    pub(crate) ambiguous: BTreeSet<String>,
    pub(crate) lacking: BTreeSet<String>,
}

/// Where to look besides at the paths that are named.
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
            self.record(Look::Everywhere, &named, Some(session));
        }
        self.give_up(session);
        let parent = CONTINUES.iter().find(|(child, _)| *child == session);
        self.parents.extend(parent.copied());
    }

    pub(crate) fn prompt(&mut self, session: &'static str, id: PointId) {
        let (named, _) = self.doing(session);
        self.record(Look::Everywhere, &named, Some(session));
        self.give_up(session);
        self.in_turn.insert(session);
        self.add_point(id, Some(session), true);
    }

    /// `id`: of the point that it makes, if no turn was open.
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
        self.record(look, &named, None);
        self.open_call(session, call, Some(paths), id, shell);
    }

    pub(crate) fn before_shell(&mut self, session: &'static str, call: &str, id: Option<PointId>) {
        let (named, _) = self.certainly_doing(session);
        self.record(Look::Everywhere, &named, None);
        self.open_call(session, call, None, id, true);
    }

    /// What the session's calls have named, and whether one of them may be writing anything.
    fn doing(&self, session: &'static str) -> (Vec<String>, bool) {
        let calls: Vec<&Call> = self.live_calls().filter(|call| call.session == session).collect();
        Self::named_by(&calls)
    }

    /// The same without what was overtaken.
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
        session: &'static str,
        call: &str,
        paths: Option<Vec<String>>,
        point: Option<PointId>,
        scanned: bool,
    ) {
        self.overtake(session);
        if self.in_turn.insert(session) {
            let id = point.expect("a turn that nobody announced begins with a point");
            self.add_point(id, Some(session), scanned);
        }
        self.calls.push(Call { session, id: call.to_owned(), paths, state: CallState::Open });
    }

    pub(crate) fn newest_unended(&self, session: &'static str) -> Option<String> {
        let mut unended = self.calls.iter().rev().filter(|call| call.state != CallState::Ended);
        unended.find(|call| call.session == session).map(|call| call.id.clone())
    }

    pub(crate) fn after(&mut self, session: &'static str, id: &str, goes_on: bool) {
        let at = self.calls.iter().position(|call| call.id == id).expect("it was opened");
        // One that was given up ran after all.
        self.calls[at].state = CallState::Open;
        let (named, shell) = self.certainly_doing(session);
        self.record(if shell { Look::Everywhere } else { Look::Nowhere }, &named, None);
        self.overtake(session);
        self.calls[at].state = if goes_on { CallState::Background } else { CallState::Ended };
    }

    pub(crate) fn turn_end(&mut self, session: &'static str) {
        let (named, _) = self.doing(session);
        self.record(Look::Everywhere, &named, None);
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
        self.add_point(id, None, true);
    }

    pub(crate) fn look_around(&mut self) {
        self.record(Look::Everywhere, &[], None);
    }

    fn add_point(&mut self, id: PointId, session: Option<&'static str>, scanned: bool) {
        let tree = scanned.then(|| self.disk.clone());
        self.points.push(Point {
            id,
            at: self.log.len(),
            session,
            tree,
            safety_of: None,
            pinned: false,
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

    /// Looks, and appends what differs. `cut_off`: the session whose open calls are known to have
    /// been cut off.
    fn record(&mut self, look: Look, named: &[String], cut_off: Option<&'static str>) {
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
            looks.into_iter().filter(|(_, before, now)| *before != seen(now.clone()))
        {
            self.note(path, &before, now.as_ref());
            found.insert(path.clone(), (before, now));
        }
        let writers: Vec<Writer<'_>> = self
            .live_calls()
            .map(|call| {
                let sure = call.state == CallState::Open && cut_off != Some(call.session);
                Writer { call, sure }
            })
            .collect();
        let appended = found.into_iter().map(|(path, (before, now))| {
            let who = whose(&writers, &path);
            Change { path, before, after: seen(now), who, cancels: Vec::new() }
        });
        let appended: Vec<Change> = appended.collect();
        self.log.extend(appended);
    }

    /// What is known to stand at the path, or not to.
    fn last_seen(&self, path: &str) -> Seen {
        if let Some(thing) = self.known.get(path) {
            return Seen::A(thing.clone());
        }
        if self.known_absent.contains(path) {
            return Seen::Nothing;
        }
        let nearest = folders_above(path).find_map(|folder| match self.known.get(folder) {
            Some(Thing::Folder { .. }) => Some(self.listed.contains(folder)),
            Some(_) => Some(true),
            None => self.skipped.contains(folder).then_some(false),
        });
        let proven =
            nearest.unwrap_or_else(|| self.listed.contains("")) && !self.skipped.contains(path);
        if proven { Seen::Nothing } else { Seen::Unknown }
    }

    fn note(&mut self, path: &str, before: &Seen, now: Option<&Thing>) {
        self.skipped.remove(path);
        match now {
            // Whatever is found in it came with it, or later.
            Some(Thing::Folder { .. }) if *before == Seen::Nothing => {
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

    /// Everything that is in scope and differs from what is known.
    fn scan(&mut self) -> BTreeMap<String, (Seen, Option<Thing>)> {
        let mut scan = Scan {
            ignored: ignored_folders(self.disk.get(IGNORE_FILE)),
            hidden: ignored_folders(self.rules_that_hide().as_ref()),
            ..Scan::default()
        };
        scan.folder(self, "", Inside::default());
        // What is known stays in scope until it is gone, wherever it stands.
        for (path, thing) in &self.known {
            let now = self.disk.get(path);
            if now != Some(thing) {
                scan.found.insert(path.clone(), (Seen::A(thing.clone()), now.cloned()));
            }
        }
        // What was passed over is not known, but that it is gone is.
        for path in self.skipped.iter().filter(|path| !self.disk.contains_key(*path)) {
            scan.found.insert(path.clone(), (Seen::Unknown, None));
        }
        self.listed = scan.listed;
        self.skipped = scan.skipped;
        scan.found
    }
}

#[derive(Default)]
struct Scan {
    ignored: Vec<&'static str>,
    /// The same, by rules that hide what is new.
    hidden: Vec<&'static str>,
    found: BTreeMap<String, (Seen, Option<Thing>)>,
    listed: BTreeSet<String>,
    skipped: BTreeSet<String>,
}

/// What holds for all that is in a folder.
#[derive(Default, Clone, Copy)]
struct Inside {
    ignored: bool,
    hidden: bool,
    /// It was not there at the last scan.
    is_new: bool,
}

impl Scan {
    fn folder(&mut self, oracle: &Oracle, folder: &str, inside: Inside) {
        for (path, thing) in &oracle.disk {
            if folders_above(path).next().unwrap_or_default() != folder {
                continue;
            }
            let known = oracle.known.get(path);
            let is_folder = matches!(thing, Thing::Folder { .. });
            let names = |folders: &[&str]| is_folder && folders.contains(&path.as_str());
            let ignored = inside.ignored || names(&self.ignored);
            let hidden = inside.hidden || names(&self.hidden);
            let before = match known {
                Some(thing) => Seen::A(thing.clone()),
                None if oracle.skipped.contains(path) => Seen::Unknown,
                None if inside.is_new || oracle.listed.contains(folder) => Seen::Nothing,
                None => Seen::Unknown,
            };
            // What came just now is hidden only by rules that no agent wrote.
            let is_out = if before == Seen::Nothing { ignored && hidden } else { ignored };
            if known.is_none() && is_out {
                self.skipped.insert(path.clone());
                continue;
            }
            if is_folder {
                let is_new = !matches!(before, Seen::A(Thing::Folder { .. }) | Seen::Unknown);
                self.folder(oracle, path, Inside { ignored, hidden, is_new });
            }
            if before != Seen::A(thing.clone()) {
                self.found.insert(path.clone(), (before, Some(thing.clone())));
            }
        }
        self.listed.insert(folder.to_owned());
    }
}

fn ignored_folders(rules: Option<&Thing>) -> Vec<&'static str> {
    match rules {
        Some(Thing::File { bytes, .. }) => match bytes.as_slice() {
            b"ig/\n" | b"/ig/\n" => vec!["ig"],
            b"d/\n" => vec!["d"],
            b"*.log\n" => vec!["k.log"],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn whose(writers: &[Writer<'_>], path: &str) -> Who {
    let could = |writer: &&Writer<'_>| match &writer.call.paths {
        Some(paths) => paths.iter().any(|named| named == path),
        None => true,
    };
    let able: Vec<&Writer<'_>> = writers.iter().filter(could).collect();
    let sessions: BTreeSet<&'static str> = able.iter().map(|writer| writer.call.session).collect();
    match sessions.first() {
        None => Who::Human,
        Some(only) if sessions.len() == 1 && able.iter().any(|writer| writer.sure) => {
            Who::Agent(only)
        }
        Some(_) => Who::Perhaps(sessions.into_iter().collect()),
    }
}

fn seen(thing: Option<Thing>) -> Seen {
    thing.map_or(Seen::Nothing, Seen::A)
}

/// Nearest first; the root is not among them.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(path.rsplit_once('/').map(|(above, _)| above), |path| {
        path.rsplit_once('/').map(|(above, _)| above)
    })
}
