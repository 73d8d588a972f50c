use std::os::unix::fs::PermissionsExt as _;

use takeback_store::Author;

use super::super::bundle::OutsidePolicy;
use super::*;

const ROOT: &str = "/work";

fn bytes(text: &str) -> SavedFile {
    SavedFile::Bytes { bytes: text.as_bytes().to_vec(), mode: 0o644 }
}

fn files(files: &[(&str, SavedFile)]) -> BTreeMap<PathBuf, SavedFile> {
    let at = |path: &str| Path::new(ROOT).join(path);
    files.iter().map(|(path, kept)| (at(path), kept.clone())).collect()
}

fn prompt(message: &str, at: i64, known: &[(&str, SavedFile)]) -> HistoryPrompt {
    HistoryPrompt {
        message_ids: vec![message.to_owned()],
        text: format!("do {message}"),
        at: Timestamp(at),
        files: files(known),
        edits: BTreeMap::new(),
        left: BTreeMap::new(),
        ran_commands: false,
    }
}

fn session(name: &str, prompts: Vec<HistoryPrompt>) -> HistorySession {
    HistorySession {
        id: SessionId::from(name),
        agent: "other".to_owned(),
        started_at: prompts[0].at,
        ended_at: Timestamp(100),
        prompts,
    }
}

fn bundle_of(sessions: Vec<HistorySession>, outside: OutsidePolicy) -> HistoryBundle {
    let limits = BundleLimits { outside, ..BundleLimits::default() };
    let scratch = tempfile::tempfile().expect("a file");
    AgentHistory { sessions }.to_bundle(Path::new(ROOT), &limits, scratch).expect("it is a bundle")
}

/// The entries at each point, as text.
fn trees(history: &HistoryBundle) -> Vec<String> {
    let piece = &history.bundle.piece;
    let mut tree: BTreeMap<&WorkPath, &Entry> =
        piece.base.iter().map(|(path, entry)| (path, entry)).collect();
    let mut seen = 0;
    let mut trees = Vec::new();
    for point in &piece.points {
        for change in &piece.changes[seen..point.seq.0 as usize] {
            tree.insert(&change.path, &change.after);
        }
        seen = point.seq.0 as usize;
        let word = |entry: &Entry| match entry {
            Entry::File { size, mode, .. } => format!("{size} bytes {mode:o}"),
            Entry::NotCaptured { reason } => format!("{reason:?}"),
            other => format!("{other:?}"),
        };
        let words = tree.iter().map(|(path, entry)| format!("{}: {}", path.display(), word(entry)));
        trees.push(words.collect::<Vec<_>>().join(", "));
    }
    trees
}

#[test]
fn what_one_session_knew_is_unknown_to_the_next() {
    let first = session("s", vec![prompt("m1", 1, &[("a", bytes("1"))]), prompt("m2", 2, &[])]);
    let second =
        session("t", vec![prompt("m3", 3, &[("b", SavedFile::Absent), ("a", SavedFile::Lost)])]);
    let history = bundle_of(vec![first, second], OutsidePolicy::Refuse);
    assert_eq!(
        trees(&history),
        ["a: 1 bytes 644, b: Unknown", "a: Unknown, b: Unknown", "a: Unreadable, b: Absent"]
    );
    let lost: Vec<String> = history.lost.iter().map(WorkPath::display).collect();
    assert_eq!(lost, ["a"]);
}

