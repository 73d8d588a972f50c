//! Each slash command, by each of its names.

use serde_json::json;

use super::seat::{DOWN, ENTER, ESC, Place, Seat};
use super::story::{
    after_two_prompts, after_two_prompts_at, opens_the_menu, plays_turns, point_of,
};
use crate::home::User;

/// Runs a command and waits for its answer.
fn asks<'a>(seat: &'a mut Seat, line: &str, answer: &str) -> &'a mut Seat {
    seat.says(line).sees(answer)
}

/// A session without prompts in an empty folder.
fn fresh(user: &User) -> Seat {
    let mut seat = Place::of(user).sit(&["chat", "--agent", "builtin"]);
    seat.sees("builtin");
    seat
}

#[test]
fn help_lists_all_of_them_by_both_names() {
    let user = User::new();
    for name in ["/help", "/?"] {
        let mut seat = Place::of(&user).sized(120, 40).sit(&["chat", "--agent", "builtin"]);
        seat.sees("builtin").says(name).sees("ctrl-d exits");
        let shown = seat.shown();
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
                "/undo",
                "/redo",
                "/diff",
                "/points",
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
        for alias in ["(/restore)", "(/log)", "(/?)", "(/quit)"] {
            assert!(shown.contains(alias), "{alias} in\n{shown}");
        }
    }
}

#[test]
fn tab_completes() {
    let user = User::new();
    let mut seat = fresh(&user);
    seat.types("/").sees("/checkpoint [label]").sees("more");
    seat.types("ch").sees_no("/rewind").types("\t").sees("> /checkpoint ");
    seat.types("tab").sees("> /checkpoint tab").types("\x15");
    seat.types("/ex").sees("/export FILE").sees("/exit").types("\t").sees("> /ex");
    seat.types("i\t").sees("> /exit").types(ENTER);
    assert_eq!(seat.ends(), 0);
}

#[test]
fn a_point_by_hand_is_in_the_menu_with_its_label() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut seat = fresh(&user);
    asks(&mut seat, "/checkpoint before lunch", "“before lunch”").sees("1 point ");
    for name in ["/checkpoint", "/rewind", "/restore"] {
        asks(&mut seat, name, "Do not restore, continue with the current session.");
        seat.sees("[before lunch]").types(ESC).sees("Exited checkpoint selection.");
        asks(&mut seat, "/clear", "A new conversation.").sees_no("Exited");
    }
    let log = user.json(&["log"]);
    assert_eq!((&log[0]["label"], &log[0]["kind"]), (&"before lunch".into(), &"manual".into()));
    asks(&mut seat, "/checkpoint before lunch", "Command execution failed: the label");
    assert_eq!(user.json(&["log"]), log);
}

#[test]
fn rewind_and_restore_go_to_the_point_they_name() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    let after = user.tree();
    asks(&mut seat, "/checkpoint both", "“both”");
    let line = format!("/rewind {}", point_of(&user, "Add multiply"));
    asks(&mut seat, &line, "[x] ").types(ENTER).sees("Restore what?");
    seat.types("f").sees("Restored to checkpoint: Add multiply");
    assert!(!user.exists("index.ts"));
    asks(&mut seat, "/undo", "Undone. Verified on disk.");
    assert_eq!(user.tree(), after);
    asks(&mut seat, "/redo", "Redone. Verified on disk.");
    assert!(!user.exists("index.ts"));
    // A step of the agent, which the menu lists only if it is asked for.
    asks(&mut seat, "/rewind @~1", "model").sees("[x] ").types(ESC).sees("(current)");
    seat.types(ESC).sees("Exited checkpoint selection.").says("/clear").sees_no("Exited");
    asks(&mut seat, "/restore both", "[both]").types(ESC).sees("(current)").types(ESC);
    seat.sees("Exited checkpoint selection.");
    asks(&mut seat, "/restore nosuch", "Command execution failed: Checkpoint nosuch not found");
}

