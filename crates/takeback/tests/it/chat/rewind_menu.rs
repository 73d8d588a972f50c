//! `takeback rewind` without a point: the menu on the command line.

use serde_json::json;

use crate::pty::{DOWN, ENTER, ESC, Terminal};
use crate::unclear_authors::after_two_commands;
use crate::user::User;

/// Two prompts: the first changed `a.txt`, the second changed it again and created `b.txt`; then the user
/// wrote `mine.txt`.
fn after_two_prompts() -> User {
    let user = User::with(&[("a.txt", "zero\n"), ("mine.txt", "mine\n")]);
    agent_writes(&user, 1, "make it one", &[("a.txt", "one\n")]);
    agent_writes(&user, 2, "make it two", &[("a.txt", "two\n"), ("b.txt", "b\n")]);
    user.write("mine.txt", "mine, later\n");
    user
}

fn agent_writes(user: &User, number: u32, prompt: &str, files: &[(&str, &str)]) {
    let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    user.agent_turn(&format!("m{number}"), prompt, ("Edit", &paths), || {
        files.iter().for_each(|(path, text)| user.write(path, text));
    });
}

fn opens(user: &User, flags: &[&str]) -> Terminal {
    let mut menu = user.terminal(80, 24).start(&[&["rewind"], flags].concat());
    menu.sees("Checkpoints").sees("> 0 (current)");
    menu
}

fn files(user: &User) -> (String, bool, String) {
    (user.read("a.txt"), user.exists("b.txt"), user.read("mine.txt"))
}

fn expected(a: &str, b: bool, mine: &str) -> (String, bool, String) {
    (a.to_owned(), b, mine.to_owned())
}

#[test]
fn a_chosen_point_is_restored() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &[]);
    menu.sees("1 just now").sees("make it two").sees("make it one");
    menu.types(DOWN).sees("b.txt").types(ENTER).sees("[x] delete").sees("[x] restore");
    menu.types(ENTER).sees("Restore what?").sees("Files only");
    assert!(!menu.shown().contains("onversation"), "{}", menu.shown());
    menu.types(ENTER);
    assert_eq!(menu.ends(), 0);
    assert!(menu.is_restored());
    menu.sees("Rewind to").sees("deleted   b.txt").sees("Done and verified on disk.");
    assert_eq!(files(&user), expected("one\n", false, "mine, later\n"));
}

/// The only question that follows the menu.
#[test]
fn the_menu_asks_while_an_agent_is_at_work() {
    let user = after_two_prompts();
    let prompt = json!({ "event": "prompt", "session": "s", "message": "m3", "text": "go on" });
    user.record(&prompt.to_string());
    let mut menu = opens(&user, &[]);
    menu.types("2").sees("[x] ").types(ENTER).sees("Restore what?").types("f");
    menu.sees("s may be at work (last event").sees("Proceed? [y/N]").types("n\r");
    assert_eq!(menu.ends(), 5);
    assert_eq!(files(&user), expected("two\n", true, "mine, later\n"));
}

#[test]
fn a_number_is_enough() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &[]);
    menu.types("2").sees("[x] ").types(ENTER).sees("Restore what?").types("f");
    assert_eq!(menu.ends(), 0);
    assert_eq!(files(&user), expected("zero\n", false, "mine, later\n"));
}

#[test]
fn a_file_that_is_unticked_stays() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &[]);
    menu.types("1").sees("> [x] restore").types(DOWN).sees("> [x] delete").types(" ");
    menu.sees("[ ] delete").types(ENTER).sees("Restore what?").types(ENTER);
    assert_eq!(menu.ends(), 0);
    assert_eq!(files(&user), expected("one\n", true, "mine, later\n"));
}

