//! Files with an unclear author: the questions before a rewind, and the effect of the answers.

use serde_json::json;

use crate::pty::TerminalOutput;
use crate::record::Recorder;
use crate::user::User;

/// A prompt and a command whose end is unknown; `files` are written after it began.
pub(crate) fn unfinished_command(
    recorder: &mut Recorder,
    user: &User,
    command: &str,
    files: &[&str],
) {
    recorder.record(
        &json!({ "event": "prompt", "session": "s", "message": format!("m {command}"), "text": "go" }),
    );
    recorder
        .record(&json!({ "event": "before_tool", "session": "s", "call": command, "tool": "Bash",
        "shell": command }));
    for path in files {
        user.write(path, "unclear\n");
    }
}

/// The agent edits a file by name.
pub(crate) fn edits(recorder: &mut Recorder, user: &User, path: &str) {
    recorder
        .record(&json!({ "event": "prompt", "session": "s", "message": "edit", "text": "edit" }));
    recorder
        .record(&json!({ "event": "before_tool", "session": "s", "call": "edit", "tool": "Edit",
        "paths": [path] }));
    user.write(path, "agent\n");
    recorder.record(&json!({ "event": "after_tool", "session": "s", "call": "edit" }));
    recorder.record(&json!({ "event": "turn_end", "session": "s" }));
}

/// Two commands that never ended, with files after each, and a file that the agent edited by name.
pub(crate) fn after_two_commands() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut recorder = Recorder::start(&user, &[]);
    unfinished_command(&mut recorder, &user, "npm run dev", &["made.txt", "no[t]es!.txt"]);
    unfinished_command(&mut recorder, &user, "make watch", &["watched.txt"]);
    edits(&mut recorder, &user, "named.txt");
    assert_eq!(recorder.close(), 0);
    // Matches one of the names if that is read as a pattern.
    user.write("notes!.txt", "mine\n");
    user
}

fn rewind(user: &User, flags: &[&str], keys: &str) -> TerminalOutput {
    let args = [&["rewind", "m npm run dev"], flags].concat();
    user.terminal(80, 70).run(&args, "Enter keeps]", keys)
}

fn left(user: &User) -> Vec<&'static str> {
    let all = ["made.txt", "no[t]es!.txt", "notes!.txt", "watched.txt", "named.txt"];
    all.into_iter().filter(|path| user.exists(path)).collect()
}

/// The author of a file's change since the first command, as `show` prints it.
fn author(user: &User, path: &str) -> String {
    let points = ["m npm run dev", "m make watch", "edit"];
    let shown: Vec<String> = points.map(|point| user.takeback(&["show", point]).out).to_vec();
    let line = shown.iter().flat_map(|text| text.lines()).find(|line| line.contains(path));
    line.expect("it was changed").trim_start().split_once("new  ").expect("it is new").1.to_owned()
}

