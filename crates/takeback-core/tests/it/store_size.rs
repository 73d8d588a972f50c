//! A store stays within its size limit: which points are dropped for it, and which never are.

use std::fmt::Write as _;

use takeback_core::checkpoint;
use takeback_core::retention::{
    CleanUpReport, Clock, Occasion, Policy, clean_up, held_bytes, is_over_size_limit, store_bytes,
    would_drop,
};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_core::{Mark, mark};
use takeback_store::{PointId, PointKind};
use takeback_testkit::Sandbox;

const KB: u64 = 1000;

/// 100 KB that do not compress, others for each seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(len)
    .collect()
}

/// A prompt after which the agent writes 100 KB of new contents into `<session>.bin`.
fn turn(sandbox: &mut Sandbox, session: &str, number: u64) -> PointId {
    let point = sandbox.prompt(session, &format!("{session} {number}"));
    let seed = number * 1000 + session.bytes().map(u64::from).sum::<u64>();
    sandbox.agent_writes(session, &format!("{session}.bin"), noise(seed, 100_000));
    sandbox.turn_end(session);
    point
}

fn policy(max_bytes: u64) -> Policy {
    Policy { max_bytes, ..Policy::default() }
}

fn clean(sandbox: &mut Sandbox, max_bytes: u64) -> CleanUpReport {
    let policy = policy(max_bytes);
    let would = would_drop(&sandbox.workspace, &policy, Clock::Trusted).unwrap();
    let done = clean_up(&mut sandbox.workspace, &policy, Occasion::AtStart, Clock::Trusted);
    let done = done.expect("it cleans up");
    assert_eq!(would.points.len(), done.points, "a dry run lists what is dropped");
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
    done
}

fn listed(sandbox: &Sandbox) -> Vec<String> {
    let points = sandbox.workspace.store.points().unwrap();
    let listed = points.into_iter().filter(|point| point.kind != PointKind::Safety);
    listed.map(|point| point.description).collect()
}

#[test]
fn the_oldest_points_are_dropped_until_the_store_fits() {
    let mut sandbox = Sandbox::new();
    let points: Vec<PointId> = (0..20).map(|number| turn(&mut sandbox, "s", number)).collect();
    let full = store_bytes(&sandbox.workspace);
    assert!(full > 2000 * KB, "{full}");
    assert_eq!(clean(&mut sandbox, 0), CleanUpReport::default(), "no limit");
    assert_eq!(clean(&mut sandbox, full + KB), CleanUpReport::default(), "it fits");

    let done = clean(&mut sandbox, 1500 * KB);
    let left = store_bytes(&sandbox.workspace);
    assert!(left <= 1500 * KB && left > 1200 * KB, "no more is dropped than necessary: {left}");
    assert_eq!(done.over, None);
    assert!(done.freed >= 600 * KB, "{done:?}");
    let kept = listed(&sandbox);
    assert_eq!(kept.len(), 20 - done.points);
    assert_eq!(kept.last().unwrap(), "s 19");
    assert_eq!(clean(&mut sandbox, 1500 * KB).points, 0, "there is some room now");

    // Every point that is listed is complete.
    let oldest = points[20 - kept.len()];
    assert!(sandbox.rewind_to(oldest).success);
    let seed = (19 - kept.len() as u64) * 1000 + u64::from(b's');
    assert_eq!(std::fs::read(sandbox.at("s.bin")).unwrap(), noise(seed, 100_000));
}

#[test]
fn ended_sessions_are_dropped_before_those_at_work() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "beside", 0);
    turn(&mut sandbox, "works", 0);
    for number in 0..5 {
        turn(&mut sandbox, "over", number);
    }
    sandbox.session_end("over");
    for number in 1..6 {
        turn(&mut sandbox, "works", number);
    }
    clean(&mut sandbox, 0);
    let full = store_bytes(&sandbox.workspace);
    let done = clean(&mut sandbox, full - 50 * KB);
    assert!((1..5).contains(&done.points), "{done:?}");
    let works =
        |sandbox: &Sandbox| listed(sandbox).iter().filter(|name| name.starts_with("works")).count();
    assert_eq!(works(&sandbox), 6, "of the one at work nothing has gone");
    assert!(listed(&sandbox).contains(&"over 4".to_owned()));

    let done = clean(&mut sandbox, 1100 * KB);
    assert_eq!(done.over, None);
    assert!(works(&sandbox) < 6);
    assert!(
        listed(&sandbox).contains(&"over 4".to_owned()),
        "the newest point of each session stays longest"
    );
    clean(&mut sandbox, 1);
    assert_eq!(
        listed(&sandbox),
        ["beside 0", "works 5"],
        "each session that has not ended keeps its newest point"
    );
}

/// Each has so few points that nothing else limits them.
#[test]
fn many_sessions_of_one_prompt_are_bounded() {
    let mut sandbox = Sandbox::new();
    for number in 0..15_u64 {
        let session = format!("short-{number}");
        let point = sandbox.prompt(&session, &session);
        assert!(point.0 > 0);
        sandbox.agent_writes(&session, "same.bin", noise(number, 100_000));
        sandbox.turn_end(&session);
        // Its end is never reported.
        sandbox.days_pass(1.5);
    }
    let last = turn(&mut sandbox, "now", 0);
    turn(&mut sandbox, "now", 1);
    let done = clean(&mut sandbox, 1040 * KB);
    assert_eq!(done.over, None);
    let kept = listed(&sandbox);
    assert!(store_bytes(&sandbox.workspace) <= 1040 * KB);
    assert_eq!(kept[kept.len() - 3..], ["short-14", "now 0", "now 1"], "{kept:?}");
    assert!(!kept.contains(&"short-0".to_owned()));
    assert!(sandbox.rewind_to(last).success);
}

