//! Turns that do not overlap: taking back each of them, in any order, is a rewind to the start.

use takeback_core::rewind::{ConflictPolicy, RewindRequest, RewindScope, Target};

use crate::script::{Edit, FILES, SESSIONS, Script};
use crate::sections::SECTIONS;
use crate::{Dice, each_seed};

/// Every section, every mode, and the last file's existence belong to one turn, or to the person.
fn play(dice: &mut Dice) -> Script {
    let mut script = Script::begin(dice.one_in(2));
    let has_last = script.sandbox.exists(FILES[3]);
    let mut parts: Vec<(usize, Edit)> = Vec::new();
    for file in 0..3 {
        for at in 0..SECTIONS {
            parts.push((file, Edit::Section { at, lines: 1 + dice.below(3) }));
        }
        parts.push((file, Edit::Mode([0o755, 0o600][dice.below(2)])));
    }
    parts.push((3, if has_last { Edit::Delete } else { Edit::Create }));
    dice.shuffle(&mut parts);
    while !parts.is_empty() {
        let mine = parts.split_off(parts.len() - (1 + dice.below(4)).min(parts.len()));
        let mut by_file: Vec<(usize, Vec<Edit>)> = Vec::new();
        for (file, edit) in mine {
            match by_file.iter_mut().find(|(of, _)| *of == file) {
                Some((_, edits)) => edits.push(edit),
                None => by_file.push((file, vec![edit])),
            }
        }
        let is_persons = by_file.iter().all(|(file, _)| *file < 3) && dice.one_in(4);
        if is_persons {
            by_file.iter().for_each(|(file, edits)| script.person(*file, edits));
        } else {
            script.turn(dice.below(SESSIONS.len()), &by_file);
        }
    }
    script
}

/// Takes back every turn: in random order, one by one, by its call, or several as a range.
fn revert_all(script: &mut Script, dice: &mut Dice) -> usize {
    let mut operations = 0;
    let mut left: Vec<usize> = (0..script.turns.len()).collect();
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    while !left.is_empty() {
        let many = if dice.one_in(4) { 1 + dice.below(3) } else { 1 };
        pieces.push(left.drain(..many.min(left.len())).collect());
    }
    dice.shuffle(&mut pieces);
    for piece in pieces {
        let request = match piece.as_slice() {
            [turn] => script
                .revert_of(*turn, dice.one_in(2))
                .or_else(|| script.revert_of(*turn, false))
                .unwrap(),
            [first, .., last] => {
                let next = Some(last + 1).filter(|next| *next < script.turns.len());
                script.revert_of_range(*first, next)
            }
            [] => unreachable!("no piece is empty"),
        };
        println!("takes back {piece:?}");
        let receipt = script.go(request, ConflictPolicy::Keep).unwrap();
        assert!(receipt.success, "{piece:?}: {receipt:?}");
        operations += usize::from(receipt.rewind.is_some());
    }
    operations
}

#[test]
fn every_turn_taken_back_in_any_order_is_a_rewind_to_the_start() {
    each_seed(250, |seed| {
        let mut reverted = play(&mut Dice::new(seed));
        let before = reverted.sandbox.tree();
        let operations = revert_all(&mut reverted, &mut Dice::new(seed + 1_000_000));
        let all = reverted.sandbox.tree();
        assert_ne!(all, before);

        let mut rewound = play(&mut Dice::new(seed));
        assert_eq!(rewound.sandbox.tree(), before, "the same happened in both");
        let start = RewindRequest {
            scope: Some(RewindScope::AllAgents),
            ..RewindRequest::new(Target::Point(rewound.start))
        };
        let receipt = rewound.go(start, ConflictPolicy::Keep).unwrap();
        assert!(receipt.success, "{receipt:?}");
        assert_eq!(all, rewound.sandbox.tree(), "seed {seed}");

        for _ in 0..operations {
            assert!(reverted.sandbox.undo().success);
        }
        assert_eq!(reverted.sandbox.tree(), before, "seed {seed}, all of it undone");
    });
}
