//! Programs in a real pseudo-terminal: this test binary itself, started with the name of one of the programs
//! at the end of this file.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use takeback_tui::{Terminal, TerminalEvent};

/// Long enough for a slow machine; a test that passes never waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Session {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn std::io::Write + Send>,
    written: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    all: Vec<u8>,
    settings: String,
}

impl Session {
    fn start(program: &str) -> Self {
        let (master, child, settings) = start(program);
        let mut reader = master.try_clone_reader().expect("a reader");
        let keyboard = master.take_writer().expect("a keyboard");
        let (send, written) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if send.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let some = |n| NonZeroU16::new(n).expect("some rows and columns");
        let screen = vt100::Parser::new(some(24), some(80), 0);
        Self { child, master, keyboard, written, screen, all: Vec::new(), settings }
    }

    fn wait_for(&mut self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.screen.screen().contents().contains(words) {
            match self.written.recv_timeout(PATIENCE) {
                Ok(bytes) if Instant::now() < until => self.take(&bytes),
                _ => panic!("never saw {words:?} in\n{}", self.screen.screen().contents()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.all.extend(bytes);
    }

    fn type_in(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).expect("it is typed");
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = self.child.process_id().and_then(|id| i32::try_from(id).ok()).expect("an id");
        let id = rustix::process::Pid::from_raw(id).expect("an id");
        rustix::process::kill_process(id, signal).expect("it is sent");
    }

    /// The exit code, after everything that was written has been seen.
    fn end(&mut self) -> u32 {
        loop {
            match self.written.recv_timeout(PATIENCE) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
        self.child.wait().expect("it ends").exit_code()
    }

    fn assert_taken(&self) {
        let screen = self.screen.screen();
        assert!(screen.alternate_screen() && screen.bracketed_paste() && screen.hide_cursor());
        assert_ne!(settings(&*self.master), self.settings);
        assert!(self.written_has("\x1b[?1007l"));
    }

    fn assert_restored(&self) {
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor());
        assert!(self.written_has("\x1b[?1007r"));
    }

    fn written_has(&self, words: &str) -> bool {
        String::from_utf8_lossy(&self.all).contains(words)
    }
}

/// In a terminal of its own, of 80 columns and 24 rows; and how that was set before.
fn start(program: &str) -> (Box<dyn MasterPty + Send>, Box<dyn Child + Send + Sync>, String) {
    let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).expect("a terminal");
    let before = settings(&*pair.master);
    let mut command = CommandBuilder::new(std::env::current_exe().expect("this test"));
    let name = format!("terminal::{program}");
    command.args([&name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.cwd(env!("CARGO_MANIFEST_DIR"));
    command.env("TERM", "xterm-256color");
    command.env("RUST_BACKTRACE", "0");
    let child = pair.slave.spawn_command(command).expect("it starts");
    (pair.master, child, before)
}

/// Echo, lines, signals: what raw mode turns off.
fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().expect("a terminal has settings"))
}

#[test]
fn it_is_restored_when_the_program_leaves() {
    let mut session = Session::start("program_shows_what_comes");
    session.wait_for("ready");
    session.assert_taken();
    session.type_in(b"\x1b\x1bx");
    session.wait_for("[27, 27, 120]");
    session.type_in(b"q");
    session.wait_for("left");
    session.assert_restored();
    assert_eq!(settings(&*session.master), session.settings);
    // In lines again, with echo.
    session.type_in(b"a line\n");
    session.wait_for("read \"a line\\n\"");
    assert_eq!(session.end(), 0);
}

#[test]
fn a_new_size_is_reported() {
    let mut session = Session::start("program_shows_what_comes");
    session.wait_for("ready");
    let size = PtySize { rows: 10, cols: 40, pixel_width: 0, pixel_height: 0 };
    session.master.resize(size).expect("a size");
    session.wait_for("40x10");
    session.type_in(b"q");
    session.wait_for("left");
    session.type_in(b"\n");
    assert_eq!(session.end(), 0);
}

#[test]
fn after_a_stop_everything_is_set_and_drawn_again() {
    use rustix::process::Signal;
    let mut session = Session::start("program_shows_what_comes");
    session.wait_for("ready");
    let raw = settings(&*session.master);
    session.signal(Signal::STOP);
    // What a shell does when it has the terminal back.
    session.take(b"\x1b[?1049l\x1b[?2004l\x1b[?25h");
    session.signal(Signal::CONT);
    session.wait_for("resized 80x24");
    session.assert_taken();
    assert_eq!(settings(&*session.master), raw);
    session.type_in(b"q");
    session.wait_for("left");
    session.assert_restored();
    assert_eq!(settings(&*session.master), session.settings);
    session.type_in(b"\n");
    assert_eq!(session.end(), 0);
}

#[test]
fn signals_are_reported_and_the_program_ends_in_order() {
    use rustix::process::Signal;
    for (signal, number) in [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::INT, 2)] {
        let mut session = Session::start("program_ends_at_a_signal");
        session.wait_for("ready");
        session.assert_taken();
        session.signal(signal);
        session.wait_for(&format!("ended by {number}"));
        session.assert_restored();
        assert_eq!(session.end(), 0);
    }
}

