//! Single hunks restored from a point, and conflicts settled one by one: each undo gives the bytes
//! back.

use std::sync::Arc;

use takeback_core::rewind::{
    Choice, ConflictPolicy, FileHunks, Incoming, IncomingChange, RewindRequest, Target,
    open_conflicts, preview,
};
use takeback_store::{Digest, Entry, PackedBlob, RewindKind};

use crate::script::{FILES, SESSIONS, Script, any_edits};
use crate::sections::Version;
use crate::{Dice, each_seed};

fn play(dice: &mut Dice) -> Script {
    let mut script = Script::begin(true);
    for _ in 0..3 + dice.below(4) {
        if dice.one_in(4) {
            script.person(dice.below(FILES.len()), &any_edits(dice, true));
            continue;
        }
        let file = dice.below(FILES.len());
        let changes = [(file, any_edits(dice, false)), ((file + 1) % 4, any_edits(dice, false))];
        script.turn(dice.below(SESSIONS.len()), &changes);
    }
    script
}

/// Some hunks of each file that differs from `start`, as the terminal view restores them.
fn some_hunks(script: &mut Script, dice: &mut Dice) -> Vec<IncomingChange> {
    let request = RewindRequest::new(Target::Restore(script.start));
    let shown = preview(&mut script.sandbox.workspace, &request).unwrap();
    let mut changes = Vec::new();
    for step in shown.plan.actions() {
        let Some(Entry::File { digest: then, mode, .. }) = step.goal() else { continue };
        let Entry::File { digest: now, .. } = step.present else { continue };
        let store = &mut script.sandbox.workspace.store;
        let (now, then) = (store.contents(&now).unwrap(), store.contents(&then).unwrap());
        let hunks = FileHunks::new(&now, &then);
        let chosen: Vec<bool> = hunks.hunks().iter().map(|_| dice.one_in(2)).collect();
        let text = hunks.take_back(|at| chosen[at]);
        let entry = Entry::File { digest: Digest::of(&text), size: text.len() as u64, mode };
        store.put(PackedBlob::new(text)).unwrap();
        let (path, base) = (step.path.clone(), step.present.clone());
        changes.push(IncomingChange { path, base, entry, cancels: Vec::new(), lines: Vec::new() });
    }
    changes
}

/// Every section of every file is as it is now, or as it was at the start.
#[track_caller]
fn assert_sections(script: &Script, start: &[Version]) {
    for (file, was) in start.iter().enumerate() {
        let disk = script.disk(file);
        let now = &script.files[file].now;
        let (
            Version::File { sections, .. },
            Version::File { sections: now, .. },
            Version::File { sections: was, .. },
        ) = (&disk, now, was)
        else {
            assert!(disk == *now);
            continue;
        };
        for (at, section) in sections.iter().enumerate() {
            assert!([&now[at], &was[at]].contains(&section), "{section:?}");
        }
    }
}

#[test]
fn any_hunks_restored_and_undone_give_the_bytes_back() {
    each_seed(200, |seed| {
        let mut dice = Dice::new(seed);
        let mut script = play(&mut dice);
        let start: Vec<Version> = script
            .files
            .iter()
            .map(|file| file.changes.first().map_or(file.now.clone(), |one| one.before.clone()))
            .collect();
        let before = script.sandbox.tree();
        let changes = some_hunks(&mut script, &mut dice);
        let differs = changes.iter().any(|change| change.entry != change.base);
        let kind = RewindKind::Restore { point: script.start };
        let incoming = Arc::new(Incoming { kind, changes: changes.clone(), settles: false });
        let request = RewindRequest::new(Target::Incoming(incoming));
        let receipt = script.go(request, ConflictPolicy::Keep).unwrap();
        assert!(receipt.success, "{receipt:?}");
        assert_eq!(receipt.rewind.is_some(), differs, "{receipt:?}");
        for change in &changes {
            let text = script.sandbox.read(&change.path.display());
            assert_eq!(change.entry.digest(), Some(Digest::of(text.as_bytes())), "seed {seed}");
        }
        assert_sections(&script, &start);
        if differs {
            assert!(script.sandbox.undo().success);
        }
        assert_eq!(script.sandbox.tree(), before, "seed {seed}");
    });
}

#[test]
fn conflicts_settled_one_by_one_and_undone_give_the_bytes_back() {
    let settled = std::sync::atomic::AtomicUsize::new(0);
    each_seed(200, |seed| {
        let mut dice = Dice::new(seed);
        let mut script = play(&mut dice);
        if script.turns.is_empty() {
            return;
        }
        let turn = dice.below(script.turns.len());
        let policy = [ConflictPolicy::Keep, ConflictPolicy::Markers, ConflictPolicy::File];
        let request = script.revert_of(turn, false).unwrap();
        let receipt = script.go(request, policy[dice.below(3)]).unwrap();
        if receipt.rewind.is_none() {
            // Nothing could be taken back, so there is no operation with conflicts.
            return;
        }
        let mut trees = vec![script.sandbox.tree()];
        for _ in 0..3 {
            let open = open_conflicts(&script.sandbox.workspace).unwrap();
            let mut changes = Vec::new();
            let mut chosen = Vec::new();
            for conflict in &open {
                let choose = |_| match dice.below(4) {
                    0 => None,
                    1 => Some(Choice::Mine),
                    2 => Some(Choice::Before),
                    _ => Some(Choice::Text(b"settled\n".to_vec())),
                };
                let choices: Vec<Option<Choice>> =
                    (0..conflict.lines.len().max(1)).map(choose).collect();
                let store = &mut *script.sandbox.workspace.store;
                changes.extend(conflict.settle(store, &choices).unwrap());
                chosen.push((conflict.clone(), choices));
            }
            if changes.is_empty() {
                continue;
            }
            let kind = RewindKind::Resolve { of: open[0].operation };
            let incoming = Incoming { kind, changes, settles: true };
            let request = RewindRequest::new(Target::Incoming(Arc::new(incoming)));
            let receipt = script.go(request, ConflictPolicy::Keep).unwrap();
            assert!(receipt.errors.is_empty(), "{receipt:?}");
            settled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let left = open_conflicts(&script.sandbox.workspace).unwrap();
            for (conflict, choices) in chosen {
                let still = left.iter().find(|left| left.path == conflict.path);
                let places = still.map_or(0, |still| still.lines.len());
                if !conflict.lines.is_empty() {
                    let open = choices.iter().filter(|choice| choice.is_none()).count();
                    assert_eq!(places, open, "seed {seed}: {choices:?} {conflict:?}");
                }
            }
            trees.push(script.sandbox.tree());
        }
        // Each settling is an operation of its own, also one that leaves the bytes as they are.
        println!("{} settled", trees.len() - 1);
        while let Some(tree) = trees.pop() {
            assert_eq!(script.sandbox.tree(), tree, "seed {seed}");
            if !trees.is_empty() {
                assert!(script.sandbox.undo().success, "seed {seed}");
            }
        }
    });
    assert!(settled.into_inner() > 30);
}