#[test]
fn marked_points_stay_and_are_reported() {
    let mut sandbox = Sandbox::new();
    let points: Vec<PointId> = (0..10).map(|number| turn(&mut sandbox, "s", number)).collect();
    mark(&mut sandbox.workspace, points[3], Mark::Pin).unwrap();
    mark(&mut sandbox.workspace, points[5], Mark::Label("good")).unwrap();
    let done = clean(&mut sandbox, 300 * KB);
    assert_eq!(listed(&sandbox), ["s 3", "s 5", "s 9"]);
    let over = done.over.expect("two pinned versions are more than that");
    assert_eq!(over.limit, 300 * KB);
    assert_eq!(over.used, store_bytes(&sandbox.workspace));
    assert_eq!(over.held, held_bytes(&*sandbox.workspace.store).unwrap());
    assert!(over.held.present > 200 * KB && over.held.present < 210 * KB, "{over:?}");
    assert!(over.held.marked > 200 * KB && over.held.marked < 210 * KB, "{over:?}");

    // Recording and rewinding still work.
    turn(&mut sandbox, "s", 10);
    assert!(sandbox.rewind_to(points[3]).success);
    assert_eq!(std::fs::read(sandbox.at("s.bin")).unwrap(), noise(2000 + 115, 100_000));
}

#[test]
fn a_store_over_its_limit_is_not_cleaned_up_repeatedly() {
    let mut sandbox = Sandbox::new();
    let tight =
        |sandbox: &Sandbox, max| is_over_size_limit(&sandbox.workspace, &policy(max)).unwrap();
    for number in 0..4 {
        let point = turn(&mut sandbox, "s", number);
        mark(&mut sandbox.workspace, point, Mark::Pin).unwrap();
    }
    assert!(tight(&sandbox, KB) && !tight(&sandbox, 0) && !tight(&sandbox, 1 << 30));
    assert!(clean(&mut sandbox, KB).over.is_some());
    assert!(!tight(&sandbox, KB), "a clean-up right after it would free nothing");
    sandbox.days_pass(0.1);
    assert!(tight(&sandbox, KB));
}

/// The safety point of a rewind lives as long as a neighbour, whatever the reason they go for.
#[test]
fn a_rewind_is_dropped_with_its_neighbouring_points() {
    let mut sandbox = Sandbox::new();
    let first = turn(&mut sandbox, "s", 0);
    turn(&mut sandbox, "s", 1);
    assert!(sandbox.rewind_to(first).success);
    for number in 2..10 {
        turn(&mut sandbox, "s", number);
    }
    assert_eq!(sandbox.workspace.store.rewinds().unwrap().len(), 1);
    clean(&mut sandbox, 400 * KB);
    assert_eq!(sandbox.workspace.store.rewinds().unwrap().len(), 0);
    let points = sandbox.workspace.store.points().unwrap();
    assert!(points.iter().all(|point| point.kind != PointKind::Safety), "{points:?}");
}

/// What the packs grow by when `path` changes like that.
fn growth(sandbox: &mut Sandbox, path: &str, contents: &[u8]) -> u64 {
    let before = sandbox.workspace.store.usage().unwrap().packs;
    sandbox.write(path, contents);
    checkpoint(&mut sandbox.workspace, None).unwrap();
    sandbox.workspace.store.usage().unwrap().packs - before
}

#[test]
fn a_large_file_changed_in_one_place_is_stored_in_part() {
    const MB: usize = 1 << 20;
    let mut sandbox = Sandbox::new();
    let mut contents = noise(1, 50 * MB);
    assert!(growth(&mut sandbox, "large.bin", &contents) > 50 * MB as u64);
    contents[25 * MB] ^= 1;
    let overwritten = growth(&mut sandbox, "large.bin", &contents);
    contents.insert(10 * MB, b'!');
    let inserted = growth(&mut sandbox, "large.bin", &contents);
    contents.drain(40 * MB..40 * MB + 100);
    let cut = growth(&mut sandbox, "large.bin", &contents);
    contents.extend(noise(2, 1000));
    let appended = growth(&mut sandbox, "large.bin", &contents);
    for grown in [overwritten, inserted, cut, appended] {
        assert!(grown <= 8 * MB as u64, "{overwritten} {inserted} {cut} {appended}");
    }
    let points = sandbox.workspace.store.points().unwrap();
    let first = &points[0];
    let exact = RewindRequest {
        exactness: Exactness::Exact,
        ..RewindRequest::new(Target::Point(first.id))
    };
    assert!(sandbox.rewind(&exact).unwrap().success);
    assert!(std::fs::read(sandbox.at("large.bin")).unwrap() == noise(1, 50 * MB));
}

#[test]
fn a_growing_log_is_stored_in_part() {
    let mut sandbox = Sandbox::new();
    let mut log = String::new();
    let mut grow = |lines: u32| {
        for number in 0..lines {
            let at = log.len();
            writeln!(
                log,
                "2026-11-16T02:03:04.{number:06}Z INFO request {at:x} took {} us",
                at * 7 % 9973
            )
            .unwrap();
        }
        log.clone().into_bytes()
    };
    let whole = grow(500_000);
    assert!(whole.len() > 25 << 20);
    let first = growth(&mut sandbox, "a.log", &whole);
    for _ in 0..3 {
        let more = growth(&mut sandbox, "a.log", &grow(100));
        assert!(more < first / 4, "{more} of {first}");
    }
}