#[test]
fn a_file_with_an_odd_name_is_chosen_like_any_other() {
    let user = User::with(&[("a.txt", "zero\n")]);
    let odd = ["esc\x1b]2;x\x07.txt", "back\\slash", "[x]{a,b}*?.txt", "zero\u{200b}width"];
    let mut written: Vec<(&str, &str)> = odd.iter().map(|path| (*path, "odd\n")).collect();
    written.push(("a.txt", "one\n"));
    agent_writes(&user, 1, "make odd names", &written);
    // Matches one of the names if that is read as a pattern.
    user.write("x.txt", "mine\n");
    let mut menu = opens(&user, &[]);
    menu.types("1").sees("[x] ").sees_that("a.txt", |screen| screen.contains("a.txt"));
    while !menu.shown().lines().any(|line| line.starts_with('>') && line.contains("a.txt")) {
        let before = menu.shown();
        menu.types(DOWN).sees_that("another line", |screen| screen != before);
    }
    menu.types(" ").sees("> [ ] restore").types(ENTER).sees("Restore what?").types(ENTER);
    assert_eq!(menu.ends(), 0, "{}", menu.shown());
    assert_eq!((user.read("a.txt").as_str(), user.read("x.txt").as_str()), ("one\n", "mine\n"));
    for path in odd {
        assert!(!user.exists(path), "{path:?} was ticked");
    }
}

#[test]
fn files_beyond_the_preview_are_restored_too() {
    let user = User::new();
    let names: Vec<String> = (0..510).map(|n| format!("made/{n:03}")).collect();
    let written: Vec<(&str, &str)> = names.iter().map(|path| (path.as_str(), "x\n")).collect();
    agent_writes(&user, 1, "make many", &written);
    let mut menu = opens(&user, &[]);
    menu.types("1").sees("more files").sees("[x] delete  made/000").types(" ");
    menu.sees("[ ] delete  made/000").types(ENTER).sees("Restore what?").types(ENTER);
    assert_eq!(menu.ends(), 0, "{}", menu.shown());
    let left: Vec<&String> = names.iter().filter(|path| user.exists(path)).collect();
    assert_eq!(left, ["made/000"]);
}

#[test]
fn leaving_does_nothing() {
    let user = after_two_prompts();
    let before = user.tree();
    for leave in [ENTER, "0", ESC, "q", "\x03"] {
        let mut menu = opens(&user, &[]);
        menu.types(leave);
        assert_eq!(menu.ends(), 5, "{leave:?}");
        assert!(menu.is_restored());
        menu.sees("Exited checkpoint selection.");
    }
    assert_eq!(user.tree(), before);
}

#[test]
fn the_last_rewind_is_undone() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &[]);
    menu.types("u").sees("There is no rewind to undo.").types(ESC);
    assert_eq!(menu.ends(), 5);
    user.succeeds(&["rewind", "m1", "-y"]);
    let mut menu = opens(&user, &[]);
    menu.types("u");
    assert_eq!(menu.ends(), 0);
    menu.sees("Undo the last rewind").sees("`takeback redo` takes it back.");
    assert_eq!(files(&user), expected("two\n", true, "mine, later\n"));
}

/// A file that was `one` when the execution `build` saved its step, and `two` later.
pub(super) fn after_a_step() -> User {
    let user = User::with(&[("a.txt", "zero\n")]);
    let program = env!("CARGO_BIN_EXE_takeback");
    let state = json!({ "execution_id": "build", "step_index": 1, "step_name": "compile",
        "state": { "n": 1 }, "context": {} });
    user.write("../home/1.json", &state.to_string());
    let line =
        format!("echo one > a.txt; {program} -q state save < $HOME/1.json; echo two > a.txt");
    let ran = user.takeback(&["-q", "run", "--", "sh", "-c", &line]);
    assert_eq!((ran.code, user.read("a.txt").as_str()), (0, "two\n"), "{ran:?}");
    user
}

