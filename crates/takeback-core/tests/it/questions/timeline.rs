//! A timeline of a thousand points: the answers, and that what they read does not grow with the timeline, or
//! grows with it and no faster.

use takeback_core::TreeCopy;
use takeback_core::history::{
    AuthorFilter, LineOrigin, LogFilter, LogQuery, LogRow, LogRows, PointRow, blame, cancelled,
    changes_by, entry_at, log, path_history, settle, stats,
};
use takeback_core::rewind::PathFilter;
use takeback_store::{Durability, Log as _, PointFilter, Seq, SqliteStore, WorkPath};
use takeback_testkit::{Sandbox, path};

use super::counting_store::CountingStore;

/// A prompt for each line that a session adds to `busy.txt`. The tenth part of them adds one to `calm.txt`, and
/// you add one to `yours.txt`.
fn timeline(points: usize) -> (Sandbox, CountingStore) {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.store.set_durability(Durability::Off).unwrap();
    let mut texts = [String::new(), String::new(), String::new()];
    const NAMES: [&str; 3] = ["busy.txt", "calm.txt", "yours.txt"];
    for name in NAMES {
        sandbox.write(name, "");
    }
    for n in 0..points {
        sandbox.prompt("s", &format!("prompt {n}"));
        let is_tenth = n % (points / 10) == 0;
        let names = if is_tenth { &NAMES[..2] } else { &NAMES[..1] };
        let call = sandbox.before_edit("s", names);
        for (name, text) in NAMES.iter().zip(&mut texts).take(names.len()) {
            text.push_str(&format!("line {n} of {name}\n"));
            sandbox.write(name, &*text);
        }
        sandbox.after("s", &call);
        sandbox.turn_end("s");
        if is_tenth {
            texts[2].push_str(&format!("line {n} of yours\n"));
            sandbox.write(NAMES[2], &texts[2]);
        }
    }
    takeback_core::look_around(&mut sandbox.workspace).unwrap();
    let store = SqliteStore::open(&sandbox.workspace.store_dir).unwrap();
    (sandbox, CountingStore::new(Box::new(store)))
}

fn rows(store: &CountingStore, limit: usize, filter: LogFilter) -> Vec<PointRow> {
    let (rows, points) = (LogRows::Both, PointFilter::WithoutSafety);
    let query = LogQuery { limit, rows, points, session: None, filter, git_now: None };
    let rows = log(store, &query).unwrap().into_iter();
    rows.filter_map(|row| match row {
        LogRow::Point(row) => Some(*row),
        LogRow::Operation(_) => None,
    })
    .collect()
}

fn of_path(name: &str) -> LogFilter {
    let paths = Some(PathFilter::new(&[name.to_owned()]).unwrap());
    LogFilter { paths, below: Some(path(name)), ..LogFilter::default() }
}

/// Whether a question is about a part of the timeline that does not grow, or about all of it.
#[derive(Clone, Copy, PartialEq)]
enum About {
    APart,
    Everything,
}

