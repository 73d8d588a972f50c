use std::os::unix::fs::PermissionsExt as _;

use takeback_store::Author;

use super::super::bundle::Outside;
use super::*;

const ROOT: &str = "/work";

fn bytes(text: &str) -> Kept {
    Kept::Bytes { bytes: text.as_bytes().to_vec(), mode: 0o644 }
}

fn files(files: &[(&str, Kept)]) -> BTreeMap<PathBuf, Kept> {
    let at = |path: &str| Path::new(ROOT).join(path);
    files.iter().map(|(path, kept)| (at(path), kept.clone())).collect()
}

fn prompt(message: &str, at: i64, known: &[(&str, Kept)]) -> StoryPrompt {
    StoryPrompt {
        message_ids: vec![message.to_owned()],
        text: format!("do {message}"),
        at: Timestamp(at),
        files: files(known),
        edits: BTreeMap::new(),
        left: BTreeMap::new(),
        ran_commands: false,
    }
}

fn session(name: &str, prompts: Vec<StoryPrompt>) -> StorySession {
    StorySession {
        id: SessionId::from(name),
        agent: "other".to_owned(),
        started_at: prompts[0].at,
        ended_at: Timestamp(100),
        prompts,
    }
}

fn told(sessions: Vec<StorySession>, outside: Outside) -> ToldStory {
    let limits = BundleLimits { outside, ..BundleLimits::default() };
    let scratch = tempfile::tempfile().expect("a file");
    Story { sessions }.told(Path::new(ROOT), &limits, scratch).expect("it is a bundle")
}

/// What stands at each point, in words.
fn trees(told: &ToldStory) -> Vec<String> {
    let piece = &told.bundle.piece;
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
    let second = session("t", vec![prompt("m3", 3, &[("b", Kept::Absent), ("a", Kept::Lost)])]);
    let told = told(vec![first, second], Outside::Refuse);
    assert_eq!(
        trees(&told),
        ["a: 1 bytes 644, b: Unknown", "a: Unknown, b: Unknown", "a: Unreadable, b: Absent"]
    );
    let lost: Vec<String> = told.lost.iter().map(WorkPath::display).collect();
    assert_eq!(lost, ["a"]);
}

#[test]
fn whose_a_change_is_follows_from_what_the_turn_did() {
    let mut one = prompt("m1", 1, &[("a", bytes("1")), ("b", bytes("1")), ("c", bytes("1"))]);
    let edit = |tool: &str| Edit { call: CallId::from("c1"), tool: tool.to_owned() };
    one.edits.insert(Path::new(ROOT).join("a"), edit("Edit"));
    one.edits.insert(Path::new(ROOT).join("b"), edit("Write"));
    one.left = files(&[("a", bytes("12"))]);
    let mut two = prompt("m2", 2, &[("a", bytes("123")), ("b", bytes("12")), ("c", bytes("12"))]);
    two.ran_commands = true;
    let three = prompt("m3", 3, &[("a", Kept::Absent), ("b", bytes("12")), ("c", bytes("12"))]);
    let told = told(vec![session("s", vec![one, two, three])], Outside::Refuse);
    let changes = told.bundle.piece.changes.iter().filter(|change| change.before != Entry::Unknown);
    let words: Vec<String> = changes
        .map(|change| match &change.author {
            Author::Agent { tool, .. } => format!("{} {tool}", change.path.display()),
            other => format!("{} {other:?}", change.path.display()),
        })
        .collect();
    assert_eq!(
        words,
        // `a` after its edit, and `c` all along, were written by whoever sat there.
        ["a Edit", "a Human", "b Write", "c Human", "a Ambiguous { sessions: [SessionId(\"s\")] }",]
    );
}

#[test]
fn paths_that_no_import_may_bring_stay_behind() {
    let known = [
        (".git/config", bytes("x")),
        (".takeback/settings.json", bytes("x")),
        ("../out", bytes("x")),
        ("sub/../a", bytes("1")),
        ("", bytes("x")),
    ];
    let all = || vec![session("s", vec![prompt("m1", 1, &known)])];
    let refused = told(all(), Outside::Refuse);
    assert_eq!(trees(&refused), ["a: 1 bytes 644"]);
    assert_eq!(refused.outside, [Path::new("/work/../out")]);
    let accepted = told(all(), Outside::Accept);
    assert_eq!(trees(&accepted), ["/out: 1 bytes 644, a: 1 bytes 644"]);
    assert_eq!(accepted.outside, Vec::<PathBuf>::new());
}

#[test]
fn a_file_that_became_a_folder_is_none_then() {
    let known = [("a", bytes("1")), ("a/b", bytes("2"))];
    let told = told(vec![session("s", vec![prompt("m1", 1, &known)])], Outside::Refuse);
    assert_eq!(trees(&told), ["a: Special, a/b: 1 bytes 644"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
fn copies_keep_their_permissions_and_anything_else_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |name: &str| Kept::Copy(folder.path().join(name));
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
        ("i", Kept::Copy(folder.path().to_owned())),
        ("large", copy("large")),
        // Most of its parts are those of the other.
        ("longer", copy("longer")),
    ];
    let told = told(vec![session("s", vec![prompt("m1", 1, &known)])], Outside::Refuse);
    assert_eq!(
        trees(&told),
        ["f: 1 bytes 750, g: Unreadable, h: Unreadable, i: Unreadable, \
          large: 12000000 bytes 644, longer: 12000001 bytes 644"]
    );
}

#[test]
fn a_prompt_is_told_once() {
    let fork = session("t", vec![prompt("m1", 1, &[]), prompt("m3", 3, &[])]);
    let first = session("s", vec![prompt("m1", 1, &[]), prompt("m2", 2, &[])]);
    let mut story = Story { sessions: vec![first, fork] };
    assert_eq!(story.drop_known(|message| message == "m2"), 1);
    let left = story.sessions.iter().map(|session| {
        session.prompts.iter().map(|prompt| prompt.message_ids[0].as_str()).collect::<Vec<_>>()
    });
    assert_eq!(left.collect::<Vec<_>>(), [["m1"], ["m3"]]);
    assert_eq!(story.drop_known(|_| true), 2);
    assert_eq!(story, Story::default());
}
