//! Each slash command, by each of its names.

use serde_json::json;

use super::two_prompts::{
    after_two_prompts, after_two_prompts_in, after_two_prompts_of, point_of, start_turns, two,
};
use crate::pty::{DOWN, ENTER, ESC, Terminal};
use crate::user::{User, path_text};

impl Terminal {
    /// Runs a command and waits for its answer.
    #[track_caller]
    fn asks(&mut self, line: &str, answer: &str) -> &mut Self {
        self.says(line).sees(answer)
    }
}

/// A session without prompts in an empty folder.
fn fresh(user: &User) -> Terminal {
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin");
    chat
}

#[test]
fn help_lists_all_of_them_by_both_names() {
    let user = User::new();
    for name in ["/help", "/?"] {
        let mut chat = user.terminal(120, 40).start(&["chat", "--agent", "builtin"]);
        chat.sees("builtin").says(name).sees("ctrl-d exits");
        let shown = chat.shown();
        let listed: Vec<&str> = shown
            .lines()
            .filter(|line| line.starts_with('/'))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(
            listed,
            [
                "/checkpoint",
                "/rewind",
                "/restore",
                "/revert",
                "/resolve",
                "/undo",
                "/redo",
                "/diff",
                "/points",
                "/show",
                "/blame",
                "/why",
                "/history",
                "/stats",
                "/status",
                "/save",
                "/load",
                "/conversations",
                "/delete",
                "/export",
                "/import",
                "/help",
                "/clear",
                "/exit",
            ]
        );
        for alias in ["(/log)", "(/?)", "(/quit)"] {
            assert!(shown.contains(alias), "{alias} in\n{shown}");
        }
    }
}

#[test]
fn tab_completes() {
    let user = User::new();
    let mut chat = fresh(&user);
    chat.types("/").sees("/checkpoint [label]").sees("more");
    chat.types("ch").sees_no("/rewind").types("\t").sees("> /checkpoint ");
    chat.types("tab").sees("> /checkpoint tab").types("\x15");
    chat.types("/ex").sees("/export FILE").sees("/exit").types("\t").sees("> /ex");
    chat.types("i\t").sees("> /exit").types(ENTER);
    assert_eq!(chat.ends(), 0);
}

#[test]
fn a_point_by_hand_is_in_the_menu_with_its_label() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut chat = fresh(&user);
    chat.asks("/checkpoint before lunch", "“before lunch”").sees("1 point ");
    for name in ["/checkpoint", "/rewind", "/restore"] {
        chat.asks(name, "Do not restore, continue with the current session.");
        chat.sees("[before lunch]").types(ESC).sees("Exited checkpoint selection.");
        chat.asks("/clear", "A new conversation.").sees_no("Exited");
    }
    let log = user.json(&["log"]);
    assert_eq!((&log[0]["label"], &log[0]["kind"]), (&"before lunch".into(), &"manual".into()));
    chat.asks("/checkpoint before lunch", "Command execution failed: the label");
    assert_eq!(user.json(&["log"]), log);
}

#[test]
fn rewind_and_restore_go_to_the_point_they_name() {
    let (user, mut chat) = after_two_prompts();
    let after = user.tree();
    chat.asks("/checkpoint both", "“both”");
    let line = format!("/rewind {}", point_of(&user, "Add multiply"));
    chat.asks(&line, "[x] ").types(ENTER).sees("Restore what?");
    chat.types("f").sees("Restored to checkpoint: Add multiply");
    assert!(!user.exists("index.ts"));
    chat.asks("/undo", "Undone. Verified on disk.");
    assert_eq!(user.tree(), after);
    chat.asks("/redo", "Redone. Verified on disk.");
    assert!(!user.exists("index.ts"));
    // A step of the agent, which the menu lists only on request.
    chat.asks("/rewind @~1", "model").sees("[x] ").types(ESC).sees("(current)");
    chat.types(ESC).sees("Exited checkpoint selection.").says("/clear").sees_no("Exited");
    chat.asks("/restore both", "[both]").types(ESC).sees("(current)").types(ESC);
    chat.sees("Exited checkpoint selection.");
    chat.asks("/restore nosuch", "Command execution failed: Checkpoint nosuch not found");
}

