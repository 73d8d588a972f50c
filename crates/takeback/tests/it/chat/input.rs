//! Typing: prompts in any script, pasted, queued and recalled, and answers to questions.

use serde_json::{Value, json};
use takeback_testkit::model::{Answer, ModelServer};

use super::sessions::list;
use super::two_prompts::{after_two_prompts, start_scenario, start_turns};
use crate::pty::{A_WHILE, DOWN, ENTER, ESC, Terminal, UP};
use crate::user::{User, column};

fn described(user: &User) -> Vec<Value> {
    column(&list(user)["checkpoints"], "description")
}

fn starts(user: &User) -> Terminal {
    let mut chat = start_scenario(user, &[]);
    chat.sees("builtin");
    chat
}

#[test]
fn every_script_is_measured_correctly() {
    let user = User::new();
    let mut chat = starts(&user);
    let prompt = "grün 中文 e\u{301}x";
    chat.types(prompt).sees(&format!("> {prompt}"));
    let (row, column) = chat.cursor();
    assert_eq!(column, 2 + 5 + 4 + 1 + 2);
    chat.types("\x7f\x7f").sees_that("x and é are gone", |screen| screen.contains("> grün 中文"));
    chat.sees_that("the cursor is behind the blank", |screen| !screen.contains('x'));
    assert_eq!(chat.cursor(), (row, column - 2), "é is one character");
    chat.types("e\u{301}x").sees(prompt).types(ENTER).sees("It has add and subtract.");
    chat.sees("1 point ");
    assert_eq!(described(&user), [prompt]);
    chat.opens_the_menu().sees(prompt);
}

#[test]
fn many_lines_are_pasted_as_one_prompt() {
    let user = User::new();
    let mut chat = starts(&user);
    chat.types("\x1b[200~one\ntwo\r\nthree\x1b[201~").sees("> one").sees("  two").sees("  three");
    chat.types(ENTER).sees("It has add and subtract.").sees("1 point ");
    assert_eq!(described(&user), ["one two three"]);
    let pasted: Vec<String> = (1..=300).map(|n| format!("pasted {n}")).collect();
    chat.types(&format!("\x1b[200~{}\x1b[201~", pasted.join("\n"))).sees("pasted 300");
    assert!(!chat.shown().contains("pasted 200\n"), "the screen has room for some of it");
    chat.types(ENTER).sees("divide too.").sees("2 points");
    assert_eq!(described(&user)[0], pasted.join(" ")[..80]);
}

#[test]
fn a_line_can_be_broken() {
    let user = User::new();
    let mut chat = starts(&user);
    chat.types("first\x1b\rsecond").sees("> first").sees("  second").types(ENTER);
    chat.sees("It has add and subtract.").sees("1 point ");
    assert_eq!(described(&user), ["first second"]);
}

#[test]
fn prompts_typed_during_a_turn_are_queued() {
    let user = User::new();
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let turns = json!({ "turns": [
        { "steps": [{ "tool": "shell", "input": { "command": wait } }, { "say": "Went." }] },
        { "steps": [{ "say": "Then this." }] },
        { "steps": [{ "say": "And that." }] },
    ] });
    let mut chat = start_turns(&user, &turns);
    chat.says("wait").sees("working").sees("1 point ").says("and then this");
    chat.sees("next: and then this").says("and that").sees("next: and that");
    assert_eq!(described(&user), ["wait"]);
    user.write("go", "");
    chat.sees("Went.").sees("Then this.").sees("And that.").sees_no("next: ").sees("3 points");
    assert_eq!(described(&user), ["and that", "and then this", "wait"]);
}

#[test]
fn arrows_recall_earlier_input() {
    let (user, mut chat) = after_two_prompts();
    let first = "> Create a file utils.ts with add and subtract functions";
    let second = "> Add multiply and divide functions to utils.ts";
    chat.says("/save").sees("Saved as").types("begun").sees("> begun");
    chat.types(UP).sees("> /save").types(UP).sees_times(2, second);
    chat.types(UP).sees_that("the first one", |screen| screen.rfind(first) > screen.rfind(second));
    chat.types(DOWN).types(DOWN).types(DOWN).sees("> begun").types("\x15").exits();
    let mut chat = starts(&user);
    chat.types(UP).sees(second).types(UP).sees(first).types("\x15").exits();
    let mut chat = start_scenario(&user, &["--continue"]);
    chat.sees("Continued").exits();
    let mut chat = starts(&user);
    chat.types(UP).sees(second).types(UP).sees(first).types(UP).types(DOWN);
    chat.sees(second);
}

/// A session with a model that calls `write_file` for each of these paths, one per turn.
fn before_a_model(user: &User, server: &ModelServer, paths: &[&str]) -> Terminal {
    for path in paths {
        server.answer(Answer::calls("write_file", json!({ "path": path, "content": "text\n" })));
        server.answer(Answer::says(&format!("That was {path}.")));
    }
    let mut chat = user
        .terminal(80, 24)
        .with("ANTHROPIC_BASE_URL", server.url())
        .with("ANTHROPIC_API_KEY", "sk-very-secret-0123456789")
        .with("TAKEBACK_MODEL", "test-model")
        .start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin");
    chat
}

