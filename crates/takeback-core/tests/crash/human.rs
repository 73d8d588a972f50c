//! A user saves a file in the middle of a rewind, at each of its crash points: the save stays, and the
//! receipt reports it. Also if the rewind is stopped right after.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::PathBuf;
use std::rc::Rc;

use takeback_core::checkpoint;
use takeback_core::rewind::Receipt;
use takeback_store::disk::{self, CrashPoint};
use takeback_testkit::{Sandbox, SandboxImage, Thing};

use crate::{
    Abilities, PointTree, after_a_crash, assert_intact, assert_nothing_left_behind, left_in_stages,
    points_of, stopped,
};

const SAVED: &str = "saved by hand\n";

/// How the user's editor saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SaveMethod {
    /// Empties the file and writes it.
    InPlace,
    /// Writes another file and gives it the name.
    RenamedOver,
    /// Had the file open before the rewind began.
    HeldOpen,
}

/// An agent's work on one path, about to be taken back.
struct Case {
    name: &'static str,
    /// Where the user saves.
    path: &'static str,
    frozen: SandboxImage,
    /// The point to go back to, and one of the moment before the rewind.
    listed: [PointTree; 2],
}

impl Case {
    fn new(
        name: &'static str,
        path: &'static str,
        lay_out: impl FnOnce(&Sandbox),
        calls: &[fn(&Sandbox)],
    ) -> Self {
        let mut sandbox = Sandbox::new();
        sandbox.write("other.txt", "other\n");
        lay_out(&sandbox);
        let point = sandbox.prompt("s", "do it");
        let start = PointTree { point, tree: sandbox.tree() };
        sandbox.agent_writes("s", "other.txt", "the agent's\n");
        for call in calls {
            sandbox.agent_runs("s", "./run", call);
        }
        sandbox.turn_end("s");
        let point = checkpoint(&mut sandbox.workspace, None).unwrap().point.unwrap();
        let end = PointTree { point, tree: sandbox.tree() };
        Self { name, path, frozen: sandbox.freeze(), listed: [start, end] }
    }

    fn every_kind() -> Vec<Self> {
        vec![
            Self::new("replaced", "f", |s| s.write("f", "one\n"), &[|s| s.write("f", "two\n")]),
            Self::new("deleted", "f", |_| {}, &[|s| s.write("f", "made\n")]),
            Self::new("brought back", "f", |s| s.write("f", "one\n"), &[|s| s.remove("f")]),
            Self::new("mode", "f", |s| s.write("f", "one\n"), &[|s| s.set_mode("f", 0o755)]),
            Self::new(
                "link",
                "f",
                |s| symlink("one", s.at("f")).unwrap(),
                &[|s| s.remove("f"), |s| symlink("two", s.at("f")).unwrap()],
            ),
            Self::new(
                "file to folder",
                "f",
                |s| s.write("f/inside.txt", "inside\n"),
                &[|s| s.remove("f"), |s| s.write("f", "a file\n")],
            ),
            Self::new(
                "folder to file",
                "f/saved.txt",
                |s| s.write("f", "a file\n"),
                &[|s| s.remove("f"), |s| s.write("f/inside.txt", "inside\n")],
            ),
            Self::new(
                "in a folder to be deleted",
                "d/saved.txt",
                |_| {},
                &[|s| s.write("d/inside.txt", "inside\n")],
            ),
        ]
    }
}

/// The user, who saves once.
struct User {
    path: PathBuf,
    beside: PathBuf,
    saving: SaveMethod,
    open: Option<File>,
}

impl User {
    fn at(sandbox: &Sandbox, path: &str, saving: SaveMethod) -> Self {
        let path = sandbox.at(path);
        let regular = fs::symlink_metadata(&path).is_ok_and(|m| m.is_file());
        let open = (saving == SaveMethod::HeldOpen && regular)
            .then(|| OpenOptions::new().write(true).open(&path).unwrap());
        Self { path, beside: sandbox.outside().join("beside"), saving, open }
    }

    /// Whether the save was possible.
    fn save(&self) -> bool {
        // Writing through a link would change another file.
        let link = fs::symlink_metadata(&self.path).is_ok_and(|m| m.is_symlink());
        match self.saving {
            SaveMethod::InPlace => !link && fs::write(&self.path, SAVED).is_ok(),
            SaveMethod::RenamedOver => {
                fs::write(&self.beside, SAVED).unwrap();
                fs::rename(&self.beside, &self.path).is_ok()
            }
            SaveMethod::HeldOpen => self.open.as_ref().is_some_and(|file| {
                file.set_len(0).unwrap();
                file.write_all_at(SAVED.as_bytes(), 0).is_ok()
            }),
        }
    }
}

