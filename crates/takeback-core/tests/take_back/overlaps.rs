//! Turns that overlap, taken back and undone in any order, section by section as the model says.

use takeback_core::rewind::{
    ConflictPolicy, LineText, Receipt, RewindError, RewindRequest, Target,
};
use takeback_store::RewindId;
use takeback_testkit::path;

use crate::script::{FILES, SESSIONS, Script, any_edits};
use crate::sections::{By, Expected, Version};
use crate::{Dice, each_seed};

/// An operation of this run.
struct Operation {
    id: RewindId,
    /// The one that it takes back.
    of: Option<usize>,
}

/// What an operation reported.
struct Outcome<'a> {
    receipt: &'a Receipt,
    policy: ConflictPolicy,
}

struct Run {
    script: Script,
    operations: Vec<Operation>,
    /// Sections that became what the model says, and that stayed as a conflict more than it says.
    exact: usize,
    cautious: usize,
}

impl Run {
    fn is_taken_back(&self, operation: usize) -> bool {
        let later = self.operations.iter().enumerate();
        let mut of_it = later.filter(|(_, later)| later.of == Some(operation));
        of_it.any(|(later, _)| !self.is_taken_back(later))
    }

    fn turn(&mut self, dice: &mut Dice) {
        if dice.one_in(4) {
            let file = dice.below(FILES.len());
            self.script.person(file, &any_edits(dice, true));
            return;
        }
        let mut files: Vec<usize> = (0..FILES.len()).collect();
        dice.shuffle(&mut files);
        files.truncate(1 + dice.below(3));
        let changes: Vec<_> = files.iter().map(|file| (*file, any_edits(dice, false))).collect();
        self.script.turn(dice.below(SESSIONS.len()), &changes);
    }

    /// Takes back a turn, a call or a range.
    fn revert(&mut self, dice: &mut Dice) {
        let policy = POLICIES[dice.below(POLICIES.len())];
        let turns = self.script.turns.len();
        let from = dice.below(turns);
        let (asked, request) = match dice.below(4) {
            0 => {
                let to = from + 1 + dice.below(turns - from);
                let next = Some(to).filter(|to| *to < turns);
                (from..to, Some(self.script.revert_of_range(from, next)))
            }
            kind => (from..from + 1, self.script.revert_of(from, kind == 1)),
        };
        let Some(request) = request else { return };
        println!("takes back {asked:?} with {policy:?}");
        let is_asked = |by: By| matches!(by, By::Turn(turn) if asked.contains(&turn));
        let changes: Vec<Vec<usize>> =
            self.script.files.iter().map(|file| file.live(is_asked)).collect();
        let receipt = self.script.go(request, policy).unwrap();
        self.check(&receipt, &changes, policy, None);
    }