type Question = (&'static str, About, fn(&CountingStore));

/// Each also checks its answer.
const QUESTIONS: &[Question] = &[
    ("log", About::APart, |store| {
        assert_eq!(rows(store, 10, LogFilter::default()).len(), 10);
    }),
    ("log PATH", About::APart, |store| {
        let found = rows(store, 10, of_path("calm.txt"));
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|row| row.tally.agent.lines.insertions == 1));
    }),
    ("log --by you PATH", About::APart, |store| {
        let filter = LogFilter { by: Some(AuthorFilter::You), ..of_path("yours.txt") };
        assert_eq!(rows(store, 10, filter).len(), 10);
    }),
    ("history", About::APart, |store| {
        let found = path_history(store, &path("calm.txt"), 10).unwrap();
        assert_eq!(found.len(), 10);
    }),
    ("history of a file that every prompt changes", About::Everything, |store| {
        assert_eq!(path_history(store, &path("busy.txt"), 10).unwrap().len(), 10);
    }),
    // Files that change in the same moments may be followed, too.
    ("blame", About::Everything, |store| {
        let blame = blame(store, &path("calm.txt")).unwrap();
        let seqs: Vec<Option<Seq>> = blame.lines.iter().map(|line| line.origin.change()).collect();
        assert!(seqs.len() == 10 && seqs.is_sorted() && !seqs.contains(&None));
    }),
    ("show", About::APart, |store| {
        let points = store.points().unwrap();
        let middle = points[points.len() / 2].clone();
        assert_eq!(PointRow::of(store, middle, None).unwrap().tally.agent.lines.insertions, 2);
    }),
    ("log of everything", About::Everything, |store| {
        let found = rows(store, usize::MAX, LogFilter::default());
        assert!(found.iter().all(|row| row.tally.agent.lines.insertions >= 1));
        let yours: usize = found.iter().map(|row| row.tally.you.lines.insertions).sum();
        assert_eq!(yours, 10);
    }),
    ("log -S", About::Everything, |store| {
        let text = Some(b"line 0 of busy".to_vec());
        assert_eq!(rows(store, 10, LogFilter { text, ..LogFilter::default() }).len(), 1);
    }),
    ("log --grep", About::Everything, |store| {
        let grep = Some("PROMPT 7".to_owned());
        assert!(!rows(store, 10, LogFilter { grep, ..LogFilter::default() }).is_empty());
    }),
    ("blame of every change", About::Everything, |store| {
        let blame = blame(store, &path("busy.txt")).unwrap();
        assert_eq!(blame.lines.len(), blame.changes.len(), "each line has a change of its own");
        let is_change = |origin: LineOrigin| matches!(origin, LineOrigin::Change { .. });
        assert!(blame.lines.iter().all(|line| is_change(line.origin)));
    }),
    ("stats", About::Everything, |store| {
        let mut changes = store.changes_after(Seq(0)).unwrap();
        settle(store, &mut changes).unwrap();
        let points = store.points().unwrap();
        let stats = stats(store, &changes, &points).unwrap();
        assert_eq!(stats.agents.left, points.len() + 10);
        assert_eq!((stats.you.left, stats.prompts.len()), (10, points.len()));
    }),
    ("diff --by", About::Everything, |store| {
        let mut changes = store.changes_after(Seq(0)).unwrap();
        settle(store, &mut changes).unwrap();
        let cancelled = cancelled(&store.rewind_changes_after(Seq(0)).unwrap());
        let by = AuthorFilter::Sessions(Vec::new());
        let part = changes_by(store, changes, &cancelled, |change| by.includes(change)).unwrap();
        assert_eq!(part.diffs.len(), 2);
    }),
];

#[test]
fn a_question_reads_what_it_is_about_and_no_more() {
    let (few, many) = (timeline(250), timeline(1000));
    for (name, about, ask) in QUESTIONS {
        let (before, ()) = few.1.reads(ask);
        let (after, ()) = many.1.reads(ask);
        println!("{name}: {before} reads of 250 points, {after} of 1,000");
        let most = match about {
            // `show` finds its point among all points; that is one row for each.
            About::APart if *name == "show" => before + 2 * 750,
            About::APart => before + before / 10 + 10,
            About::Everything => before * 5,
        };
        assert!(after <= most, "{name}: {before} reads of 250 points, {after} of 1,000");
    }
}

#[test]
fn every_hundredth_of_a_thousand_points_is_answered_exactly() {
    let (sandbox, store) = timeline(1000);
    let points = store.points().unwrap();
    let busy = WorkPath::new("busy.txt").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut copy = TreeCopy::in_folder(folder.path(), &sandbox.root()).unwrap();
    for (at, point) in points.iter().enumerate().step_by(100) {
        let expected: String = (0..at).map(|n| format!("line {n} of busy.txt\n")).collect();
        let entry = entry_at(&store, &busy, point.seq).unwrap().unwrap();
        let contents = takeback_store::Blobs::contents(&store, &entry.digest().unwrap()).unwrap();
        assert_eq!(contents, expected.as_bytes(), "point {at}");
        copy.move_to(&store, point.seq).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("busy.txt")).unwrap(), expected);
    }
}