/// Rewinds; the user saves at the `k`-th crash point. Whether they could, and the receipt unless the
/// rewind is stopped at the next point.
fn rewind_with(
    sandbox: &mut Sandbox,
    case: &Case,
    saving: SaveMethod,
    k: u64,
    stop_after: bool,
) -> (bool, Option<Receipt>) {
    let user = User::at(sandbox, case.path, saving);
    let saved = Rc::new(Cell::new(false));
    let noted = Rc::clone(&saved);
    let mut n = 0;
    disk::watch(Some(Box::new(move |_| {
        n += 1;
        if n == k {
            noted.set(user.save());
        }
    })));
    let mut receipt = None;
    let stop = if stop_after { k + 1 } else { u64::MAX };
    stopped(stop, || receipt = Some(sandbox.rewind_to(case.listed[0].point)));
    (saved.get(), receipt)
}

fn holds_saved(sandbox: &Sandbox, path: &str) -> bool {
    fs::read(sandbox.at(path)).is_ok_and(|bytes| bytes == SAVED.as_bytes())
}

fn stage_holds_saved(sandbox: &Sandbox) -> bool {
    let saved =
        |thing: &Thing| matches!(thing, Thing::File { bytes, .. } if bytes == SAVED.as_bytes());
    left_in_stages(sandbox).values().any(saved)
}

fn save_at_every_point(abilities: Abilities, saving: SaveMethod) {
    for case in Case::every_kind() {
        let points = {
            let mut sandbox = case.frozen.thaw();
            abilities.limit(&sandbox);
            points_of(|| assert!(sandbox.rewind_to(case.listed[0].point).success))
        };
        let closing =
            points.iter().rposition(|point| *point == CrashPoint::Commit).unwrap() as u64 + 1;
        let mut times = 0;
        for k in 1..=points.len() as u64 {
            for stop_after in [false, true] {
                let mut sandbox = case.frozen.thaw();
                abilities.limit(&sandbox);
                let (saved, receipt) = rewind_with(&mut sandbox, &case, saving, k, stop_after);
                if !saved {
                    continue;
                }
                times += 1;
                let point = points[k as usize - 1];
                let stopped = receipt.is_none();
                let case_text = format!(
                    "{abilities:?}, {saving:?}, {}, at {k} {point:?}, closing at {closing}, \
                     stopped: {stopped}",
                    case.name
                );
                println!("{case_text}");
                if stopped {
                    let recovered = after_a_crash(&mut sandbox, abilities);
                    let case_text = format!("{case_text}: {recovered:?}");
                    assert!(kept(&sandbox, &case, saving, k >= closing), "{case_text}");
                } else {
                    let receipt = receipt.unwrap();
                    let case_text = format!("{case_text}: {receipt:?}");
                    assert!(kept(&sandbox, &case, saving, k >= closing), "{case_text}");
                    let noticed = !receipt.conflicts.is_empty() && !receipt.success;
                    let taken_in = !receipt.merged_files.is_empty();
                    let stayed =
                        case.name.starts_with("in a folder") && !receipt.kept_files.is_empty();
                    assert!(noticed || taken_in || stayed || k >= closing, "{case_text}");
                }
                assert_intact(&sandbox, &case.listed);
                if k < closing && holds_saved(&sandbox, case.path) {
                    assert_nothing_left_behind(&sandbox);
                    // What was saved by hand is not part of what an undo takes back.
                    if !sandbox.workspace.store.rewinds().unwrap().is_empty() {
                        sandbox.undo();
                    }
                    assert!(holds_saved(&sandbox, case.path), "{case_text}, undone");
                }
            }
        }
        assert!(
            times > 10 || saving != SaveMethod::RenamedOver,
            "{}: saved {times} times",
            case.name
        );
    }
}

/// Whether the save is where it was made. A late one to a file held open may be in the stage, or in a
/// file that was removed at the end.
fn kept(sandbox: &Sandbox, case: &Case, saving: SaveMethod, late: bool) -> bool {
    let held = saving == SaveMethod::HeldOpen;
    holds_saved(sandbox, case.path) || (held && (late || stage_holds_saved(sandbox)))
}

#[test]
fn saves_in_place_are_kept() {
    save_at_every_point(Abilities::All, SaveMethod::InPlace);
}

#[test]
fn saves_in_place_are_kept_without_exchange() {
    save_at_every_point(Abilities::NoExchange, SaveMethod::InPlace);
}

#[test]
fn saves_in_place_are_kept_with_plain_renames() {
    save_at_every_point(Abilities::PlainRenames, SaveMethod::InPlace);
}

#[test]
fn saves_by_rename_are_kept() {
    save_at_every_point(Abilities::All, SaveMethod::RenamedOver);
}

#[test]
fn saves_by_rename_are_kept_without_exchange() {
    save_at_every_point(Abilities::NoExchange, SaveMethod::RenamedOver);
}

#[test]
fn saves_by_rename_are_kept_with_plain_renames() {
    save_at_every_point(Abilities::PlainRenames, SaveMethod::RenamedOver);
}

#[test]
fn saves_through_an_open_descriptor_are_kept() {
    save_at_every_point(Abilities::All, SaveMethod::HeldOpen);
}

#[test]
fn saves_through_an_open_descriptor_are_kept_without_exchange() {
    save_at_every_point(Abilities::NoExchange, SaveMethod::HeldOpen);
}

