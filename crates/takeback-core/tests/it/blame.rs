//! Who wrote a line: rules, and an independent model over random histories.
//!
//! | rule | tests |
//! |---|---|
//! | a moved or indented line keeps its author | `who_moves_or_indents_a_line_is_not_its_author` |
//! | a rewritten line gets a new one | `who_rewrites_a_line_is_its_author`, `git::who_rewrites_a_committed_line_is_its_author` |
//! | renames keep authors | `a_renamed_file_keeps_its_authors`, `git::a_renamed_file_keeps_its_authors_before_and_after_a_commit_whoever_renames_it` |
//! | uncommitted lines are answered; works without git | `each_line_has_the_author_who_wrote_it_also_before_it_is_committed`, and all tests here |
//! | your line next to an agent's is yours | `git::a_line_next_to_an_agents_is_not_the_agents` |
//! | your uncommitted line stays yours after an agent's `sed` | `git::your_line_that_no_scan_has_seen_stays_yours_when_a_command_rewrites_the_file` |
//! | your commit elsewhere is not the agent's | `git::your_commit_in_another_repository_is_not_the_agents` |
//! | commits made without `git commit` | `git::commits_that_no_git_command_was_seen_to_make_change_no_authors` |
//! | states seen before bring authors back | `a_state_seen_before_brings_its_authors_back`, `git::what_git_takes_away_and_brings_back_keeps_its_authors_whoever_runs_it` |
//! | what git brings in keeps its commits; the act stays the agent's | `git::what_git_brings_in_keeps_its_commits_whoever_runs_it_and_an_agents_act_can_be_taken_back` |
//! | prompts survive rebase, squash, amend, cherry-pick, stash | `git::lines_of_a_prompt_keep_it_through_what_git_does_to_their_commits`, `git::a_rebase_keeps_…` |
//! | window evidence is doubtful | `what_a_shell_command_wrote_is_known_by_its_window`; on screen: `questions` of the program |
//! | a late formatter belongs to its edit | `a_formatter_that_runs_after_an_edit_writes_for_it` |
//! | unknown stays unknown | `a_line_after_contents_that_are_lost_is_unknown`, `a_line_is_unknown_if_several_sessions_or_an_open_window_may_have_written_it` |
//! | an independent model agrees | `model`, `model::with_git` |

mod git;
mod model;
pub(crate) mod project;

use takeback_core::history::{BlameError, LineAuthor, LineOrigin, authored_lines, blame};
use takeback_core::{CallReport, Outcome, look_around};
use takeback_store::{Author, Evidence, WorkPath};
use takeback_testkit::Sandbox;

/// The authors of a file's lines: a session, `you`, `before` or `unknown`.
pub(crate) fn authors(sandbox: &mut Sandbox, path: &str) -> Vec<(String, String)> {
    look_around(&mut sandbox.workspace).unwrap();
    let blame = blame(&*sandbox.workspace.store, &WorkPath::new(path).unwrap()).unwrap();
    let author = |origin| match origin {
        LineOrigin::Before { .. } => "before".to_owned(),
        LineOrigin::Unknown { .. } => "unknown".to_owned(),
        LineOrigin::Change { seq, .. } => match &blame.changes[&seq].author {
            Author::Agent { session, .. } => session.0.clone(),
            Author::Human => "you".to_owned(),
            other => format!("{other:?}"),
        },
    };
    let text = |line: &[u8]| String::from_utf8_lossy(line).trim().to_owned();
    blame.lines.iter().map(|line| (text(&line.text), author(line.origin))).collect()
}

#[track_caller]
fn expect(sandbox: &mut Sandbox, path: &str, expected: &[(&str, &str)]) {
    let found = authors(sandbox, path);
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected);
}

/// Three lines older than the log; the agent adds one, you add one.
fn two_authors() -> Sandbox {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "line one\nline two\n}\n");
    sandbox.prompt("s", "add");
    sandbox.agent_writes("s", "a.txt", "line one\nthe agent's\nline two\n}\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "line one\nthe agent's\nline two\nyour own\n}\n");
    sandbox
}

const TWO: &[(&str, &str)] = &[
    ("line one", "before"),
    ("the agent's", "s"),
    ("line two", "before"),
    ("your own", "you"),
    ("}", "before"),
];

#[test]
fn each_line_has_the_author_who_wrote_it_also_before_it_is_committed() {
    expect(&mut two_authors(), "a.txt", TWO);
}

#[test]
fn who_moves_or_indents_a_line_is_not_its_author() {
    let mut sandbox = two_authors();
    sandbox.write("a.txt", "your own\n  line two\n}\n\t\tthe agent's\nline one\n");
    let expected = [
        ("your own", "you"),
        ("line two", "before"),
        ("}", "before"),
        ("the agent's", "s"),
        ("line one", "before"),
    ];
    expect(&mut sandbox, "a.txt", &expected);
}