#[test]
fn diff_points_and_status_answer_on_the_screen() {
    let user = User::new();
    let mut seat = after_two_prompts_at(Place::of(&user).sized(100, 60));
    asks(&mut seat, "/diff", "index.ts  new").sees("utils.ts  changed").sees("+  return a / b;");
    for (times, name) in [(2, "/points"), (3, "/log")] {
        seat.says(name).sees_times(times, "Create a file utils.ts with add");
    }
    let work = std::fs::canonicalize(user.work()).expect("it is there");
    asks(&mut seat, "/status", &work.display().to_string()).sees("2 points");
}

#[test]
fn diff_says_when_there_is_nothing() {
    let user = User::new();
    let mut seat = fresh(&user);
    asks(&mut seat, "/diff", "/diff compares with your last prompt; there is none yet.");
    let turns = json!({ "turns": [{ "steps": [{ "say": "I only talk." }] }] });
    let mut seat = plays_turns(&user, &turns);
    seat.says("talk").sees("I only talk.").sees("1 point ");
    asks(&mut seat, "/diff", "Nothing changed since the last prompt.");
}

#[test]
fn a_conversation_is_saved_listed_loaded_and_deleted() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    asks(&mut seat, "/conversations", "No saved conversations.");
    asks(&mut seat, "/save first try", "Saved as first try");
    asks(&mut seat, "/save", "Saved as 20");
    asks(&mut seat, "/clear", "A new conversation. Files and points stay.").sees_no("divide too.");
    assert!(user.exists("index.ts"));
    asks(&mut seat, "/conversations", "first try").sees("builtin").sees("2 prompts");
    asks(&mut seat, "/load first try", "Loaded. Files stay as they are.").sees("divide too.");
    // What was loaded is gone on with: the third prompt gets the third turn.
    seat.says("go on").sees("Half of it is done.").types(ESC).sees("interrupted");
    asks(&mut seat, "/delete first try", "Deleted first try");
    asks(&mut seat, "/load first try", "there is no conversation first try");
    asks(&mut seat, "/delete nothing", "there is no conversation nothing");
    seat.says("/conversations").sees_that("one left", |screen| {
        let list = screen.rsplit("there is no conversation nothing").next().unwrap_or("");
        list.contains("prompts") && !list.contains("first try")
    });
}

#[test]
fn points_go_to_another_folder_in_a_file() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    let file = user.home().join("points");
    let file = file.to_str().expect("utf-8").to_owned();
    asks(&mut seat, &format!("/export {file}"), "Exported 4 points");
    seat.says(&format!("/export {file}")).sees("Command execution failed: ");

    let other = User::new();
    let mut there = fresh(&other);
    asks(&mut there, &format!("/import {file}"), "Imported 4 points");
    assert!(!other.exists("utils.ts"), "files are as they were");
    opens_the_menu(&mut there).sees("other sessions").sees("Add multiply");
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
        let mut seat = fresh(&user);
        seat.says(name);
        assert_eq!(seat.ends(), 0);
        assert!(!seat.shown().contains("continue with"), "nothing was said: {}", seat.shown());
    }
    let mut seat = after_two_prompts(&user);
    seat.says("/exit");
    assert_eq!(seat.ends(), 0);
    seat.sees("2 prompts in chat-").sees("takeback chat --continue");
}

#[test]
fn a_menu_of_one_point_is_gone_through_with_arrows() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut seat = fresh(&user);
    asks(&mut seat, "/checkpoint only", "“only”");
    opens_the_menu(&mut seat).types(DOWN).types(DOWN).types(DOWN).sees("> 1 ").types(ENTER);
    seat.sees("esc back").types(ESC).sees("(current)").types("0").sees("Exited");
}

#[test]
fn an_unknown_time_zone_is_reported_once_and_inside_the_session() {
    let user = User::new();
    let place = Place::of(&user).with("TZ", "Mars/Olympus");
    let mut seat = after_two_prompts_at(place);
    let warning = "TZ=Mars/Olympus is not a known time zone; times are in UTC";
    seat.says("/clear").sees("A new conversation.").says("/points").sees("just now");
    seat.says("/status").sees("protected");
    assert!(!seat.shown().contains("takeback: TZ="), "{}", seat.shown());
    assert_eq!(seat.ever().matches(warning).count(), 2, "on standard error, and in the session");
}