    /// Takes back any operation, not only the newest.
    fn undo(&mut self, operation: usize) {
        println!("undoes operation {operation}");
        let request = RewindRequest::new(Target::Operation(self.operations[operation].id));
        let of_it = |by: By| by == By::Operation(operation);
        let changes: Vec<Vec<usize>> =
            self.script.files.iter().map(|file| file.live(of_it)).collect();
        match self.script.go(request, ConflictPolicy::Keep) {
            Ok(receipt) => {
                assert!(!self.is_taken_back(operation), "it is taken back: {receipt:?}");
                self.check(&receipt, &changes, ConflictPolicy::Keep, Some(operation));
            }
            Err(RewindError::TakenBack(_)) => assert!(self.is_taken_back(operation)),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Compares each file with the model, which then continues from what is on disk.
    fn check(
        &mut self,
        receipt: &Receipt,
        changes: &[Vec<usize>],
        policy: ConflictPolicy,
        of: Option<usize>,
    ) {
        assert!(receipt.errors.is_empty() && receipt.ambiguous.is_empty(), "{receipt:?}");
        assert!(receipt.not_captured.is_empty() && receipt.kept_files.is_empty(), "{receipt:?}");
        let by = By::Operation(self.operations.len());
        let mut reported = 0;
        let outcome = Outcome { receipt, policy };
        for (file, changes) in changes.iter().enumerate() {
            let expected = self.script.files[file].without(changes);
            let disk = self.script.disk(file);
            let in_part = self.check_file(&outcome, file, &disk, &expected);
            reported += usize::from(in_part);
            self.script.files[file].record(by, disk, changes.clone(), in_part);
        }
        assert_eq!(receipt.success, reported == 0, "{receipt:?}");
        if let Some(id) = receipt.rewind {
            self.operations.push(Operation { id, of });
        }
    }

    /// Whether a conflict of the file is reported.
    fn check_file(
        &mut self,
        outcome: &Outcome,
        file: usize,
        disk: &Version,
        expected: &Expected,
    ) -> bool {
        let Outcome { receipt, policy } = *outcome;
        let name = path(FILES[file]);
        let now = self.script.files[file].now.clone();
        let lines = receipt.conflict_lines.iter().find(|of| of.path == name);
        let is_conflict = receipt.conflicts.iter().any(|note| note.path == name);
        let is_changed = *disk != now;
        let listed = [&receipt.restored_files, &receipt.deleted_files]
            .into_iter()
            .flatten()
            .chain(receipt.merged_files.iter().map(|note| &note.path));
        assert_eq!(listed.filter(|path| **path == name).count(), usize::from(is_changed));
        let changes = self.script.files[file].changes.clone();
        let shown = || {
            let history: String = changes.iter().map(|change| format!("  {change:?}\n")).collect();
            format!("{name:?}: {now:?}\nis {disk:?}\nnot {expected:?}\n{receipt:?}\n{history}")
        };
        match expected {
            Expected::Untouched => {
                assert!(!is_changed && lines.is_none() && !is_conflict, "{}", shown());
            }
            // Taken, it becomes what it was before; but not if other bytes are lost by that.
            Expected::Conflict if policy == ConflictPolicy::Take => {}
            Expected::Conflict => assert!(!is_changed && is_conflict, "{}", shown()),
            Expected::Whole(version) => {
                self.exact += usize::from(disk == version);
                self.cautious += usize::from(disk != version);
                assert!(disk == version || !is_changed && is_conflict, "{}", shown());
            }
            // Not part of it goes where the whole conflicts, or by request.
            Expected::Sections { .. } if !is_changed && is_conflict && lines.is_none() => {
                self.cautious += 1;
            }
            // It was deleted since, and stays so for some lines.
            Expected::Sections { sections, .. } if *disk == Version::Absent => {
                let conflicts = sections.iter().any(|section| section.instead.is_some());
                assert!(policy == ConflictPolicy::File && conflicts, "{}", shown());
                assert!(!is_changed && is_conflict, "{}", shown());
            }
            Expected::Sections { sections, mode } => {
                let Version::File { sections: are, mode: is } = disk else { panic!("{}", shown()) };
                let were = match &now {
                    Version::File { sections, .. } => sections.clone(),
                    Version::Absent => sections.iter().map(|one| one.text.clone()).collect(),
                };
                let stays = policy == ConflictPolicy::File && lines.is_some();
                assert!(is == mode || stays && !is_changed, "{}", shown());
                for (at, section) in sections.iter().enumerate() {
                    let places = lines.iter().flat_map(|of| &of.lines);
                    let mut places = places.filter(|place| place.line == disk.line_of(at));
                    let place = places.find(|place| place.mine == LineText(are[at].clone().into()));
                    match &section.instead {
                        None if are[at] == section.text => self.exact += 1,
                        None if stays => assert!(!is_changed, "{at} {}", shown()),
                        None => {
                            self.cautious += 1;
                            assert!(place.is_some() && are[at] == were[at], "{at} {}", shown());
                        }
                        Some(before) if policy == ConflictPolicy::Take => {
                            assert!(are[at] == *before, "{at} {}", shown());
                        }
                        Some(before) => {
                            self.exact += 1;
                            let before = LineText(before.clone().into());
                            let listed = place.is_some_and(|place| place.before == before);
                            assert!(listed, "{at} {}", shown());
                            let is = if stays { &were[at] } else { &section.text };
                            assert!(are[at] == *is, "{at} {}", shown());
                        }
                    }
                }
            }
        }
        is_conflict || lines.is_some()
    }
}

fn begin(dice: &mut Dice) -> Run {
    let script = Script::begin(dice.one_in(2));
    let mut run = Run { script, operations: Vec::new(), exact: 0, cautious: 0 };
    for _ in 0..2 + dice.below(5) {
        run.turn(dice);
    }
    if run.script.turns.is_empty() {
        run.script.turn(0, &[(0, vec![crate::script::Edit::Mode(0o755)])]);
    }
    run
}

const POLICIES: [ConflictPolicy; 5] = [
    ConflictPolicy::Keep,
    ConflictPolicy::Keep,
    ConflictPolicy::Keep,
    ConflictPolicy::File,
    ConflictPolicy::Take,
];

#[test]
fn operations_in_any_order_agree_with_a_model_of_sections() {
    let counts = std::sync::Mutex::new((0, 0));
    each_seed(350, |seed| {
        let mut dice = Dice::new(seed);
        let mut run = begin(&mut dice);
        for _ in 0..10 {
            match dice.below(6) {
                0 => run.turn(&mut dice),
                1 | 2 if !run.operations.is_empty() => {
                    run.undo(dice.below(run.operations.len()));
                }
                _ => run.revert(&mut dice),
            }
        }
        let mut counts = counts.lock().unwrap();
        *counts = (counts.0 + run.exact, counts.1 + run.cautious);
    });
    let (exact, cautious) = counts.into_inner().unwrap();
    println!("{exact} sections exact, {cautious} left as a conflict");
    assert!(cautious * 20 < exact, "{exact} exact, but {cautious} left");
}

#[test]
fn undoing_all_operations_in_reverse_restores_the_bytes() {
    each_seed(200, |seed| {
        let mut dice = Dice::new(seed);
        let mut run = begin(&mut dice);
        let before = run.script.sandbox.tree();
        for _ in 0..6 {
            match dice.below(5) {
                0 if !run.operations.is_empty() => run.undo(dice.below(run.operations.len())),
                _ => run.revert(&mut dice),
            }
        }
        for operation in (0..run.operations.len()).rev() {
            run.undo(operation);
        }
        assert_eq!(run.script.sandbox.tree(), before, "seed {seed}");
    });
}

/// With markers a file is no list of sections; both versions are in it, and an undo removes them.
#[test]
fn markers_have_both_versions_and_can_be_undone() {
    let marked = std::sync::atomic::AtomicUsize::new(0);
    each_seed(100, |seed| {
        let mut dice = Dice::new(seed);
        let mut run = begin(&mut dice);
        let turn = dice.below(run.script.turns.len());
        let before = run.script.sandbox.tree();
        let request = run.script.revert_of(turn, false).unwrap();
        let receipt = run.script.go(request, ConflictPolicy::Markers).unwrap();
        for of in &receipt.conflict_lines {
            let text = run.script.sandbox.read(&of.path.display());
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            for place in &of.lines {
                let there = lines[place.line - 1..place.line - 1 + place.count].concat();
                let [mine, was] = [&place.mine, &place.before]
                    .map(|text| String::from_utf8(text.0.clone()).unwrap());
                let both = format!("<<<<<<< now\n{mine}=======\n{was}>>>>>>> before\n");
                assert_eq!(there, both, "seed {seed}");
                marked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        if receipt.rewind.is_some() {
            assert!(run.script.sandbox.undo().success);
        }
        assert_eq!(run.script.sandbox.tree(), before, "seed {seed}");
    });
    assert!(marked.into_inner() > 10);
}
