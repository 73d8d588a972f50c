//! Questions about files that are not plain text with a stable name: each row of a table is one file at three
//! times, and each question is asked about every row.

mod counting_store;
mod renames;
mod timeline;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use takeback_core::history::{
    AuthorFilter, BlameError, Count, FileDiff, Lines, LogFilter, LogQuery, LogRow, LogRows,
    PointRow, Text, authored_lines, blame, by_path, cancelled, changes_by, entry_at, log,
    path_history, settle, stats,
};
use takeback_core::history::{Comparison, Contents, LineAuthor};
use takeback_core::{TreeCopy, checkpoint, look_around};
use takeback_store::{Entry, PointFilter, PointId, Seq, WorkPath};
use takeback_testkit::{Sandbox, Thing};

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Nothing,
    Text(&'static str),
    Script(&'static str),
    Bytes(&'static [u8]),
    Link(&'static str),
    Folder,
}

use Is::{Bytes, Folder, Link, Nothing, Script, Text as Plain};

/// A path before a session's turn, after it, and after your edits.
struct Row {
    path: &'static [u8],
    is: [Is; 3],
    /// Lines added and removed by the session, then by you.
    lines: [(usize, usize); 2],
    /// Who wrote the lines at the end; `None`: it is not text.
    authors: Option<&'static [&'static str]>,
}

const fn row(
    path: &'static [u8],
    is: [Is; 3],
    lines: [(usize, usize); 2],
    authors: Option<&'static [&'static str]>,
) -> Row {
    Row { path, is, lines, authors }
}

const ROWS: &[Row] = &[
    row(b"binary", [Bytes(b"\0a"), Bytes(b"\0b\n"), Bytes(b"\0c\n\n")], [(0, 0), (0, 0)], None),
    row(
        b"binary-to-text",
        [Bytes(b"\0a"), Plain("now text\n"), Plain("now text\nand more\n")],
        [(0, 0), (1, 0)],
        Some(&["s", "you"]),
    ),
    row(b"mode", [Plain("a\n"), Script("a\n"), Plain("a\n")], [(0, 0), (0, 0)], Some(&["before"])),
    row(b"file", [Plain("a\n"), Folder, Plain("b\n")], [(0, 1), (1, 0)], Some(&["you"])),
    row(b"file/in", [Nothing, Plain("in\n"), Nothing], [(1, 0), (0, 1)], None),
    row(b"folder", [Folder, Plain("a\n"), Folder], [(1, 0), (0, 1)], None),
    row(
        b"folder/in",
        // Not the bytes of `file/in`: that would be a rename.
        [Plain("in it\n"), Nothing, Plain("in it\nmore\n")],
        [(0, 1), (2, 0)],
        Some(&["before", "you"]),
    ),
    row(b"link", [Link("a"), Link("b"), Link("c")], [(1, 1), (1, 1)], None),
    row(
        b"file-to-link",
        [Plain("a\n"), Link("b"), Plain("a\n")],
        [(1, 1), (1, 1)],
        Some(&["before"]),
    ),
    row(
        b"not-\xff\xfe-utf-8",
        [Plain("a\n"), Plain("a\nb\n"), Plain("a\nb\nc\n")],
        [(1, 0), (1, 0)],
        Some(&["before", "s", "you"]),
    ),
    row(
        b"latin-1",
        [Bytes(b"caf\xe9 1\n"), Bytes(b"caf\xe9 2\n"), Nothing],
        [(1, 1), (0, 1)],
        None,
    ),
    row(b"empty", [Nothing, Plain(""), Plain("")], [(0, 0), (0, 0)], Some(&[])),
    row(b"emptied", [Plain("one\n"), Plain(""), Plain("two\n")], [(0, 1), (1, 0)], Some(&["you"])),
    row(
        b"unended",
        [Plain("first\nlast"), Plain("first\nlast one"), Plain("first\nlast one\n")],
        [(1, 1), (1, 1)],
        Some(&["before", "s"]),
    ),
    row(
        b"dos",
        [Plain("one\r\ntwo\r\n"), Plain("one\r\n2nd\r\n"), Plain("one\n2nd\nthree\n")],
        [(1, 1), (3, 2)],
        Some(&["before", "s", "you"]),
    ),
    row(b"gone", [Plain("one\ntwo\n"), Nothing, Nothing], [(0, 2), (0, 0)], None),
    row(
        b"same",
        [Plain("one\n"), Plain("one\n"), Plain("one\n")],
        [(0, 0), (0, 0)],
        Some(&["before"]),
    ),
];

impl Row {
    fn path(&self) -> WorkPath {
        WorkPath::new(self.path).unwrap()
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(self.path).into_owned()
    }

    /// Whether it changed in the session's turn, or after it; folders count only for the log's entries.
    fn changed(&self, by_you: bool) -> bool {
        let at = usize::from(by_you);
        self.is[at] != self.is[at + 1]
    }

    /// Whether the change counts as one of a file.
    fn counts(&self, by_you: bool) -> bool {
        let at = usize::from(by_you);
        self.changed(by_you) && [self.is[at], self.is[at + 1]] != [Nothing, Folder]
    }
}

fn place(sandbox: &Sandbox, row: &Row, at: usize) {
    let path = sandbox.root().join(std::ffi::OsStr::from_bytes(row.path));
    let was = at.checked_sub(1).map(|at| row.is[at]);
    if was == Some(row.is[at]) {
        return;
    }
    match fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path).unwrap(),
        Ok(_) => fs::remove_file(&path).unwrap(),
        Err(_) => {}
    }
    if row.is[at] != Nothing && row.is[at] != Folder {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    match row.is[at] {
        Nothing => {}
        Folder => fs::create_dir_all(&path).unwrap(),
        Link(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
        Plain(text) | Script(text) => fs::write(&path, text).unwrap(),
        Bytes(bytes) => fs::write(&path, bytes).unwrap(),
    }
    if let Script(_) = row.is[at] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// The rows' three times, with a point before each of the last two, and one after them.
struct Story {
    sandbox: Sandbox,
    points: [PointId; 3],
    trees: [BTreeMap<PathBuf, Thing>; 3],
}

fn story() -> Story {
    let mut sandbox = Sandbox::in_memory();
    ROWS.iter().for_each(|row| place(&sandbox, row, 0));
    let first = sandbox.prompt("s", "change everything");
    let mut trees = vec![sandbox.tree()];
    sandbox.agent_runs("s", "everything", |sandbox| {
        ROWS.iter().for_each(|row| place(sandbox, row, 1));
    });
    sandbox.turn_end("s");
    trees.push(sandbox.tree());
    let second = checkpoint(&mut sandbox.workspace, Some("second")).unwrap().point.unwrap();
    ROWS.iter().for_each(|row| place(&sandbox, row, 2));
    trees.push(sandbox.tree());
    let third = checkpoint(&mut sandbox.workspace, Some("third")).unwrap().point.unwrap();
    let trees: [_; 3] = trees.try_into().unwrap();
    Story { sandbox, points: [first, second, third], trees }
}

impl Story {
    fn store(&self) -> &dyn takeback_store::Store {
        &*self.sandbox.workspace.store
    }

    fn seq(&self, at: usize) -> Seq {
        let points = self.store().points().unwrap();
        points.iter().find(|point| point.id == self.points[at]).unwrap().seq
    }

    fn log(&self, filter: LogFilter) -> Vec<PointRow> {
        let (rows, points) = (LogRows::Points, PointFilter::WithoutSafety);
        let query = LogQuery { limit: 100, rows, points, session: None, filter, git_now: None };
        let rows = log(self.store(), &query).unwrap().into_iter();
        rows.filter_map(|row| match row {
            LogRow::Point(row) => Some(*row),
            LogRow::Operation(_) => None,
        })
        .collect()
    }

    fn ids(&self, filter: LogFilter) -> Vec<usize> {
        let at = |row: &PointRow| self.points.iter().position(|id| *id == row.point.id).unwrap();
        self.log(filter).iter().map(at).collect()
    }
}

/// The numbers of all rows together.
fn total(by_you: bool) -> Count {
    let rows = || ROWS.iter().filter(|row| row.counts(by_you));
    let lines = rows().map(|row| row.lines[usize::from(by_you)]);
    let (insertions, deletions) = lines.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    Count { files: rows().count(), lines: Lines { insertions, deletions } }
}

#[test]
fn the_log_counts_every_kind_of_file_for_its_author() {
    let story = story();
    let rows = story.log(LogFilter::default());
    let [third, second, first] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(first.tally.agent, total(false));
    assert_eq!(second.tally.you, total(true));
    assert_eq!((first.tally.you, second.tally.agent), (Count::default(), Count::default()));
    assert_eq!(third.changes, []);
}

#[test]
fn a_filtered_log_lists_the_points_after_which_a_row_changed() {
    let story = story();
    for row in ROWS {
        let below = Some(row.path());
        let changed: Vec<usize> = [true, false]
            .iter()
            .filter(|by_you| row.changed(**by_you))
            .map(|you| usize::from(*you))
            .collect();
        // A folder's rows include what is in it.
        if !row.is.contains(&Folder) {
            let filter = LogFilter {
                below: below.clone(),
                paths: Some(exactly(row)),
                ..LogFilter::default()
            };
            assert_eq!(story.ids(filter), changed, "{}", row.name());
            let by = Some(AuthorFilter::You);
            let filter = LogFilter { below, by, paths: Some(exactly(row)), ..LogFilter::default() };
            let yours: Vec<usize> = changed.iter().copied().filter(|at| *at == 1).collect();
            assert_eq!(story.ids(filter), yours, "{}", row.name());
        }
    }
    for (text, expected) in [("2nd", &[0][..]), ("more", &[1]), ("caf", &[1]), ("nowhere", &[])] {
        let text = Some(text.as_bytes().to_vec());
        let filter = LogFilter { text, ..LogFilter::default() };
        assert_eq!(story.ids(filter), expected);
    }
}

/// A filter of one path. A glob cannot name what is not UTF-8, so `?` stands for such bytes.
fn exactly(row: &Row) -> takeback_core::rewind::PathFilter {
    let pattern: String =
        row.path.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect();
    takeback_core::rewind::PathFilter::new(&[pattern]).unwrap()
}

#[test]
fn a_file_at_a_point_has_the_bytes_it_had() {
    let story = story();
    for row in ROWS {
        for (at, is) in row.is.into_iter().enumerate() {
            let entry = entry_at(story.store(), &row.path(), story.seq(at)).unwrap();
            let name = format!("{} at {at}", row.name());
            match (is, entry) {
                (Nothing, None | Some(Entry::Absent | Entry::Unknown))
                | (Folder, Some(Entry::Dir { .. })) => {}
                (Plain(text) | Script(text), Some(Entry::File { digest, mode, .. })) => {
                    assert_eq!(story.store().contents(&digest).unwrap(), text.as_bytes(), "{name}");
                    assert_eq!(mode & 0o100 != 0, matches!(is, Script(_)), "{name}");
                }
                (Bytes(bytes), Some(Entry::File { digest, .. })) => {
                    assert_eq!(story.store().contents(&digest).unwrap(), bytes, "{name}");
                }
                (Link(target), Some(Entry::Symlink { target: found })) => {
                    assert_eq!(found, target.as_bytes(), "{name}");
                }
                (is, entry) => panic!("{name}: {is:?} and {entry:?}"),
            }
        }
    }
}

#[test]
fn a_files_history_has_a_row_for_each_point_with_counts_by_author() {
    let story = story();
    for row in ROWS {
        let rows = path_history(story.store(), &row.path(), 100).unwrap();
        let by_point = |at: usize| {
            rows.iter()
                .find(|one| one.point.as_ref().is_some_and(|point| point.id == story.points[at]))
        };
        for by_you in [false, true] {
            let name = format!("{}, by you: {by_you}", row.name());
            let found = by_point(usize::from(by_you));
            assert_eq!(found.is_some(), row.changed(by_you), "{name}");
            let Some(found) = found else { continue };
            let (insertions, deletions) = row.lines[usize::from(by_you)];
            let files = usize::from(row.counts(by_you));
            let expected = Count { files, lines: Lines { insertions, deletions } };
            let count = if by_you { found.tally.you } else { found.tally.agent };
            assert_eq!(count, expected, "{name}");
        }
    }
    let unknown = path_history(story.store(), &WorkPath::new("never").unwrap(), 100).unwrap();
    assert!(unknown.is_empty());
}

#[test]
fn every_row_has_a_blame_or_a_reason_why_not() {
    let story = story();
    for row in ROWS {
        let found = authored_lines(&story.sandbox.workspace, &row.path());
        let name = row.name();
        match (row.authors, row.is[2], found) {
            (Some(authors), _, Ok(file)) => {
                let found: Vec<&str> = file
                    .lines
                    .iter()
                    .map(|line| match line.writer.author {
                        LineAuthor::Agent => "s",
                        LineAuthor::You => "you",
                        LineAuthor::Before => "before",
                        LineAuthor::Other | LineAuthor::Unknown => "?",
                    })
                    .collect();
                assert_eq!(found, authors, "{name}");
                let text: Vec<u8> = file.lines.iter().flat_map(|line| line.text.clone()).collect();
                let (Plain(now) | Script(now)) = row.is[2] else { panic!("{name}") };
                assert_eq!(text, now.as_bytes(), "{name}");
            }
            (None, Bytes(_), Err(BlameError::NotText { .. })) => {}
            (None, Nothing | Folder | Link(_), Err(BlameError::NotAFile { .. })) => {}
            (authors, _, found) => panic!("{name}: {authors:?} and {found:?}"),
        }
    }
}

#[test]
fn the_stats_are_the_sum_of_all_rows() {
    let story = story();
    let mut changes = story.store().changes_after(story.seq(0)).unwrap();
    settle(story.store(), &mut changes).unwrap();
    let points = story.store().points().unwrap();
    let stats = stats(story.store(), &changes, &points).unwrap();
    assert_eq!((stats.agents.count, stats.you.count), (total(false), total(true)));
    let left = |author: &str| -> usize {
        let authors = ROWS.iter().filter_map(|row| row.authors);
        authors.flatten().filter(|one| **one == author).count()
    };
    assert_eq!((stats.agents.left, stats.you.left), (left("s"), left("you")));
    let not_followed: Vec<WorkPath> =
        ROWS.iter().filter(|row| matches!(row.is[2], Bytes(_))).map(Row::path).collect();
    assert_eq!(stats.not_followed, not_followed);
}

#[test]
fn an_authors_part_leads_from_the_first_state_to_the_one_without_the_others() {
    let story = story();
    for by_you in [false, true] {
        let mut changes = story.store().changes_after(story.seq(0)).unwrap();
        settle(story.store(), &mut changes).unwrap();
        let rewinds = story.store().rewind_changes_after(Seq(0)).unwrap();
        let by = if by_you { AuthorFilter::You } else { AuthorFilter::Sessions(Vec::new()) };
        let part =
            changes_by(story.store(), changes, &cancelled(&rewinds), |change| by.includes(change))
                .unwrap();
        let contents = Contents { store: story.store(), made: &part.made };
        for row in ROWS {
            let name = format!("{}, by you: {by_you}", row.name());
            let diffs: Vec<&FileDiff> =
                part.diffs.iter().filter(|diff| diff.path == row.path()).collect();
            if part.overlapping.contains(&row.path()) {
                assert!(row.changed(false) && row.changed(true), "{name}");
                continue;
            }
            if !row.changed(by_you) {
                assert!(diffs.is_empty(), "{name}: {diffs:?}");
                continue;
            }
            // Of a file that only one changed, the part is the whole difference.
            if !row.changed(!by_you) {
                let last = entry_at(story.store(), &row.path(), story.seq(2)).unwrap();
                let after: Vec<&Entry> = diffs.iter().map(|diff| &diff.after).collect();
                assert_eq!(after, last.iter().collect::<Vec<_>>(), "{name}");
            }
            for diff in diffs {
                let compared = diff.compare_in(contents).unwrap();
                assert_ne!(compared, Comparison::Damaged, "{name}");
            }
        }
        // What both added in different places is separated.
        let of = |path: &[u8]| part.diffs.iter().find(|diff| diff.path.as_bytes() == path).unwrap();
        let Text::Lines(text) = Text::of(&of(b"not-\xff\xfe-utf-8").after, contents).unwrap()
        else {
            panic!("it is text")
        };
        assert_eq!(text, if by_you { &b"a\nc\n"[..] } else { b"a\nb\n" });
    }
}

#[test]
fn a_copy_of_every_point_is_the_tree_that_was_there() {
    let story = story();
    let folder = tempfile::tempdir().unwrap();
    let mut copy = TreeCopy::in_folder(folder.path(), &story.sandbox.root()).unwrap();
    // Back and forth: only what differs is written.
    for at in [2, 0, 1, 2, 1, 0, 2] {
        let gaps = copy.move_to(story.store(), story.seq(at)).unwrap();
        assert_eq!(gaps.missing, []);
        assert_eq!(takeback_testkit::tree(folder.path()), story.trees[at], "point {at}");
    }
}

#[test]
fn a_renamed_file_is_followed_by_every_question() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("old.rs", "one\ntwo\n");
    sandbox.prompt("s", "add a line");
    sandbox.agent_writes("s", "old.rs", "one\nthe agent's\ntwo\n");
    sandbox.turn_end("s");
    sandbox.prompt("t", "move it");
    sandbox.agent_runs("t", "git mv", |sandbox| {
        fs::create_dir(sandbox.at("src")).unwrap();
        fs::rename(sandbox.at("old.rs"), sandbox.at("src/new.rs")).unwrap();
    });
    sandbox.turn_end("t");
    sandbox.prompt("t", "again");
    sandbox.turn_end("t");
    sandbox.write("src/new.rs", "one\nthe agent's\ntwo\nmine\n");
    look_around(&mut sandbox.workspace).unwrap();
    let store = &*sandbox.workspace.store;
    let text = Some(b"the agent's".to_vec());
    let (rows, points) = (LogRows::Points, PointFilter::WithoutSafety);
    let filter = LogFilter { text, ..LogFilter::default() };
    let query = LogQuery { limit: 100, rows, points, session: None, filter, git_now: None };
    assert_eq!(log(store, &query).unwrap().len(), 1, "a rename adds no text");
    let new = WorkPath::new("src/new.rs").unwrap();
    let rows = path_history(store, &new, 100).unwrap();
    let rows: Vec<(String, Option<String>, Option<String>)> = rows
        .iter()
        .map(|row| {
            let name = WorkPath::display;
            let prompt = row.point.as_ref().map(|point| point.description.clone());
            (name(&row.path), row.renamed_from.as_ref().map(name), prompt)
        })
        .collect();
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        ("src/new.rs".to_owned(), None, text("again")),
        ("src/new.rs".to_owned(), text("old.rs"), text("move it")),
        ("old.rs".to_owned(), None, text("add a line")),
    ];
    assert_eq!(rows[..3], expected);
    let blame = blame(store, &new).unwrap();
    assert_eq!(blame.lines.len(), 4);
    let mut changes = store.changes_after(Seq(0)).unwrap();
    settle(store, &mut changes).unwrap();
    let stats = stats(store, &changes, &store.points().unwrap()).unwrap();
    let left: Vec<(&str, usize)> =
        stats.sessions.iter().map(|(session, one)| (session.0.as_str(), one.left)).collect();
    assert_eq!(left, [("s", 1), ("t", 0)], "who moves lines did not write them");
    assert_eq!(by_path(changes).len(), 3, "two files and a folder");
}