#[test]
fn who_rewrites_a_line_is_its_author() {
    let mut sandbox = two_authors();
    sandbox.write("a.txt", "line one\nthe agent's, rewritten\nline two\nyour own\n}\n");
    let mut expected = TWO.to_vec();
    expected[1] = ("the agent's, rewritten", "you");
    expect(&mut sandbox, "a.txt", &expected);
}

#[test]
fn a_renamed_file_keeps_its_authors() {
    let mut sandbox = two_authors();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.agent_runs("s", "git mv", |sandbox| {
        std::fs::create_dir(sandbox.at("d")).unwrap();
        std::fs::rename(sandbox.at("a.txt"), sandbox.at("d/b.txt")).unwrap();
    });
    expect(&mut sandbox, "d/b.txt", TWO);
    // Renamed and edited in one go.
    std::fs::rename(sandbox.at("d/b.txt"), sandbox.at("c.txt")).unwrap();
    let text = sandbox.read("c.txt");
    sandbox.write("c.txt", format!("{text}a new end\n"));
    let mut expected = TWO.to_vec();
    expected.push(("a new end", "you"));
    expect(&mut sandbox, "c.txt", &expected);
}

#[test]
fn lines_that_move_to_another_file_keep_their_authors() {
    let mut sandbox = two_authors();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.agent_runs("t", "split", |sandbox| {
        sandbox.write("a.txt", "line one\nline two\n}\n");
        sandbox.write("b.txt", "by t\nthe agent's\nyour own\n");
    });
    expect(&mut sandbox, "b.txt", &[("by t", "t"), ("the agent's", "s"), ("your own", "you")]);
}

#[test]
fn a_state_seen_before_brings_its_authors_back() {
    let mut sandbox = two_authors();
    look_around(&mut sandbox.workspace).unwrap();
    let text = sandbox.read("a.txt");
    for away in [Some("line one\nline two\n}\n"), None] {
        sandbox.agent_runs("t", "git stash", |sandbox| match away {
            Some(old) => sandbox.write("a.txt", old),
            None => sandbox.remove("a.txt"),
        });
        sandbox.agent_runs("t", "git stash pop", |sandbox| sandbox.write("a.txt", &text));
        expect(&mut sandbox, "a.txt", TWO);
    }
}

#[test]
fn lines_that_come_back_into_another_state_keep_their_authors() {
    let mut sandbox = two_authors();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.agent_runs("t", "git switch", |sandbox| {
        sandbox.write("a.txt", "line one\nline two\nof the branch\n}\n");
    });
    let picked = "line one\nthe agent's\nline two\nof the branch\nyour own\n}\n";
    sandbox.agent_runs("t", "git cherry-pick", |sandbox| sandbox.write("a.txt", picked));
    let mut expected = TWO.to_vec();
    expected.insert(3, ("of the branch", "t"));
    expect(&mut sandbox, "a.txt", &expected);
}

#[test]
fn a_rewind_brings_authors_back() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "line one\nline two\nline three\n");
    sandbox.prompt("s", "first");
    sandbox.agent_writes("s", "a.txt", "line one\nby s\nline two\nline three\n");
    let point = sandbox.prompt("t", "second");
    sandbox.agent_writes("t", "a.txt", "line one\nline two\nline three, by t\n");
    sandbox.turn_end("t");
    sandbox.write("a.txt", "mine\nline one\nline two\nline three, by t\n");
    sandbox.rewind_to(point);
    let expected = [
        ("mine", "you"),
        ("line one", "before"),
        ("by s", "s"),
        ("line two", "before"),
        ("line three", "before"),
    ];
    expect(&mut sandbox, "a.txt", &expected);
    sandbox.undo();
    let expected = [
        ("mine", "you"),
        ("line one", "before"),
        ("line two", "before"),
        ("line three, by t", "t"),
    ];
    expect(&mut sandbox, "a.txt", &expected);
}

#[test]
fn a_copied_line_is_its_copiers() {
    let mut sandbox = two_authors();
    sandbox.write("a.txt", "line one\nthe agent's\nline two\nyour own\n}\nthe agent's\n");
    let mut expected = TWO.to_vec();
    expected.push(("the agent's", "you"));
    expect(&mut sandbox, "a.txt", &expected);
}

#[test]
fn what_a_shell_command_wrote_is_known_by_its_window() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "old\n");
    sandbox.prompt("s", "run");
    sandbox.agent_runs("s", "generate", |sandbox| sandbox.write("a.txt", "old\ngenerated\n"));
    let blame = blame(&*sandbox.workspace.store, &WorkPath::new("a.txt").unwrap()).unwrap();
    let evidence: Vec<Evidence> = blame.changes.values().map(|change| change.evidence).collect();
    assert_eq!(evidence, [Evidence::Window]);
}

