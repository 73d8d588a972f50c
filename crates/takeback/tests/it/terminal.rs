//! In a real pseudo-terminal, with a screen.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::home::User;

const ROWS: u16 = 70;
const COLUMNS: u16 = 80;

/// A terminal of some size, and what is set in it.
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

    /// Runs `takeback ARGS`, types `keys` once `prompt` is on the screen; the screen at the end, all
    /// that was written to it, and the exit code.
    pub(crate) fn run(&self, user: &User, args: &[&str], prompt: &str, keys: &str) -> Ran {
        self.run_while(user, args, prompt, keys, || ())
    }

    /// As [`Self::run`], and `meanwhile` happens before `keys` are typed.
    pub(crate) fn run_while(
        &self,
        user: &User,
        args: &[&str],
        prompt: &str,
        keys: &str,
        meanwhile: impl Fn(),
    ) -> Ran {
        let size = PtySize { rows: self.rows, cols: self.columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
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
        let mut child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (send, receive) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n) = reader.read(&mut buffer) {
                if n == 0 || send.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut writer = pair.master.take_writer().expect("a keyboard");
        let some = |n| NonZeroU16::new(n).expect("some rows and columns");
        let mut screen = vt100::Parser::new(some(self.rows), some(self.columns), 0);
        let mut written = Vec::new();
        let mut typed = keys.is_empty();
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            match receive.recv_timeout(Duration::from_millis(50)) {
                Ok(bytes) => {
                    screen.process(&bytes);
                    written.extend(bytes);
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            }
            if !typed && screen.screen().contents().contains(prompt) {
                meanwhile();
                writer.write_all(keys.as_bytes()).expect("keys are typed");
                typed = true;
            }
        }
        assert!(typed, "never saw {prompt:?} in\n{}", screen.screen().contents());
        let code = child.wait().expect("it ends").exit_code();
        Ran { screen, written: String::from_utf8_lossy(&written).into_owned(), code }
    }
}

/// What was seen on a terminal.
pub(crate) struct Ran {
    pub(crate) screen: vt100::Parser,
    pub(crate) written: String,
    pub(crate) code: u32,
}

impl Ran {
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
        shown.contains("restore   a.txt") && shown.contains("Done and checked on disk."),
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

/// Rows of the screen, with what stands in reverse in [brackets].
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
        (&["rewind", "@~1", "-y"], &["Making ready", "Putting in place"]),
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
    let told = at_once().run(&user, &["--json", "status"], "", "");
    assert!(!told.written.contains("Reading"), "{:?}", told.written);
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