#[test]
fn a_step_of_an_execution_is_chosen_in_the_second_list() {
    let user = after_a_step();
    let mut menu = opens(&user, &[]);
    menu.types("\t").sees("Restore build").sees("Step: compile").types(DOWN).types(ENTER);
    menu.sees("enter continue").types(ENTER).sees("Restore state and files?").types(ENTER);
    assert_eq!(menu.ends(), 0);
    menu.sees("Roll back to ckpt-build-1").sees("restored  a.txt");
    assert_eq!(user.read("a.txt"), "one\n");
}

#[test]
fn exact_paths_and_dry_run_work_in_the_menu() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &["--exact"]);
    menu.types("1").sees("mine.txt").sees("a.txt").types(ESC).sees("(current)").types(ESC);
    assert_eq!(menu.ends(), 5);
    let mut menu = opens(&user, &["--path", "a.txt"]);
    menu.types("1").sees("[x] restore").types(ENTER).sees("Restore what?");
    assert!(!menu.shown().contains("b.txt"), "{}", menu.shown());
    menu.types(ESC).sees("esc back").types(ESC).sees("(current)").types(ESC);
    assert_eq!(menu.ends(), 5);

    let before = user.tree();
    let mut menu = opens(&user, &["--dry-run"]);
    menu.types("1").sees("[x] ").types(ENTER).sees("Restore what?").types(ENTER);
    assert_eq!(menu.ends(), 0);
    menu.sees("1 to restore, 1 to delete");
    assert_eq!(user.tree(), before);

    let mut menu = opens(&user, &["--exact"]);
    menu.types("1").sees("[x] ").types(ENTER).sees("Restore what?").types(ENTER);
    assert_eq!(menu.ends(), 0);
    assert_eq!(files(&user), expected("one\n", false, "mine\n"));
}

#[test]
fn without_a_terminal_a_point_must_be_named() {
    let user = after_two_prompts();
    for args in [&["rewind"][..], &["rewind", "--json"], &["rewind", "-y"]] {
        let answer = user.takeback(args);
        assert_eq!((answer.code, answer.out.is_empty()), (2, true), "{args:?}: {answer:?}");
        assert!(answer.err.contains("`takeback log` lists them"), "{answer:?}");
    }
    assert_eq!(files(&user), expected("two\n", true, "mine, later\n"));
}

#[test]
fn without_points_there_is_no_menu() {
    let user = User::with(&[("a.txt", "zero\n")]);
    let mut menu = user.terminal(80, 24).start(&["rewind"]);
    assert_eq!(menu.ends(), 10);
    let event = json!({ "event": "session_start", "session": "s" });
    user.record(&event.to_string());
    let mut menu = user.terminal(80, 24).start(&["rewind"]);
    assert_eq!(menu.ends(), 5);
    menu.sees("No checkpoints found.");
    assert!(!menu.ever().contains("\x1b[?1049h"), "nothing was taken over");
}

#[test]
fn files_can_be_marked_as_the_agents_or_as_yours() {
    let user = after_two_commands();
    let mut menu = opens(&user, &[]);
    menu.types("3").sees("> [x] delete").sees("named.txt").sees("unclear");
    menu.types("m").sees(">     mine");
    while !menu.shown().lines().any(|line| line.starts_with('>') && line.contains("no[t]es")) {
        let before = menu.shown();
        menu.types(DOWN).sees_that("another line", |screen| screen != before);
    }
    menu.types("t").sees(">     take");
    menu.types(ENTER).sees("Restore what?").types(ENTER);
    assert_eq!(menu.ends(), 4, "{}", menu.shown());
    menu.sees("deleted   no[t]es!.txt").sees("kept      named.txt");
    let left: Vec<&str> = ["made.txt", "no[t]es!.txt", "notes!.txt", "watched.txt", "named.txt"]
        .into_iter()
        .filter(|path| user.exists(path))
        .collect();
    assert_eq!(left, ["made.txt", "notes!.txt", "watched.txt", "named.txt"]);
    let shown = ["m npm run dev", "edit"].map(|point| user.takeback(&["show", point]).out);
    assert!(shown[0].contains("s (corrected by you)"), "{shown:?}");
    assert!(shown[1].contains("you (corrected by you)"), "{shown:?}");
}

