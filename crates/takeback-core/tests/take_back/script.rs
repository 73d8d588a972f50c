//! A workspace with files of sections, and turns of two agents and a person's edits in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use takeback_core::rewind::{
    ChosenChanges, ConflictPolicy, Receipt, RewindError, RewindRequest, RewindScope, Target,
};
use takeback_core::{checkpoint, look_around};
use takeback_store::{CallId, PointId};
use takeback_testkit::Sandbox;

use crate::Dice;
use crate::sections::{By, FileModel, SECTIONS, Version};

pub(crate) const FILES: [&str; 4] = ["a.txt", "sub/b.txt", "sub/c", "d.txt"];
pub(crate) const SESSIONS: [&str; 2] = ["s", "t"];

/// What a change does to a file.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    /// New text for a section: so many lines.
    Section {
        at: usize,
        lines: usize,
    },
    Mode(u32),
    Delete,
    Create,
}

/// A turn of an agent, with the point before it.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) point: PointId,
    /// Its calls, if they are known each for itself.
    calls: Vec<CallId>,
}

pub(crate) struct Script {
    pub(crate) sandbox: Sandbox,
    pub(crate) files: Vec<FileModel>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) start: PointId,
    /// Makes every text a new one.
    texts: usize,
    calls: usize,
}

impl Script {
    /// `created`: whether the last file is there at the start.
    pub(crate) fn begin(has_last: bool) -> Self {
        let mut sandbox = Sandbox::in_memory();
        sandbox.slow_the_clock(1);
        let mut texts = 0;
        let mut files = Vec::new();
        for (at, name) in FILES.iter().enumerate() {
            let mut now = Version::Absent;
            if at + 1 < FILES.len() || has_last {
                now = fresh(&mut texts);
                sandbox.write(name, now.text());
            }
            files.push(FileModel { changes: Vec::new(), now });
        }
        let start = checkpoint(&mut sandbox.workspace, Some("start")).unwrap().point.unwrap();
        Self { sandbox, files, turns: Vec::new(), start, texts, calls: 0 }
    }

    fn edited(&mut self, file: usize, edits: &[Edit]) -> Version {
        let mut version = self.files[file].now.clone();
        for edit in edits {
            match (&mut version, edit) {
                (Version::File { sections, .. }, Edit::Section { at, lines }) => {
                    sections[*at] = text(&mut self.texts, *lines);
                }
                (Version::File { mode, .. }, Edit::Mode(to)) => *mode = *to,
                (here @ Version::File { .. }, Edit::Delete) => *here = Version::Absent,
                (here @ Version::Absent, Edit::Create) => *here = fresh(&mut self.texts),
                _ => {}
            }
        }
        version
    }

    /// A turn of an agent in which these files change: through its edit tool if that can do it, or
    /// else by one command.
    pub(crate) fn turn(&mut self, session: usize, changes: &[(usize, Vec<Edit>)]) {
        let turn = self.turns.len();
        let name = SESSIONS[session];
        let point = self.sandbox.prompt(name, &format!("turn {turn}"));
        let mut versions = Vec::new();
        for (file, edits) in changes {
            let version = self.edited(*file, edits);
            versions.push((*file, self.files[*file].now.clone(), version.clone()));
            self.files[*file].change(By::Turn(turn), version);
        }
        let is_text = |(_, before, after): &(usize, Version, Version)| match (before, after) {
            (Version::File { mode, .. }, Version::File { mode: to, .. }) => mode == to,
            _ => false,
        };
        let calls = if versions.iter().all(is_text) { versions.len() } else { 1 };
        let calls = (1..=calls).map(|at| CallId(format!("call-{}", self.calls + at))).collect();
        if versions.iter().all(is_text) {
            for (file, _, version) in versions {
                self.sandbox.agent_writes(name, FILES[file], version.text());
            }
        } else {
            self.sandbox.agent_runs(name, "./run", |sandbox| {
                versions.iter().for_each(|(file, _, version)| put(sandbox, *file, version));
            });
        }
        self.sandbox.turn_end(name);
        self.calls += Vec::len(&calls);
        self.turns.push(Turn { point, calls });
    }

    /// The person edits a file.
    pub(crate) fn person(&mut self, file: usize, edits: &[Edit]) {
        let version = self.edited(file, edits);
        put(&self.sandbox, file, &version);
        self.files[file].change(By::Person, version);
        look_around(&mut self.sandbox.workspace).unwrap();
    }

