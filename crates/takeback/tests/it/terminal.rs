//! Commands in a pseudo-terminal.

use crate::pty::TerminalOutput;
use crate::user::User;

const ROWS: u16 = 70;
const COLUMNS: u16 = 80;

fn after_a_run() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    user.takeback(&["-q", "run", "--", "sh", "-c", "echo two > a.txt"]);
    user
}

#[test]
fn a_rewind_asks_and_does_it_on_y() {
    let user = after_a_run();
    let ran = user.terminal(80, 70).run(&["rewind", "@"], "[y/N]", "y\r");
    let shown = ran.shown();
    assert_eq!(ran.code, 0, "{shown}");
    assert!(
        shown.contains("restore   a.txt") && shown.contains("Done and verified on disk."),
        "{shown}"
    );
    assert_eq!(user.read("a.txt"), "one\n");
}

#[test]
fn a_rewind_does_nothing_on_enter() {
    let user = after_a_run();
    let ran = user.terminal(80, 70).run(&["rewind", "@"], "[y/N]", "\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert_eq!(user.read("a.txt"), "two\n");
}

#[test]
fn a_command_has_the_terminal_as_it_is() {
    let user = User::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo all-three; stty size";
    let ran = user.terminal(80, 70).run(&["run", "--", "sh", "-c", script], "", "");
    let shown = ran.shown();
    assert_eq!(ran.code, 0, "{shown}");
    assert!(shown.contains("all-three\n70 80"), "{shown}");
}

#[test]
fn ctrl_c_goes_to_the_command() {
    let user = User::with(&[("a.txt", "one\n")]);
    let script = "trap 'echo two > a.txt; exit 9' INT; echo waiting; while :; do sleep 0.1; done";
    let ran = user.terminal(80, 70).run(&["run", "--", "sh", "-c", script], "waiting", "\x03");
    let shown = ran.shown();
    assert_eq!(ran.code, 9, "{shown}");
    assert!(shown.contains("1 file changed"), "{shown}");
}

#[test]
fn the_demo_is_coloured_and_fits_80_columns() {
    let user = User::new();
    let ran = user.terminal(COLUMNS, ROWS).run(&["demo"], "", "");
    assert_eq!(ran.code, 0);
    assert_eq!(ran.wrapped(), [""; 0], "no line is longer than the screen");
    let screen = ran.screen.screen();
    let rows: Vec<String> = screen.rows(0, 80).collect();
    let undo = rows
        .iter()
        .position(|row| row.contains("takeback undo"))
        .expect("the undo is on the screen");
    let done =
        rows.iter().skip(undo).position(|row| row.contains("restored")).expect("what it did");
    let row = u16::try_from(undo + done).expect("a row");
    assert_eq!(screen.cell(row, 2).map(vt100::Cell::fgcolor), Some(vt100::Color::Idx(2)), "green");
}

/// Rows of the screen, with reversed text in [brackets].
fn marked(ran: &TerminalOutput) -> Vec<String> {
    let screen = ran.screen.screen();
    let mut rows = Vec::new();
    for row in 0..ROWS {
        let mut text = String::new();
        let mut inverse = false;
        for column in 0..COLUMNS {
            let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
                break;
            };
            if cell.inverse() != inverse {
                text.push(if inverse { ']' } else { '[' });
                inverse = !inverse;
            }
            text.push_str(cell.contents());
        }
        text.push_str(if inverse { "]" } else { "" });
        rows.push(text);
    }
    rows.retain(|row| !row.is_empty());
    rows
}

#[test]
fn changed_words_are_highlighted() {
    let user = User::with(&[("a.txt", "the quick brown fox\nsame\n")]);
    user.takeback(&["checkpoint"]);
    user.write("a.txt", "the slow brown fox\x1b[2J\u{202e}\nsame\nnew");
    let terminal = user.terminal(COLUMNS, ROWS);
    let ran = terminal.run(&["diff"], "", "");
    assert_eq!(
        marked(&ran),
        [
            "a.txt  changed +2 -1",
            "@@ -1,2 +1,3 @@",
            "-the [quick] brown fox",
            r"+the [slow] brown fox[\u{1b}[2J\u{202e}]",
            " same",
            "+new",
            r"\ No newline at end of file",
        ]
    );
    assert_eq!(
        ran.screen.screen().cell(2, 0).map(vt100::Cell::fgcolor),
        Some(vt100::Color::Idx(1))
    );
    let plain = terminal.with("NO_COLOR", "1").run(&["diff"], "", "");
    assert_eq!(plain.shown(), ran.shown(), "the same without colours");
    assert!(!plain.written.contains('\x1b'), "{:?}", plain.written);
}

#[test]
fn a_rewind_shows_the_lines_before_it_asks() {
    let user = after_a_run();
    let ran = user.terminal(COLUMNS, ROWS).run(&["rewind", "@", "--diff"], "[y/N]", "n\r");
    assert_eq!(ran.code, 5);
    let shown = ran.shown();
    let diff = shown.find("-two\n+one").expect("how the file would change");
    assert!(diff < shown.find("[y/N]").expect("the question"), "{shown}");
}

#[test]
fn long_work_shows_its_progress_and_then_removes_it() {
    let user = User::with(&[("a.txt", "one\n")]);
    let at_once = || user.terminal(COLUMNS, ROWS).with("TAKEBACK_PROGRESS_AFTER_MS", "0");
    for (args, seen) in [
        (&["run", "--", "sh", "-c", "echo two > a.txt"][..], &["Reading files"][..]),
        (&["status"], &["Reading files"]),
        (&["verify"], &["Reading everything in the store"]),
        (&["rewind", "@~1", "-y"], &["Preparing files", "Placing files"]),
        (&["checkpoint"], &["Reading files"]),
    ] {
        let ran = at_once().run(args, "", "");
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.shown());
        for seen in seen {
            assert!(ran.written.contains(seen), "{args:?}: {:?}", ran.written);
            assert!(!ran.shown().contains(seen), "{args:?}: {}", ran.shown());
        }
        let quiet = at_once().run(&[&["-q"], args].concat(), "", "");
        assert!(!seen.iter().any(|seen| quiet.written.contains(seen)), "{:?}", quiet.written);
    }
    let soon = user.terminal(COLUMNS, ROWS).run(&["status"], "", "");
    assert!(!soon.written.contains("Reading"), "{:?}", soon.written);
    let json = at_once().run(&["--json", "status"], "", "");
    assert!(!json.written.contains("Reading"), "{:?}", json.written);
}

/// The command runs longer than the pause between two scans.
#[test]
fn nothing_is_shown_while_a_command_has_the_terminal() {
    let user = User::with(&[("a.txt", "one\n")]);
    let ran = user.terminal(COLUMNS, ROWS).with("TAKEBACK_PROGRESS_AFTER_MS", "0").run(
        &["run", "--", "sh", "-c", "echo began; echo two > a.txt; sleep 4; echo ended"],
        "",
        "",
    );
    let (_, after) = ran.written.split_once("began").expect("it began");
    let (meanwhile, after) = after.split_once("ended").expect("it ended");
    assert_eq!(meanwhile.trim(), "");
    assert!(after.contains("Reading files"), "but again when it has ended: {after:?}");
}