#[test]
fn an_exact_rewind_has_no_marks() {
    let user = after_two_commands();
    let mut menu = opens(&user, &["--exact"]);
    menu.types("3")
        .sees("> [x] delete")
        .types("m")
        .sees("Files cannot be marked here; S chooses whose changes.");
    menu.types("\x03");
    assert_eq!(menu.ends(), 5);
}

/// Two agents, one of them with two sessions, and a manual point.
fn with_several_agents() -> User {
    let user = User::with(&[("a.txt", "zero\n")]);
    for (n, (session, agent)) in [
        ("7f3e21d0-6a34-4f0e-9c52-1b7a52a1f001", "claude"),
        ("5b0c8e11-22f4-4a71-8d0e-c3f3a5b7d002", "claude"),
        ("chat-9a0b1c2d", "builtin"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("{n}.txt");
        let events = [
            json!({ "event": "session_start", "session": session, "agent": agent }),
            json!({ "event": "prompt", "session": session, "message": n.to_string(), "text": format!("prompt {n}") }),
            json!({ "event": "before_tool", "session": session, "call": "c", "tool": "Edit", "paths": [file] }),
        ];
        let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
        let begun = user.feed(&["record"], &lines.join("\n"));
        assert_eq!(begun.code, 0, "{begun:?}");
        user.write(&file, "one\ntwo\n");
        let event = json!({ "event": "after_tool", "session": session, "call": "c" });
        user.record(&event.to_string());
    }
    user.succeeds(&["-q", "checkpoint", "by me"]);
    user
}

#[test]
fn rows_name_the_agent_and_have_lines_at_every_width() {
    let user = with_several_agents();
    for columns in [40, 60, 80, 120] {
        let mut menu = user.terminal(columns, 24).start(&["rewind"]);
        menu.sees("> 0 (current)");
        let shown = menu.shown();
        let row = |number: u32| {
            let row = shown.lines().find(|line| line.starts_with(&format!("  {number} ")));
            let row = row.unwrap_or_else(|| panic!("{columns}, {number}:\n{shown}"));
            row.split('│').next().unwrap_or_default().trim_end().to_owned()
        };
        for (number, agent) in [(1, "by hand"), (2, "builtin"), (3, "claude"), (4, "claude")] {
            assert!(row(number).contains(agent), "{columns}, {number}:\n{shown}");
            let counted = if number == 1 { "" } else { "+2 -0" };
            assert!(row(number).ends_with(counted), "{columns}, {number}:\n{shown}");
        }
        if columns == 80 {
            assert!(
                row(3).contains("claude 5b0c8e11") && row(4).contains("claude 7f3e21d0"),
                "{shown}"
            );
        }
        menu.types(ESC);
        assert_eq!(menu.ends(), 5);
    }
}

#[test]
fn older_points_are_not_called_this_sessions_without_a_session() {
    let user = with_several_agents();
    user.set(r#"{"checkpointKeepCount": 2}"#);
    let mut menu = opens(&user, &[]);
    menu.sees("older…  2 more").types(DOWN).types(DOWN).types(DOWN).sees("enter shows 2 more.");
    assert!(!menu.ever().contains("in this session"), "{}", menu.shown());
    menu.types(ENTER).sees("prompt 0");
}

#[test]
fn rows_count_by_author_and_rewinds_are_between_them() {
    let user = after_two_prompts();
    user.succeeds(&["checkpoint", "later"]);
    user.succeeds(&["rewind", "m2", "-y"]);
    let mut menu = opens(&user, &[]);
    menu.sees("rewind to").sees("taken back").sees("you +1 -1");
    let shown = menu.shown();
    let row = |text: &str| shown.lines().position(|line| line.contains(text));
    assert!(row("rewind to") < row("[later]"), "{shown}");
    assert!(
        shown.lines().any(|line| line.contains("make it two") && line.contains("taken back")),
        "{shown}"
    );
    menu.types(ESC);
    assert_eq!(menu.ends(), 5);
}

#[test]
fn a_file_of_the_preview_is_asked_about() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &[]);
    menu.types("1").sees("> [x] restore").types("b").sees("blame a.txt").sees("two");
    menu.types("w").sees("why a.txt:1").sees("make it two").sees("-one").sees("+two");
    menu.types(ESC).sees("blame a.txt").types(ESC).sees("> [x] restore");
    menu.types("H").sees("history a.txt").sees("make it one").types(ESC).sees("> [x] restore");
    let log = user.json(&["log"]);
    let short = &log[0]["id"].as_str().expect("an id")[..8];
    // The file before the prompt.
    let title = format!("cat {short}:a.txt");
    menu.types("c").sees(&title).sees("one").types(ESC).sees("> [x] restore");
    let title = format!("stats since {short}");
    menu.types("s").sees(&title).sees("agents").sees("you").sees("make it two");
    assert!(!menu.shown().contains("make it one"), "{}", menu.shown());
    menu.types(ESC).sees("> [x] restore");
    let command = format!("takeback bisect --good {short} -- COMMAND");
    menu.types("B").sees(&format!("bisect since {short}")).sees(&command);
    menu.types(ESC).sees("> [x] restore");
    // The second file was made by the prompt.
    menu.types(DOWN)
        .sees("> [x] delete")
        .types("b")
        .sees("blame b.txt")
        .types(ESC)
        .sees("> [x] delete");
    menu.types(ESC).sees("(current)").types(ESC);
    assert_eq!(menu.ends(), 5);
    assert_eq!(files(&user), expected("two\n", true, "mine, later\n"));
}