#[test]
fn diff_points_and_status_answer_on_the_screen() {
    let user = User::new();
    let mut chat = after_two_prompts_in(&user.terminal(100, 60));
    chat.asks("/diff", "index.ts  new").sees("utils.ts  changed").sees("+  return a / b;");
    for (times, name) in [(2, "/points"), (3, "/log")] {
        chat.says(name).sees_times(times, "Create a file utils.ts with add");
    }
    let work = std::fs::canonicalize(user.work()).expect("it is there");
    chat.asks("/status", &work.display().to_string()).sees("2 points");
}

#[test]
fn questions_about_files_are_answered_on_the_screen() {
    let user = User::new();
    let mut chat = after_two_prompts_in(&user.terminal(120, 60));
    chat.asks("/blame utils.ts", "export function add").sees("builtin");
    chat.asks("/why utils.ts:1", "known by").sees("prompt   Create a file utils.ts with add");
    chat.asks("/clear", "A new conversation.").sees_no("known by");
    chat.asks("/history utils.ts", "Add multiply").sees("new").sees("1 file");
    chat.asks("/stats", "By prompt").sees("agents");
    chat.asks("/show", "made  ").sees("Add multiply and divide").sees("utils.ts");
    chat.asks("/why", "Command execution failed: /why needs a path:line");
    chat.asks("/why utils.ts", "Command execution failed: utils.ts is not PATH:LINE");
    chat.asks("/blame none", "Command execution failed: none was never recorded");
    chat.asks("/show none", "Command execution failed: no point is called");
}

#[test]
fn diff_says_when_there_is_nothing() {
    let user = User::new();
    let mut chat = fresh(&user);
    chat.asks("/diff", "/diff compares with your last prompt; there is none yet.");
    let turns = json!({ "turns": [{ "steps": [{ "say": "I only talk." }] }] });
    let mut chat = start_turns(&user, &turns);
    chat.says("talk").sees("I only talk.").sees("1 point ");
    chat.asks("/diff", "Nothing changed since the last prompt.");
}

#[test]
fn a_conversation_is_saved_listed_loaded_and_deleted() {
    let (user, mut chat) = after_two_prompts();
    chat.asks("/conversations", "No saved conversations.");
    chat.asks("/save first try", "Saved as first try");
    chat.asks("/save", "Saved as 20");
    chat.asks("/clear", "A new conversation. Files and points stay.").sees_no("divide too.");
    assert!(user.exists("index.ts"));
    chat.asks("/conversations", "first try").sees("builtin").sees("2 prompts");
    chat.asks("/load first try", "Loaded. Files stay as they are.").sees("divide too.");
    // The loaded conversation continues: the third prompt gets the third turn.
    chat.says("go on").sees("Half of it is done.").types(ESC).sees("interrupted");
    chat.asks("/delete first try", "Deleted first try");
    chat.asks("/load first try", "there is no conversation first try");
    chat.asks("/delete nothing", "there is no conversation nothing");
    chat.says("/conversations").sees_that("one left", |screen| {
        let list = screen.rsplit("there is no conversation nothing").next().unwrap_or("");
        list.contains("prompts") && !list.contains("first try")
    });
}

#[test]
fn points_go_to_another_folder_in_a_file() {
    let (user, mut chat) = after_two_prompts();
    let file = path_text(&user.home().join("points"));
    chat.asks(&format!("/export {file}"), "Exported 4 points");
    chat.says(&format!("/export {file}")).sees("Command execution failed: ");

    let other = User::new();
    let mut there = fresh(&other);
    there.asks(&format!("/import {file}"), "Imported 4 points");
    assert!(!other.exists("utils.ts"), "files are as they were");
    there.opens_the_menu().sees("other sessions").sees("Add multiply");
    there.types(ESC).sees("Exited");
    other.write("rubbish", "rubbish\n");
    there.says("/import rubbish").sees("Command execution failed: ");
    there.says("/import nothing-there").sees_times(2, "Command execution failed: ");
    there.says("/status").sees("points");
    assert_eq!(other.json(&["log", "--all"]).as_array().map(Vec::len), Some(4));
}