/// The result of the model's last call.
fn last_result(server: &ModelServer) -> Value {
    let asked = server.asked();
    let messages = asked.last().expect("a request")["messages"].as_array().expect("a list");
    messages.last().expect("a message")["content"][0].clone()
}

#[test]
fn a_question_is_answered_with_yes_no_and_always() {
    let (user, server) = (User::new(), ModelServer::start());
    let paths = ["yes.txt", "no.txt", "always.txt", "later.txt"];
    let mut chat = before_a_model(&user, &server, &paths);
    chat.says("one")
        .sees("Allow Write yes.txt?")
        .sees("y yes")
        .look(A_WHILE)
        .types("y")
        .sees("That was yes.txt.");
    assert_eq!(user.read("yes.txt"), "text\n");
    chat.says("two").sees("Allow Write no.txt?").types("n").sees("denied: Write no.txt");
    chat.sees("That was no.txt.");
    assert!(!user.exists("no.txt"));
    assert_eq!(last_result(&server)["is_error"], true);
    chat.says("three")
        .sees("Allow Write always.txt?")
        .look(A_WHILE)
        .types("a")
        .sees("That was always.txt.");
    chat.says("four").sees("That was later.txt.");
    assert!(user.exists("always.txt") && user.exists("later.txt"));
    assert_eq!(chat.ever().matches("later.txt?").count(), 0, "no question");
    let home = user.home().join(".takeback");
    let secret =
        std::process::Command::new("grep").args(["-r", "sk-very-secret"]).arg(home).output();
    assert_eq!(secret.expect("it runs").stdout, b"", "no key is written down");
}

#[test]
fn esc_answers_no_and_ends_the_turn() {
    let (user, server) = (User::new(), ModelServer::start());
    let mut chat = before_a_model(&user, &server, &["a.txt"]);
    chat.says("one").sees("Allow Write a.txt?").types(ESC).sees("denied: Write a.txt");
    chat.sees("interrupted").sees("Type a prompt");
    assert!(!user.exists("a.txt"));
    assert!(!chat.shown().contains("y yes"), "{}", chat.shown());
    assert!(!chat.ever().contains("again to rewind"), "it was an answer:\n{}", chat.shown());
}

#[test]
fn typing_does_not_answer_a_question_by_accident() {
    let (user, server) = (User::new(), ModelServer::start());
    let mut chat = before_a_model(&user, &server, &["a.txt"]);
    chat.says("one").sees("Allow Write a.txt?").types("x").sees("> x").types("yna");
    chat.sees("> xyna").sees("Allow Write a.txt?");
    assert!(!user.exists("a.txt"));
    chat.types("\x15").sees_no("> xyna").look(A_WHILE).types(ENTER).types("x").sees("> x");
    assert!(chat.shown().contains("Allow Write a.txt?"), "Enter is no answer:\n{}", chat.shown());
    chat.types("\x7f").sees_no("> x").types("y").sees("That was a.txt.");
    assert!(user.exists("a.txt"));
}

/// In a terminal of eight rows a file of 30 lines is read before it is allowed.
#[test]
fn a_long_question_must_be_read_to_its_end() {
    let (user, server) = (User::new(), ModelServer::start());
    let lines: Vec<String> = (1..=30).map(|n| format!("line {n} of 30")).collect();
    let content = lines.join("\n");
    server.answer(Answer::calls("write_file", json!({ "path": "a.txt", "content": content })));
    server.answer(Answer::says("That was a.txt."));
    let place = user
        .terminal(60, 8)
        .with("ANTHROPIC_BASE_URL", server.url())
        .with("ANTHROPIC_API_KEY", "key")
        .with("TAKEBACK_MODEL", "test-model");
    let mut chat = place.start(&["chat", "--agent", "builtin"]);
    chat.sees("Type a prompt").says("one").sees("Allow Write a.txt?").sees("more lines, ↓");
    chat.sees("n no").sees("> esc interrupts").sees("to the last line to allow").types("y");
    for line in &lines {
        chat.types(DOWN).sees(line);
    }
    assert!(!user.exists("a.txt"));
    chat.sees("y yes").look(A_WHILE).types("y").sees("That was a.txt.");
    assert_eq!(user.read("a.txt"), content);
}

#[test]
fn the_menu_opens_while_a_question_is_open() {
    let (user, server) = (User::new(), ModelServer::start());
    let mut chat = before_a_model(&user, &server, &["a.txt"]);
    chat.says("one").sees("Allow Write a.txt?");
    chat.opens_the_menu().types("1").sees("No file would change.").types(ENTER);
    chat.sees("Restore what?").types(ENTER).sees("Restored to checkpoint: one").sees("> one");
    assert!(!user.exists("a.txt"));
}