#[test]
fn authors_follow_from_the_calls_of_a_turn() {
    let mut one = prompt("m1", 1, &[("a", bytes("1")), ("b", bytes("1")), ("c", bytes("1"))]);
    let edit = |tool: &str| Edit { call: CallId::from("c1"), tool: tool.to_owned() };
    one.edits.insert(Path::new(ROOT).join("a"), edit("Edit"));
    one.edits.insert(Path::new(ROOT).join("b"), edit("Write"));
    one.left = files(&[("a", bytes("12"))]);
    let mut two = prompt("m2", 2, &[("a", bytes("123")), ("b", bytes("12")), ("c", bytes("12"))]);
    two.ran_commands = true;
    let three =
        prompt("m3", 3, &[("a", SavedFile::Absent), ("b", bytes("12")), ("c", bytes("12"))]);
    let history = bundle_of(vec![session("s", vec![one, two, three])], OutsidePolicy::Refuse);
    let changes =
        history.bundle.piece.changes.iter().filter(|change| change.before != Entry::Unknown);
    let words: Vec<String> = changes
        .map(|change| match &change.author {
            Author::Agent { tool, .. } => format!("{} {tool}", change.path.display()),
            other => format!("{} {other:?}", change.path.display()),
        })
        .collect();
    assert_eq!(
        words,
        // The person changed `a` after its edit, and `c`.
        ["a Edit", "a Human", "b Write", "c Human", "a Ambiguous { sessions: [SessionId(\"s\")] }",]
    );
}

#[test]
fn paths_that_no_import_accepts_are_left_out() {
    let known = [
        (".git/config", bytes("x")),
        (".takeback/settings.json", bytes("x")),
        ("../out", bytes("x")),
        ("sub/../a", bytes("1")),
        ("", bytes("x")),
    ];
    let all = || vec![session("s", vec![prompt("m1", 1, &known)])];
    let refused = bundle_of(all(), OutsidePolicy::Refuse);
    assert_eq!(trees(&refused), ["a: 1 bytes 644"]);
    assert_eq!(refused.outside, [Path::new("/work/../out")]);
    let accepted = bundle_of(all(), OutsidePolicy::Accept);
    assert_eq!(trees(&accepted), ["/out: 1 bytes 644, a: 1 bytes 644"]);
    assert_eq!(accepted.outside, Vec::<PathBuf>::new());
}

#[test]
fn a_file_that_became_a_folder_is_special() {
    let known = [("a", bytes("1")), ("a/b", bytes("2"))];
    let history =
        bundle_of(vec![session("s", vec![prompt("m1", 1, &known)])], OutsidePolicy::Refuse);
    assert_eq!(trees(&history), ["a: Special, a/b: 1 bytes 644"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
fn copies_keep_their_permissions_and_anything_else_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |name: &str| SavedFile::Copy(folder.path().join(name));
    let large: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(folder.path().join("large"), &large).expect("a file");
    std::fs::write(folder.path().join("longer"), [&large[..], b"!"].concat()).expect("a file");
    std::fs::write(folder.path().join("tool"), "x").expect("a file");
    let open = std::fs::Permissions::from_mode(0o4750);
    std::fs::set_permissions(folder.path().join("tool"), open).expect("its own");
    std::os::unix::fs::symlink("tool", folder.path().join("link")).expect("a link");
    let known = [
        ("f", copy("tool")),
        ("g", copy("link")),
        ("h", copy("gone")),
        ("i", SavedFile::Copy(folder.path().to_owned())),
        ("large", copy("large")),
        // Most of its parts are those of the other.
        ("longer", copy("longer")),
    ];
    let history =
        bundle_of(vec![session("s", vec![prompt("m1", 1, &known)])], OutsidePolicy::Refuse);
    assert_eq!(
        trees(&history),
        ["f: 1 bytes 750, g: Unreadable, h: Unreadable, i: Unreadable, \
          large: 12000000 bytes 644, longer: 12000001 bytes 644"]
    );
}

#[test]
fn a_prompt_occurs_once() {
    let fork = session("t", vec![prompt("m1", 1, &[]), prompt("m3", 3, &[])]);
    let first = session("s", vec![prompt("m1", 1, &[]), prompt("m2", 2, &[])]);
    let mut history = AgentHistory { sessions: vec![first, fork] };
    assert_eq!(history.drop_known(|message| message == "m2"), 1);
    let left = history.sessions.iter().map(|session| {
        session.prompts.iter().map(|prompt| prompt.message_ids[0].as_str()).collect::<Vec<_>>()
    });
    assert_eq!(left.collect::<Vec<_>>(), [["m1"], ["m3"]]);
    assert_eq!(history.drop_known(|_| true), 2);
    assert_eq!(history, AgentHistory::default());
}