#[test]
fn a_signal_ends_what_comes_after_the_menu() {
    let mut session = Session::start("program_shows_what_comes");
    session.wait_for("ready");
    session.type_in(b"q");
    session.wait_for("left");
    session.signal(rustix::process::Signal::TERM);
    assert_ne!(session.end(), 0);
    assert!(!session.written_has("read \""));
}

#[test]
fn a_panic_is_printed_on_the_restored_screen() {
    let mut session = Session::start("program_panics");
    session.wait_for("ready");
    session.assert_taken();
    session.type_in(b"q");
    assert_ne!(session.end(), 0);
    session.assert_restored();
    let all = String::from_utf8_lossy(&session.all).into_owned();
    let restored = all.find("\x1b[?1049l").expect("restored");
    let printed = all.find("out of luck").expect("printed");
    assert!(restored < printed, "{all}");
    assert_eq!(all.matches("\x1b[?1049l").count(), 1);
}

#[test]
fn a_panic_of_another_thread_does_not_write_across_the_screen() {
    let mut session = Session::start("program_with_a_thread_that_panics");
    session.wait_for("the thread is gone");
    session.assert_taken();
    assert!(!session.written_has("no listener"));
    session.type_in(b"q");
    session.wait_for("no listener");
    session.assert_restored();
    assert_eq!(session.end(), 0);
}

#[test]
fn a_closed_terminal_is_reported() {
    let (master, mut child, _) = start("program_ends_when_the_terminal_is_gone");
    let mut reader = master.try_clone_reader().expect("a reader");
    let mut all = Vec::new();
    // With the end of its frame, which it must be able to write.
    while !all.ends_with(b"\x1b[?2026l") {
        let mut buffer = [0; 4096];
        let length = reader.read(&mut buffer).expect("it draws");
        all.extend(&buffer[..length]);
    }
    drop((reader, master));
    assert_eq!(child.wait().expect("it ends").exit_code(), 0);
}

#[test]
fn without_a_terminal_nothing_is_taken() {
    let this = std::env::current_exe().expect("this test");
    let ran = std::process::Command::new(this)
        .args(["terminal::program_needs_a_terminal", "--exact", "--ignored", "--nocapture"])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it starts");
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(out.contains("standard input or output is not a terminal"), "{out}");
    assert!(!out.contains('\x1b'), "{out}");
}

fn entered() -> (Terminal, Receiver<TerminalEvent>) {
    let (send, receive) = channel();
    let terminal = Terminal::enter(move |event| send.send(event).expect("the test listens"));
    (terminal.expect("a terminal"), receive)
}

fn show(terminal: &mut Terminal, words: &str) {
    terminal
        .draw(|frame| {
            let area = frame.area();
            frame.render_widget(format!("{words} {}x{}", area.width, area.height), area);
        })
        .expect("it is drawn");
}

fn wait_for_q(terminal: &mut Terminal, events: &Receiver<TerminalEvent>) {
    for event in events {
        match event {
            TerminalEvent::Bytes(bytes) if bytes == b"q" => return,
            TerminalEvent::Bytes(bytes) => show(terminal, &format!("{bytes:?}")),
            TerminalEvent::Resized => show(terminal, "resized"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
#[ignore = "a program for the tests above"]
fn program_shows_what_comes() {
    for round in 0..2 {
        let (mut terminal, events) = entered();
        if round == 0 {
            continue;
        }
        show(&mut terminal, "ready");
        wait_for_q(&mut terminal, &events);
    }
    println!("left");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    println!("read {line:?}");
}

#[test]
#[ignore = "a program for the tests above"]
fn program_ends_at_a_signal() {
    let (mut terminal, events) = entered();
    show(&mut terminal, "ready");
    let signal = events.iter().find_map(|event| match event {
        TerminalEvent::Signal(signal) => Some(signal),
        _ => None,
    });
    drop(terminal);
    println!("ended by {}", signal.expect("a signal"));
}

#[test]
#[ignore = "a program for the tests above"]
fn program_panics() {
    let (mut terminal, events) = entered();
    show(&mut terminal, "ready");
    wait_for_q(&mut terminal, &events);
    terminal.draw(|_| panic!("out of luck")).expect("it is drawn");
}

#[test]
#[ignore = "a program for the tests above"]
fn program_with_a_thread_that_panics() {
    let (mut terminal, events) = entered();
    let thread = std::thread::spawn(|| panic!("no listener"));
    assert!(thread.join().is_err());
    show(&mut terminal, "the thread is gone");
    wait_for_q(&mut terminal, &events);
}

#[test]
#[ignore = "a program for the tests above"]
fn program_ends_when_the_terminal_is_gone() {
    let (mut terminal, events) = entered();
    show(&mut terminal, "ready");
    let ends = |event| matches!(event, TerminalEvent::Closed | TerminalEvent::Signal(_));
    assert!(events.into_iter().any(ends));
    drop(terminal);
    // The test harness would fail to write its report to a terminal that is gone.
    std::process::exit(0);
}

#[test]
#[ignore = "a program for the tests above"]
fn program_needs_a_terminal() {
    match Terminal::enter(|_| ()) {
        Ok(_) => println!("there is one"),
        Err(error) => println!("{error}"),
    }
}
