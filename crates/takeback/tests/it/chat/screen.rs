//! The screen: any size, no colours, untrusted text, and the terminal restored at the end.

use std::process::Command;

use serde_json::json;

use super::two_prompts::{
    after_two_prompts, after_two_prompts_in, after_two_prompts_of, scenario, start_scenario,
    start_turns, two,
};
use crate::pty::{DOWN, ENTER, ESC, Terminal};
use crate::user::User;

const PAGE_UP: &str = "\x1b[5~";
const PAGE_DOWN: &str = "\x1b[6~";

/// Waits until the screen is drawn for this width.
#[track_caller]
fn is_drawn_for(chat: &mut Terminal, columns: usize) -> &mut Terminal {
    let rule = "─".repeat(columns);
    chat.sees_that(&format!("{columns} columns"), |screen| {
        screen.lines().any(|line| line.trim_end() == rule)
    })
}

#[test]
fn it_is_drawn_anew_when_the_size_changes() {
    let (_user, mut chat) = after_two_prompts();
    is_drawn_for(&mut chat, 80);
    chat.says("Do the third thing").sees("Half of it is done.");
    chat.resizes(40, 20);
    is_drawn_for(&mut chat, 40).sees("Half of it is done.").sees("working");
    assert!(chat.shown().lines().count() <= 20);
    chat.resizes(200, 60);
    is_drawn_for(&mut chat, 200).sees("Create a file utils.ts").sees("Half of it is done.");
    chat.opens_the_menu();
    chat.resizes(40, 20).sees_that("the menu for 40 columns", |screen| {
        screen.contains("(current)") && screen.lines().any(|line| line.ends_with('…'))
    });
    chat.types(ESC).sees("Exited checkpoint selection.");
}

#[test]
fn forty_columns_are_enough() {
    let user = User::new();
    let args = ["chat", "--scenario", &scenario(&user)];
    let mut chat = user.terminal(40, 20).start(&args);
    chat.sees("builtin").says("Create utils.ts").sees("It has add and subtract.").sees("1 point ");
    chat.says("Add multiply").sees("divide too.").sees("2 points");
    chat.opens_the_menu().sees("Add multiply").types(DOWN).sees("delete").types(ENTER);
    chat.sees("[x] delete").types(" ").sees("[ ] delete").types(" ");
    chat.goes_back().sees("Restored to checkpoint: Add multiply");
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
    chat.sees("> Add multiply").types("\x15").says("/help").sees("ctrl-d exits");
    is_drawn_for(&mut chat, 40);
}

