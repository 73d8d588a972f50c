//! Merges whose result is known beforehand, since every line of the base and every place between two
//! lines has at most one side that changes it. Neighbours may belong to different sides.

use std::cell::Cell;
use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use takeback_core::rewind::merge::{TextMerge, merge_text};

use crate::git::{self, Hunk, lines};
use crate::{Case, Text, apply, check, runs};

#[test]
fn neighbours_of_different_owners_are_both_kept() {
    let (clean, conflicts) = (Cell::new(0), Cell::new(0));
    check(runs(), owned(unique_line), |plan| {
        let Case { base, ours, theirs } = plan.case();
        let merged = merge_text(&base, &ours, &theirs);
        prop_assert_eq!(&merge_text(&base, &theirs, &ours), &merged, "sides swapped");
        match merged {
            TextMerge::Clean(text) => {
                let expected = plan.text(&[0, 1]);
                // Whether the last line has a newline is known only if it was the last before.
                let end: &[u8] =
                    if plan.moves_the_end() && text.ends_with(b"\n") { b"\n" } else { b"" };
                let expected = [&expected, end].concat();
                prop_assert_eq!(Text(&text), Text(&expected));
                prop_assert!(!plan.adds_inside_the_others_lines(), "one side's lines were cut");
                clean.set(clean.get() + 1);
            }
            TextMerge::Conflict(_) => {
                prop_assert!(
                    plan.adds_inside_the_others_lines() || plan.moves_the_end(),
                    "nothing overlaps"
                );
                conflicts.set(conflicts.get() + 1);
            }
        }
        Ok(())
    });
    let rarer = clean.get().min(conflicts.get());
    assert!(rarer >= runs() / 20, "only {rarer} cases: the plans have become dull");
}

#[test]
fn different_changes_of_a_line_conflict() {
    let plan = (owned(unique_line), any::<Index>(), any::<bool>());
    check(runs(), plan, |(mut plan, at, deletes)| {
        if plan.lines.is_empty() {
            return Ok(());
        }
        let at = at.index(plan.lines.len());
        let theirs = if deletes { vec![] } else { vec!["theirs".to_owned()] };
        plan.lines[at] = [Some(vec!["ours".to_owned()]), Some(theirs)];
        is_conflict(&plan)
    });
}

#[test]
fn different_additions_at_one_place_conflict() {
    let plan = (owned(unique_line), any::<Index>());
    check(runs(), plan, |(mut plan, at)| {
        let at = at.index(plan.places.len());
        plan.ends_in_newline = true;
        plan.places[at] = ["ours", "theirs"].map(|line| Some(vec![line.to_owned()]));
        // A side that also changes the line above or below has a range here, which the other's lines
        // only touch.
        for line in plan.lines.iter_mut().take(at + 1).skip(at.saturating_sub(1)) {
            *line = [None, None];
        }
        is_conflict(&plan)
    });
}

fn is_conflict(plan: &Plan) -> Result<(), TestCaseError> {
    let Case { base, ours, theirs } = plan.case();
    let conflict = TextMerge::Conflict("both changed the same lines");
    prop_assert_eq!(&merge_text(&base, &ours, &theirs), &conflict);
    prop_assert_eq!(&merge_text(&base, &theirs, &ours), &conflict, "sides swapped");
    Ok(())
}

/// Where lines repeat, the changes that a diff finds need not be the ones that were made. Then a
/// merge that git refuses may be a conflict here too, but if it is clean no line is lost or doubled.
#[test]
fn repeated_lines_are_neither_lost_nor_doubled() {
    let clean = Cell::new(0);
    check(runs(), owned(repeated_line), |mut plan| {
        plan.ends_in_newline = true;
        let Case { base, ours, theirs } = plan.case();
        let merged = merge_text(&base, &ours, &theirs);
        prop_assert_eq!(&merge_text(&base, &theirs, &ours), &merged, "sides swapped");
        let TextMerge::Clean(text) = merged else { return Ok(()) };
        if git::merge_file(&base, &ours, &theirs).is_some() {
            return Ok(());
        }
        // What a diff takes for the same change on both sides is done once, as git does it.
        let [ours, theirs] = [ours, theirs].map(|side| {
            let hunks = git::hunks(&base, &side).into_iter();
            hunks.map(|hunk| apply(&base, [&[hunk], &[]])).collect::<Vec<_>>()
        });
        if ours.iter().any(|change| theirs.contains(change)) {
            return Ok(());
        }
        let sorted = |text: &[u8]| {
            let mut sorted: Vec<&[u8]> = lines(text).collect();
            sorted.sort_unstable();
            sorted.concat()
        };
        prop_assert_eq!(Text(&sorted(&text)), Text(&sorted(&plan.text(&[0, 1]))));
        clean.set(clean.get() + 1);
        Ok(())
    });
    assert!(clean.get() >= runs() / 50, "only {} clean: the plans are dull", clean.get());
}

