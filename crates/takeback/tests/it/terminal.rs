//! Commands in a real pseudo-terminal, with a screen.

use portable_pty::CommandBuilder;

use crate::chat::seat::Seat;
use crate::home::User;

const ROWS: u16 = 70;
const COLUMNS: u16 = 80;

/// A terminal of some size, with these variables set.
pub(crate) struct Terminal {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Terminal {
    pub(crate) fn new(rows: u16, columns: u16) -> Self {
        Self { rows, columns, environment: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Starts `takeback ARGS`.
    pub(crate) fn start(&self, user: &User, args: &[&str]) -> Seat {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_takeback"));
        command.args(args);
        command.cwd(user.work());
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", user.home());
        command.env("TERM", "xterm-256color");
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        Seat::start(command, self.columns, self.rows)
    }

    /// Runs `takeback ARGS` to its end, and types `keys` once `prompt` is on the screen.
    #[track_caller]
    pub(crate) fn run(&self, user: &User, args: &[&str], prompt: &str, keys: &str) -> Ran {
        let mut seat = self.start(user, args);
        if !keys.is_empty() {
            seat.sees(prompt).types(keys);
        }
        Ran::of(seat)
    }
}

/// What a command showed on a terminal.
pub(crate) struct Ran {
    pub(crate) screen: vt100::Parser,
    pub(crate) written: String,
    pub(crate) code: u32,
}

impl Ran {
    /// Waits for the end.
    #[track_caller]
    pub(crate) fn of(seat: Seat) -> Self {
        let (code, screen, written) = seat.finish();
        Self { screen, written, code }
    }

    pub(crate) fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// Lines that were longer than the terminal is wide.
    pub(crate) fn wrapped(&self) -> Vec<String> {
        let screen = self.screen.screen();
        (0..screen.size().0.get())
            .filter(|row| screen.row_wrapped(*row))
            .map(|row| screen.contents_between(row, 0, row + 1, 0))
            .collect()
    }
}

pub(crate) fn on_a_terminal(
    user: &User,
    args: &[&str],
    prompt: &str,
    keys: &str,
) -> (vt100::Parser, u32) {
    let ran = Terminal::new(ROWS, COLUMNS).run(user, args, prompt, keys);
    (ran.screen, ran.code)
}

fn after_a_run() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    user.takeback(&["-q", "run", "--", "sh", "-c", "echo two > a.txt"]);
    user
}

#[test]
fn a_rewind_asks_and_does_it_on_y() {
    let user = after_a_run();
    let (screen, code) = on_a_terminal(&user, &["rewind", "@"], "[y/N]", "y\r");
    let shown = screen.screen().contents();
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("restore   a.txt") && shown.contains("Done and verified on disk."),
        "{shown}"
    );
    assert_eq!(user.read("a.txt"), "one\n");
}

#[test]
fn a_rewind_does_nothing_on_enter() {
    let user = after_a_run();
    let (screen, code) = on_a_terminal(&user, &["rewind", "@"], "[y/N]", "\r");
    assert_eq!(code, 5, "{}", screen.screen().contents());
    assert_eq!(user.read("a.txt"), "two\n");
}

#[test]
fn a_command_has_the_terminal_as_it_is() {
    let user = User::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo all-three; stty size";
    let (screen, code) = on_a_terminal(&user, &["run", "--", "sh", "-c", script], "", "");
    let shown = screen.screen().contents();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("all-three\n70 80"), "{shown}");
}

#[test]
fn ctrl_c_is_for_the_command() {
    let user = User::with(&[("a.txt", "one\n")]);
    let script = "trap 'echo two > a.txt; exit 9' INT; echo waiting; while :; do sleep 0.1; done";
    let (screen, code) =
        on_a_terminal(&user, &["run", "--", "sh", "-c", script], "waiting", "\x03");
    let shown = screen.screen().contents();
    assert_eq!(code, 9, "{shown}");
    assert!(shown.contains("1 file changed"), "{shown}");
}

#[test]
fn the_demo_is_coloured_and_fits_80_columns() {
    let user = User::new();
    let ran = Terminal::new(ROWS, COLUMNS).run(&user, &["demo"], "", "");
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
fn marked(ran: &Ran) -> Vec<String> {
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
fn words_that_differ_stand_out() {
    let user = User::with(&[("a.txt", "the quick brown fox\nsame\n")]);
    user.takeback(&["checkpoint"]);
    user.write("a.txt", "the slow brown fox\x1b[2J\u{202e}\nsame\nnew");
    let terminal = Terminal::new(ROWS, COLUMNS);
    let ran = terminal.run(&user, &["diff"], "", "");
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
    let plain = terminal.with("NO_COLOR", "1").run(&user, &["diff"], "", "");
    assert_eq!(plain.shown(), ran.shown(), "the same without colours");
    assert!(!plain.written.contains('\x1b'), "{:?}", plain.written);
}

#[test]
fn a_rewind_shows_the_lines_before_it_asks() {
    let user = after_a_run();
    let ran = Terminal::new(ROWS, COLUMNS).run(&user, &["rewind", "@", "--diff"], "[y/N]", "n\r");
    assert_eq!(ran.code, 5);
    let shown = ran.shown();
    let diff = shown.find("-two\n+one").expect("how the file would change");
    assert!(diff < shown.find("[y/N]").expect("the question"), "{shown}");
}

#[test]
fn what_takes_long_shows_how_far_it_is_and_leaves_no_trace() {
    let user = User::with(&[("a.txt", "one\n")]);
    let at_once = || Terminal::new(ROWS, COLUMNS).with("TAKEBACK_PROGRESS_AFTER_MS", "0");
    for (args, seen) in [
        (&["run", "--", "sh", "-c", "echo two > a.txt"][..], &["Reading files"][..]),
        (&["status"], &["Reading files"]),
        (&["verify"], &["Reading everything in the store"]),
        (&["rewind", "@~1", "-y"], &["Preparing files", "Placing files"]),
        (&["checkpoint"], &["Reading files"]),
    ] {
        let ran = at_once().run(&user, args, "", "");
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.shown());
        for seen in seen {
            assert!(ran.written.contains(seen), "{args:?}: {:?}", ran.written);
            assert!(!ran.shown().contains(seen), "{args:?}: {}", ran.shown());
        }
        let quiet = at_once().run(&user, &[&["-q"], args].concat(), "", "");
        assert!(!seen.iter().any(|seen| quiet.written.contains(seen)), "{:?}", quiet.written);
    }
    let soon = Terminal::new(ROWS, COLUMNS).run(&user, &["status"], "", "");
    assert!(!soon.written.contains("Reading"), "{:?}", soon.written);
    let json = at_once().run(&user, &["--json", "status"], "", "");
    assert!(!json.written.contains("Reading"), "{:?}", json.written);
}

/// Longer than the pause after which the tree is looked at while a command runs.
#[test]
fn nothing_is_shown_while_a_command_has_the_terminal() {
    let user = User::with(&[("a.txt", "one\n")]);
    let ran = Terminal::new(ROWS, COLUMNS).with("TAKEBACK_PROGRESS_AFTER_MS", "0").run(
        &user,
        &["run", "--", "sh", "-c", "echo began; echo two > a.txt; sleep 4; echo ended"],
        "",
        "",
    );
    let (_, after) = ran.written.split_once("began").expect("it began");
    let (meanwhile, after) = after.split_once("ended").expect("it ended");
    assert_eq!(meanwhile.trim(), "");
    assert!(after.contains("Reading files"), "but again when it has ended: {after:?}");
}