#[test]
fn without_colour_nothing_is_coloured() {
    let user = User::new();
    let mut chat = after_two_prompts_in(&user.terminal(80, 24).with("NO_COLOR", "1"));
    chat.goes_back_to("1").sees("Restored to checkpoint: ").types("\x15").says("/nonsense");
    chat.sees("Command execution failed").exits();
    let ever = chat.ever();
    let codes: Vec<&str> = ever
        .split("\x1b[")
        .filter_map(|rest| rest.split_once('m'))
        .map(|(codes, _)| codes)
        .filter(|codes| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
        .flat_map(|codes| codes.split(';'))
        .collect();
    // 39, 49 and 59 select the terminal's default colours.
    let plain = ["", "0", "1", "2", "7", "22", "27", "39", "49", "59"];
    let odd: Vec<&&str> = codes.iter().filter(|code| !plain.contains(code)).collect();
    assert!(odd.is_empty() && codes.contains(&"1"), "{odd:?}");
}

#[test]
fn untrusted_text_does_not_control_the_terminal() {
    let user = User::new();
    let evil = "\x1b]2;pwned\x07\x1b[31mred\u{9b}2J\r\x08";
    let make = r#"printf 'evil \033]2;pwned\007 text\n' > "$(printf 'name\033]2;pwned\007')""#;
    let turns = json!({ "turns": [{ "steps": [
        { "say": format!("I say {evil} this.") },
        { "tool": "shell", "input": { "command": format!("{make} # {evil}") } },
        { "tool": "shell", "input": { "command": r"printf 'out\033]2;pwned\007\n'; false" } },
        { "say": "Done with it." },
    ] }] });
    let mut chat = start_turns(&user, &turns);
    chat.types("\x1b[200~be evil \x1b]2;pwned\x07 now\x1b[201~");
    chat.sees("be evil").types(ENTER).sees("Done with it.").sees("1 point ");
    chat.says("/diff").sees("text").says("/points").sees_times(2, "be evil");
    chat.opens_the_menu().types(DOWN).sees("delete").types(ENTER).sees("[x] delete");
    chat.goes_back().sees("Restored to checkpoint: be evil");
    chat.types("\x15").says("/status").sees("points").exits();
    let ever = chat.ever();
    assert!(!ever.contains("\x1b]2;") && !ever.contains("\u{9b}"), "{ever:?}");
    assert_eq!(ever.matches('\x07').count(), 0);
    assert_eq!(ever.matches("\x1b[31mred").count(), 0);
    assert!(ever.contains("␛]2;pwned"), "it is shown for what it is");
}

#[test]
fn ten_thousand_lines_can_be_scrolled() {
    let user = User::new();
    let lines: Vec<String> = (1..=10_000).map(|n| format!("This is line {n}.")).collect();
    let turns = json!({ "turns": [{ "steps": [{ "say": lines.join("\n") }] }] });
    let mut chat = start_turns(&user, &turns);
    chat.says("talk").sees("This is line 10000.");
    chat.types(&PAGE_UP.repeat(1010)).sees("This is line 1.").sees("more lines below, page down");
    chat.types(&PAGE_DOWN.repeat(280)).sees_that("the middle", |screen| {
        screen.contains("This is line 5") && !screen.contains("This is line 1.")
    });
    chat.types(&PAGE_DOWN.repeat(600)).sees("This is line 10000.").sees_no("more lines below");
    // Entering something scrolls back to the end.
    chat.types(&PAGE_UP.repeat(20)).sees_no("line 10000.").says("/nonsense");
    chat.sees("Command execution failed");
}

/// Ends a session; the terminal is as before, and the conversation is stored.
fn is_restored_after(code: u32, end: impl Fn(&mut Terminal)) {
    let (user, mut chat) = after_two_prompts();
    assert!(!chat.is_restored());
    end(&mut chat);
    assert_eq!(chat.ends(), code);
    assert!(chat.is_restored(), "{:?}", chat.ever());
    chat.sees("2 prompts in chat-");
    let mut chat = start_scenario(&user, &["--continue"]);
    chat.sees("Continued after 2 prompts.").sees("divide too.");
}

fn signals(chat: &Terminal, signal: &str) {
    let sent = Command::new("kill").args([signal, &chat.pid().to_string()]).status();
    assert!(sent.expect("it runs").success());
}

#[test]
fn exit_and_keys_restore_the_terminal() {
    is_restored_after(0, |chat| _ = chat.says("/exit"));
    is_restored_after(0, |chat| _ = chat.types("\x04"));
    is_restored_after(0, |chat| {
        chat.types("\x03").sees("Press ctrl-c again to exit").types("\x03");
    });
}

#[test]
fn signals_restore_the_terminal() {
    is_restored_after(143, |chat| signals(chat, "-TERM"));
    is_restored_after(129, |chat| signals(chat, "-HUP"));
}

#[test]
fn in_the_middle_of_a_turn_it_ends_too() {
    let user = User::new();
    for (signal, code) in [("-TERM", 143), ("-HUP", 129)] {
        let mut chat = after_two_prompts_of(&user);
        chat.says("Do the third thing").sees("Half of it is done.");
        signals(&chat, signal);
        assert_eq!(chat.ends(), code);
        assert!(chat.is_restored(), "{:?}", chat.ever());
    }
}
