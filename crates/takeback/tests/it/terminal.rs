//! In a real pseudo-terminal, with a screen.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::home::User;

const ROWS: NonZeroU16 = NonZeroU16::new(70).expect("some rows");
const COLUMNS: NonZeroU16 = NonZeroU16::new(80).expect("some columns");

/// Runs `takeback ARGS` on a terminal, types `keys` once `prompt` is on the screen; the screen at the
/// end and the exit code.
pub(crate) fn on_a_terminal(
    user: &User,
    args: &[&str],
    prompt: &str,
    keys: &str,
) -> (vt100::Parser, u32) {
    let size = PtySize { rows: ROWS.get(), cols: COLUMNS.get(), pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).expect("a terminal");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_takeback"));
    command.args(args);
    command.cwd(user.work());
    command.env("HOME", user.home());
    command.env("TERM", "xterm-256color");
    command.env_remove("NO_COLOR");
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
    let mut screen = vt100::Parser::new(ROWS, COLUMNS, 0);
    let mut typed = keys.is_empty();
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        match receive.recv_timeout(Duration::from_millis(50)) {
            Ok(bytes) => screen.process(&bytes),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
        }
        if !typed && screen.screen().contents().contains(prompt) {
            writer.write_all(keys.as_bytes()).expect("keys are typed");
            typed = true;
        }
    }
    assert!(typed, "never saw {prompt:?} in\n{}", screen.screen().contents());
    (screen, child.wait().expect("it ends").exit_code())
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
    let (screen, code) = on_a_terminal(&user, &["demo"], "", "");
    assert_eq!(code, 0);
    let wrapped: Vec<String> = (0..ROWS.get())
        .filter(|row| screen.screen().row_wrapped(*row))
        .map(|row| screen.screen().contents_between(row, 0, row + 1, 0))
        .collect();
    assert_eq!(wrapped, [""; 0], "no line is longer than the screen");
    let rows: Vec<String> = screen.screen().rows(0, 80).collect();
    let undo = rows
        .iter()
        .position(|row| row.contains("takeback undo"))
        .expect("the undo is on the screen");
    let done =
        rows.iter().skip(undo).position(|row| row.contains("restored")).expect("what it did");
    let row = u16::try_from(undo + done).expect("a row");
    assert_eq!(
        screen.screen().cell(row, 2).map(vt100::Cell::fgcolor),
        Some(vt100::Color::Idx(2)),
        "green"
    );
}