/// Here a diff finds what was done, but may find it some lines higher or lower. Of lines in place of
/// others it could find equal ones and make two changes of one, so those are new.
#[test]
fn single_changes_between_repeated_lines_conflict_or_merge_correctly() {
    let (right, conflicts) = (Cell::new(0), Cell::new(0));
    let changes = [one_change(b"ours\n"), one_change(b"theirs\n")];
    check(runs() * 2, (few_kinds(0..8), changes), |(base, changes)| {
        let [ours, theirs] = changes.map(|(at, count, added, instead)| {
            let start = at.index(base.len() + 1);
            let lines = start..base.len().min(start + count);
            let text = if lines.is_empty() { added.concat() } else { instead.concat() };
            Hunk { lines, text }
        });
        let base = base.concat();
        let [ours, theirs] = [[ours], [theirs]];
        let Some(expected) = apply(&base, [&ours, &theirs]) else { return Ok(()) };
        let [ours, theirs] =
            [ours, theirs].map(|hunk| apply(&base, [&hunk, &[]]).expect("it is only one"));
        if git::merge_file(&base, &ours, &theirs).is_some() {
            return Ok(());
        }
        match merge_text(&base, &ours, &theirs) {
            TextMerge::Conflict(_) => conflicts.set(conflicts.get() + 1),
            TextMerge::Clean(text) => {
                prop_assert_eq!(Text(&text), Text(&expected));
                right.set(right.get() + 1);
            }
        }
        Ok(())
    });
    let [right, conflicts] = [right, conflicts].map(Cell::into_inner);
    assert!(right >= runs() / 10, "{right} right, {conflicts} conflicts");
}

type Lines = Vec<&'static [u8]>;

fn few_kinds(count: Range<usize>) -> impl Strategy<Value = Lines> {
    prop::collection::vec(select(vec![&b"}\n"[..], b"\n", b"x\n", b"y\n"]), count)
}

/// Where, how many lines it removes, and what it adds there or puts in their place.
fn one_change(new: &'static [u8]) -> impl Strategy<Value = (Index, usize, Lines, Lines)> {
    let instead = prop::collection::vec(Just(new), 0..2);
    (any::<Index>(), 0..4usize, few_kinds(1..4), instead)
}

/// What each side puts in place of a line, or at a place between two lines.
type Slot = [Option<Vec<String>>; 2];

#[derive(Debug, Clone)]
struct Plan {
    base: Vec<String>,
    /// For each line of the base; no lines in its place: it is deleted.
    lines: Vec<Slot>,
    /// Before the first line, between every two, and behind the last.
    places: Vec<Slot>,
    ends_in_newline: bool,
}

impl Plan {
    fn case(&self) -> Case {
        Case { base: self.text(&[]), ours: self.text(&[0]), theirs: self.text(&[1]) }
    }

    /// The base with the changes of some sides, of which no two change the same.
    fn text(&self, sides: &[usize]) -> Vec<u8> {
        let change = |slot: &Slot| sides.iter().find_map(|&side| slot[side].clone());
        let mut text = Vec::new();
        for (at, place) in self.places.iter().enumerate() {
            text.extend(change(place).into_iter().flatten());
            let Some(line) = self.base.get(at) else { break };
            text.extend(change(&self.lines[at]).unwrap_or_else(|| vec![line.clone()]));
        }
        let end = if self.ends_in_newline && !text.is_empty() { "\n" } else { "" };
        (text.join("\n") + end).into_bytes()
    }

    fn adds_inside_the_others_lines(&self) -> bool {
        self.lines.windows(2).zip(&self.places[1..]).any(|(around, place)| {
            [(0, 1), (1, 0)].into_iter().any(|(side, other)| {
                place[side].is_some() && around.iter().all(|line| line[other].is_some())
            })
        })
    }

    /// Without a newline at the end, whose last line is another one changes the one before it too:
    /// it has a newline now, or has none any more.
    fn moves_the_end(&self) -> bool {
        let changed = |slot: Option<&Slot>, how: fn(&Vec<String>) -> bool| {
            slot.is_some_and(|slot| slot.iter().flatten().any(how))
        };
        !self.ends_in_newline
            && (changed(self.places.last(), |_| true) || changed(self.lines.last(), Vec::is_empty))
    }
}

/// A plan in which no slot is changed by both sides. `line` names a line, of the base or new, by a
/// number that no other of that name has and by one that is random.
fn owned(line: fn(&str, usize, u8) -> String) -> impl Strategy<Value = Plan> {
    let slot = |new| {
        let owner = prop_oneof![2 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(1))];
        (owner, prop::collection::vec(any::<u8>(), new))
    };
    let line_and_place = (any::<u8>(), slot(0..3), slot(1..3));
    let lines_and_places = prop::collection::vec(line_and_place, 0..12);
    (slot(1..3), lines_and_places, prop::bool::weighted(0.8)).prop_map(
        move |(first, rest, ends_in_newline)| {
            let slot = |name, at, (owner, new): &(Option<usize>, Vec<u8>)| {
                let new = new.iter().enumerate();
                let new: Vec<String> =
                    new.map(|(i, random)| line(name, 10 * at + i, *random)).collect();
                [0, 1].map(|side| (*owner == Some(side)).then(|| new.clone()))
            };
            let mut plan = Plan {
                base: vec![],
                lines: vec![],
                places: vec![slot("added", 0, &first)],
                ends_in_newline,
            };
            for (at, (random, change, addition)) in (1..).zip(&rest) {
                plan.base.push(line("base", at, *random));
                plan.lines.push(slot("changed", at, change));
                plan.places.push(slot("added", at, addition));
            }
            plan
        },
    )
}

fn unique_line(name: &str, number: usize, _random: u8) -> String {
    format!("{name} {number}")
}

/// Mostly one of a few, also across the base and both sides.
fn repeated_line(name: &str, number: usize, random: u8) -> String {
    match random {
        0..100 => "}".to_owned(),
        100..160 => String::new(),
        160..200 => "x".to_owned(),
        _ => format!("{name} {number}"),
    }
}