#[test]
fn what_is_no_text_or_not_there_has_no_blame() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("binary", b"\0\x01");
    sandbox.write("gone", "text\n");
    std::fs::create_dir(sandbox.at("folder")).unwrap();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.remove("gone");
    look_around(&mut sandbox.workspace).unwrap();
    let path = |path: &str| WorkPath::new(path).unwrap();
    let of = |name: &str| blame(&*sandbox.workspace.store, &path(name)).unwrap_err();
    assert!(matches!(of("binary"), BlameError::NotText { .. }));
    assert!(matches!(of("gone"), BlameError::NotAFile { .. }));
    assert!(matches!(of("folder"), BlameError::NotAFile { .. }));
    assert!(matches!(of("never"), BlameError::NotRecorded { .. }));
}

#[test]
fn a_file_that_was_a_folder_starts_anew() {
    let mut sandbox = two_authors();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.agent_runs("s", "rm", |sandbox| {
        sandbox.remove("a.txt");
        sandbox.write("a.txt/inner", "inner text\n");
    });
    sandbox.remove("a.txt/inner");
    std::fs::remove_dir(sandbox.at("a.txt")).unwrap();
    sandbox.write("a.txt", "all new\nthe agent's\n");
    expect(&mut sandbox, "a.txt", &[("all new", "you"), ("the agent's", "s")]);
}

#[test]
fn a_file_that_was_binary_starts_anew() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("first", b"\0\x01");
    sandbox.write("between", "line one\n");
    sandbox.prompt("s", "make it text");
    sandbox.agent_writes("s", "first", "now text\n");
    sandbox.agent_writes("s", "between", b"\0\x01");
    sandbox.turn_end("s");
    expect(&mut sandbox, "first", &[("now text", "s")]);
    sandbox.write("between", "line one\nnow text\n");
    expect(&mut sandbox, "between", &[("line one", "before"), ("now text", "you")]);
}

#[test]
fn a_line_after_contents_that_are_lost_is_unknown() {
    let (old, agents) = ("line one\nline two\n", "line one\nthe agent's\nline two\n");
    let yours = "line one\nthe agent's\nline two\nyour own\n";
    let history = || {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", old);
        sandbox.prompt("s", "add");
        sandbox.agent_writes("s", "a.txt", agents);
        sandbox.turn_end("s");
        sandbox.write("a.txt", yours);
        look_around(&mut sandbox.workspace).unwrap();
        sandbox
    };
    // Any line may have been in what is lost.
    let mut sandbox = history();
    crate::damage::spoil(&mut sandbox, agents);
    let expected = [
        ("line one", "before"),
        ("the agent's", "unknown"),
        ("line two", "before"),
        ("your own", "unknown"),
    ];
    expect(&mut sandbox, "a.txt", &expected);
    let mut sandbox = history();
    crate::damage::spoil(&mut sandbox, old);
    let expected = [
        ("line one", "unknown"),
        ("the agent's", "unknown"),
        ("line two", "unknown"),
        ("your own", "you"),
    ];
    expect(&mut sandbox, "a.txt", &expected);
}

#[test]
fn a_line_is_unknown_if_several_sessions_or_an_open_window_may_have_written_it() {
    let mut sandbox = two_authors();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.prompt("t", "run");
    let calls =
        [("s", sandbox.before_shell("s", "make")), ("t", sandbox.before_shell("t", "make"))];
    sandbox.write("b.txt", "by either\n");
    for (session, call) in calls {
        sandbox.after(session, &call);
    }
    let call = sandbox.before_shell("t", "make");
    sandbox.write("c.txt", "by either of you\n");
    look_around(&mut sandbox.workspace).unwrap();
    for name in ["b.txt", "c.txt"] {
        let path = WorkPath::new(name).unwrap();
        let file = authored_lines(&sandbox.workspace, &path).unwrap();
        assert_eq!(file.lines[0].writer.author, LineAuthor::Unknown, "{name}");
    }
    // The end of the command decides: it is a window then, and the doubt is in the evidence.
    sandbox.after("t", &call);
    let file = authored_lines(&sandbox.workspace, &WorkPath::new("c.txt").unwrap()).unwrap();
    let writer = &file.lines[0].writer;
    assert_eq!((writer.author, writer.evidence), (LineAuthor::Agent, Some(Evidence::Window)));
}

#[test]
fn a_formatter_that_runs_after_an_edit_writes_for_it() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.date_files();
    sandbox.write("a.txt", "line one\n");
    sandbox.prompt("s", "add");
    let call = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "line one\nx=1 ;\n");
    let report = CallReport { formatter: true, ..CallReport::default() };
    sandbox.after_with("s", &call, Outcome::Done, report);
    sandbox.milliseconds_pass(800);
    sandbox.write("a.txt", "    line one\n    x = 1;\n");
    expect(&mut sandbox, "a.txt", &[("line one", "before"), ("x = 1;", "s")]);
    sandbox.milliseconds_pass(60_000);
    sandbox.write("a.txt", "    line one\n    x = 2;\n");
    expect(&mut sandbox, "a.txt", &[("line one", "before"), ("x = 2;", "you")]);
}