/// The rewind is stopped anywhere, the user saves, and only then it is recovered.
fn save_before_the_recovery(abilities: Abilities, saving: SaveMethod) {
    for case in Case::every_kind() {
        for n in 1.. {
            let mut sandbox = case.frozen.thaw();
            abilities.limit(&sandbox);
            let reached = stopped(n, || drop(sandbox.rewind_to(case.listed[0].point)));
            let rewinds = sandbox.another_process().store.rewinds().unwrap();
            let open = rewinds.iter().any(|rewind| rewind.receipt.is_none());
            let saved = User::at(&sandbox, case.path, saving).save();
            let recovered = after_a_crash(&mut sandbox, abilities);
            let case_text = format!(
                "{abilities:?}, {saving:?}, {}, stopped at {n} {reached:?}, saved: {saved}: {recovered:?}",
                case.name
            );
            println!("{case_text}");
            if saved {
                assert!(holds_saved(&sandbox, case.path), "{case_text}");
                if open {
                    let receipt = &recovered.finished[0];
                    let stayed =
                        case.name.starts_with("in a folder") && !receipt.kept_files.is_empty();
                    assert!(!receipt.success || stayed, "{case_text}");
                    assert!(!receipt.conflicts.is_empty() || stayed, "{case_text}");
                }
            }
            assert_nothing_left_behind(&sandbox);
            assert_intact(&sandbox, &case.listed);
            if reached.is_none() {
                break;
            }
        }
    }
}

#[test]
fn saves_in_place_before_the_recovery_are_kept() {
    for abilities in Abilities::EACH {
        save_before_the_recovery(abilities, SaveMethod::InPlace);
    }
}

#[test]
fn saves_by_rename_before_the_recovery_are_kept() {
    for abilities in Abilities::EACH {
        save_before_the_recovery(abilities, SaveMethod::RenamedOver);
    }
}

/// Saved before the exchange, stopped after it, and then the earlier version is written again: the path
/// looks undone, but the save is in the stage, in place of the new file.
#[test]
fn a_save_in_the_stage_is_kept_although_the_path_looks_undone() {
    let case = Case::every_kind().remove(0);
    let points = {
        let mut sandbox = case.frozen.thaw();
        points_of(|| assert!(sandbox.rewind_to(case.listed[0].point).success))
    };
    let k = points.iter().position(|point| *point == CrashPoint::Exchange).unwrap() as u64 + 1;
    let mut sandbox = case.frozen.thaw();
    let (saved, receipt) = rewind_with(&mut sandbox, &case, SaveMethod::InPlace, k, true);
    assert!(saved && receipt.is_none() && stage_holds_saved(&sandbox));
    sandbox.write("f", "two\n");

    let recovered = after_a_crash(&mut sandbox, Abilities::All);
    assert!(stage_holds_saved(&sandbox), "{recovered:?}");
    assert_eq!(sandbox.read("f"), "two\n");
    let receipt = &recovered.finished[0];
    assert_eq!(receipt.conflicts.len(), 1, "{receipt:?}");
    let case_text = &receipt.errors[0].error;
    assert!(case_text.ends_with("/new-0") && case_text.contains(".takeback/stage-"), "{case_text}");
    assert_intact(&sandbox, &case.listed);
}

/// A rewind with several threads: a save into a finished file, into a later one, and through a
/// descriptor of a replaced one.
#[test]
fn saves_during_a_large_rewind_are_kept() {
    const FILES: usize = 100;
    let mut sandbox = Sandbox::new();
    let name = |number: usize| format!("f{number:03}");
    (0..FILES).for_each(|number| sandbox.write(&name(number), "before\n"));
    let point = sandbox.prompt("s", "do it");
    sandbox.agent_runs("s", "./run", |sandbox| {
        (0..FILES).for_each(|number| sandbox.write(&name(number), "the agent's\n"));
    });
    sandbox.turn_end("s");
    let saved = [10, 20, 70].map(name);
    let held = OpenOptions::new().write(true).open(sandbox.at(&saved[0])).unwrap();
    let (done, to_come) = (sandbox.at(&saved[1]), sandbox.at(&saved[2]));
    let mut exchanged = 0;
    disk::watch(Some(Box::new(move |point| {
        exchanged += usize::from(point == CrashPoint::Exchange);
        if point == CrashPoint::Exchange && exchanged == FILES / 2 {
            held.set_len(0).unwrap();
            held.write_all_at(SAVED.as_bytes(), 0).unwrap();
            fs::write(&done, SAVED).unwrap();
            fs::write(&to_come, SAVED).unwrap();
        }
    })));
    let receipt = sandbox.rewind_to(point);
    disk::watch(None);
    let conflicts: Vec<String> = receipt.conflicts.iter().map(|note| note.path.display()).collect();
    assert_eq!(conflicts, saved);
    assert!(!receipt.success && receipt.errors.is_empty(), "{receipt:?}");
    for number in 0..FILES {
        let expected = if saved.contains(&name(number)) { SAVED } else { "before\n" };
        assert_eq!(sandbox.read(&name(number)), expected, "{number}");
    }
    assert_nothing_left_behind(&sandbox);
}