/// The second turn alone, then both sessions, each with its preview.
#[test]
fn keys_choose_one_turn_or_all_agents() {
    let user = after_two_prompts();
    let mut menu = opens(&user, &[]);
    menu.types("2").sees("[x] ").sees("Takes back: s").types("R").sees("later changes stay");
    menu.sees("conflict  a.txt").sees("line 1 stays; it was:").types("q");
    menu.types(DOWN).types("q");
    assert_eq!(menu.ends(), 5);
    let mut menu = opens(&user, &[]);
    menu.types("1R").sees("later changes stay").sees("[x] delete").types(ENTER);
    menu.sees("Take back this turn alone?").types(ENTER);
    assert_eq!(menu.ends(), 0);
    menu.sees("Revert ").sees("Done and verified on disk.");
    assert_eq!(files(&user), expected("one\n", false, "mine, later\n"));
    let mut menu = opens(&user, &[]);
    menu.types("S").sees("Takes back: all agents").types("2").sees("[x] restore").types(ENTER);
    menu.sees("Restore what?").types("f");
    assert_eq!(menu.ends(), 0);
    assert_eq!(files(&user), expected("zero\n", false, "mine, later\n"));
}

/// A mark on the row of a folder is one on each kept file in it.
#[test]
fn kept_files_of_a_folder_are_one_row_and_are_marked_together() {
    let docs = ["docs/1", "docs/2", "docs/3"];
    let user = User::with(&docs.map(|path| (path, "before\n")));
    agent_writes(&user, 1, "make it one", &[("a.txt", "one\n")]);
    docs.iter().for_each(|path| user.write(path, "mine\n"));
    let mut menu = opens(&user, &[]);
    menu.types("1").sees("[x] delete").sees("keep    docs/  3 files, changed by you");
    menu.types(DOWN).types("t").sees(">     take    docs/").types(ENTER);
    menu.sees("Restore what?").types("f");
    assert_eq!(menu.ends(), 0);
    for path in docs {
        assert_eq!(user.read(path), "before\n", "{path}");
    }
}