    /// What is on disk. Every section has a text that it had at some time, whole.
    #[track_caller]
    pub(crate) fn disk(&self, file: usize) -> Version {
        let Ok(bytes) = fs::read(self.sandbox.at(FILES[file])) else { return Version::Absent };
        let text = String::from_utf8(bytes).unwrap();
        let metadata = fs::metadata(self.sandbox.at(FILES[file])).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        let version = Version::parse(&text, mode);
        let version = version.unwrap_or_else(|| panic!("{} is torn:\n{text}", FILES[file]));
        let Version::File { sections, .. } = &version else { unreachable!("it was parsed") };
        let changes = &self.files[file].changes;
        let known = changes.iter().flat_map(|change| [&change.before, &change.after]);
        let known: Vec<&Version> = known.chain([&self.files[file].now]).collect();
        for (at, section) in sections.iter().enumerate() {
            let has = |known: &&&Version| matches!(known, Version::File { sections, .. } if sections[at] == *section);
            assert!(known.iter().any(|one| has(&one)), "{}: {section:?} at {at}", FILES[file]);
        }
        version
    }

    /// The request that takes back one turn; `by_call`: by its only call.
    pub(crate) fn revert_of(&self, turn: usize, by_call: bool) -> Option<RewindRequest> {
        let store = &*self.sandbox.workspace.store;
        let points = store.points().unwrap();
        let point = points.iter().find(|point| point.id == self.turns[turn].point).unwrap();
        let chosen = if by_call {
            let [call] = self.turns[turn].calls.as_slice() else { return None };
            let call = &store.call(point.session.as_ref()?, call).unwrap()?;
            ChosenChanges::of_call(store, call).unwrap()?
        } else {
            ChosenChanges::of_turn(store, point).unwrap()
        };
        Some(RewindRequest::new(Target::Changes(chosen)))
    }

    /// The request that takes back all turns from `from` up to before `to`.
    pub(crate) fn revert_of_range(&self, from: usize, to: Option<usize>) -> RewindRequest {
        let store = &*self.sandbox.workspace.store;
        let points = store.points().unwrap();
        let point = |turn: usize| points.iter().find(|p| p.id == self.turns[turn].point).unwrap();
        let scope = Some(RewindScope::AllAgents);
        let to = to.map(point);
        let chosen = ChosenChanges::of_range(store, point(from), to, scope).unwrap();
        RewindRequest::new(Target::Changes(chosen))
    }

    pub(crate) fn go(
        &mut self,
        request: RewindRequest,
        conflicts: ConflictPolicy,
    ) -> Result<Receipt, RewindError> {
        self.sandbox.rewind(&RewindRequest { conflicts, ..request })
    }
}

fn put(sandbox: &Sandbox, file: usize, version: &Version) {
    match version {
        Version::Absent if sandbox.exists(FILES[file]) => sandbox.remove(FILES[file]),
        Version::Absent => {}
        Version::File { mode, .. } => {
            sandbox.write(FILES[file], version.text());
            sandbox.set_mode(FILES[file], *mode);
        }
    }
}

fn text(texts: &mut usize, lines: usize) -> String {
    *texts += 1;
    (0..lines).map(|line| format!("text {texts} line {line}\n")).collect()
}

fn fresh(texts: &mut usize) -> Version {
    let sections = (0..SECTIONS).map(|at| text(texts, 1 + at % 3)).collect();
    Version::File { sections, mode: 0o644 }
}

/// Edits of one or two sections, or of something else.
pub(crate) fn any_edits(dice: &mut Dice, is_person: bool) -> Vec<Edit> {
    match dice.below(if is_person { 8 } else { 12 }) {
        0..=4 => vec![section(dice, is_person)],
        5..=7 => vec![section(dice, is_person), section(dice, is_person)],
        8 | 9 => vec![Edit::Mode([0o644, 0o755, 0o600][dice.below(3)]), section(dice, false)],
        10 => vec![Edit::Delete],
        _ => vec![Edit::Create],
    }
}

/// A person never removes a section: that would be a return to an earlier version.
fn section(dice: &mut Dice, is_person: bool) -> Edit {
    Edit::Section { at: dice.below(SECTIONS), lines: usize::from(is_person) + dice.below(3) }
}