#[test]
fn exit_and_quit_leave_and_say_how_to_go_on() {
    let user = User::new();
    for name in ["/exit", "/quit"] {
        let mut chat = fresh(&user);
        chat.says(name);
        assert_eq!(chat.ends(), 0);
        assert!(!chat.shown().contains("continue with"), "nothing was said: {}", chat.shown());
    }
    let mut chat = after_two_prompts_of(&user);
    chat.exits();
    chat.sees("2 prompts in chat-").sees("takeback chat --continue");
}

#[test]
fn arrows_move_in_a_menu_of_one_point() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut chat = fresh(&user);
    chat.asks("/checkpoint only", "“only”");
    chat.opens_the_menu().types(DOWN).types(DOWN).types(DOWN).sees("> 1 ").types(ENTER);
    chat.sees("esc back").types(ESC).sees("(current)").types("0").sees("Exited");
}

#[test]
fn an_unknown_time_zone_is_reported_once_and_inside_the_session() {
    let user = User::new();
    let place = user.terminal(80, 24).with("TZ", "Mars/Olympus");
    let mut chat = after_two_prompts_in(&place);
    let warning = "TZ=Mars/Olympus is not a known time zone; times are in UTC";
    chat.says("/clear").sees("A new conversation.").says("/points").sees("just now");
    chat.says("/status").sees("protected");
    assert!(!chat.shown().contains("takeback: TZ="), "{}", chat.shown());
    assert_eq!(chat.ever().matches(warning).count(), 2, "on standard error, and in the session");
}

#[test]
fn revert_takes_back_one_turn_after_its_preview() {
    let (user, mut chat) = after_two_prompts();
    let after = user.tree();
    chat.says("/revert").sees("later changes stay").sees("[x] delete").types(ENTER);
    chat.sees("Take back this turn alone?").types(ENTER);
    chat.sees("Took back this turn alone: Add multiply");
    assert!(!user.exists("index.ts"));
    assert_eq!(user.read("utils.ts"), two());
    chat.asks("/undo", "Undone. Verified on disk.");
    assert_eq!(user.tree(), after);
    // A range has no menu.
    let line = format!("/revert {}..", point_of(&user, "Add multiply"));
    chat.asks(&line, "Done. Verified on disk. /undo takes it back.");
    assert_eq!(user.read("utils.ts"), two());
    chat.asks("/revert nosuch", "Command execution failed: ");
}

#[test]
fn restore_brings_a_path_back_and_undo_returns_it() {
    let (user, mut chat) = after_two_prompts();
    user.write("utils.ts", "mine\n");
    chat.asks("/restore utils.ts", "Done. Verified on disk. /undo takes it back.");
    assert_eq!(user.read("utils.ts"), two());
    chat.asks("/undo", "Undone. Verified on disk.");
    assert_eq!(user.read("utils.ts"), "mine\n");
}

#[test]
fn conflicts_are_listed_and_settled() {
    let (user, mut chat) = after_two_prompts();
    user.write("utils.ts", &user.read("utils.ts").replace("a * b", "b * a"));
    chat.says("/revert").sees("conflict").sees("stays; it was:").types(ENTER);
    chat.sees("1 conflict will stay. Take back this turn alone?").types(ENTER);
    chat.sees("Restore failed: kept utils.ts").sees("/resolve lists the conflicts");
    chat.says("/clear").sees_no("/resolve lists");
    chat.asks("/resolve", "both changed the same lines").sees("/resolve mine keeps your lines");
    chat.asks("/resolve maybe", "Command execution failed: /resolve takes mine or before");
    chat.asks("/resolve before", "Done. Verified on disk. /undo takes it back.");
    assert_eq!(user.read("utils.ts"), two());
    chat.asks("/resolve", "The last operation left no conflicts.");
}