#[test]
fn each_group_is_taken_kept_or_marked() {
    let user = after_two_commands();
    let ran = rewind(&user, &[], "t\rm\ry\r");
    let shown = ran.shown();
    assert_eq!(ran.code, 0, "{shown}");
    assert_eq!(ran.wrapped(), [""; 0], "{shown}");
    assert!(
        shown.contains(
            "2 files changed after `npm run dev` began; its end is not known. They may be\nyours:\n  \
             made.txt\n  no[t]es!.txt\nTake them back, keep them, or mark them as yours? [t/k/m, Enter \
             keeps] t"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("  watched.txt\nTake it back, keep it, or mark it as yours? [t/k/m, Enter"),
        "{shown}"
    );
    assert!(shown.contains("3 to delete · 2 to keep"), "it is previewed again: {shown}");
    assert_eq!(left(&user), ["notes!.txt", "watched.txt"]);
    assert_eq!(author(&user, "made.txt"), "s (corrected by you) +1");
    assert_eq!(author(&user, "no[t]es!.txt"), "s (corrected by you) +1");
    assert_eq!(author(&user, "watched.txt"), "you (corrected by you) +1");
}

#[test]
fn enter_keeps_them_unclear() {
    let user = after_two_commands();
    let ran = rewind(&user, &[], "\rk\ry\r");
    assert_eq!(ran.code, 4, "{}", ran.shown());
    assert_eq!(left(&user), ["made.txt", "no[t]es!.txt", "notes!.txt", "watched.txt"]);
    assert_eq!(author(&user, "made.txt"), "unclear: you, or s after Bash began +1");
}

#[test]
fn nothing_is_remembered_before_it_is_confirmed() {
    let user = after_two_commands();
    let ran = rewind(&user, &[], "t\rm\rn\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert_eq!(left(&user).len(), 5);
    assert_eq!(author(&user, "made.txt"), "unclear: you, or s after Bash began +1");
    assert_eq!(author(&user, "watched.txt"), "unclear: you, or s after Bash began +1");
}

#[test]
fn an_answer_that_changes_no_file_is_remembered() {
    let user = after_two_commands();
    let ran = rewind(&user, &["--path", "made.txt"], "m\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert!(ran.shown().contains("Your choice for these files is remembered."), "{}", ran.shown());
    assert_eq!(author(&user, "made.txt"), "you (corrected by you) +1");
    let told = user.json(&["rewind", "m npm run dev", "--path", "made.txt", "--dry-run"]);
    assert_eq!(told["ambiguous"], json!([]), "it is not asked again");
}

#[test]
fn a_flag_that_changes_no_file_is_remembered_on_a_terminal_too() {
    let user = after_two_commands();
    let args = ["rewind", "m npm run dev", "--path", "made.txt", "--mine", "made.txt"];
    let ran = user.terminal(80, 70).run(&args, "", "");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert_eq!(author(&user, "made.txt"), "you (corrected by you) +1");
}

#[test]
fn what_you_made_in_an_unclear_folder_stays() {
    let user = User::new();
    let mut recorder = Recorder::start(&user, &[]);
    unfinished_command(&mut recorder, &user, "npm run dev", &["out/made.txt"]);
    edits(&mut recorder, &user, "named.txt");
    assert_eq!(recorder.close(), 0);
    user.write("out/mine.txt", "mine\n");
    let ran = rewind(&user, &[], "t\ry\r");
    assert!(ran.shown().contains("2 paths changed after"), "{}", ran.shown());
    assert_eq!((user.exists("out/made.txt"), user.exists("named.txt")), (false, false));
    assert_eq!(user.read("out/mine.txt"), "mine\n");
}

#[test]
fn more_than_five_groups_are_counted_and_more_than_ten_paths_too() {
    let user = User::new();
    let mut recorder = Recorder::start(&user, &[]);
    let many: Vec<String> = (10..23).map(|n| format!("0-{n}.txt")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    unfinished_command(&mut recorder, &user, "npm run dev", &many);
    for n in 1..7 {
        let file = format!("{n}.txt");
        unfinished_command(&mut recorder, &user, &format!("watch {n}"), &[&file]);
    }
    edits(&mut recorder, &user, "named.txt");
    assert_eq!(recorder.close(), 0);
    let terminal = user.terminal(40, 400);
    let args = ["rewind", "m npm run dev"];
    let ran = terminal.run(&args, "keeps]", "k\rk\rk\rk\rt\ry\r");
    let shown = ran.shown();
    assert_eq!(ran.wrapped(), [""; 0], "{shown}");
    assert_eq!(ran.code, 4, "{shown}");
    assert!(shown.contains("  0-19.txt\n  … and 3 more\n"), "{shown}");
    let rest =
        "2 unclear paths more stay as they are;\n--take PATH and --mine PATH decide about\nthem.";
    assert!(shown.contains(rest), "{shown}");
    let gone: Vec<u8> = (1..7).filter(|n| !user.exists(&format!("{n}.txt"))).collect();
    assert_eq!(gone, [4]);
}

#[test]
fn without_a_terminal_or_with_yes_no_question_is_asked() {
    let user = after_two_commands();
    let answer = user.exits(4, &["rewind", "m npm run dev", "-y"]);
    assert!(!answer.out.contains("[t/k/m"), "{answer:?}");
    let user = after_two_commands();
    let ran = user.terminal(80, 70).run(&["rewind", "m npm run dev", "-y"], "", "");
    assert!(!ran.shown().contains("[t/k/m"), "{}", ran.shown());
}
