//! A user at a pseudo-terminal, who types and waits for text on the screen.

use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::user::User;

/// How long to wait for something before it counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than a question must be visible before it can be allowed.
pub(crate) const A_WHILE: Duration = Duration::from_millis(700);

pub(crate) const ESC: &str = "\x1b";
pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const ENTER: &str = "\r";

/// A program in a pseudo-terminal.
pub(crate) struct Terminal {
    screen: vt100::Parser,
    pub(crate) written: Vec<u8>,
    bytes: Receiver<Vec<u8>>,
    keyboard: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// The terminal's settings before the program started.
    settings: String,
}

/// The terminal in which a user starts `takeback`.
pub(crate) struct TerminalOptions<'a> {
    pub(crate) user: &'a User,
    columns: u16,
    rows: u16,
    environment: Vec<(String, String)>,
    errors: Option<PathBuf>,
}

impl User {
    pub(crate) fn terminal(&self, columns: u16, rows: u16) -> TerminalOptions<'_> {
        TerminalOptions { user: self, columns, rows, environment: Vec::new(), errors: None }
    }
}

impl TerminalOptions<'_> {
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Redirects standard error to a file.
    pub(crate) fn errors_to(mut self, file: PathBuf) -> Self {
        self.errors = Some(file);
        self
    }

    /// Starts `takeback ARGS`.
    pub(crate) fn start(&self, args: &[&str]) -> Terminal {
        let program = env!("CARGO_BIN_EXE_takeback");
        let mut command = match &self.errors {
            None => CommandBuilder::new(program),
            Some(file) => {
                let mut shell = CommandBuilder::new("/bin/sh");
                shell.args(["-c", r#"errors=$1; shift; exec "$0" "$@" 2>"$errors""#, program]);
                shell.arg(file);
                shell
            }
        };
        command.args(args);
        command.cwd(self.user.work());
        command.env_clear();
        // Without the agents that this machine may have installed.
        command.env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.user.home());
        command.env("TERM", "xterm-256color");
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        Terminal::start(command, self.columns, self.rows)
    }

    /// Runs `takeback ARGS` to its end, and types `keys` once `prompt` is on the screen.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str], prompt: &str, keys: &str) -> TerminalOutput {
        let mut terminal = self.start(args);
        if !keys.is_empty() {
            terminal.sees(prompt).types(keys);
        }
        terminal.finish()
    }
}

/// What a command that has ended showed on its terminal.
pub(crate) struct TerminalOutput {
    pub(crate) screen: vt100::Parser,
    pub(crate) written: String,
    pub(crate) code: u32,
}

impl TerminalOutput {
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

impl Terminal {
    /// Starts a program in a terminal of this size.
    pub(crate) fn start(command: CommandBuilder, cols: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let settings = settings(&*pair.master);
        let child = pair.slave.spawn_command(command).expect("it starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (send, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(n) = reader.read(&mut buffer) {
                if n == 0 || send.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keyboard = pair.master.take_writer().expect("a keyboard");
        let some = |n| NonZeroU16::new(n).expect("some rows and columns");
        let screen = vt100::Parser::new(some(rows), some(cols), 0);
        Self { screen, written: Vec::new(), bytes, keyboard, master: pair.master, child, settings }
    }

    /// Types keys, all at once.
    pub(crate) fn types(&mut self, keys: &str) -> &mut Self {
        self.keyboard.write_all(keys.as_bytes()).expect("keys are typed");
        self.keyboard.flush().expect("keys are typed");
        self
    }

    /// Types a line, and then Enter.
    pub(crate) fn says(&mut self, line: &str) -> &mut Self {
        self.types(line);
        self.sees(line.get(..line.len().min(30)).unwrap_or(line));
        self.types(ENTER)
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn sees(&mut self, what: &str) -> &mut Self {
        self.sees_that(what, |screen| screen.contains(what))
    }

    /// Waits until a text is there this many times.
    #[track_caller]
    pub(crate) fn sees_times(&mut self, times: usize, what: &str) -> &mut Self {
        self.sees_that(&format!("{times} times {what}"), |screen| {
            screen.matches(what).count() == times
        })
    }

    /// Waits until a text is gone.
    #[track_caller]
    pub(crate) fn sees_no(&mut self, what: &str) -> &mut Self {
        self.sees_that(&format!("no {what}"), |screen| !screen.contains(what))
    }

    /// Waits until the screen meets a condition, which `what` describes.
    #[track_caller]
    pub(crate) fn sees_that(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> &mut Self {
        let until = Instant::now() + PATIENCE;
        loop {
            self.look(Duration::from_millis(20));
            if is_so(&self.shown()) {
                return self;
            }
            assert!(Instant::now() < until, "never saw {what:?} in\n{}", self.shown());
        }
    }

    /// Reads output for this long, or until the terminal is closed.
    pub(crate) fn look(&mut self, within: Duration) -> &mut Self {
        let until = Instant::now() + within;
        loop {
            match self.bytes.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.written.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return self,
            }
        }
    }

    /// All output so far.
    pub(crate) fn ever(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// The screen.
    pub(crate) fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// The colour of the first character of a text on the screen.
    #[track_caller]
    pub(crate) fn colour_of(&self, text: &str) -> vt100::Color {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        for row in 0..rows.get() {
            let line = screen.contents_between(row, 0, row, columns.get());
            if let Some(at) = line.find(text) {
                let column = line[..at].chars().count();
                let column = u16::try_from(column).expect("a column");
                return screen.cell(row, column).expect("a cell").fgcolor();
            }
        }
        panic!("{text:?} is not in\n{}", self.shown());
    }

    pub(crate) fn resizes(&mut self, columns: u16, rows: u16) -> &mut Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).expect("it is resized");
        let some = |n| NonZeroU16::new(n).expect("some rows and columns");
        self.screen.screen_mut().set_size(some(rows), some(columns));
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    /// Whether the terminal is as before: its settings, the main screen, a visible cursor.
    pub(crate) fn is_restored(&self) -> bool {
        let screen = self.screen.screen();
        let shown = !screen.alternate_screen() && !screen.hide_cursor();
        shown && !screen.bracketed_paste() && settings(&*self.master) == self.settings
    }

    /// Waits until the program ends.
    #[track_caller]
    pub(crate) fn finish(mut self) -> TerminalOutput {
        let code = self.ends();
        let written = self.ever();
        TerminalOutput { screen: std::mem::take(&mut self.screen), written, code }
    }

    /// Row and column, from 0.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.screen.screen().cursor_position()
    }

    /// Leaves a session with `/exit`.
    #[track_caller]
    pub(crate) fn exits(&mut self) {
        self.says("/exit");
        assert_eq!(self.ends(), 0);
    }

    /// Waits for the end; the exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> u32 {
        let until = Instant::now() + PATIENCE;
        loop {
            self.look(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                // Returns as soon as the terminal is closed.
                self.look(Duration::from_secs(1));
                return status.exit_code();
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.shown());
        }
    }
}

fn settings(terminal: &dyn MasterPty) -> String {
    format!("{:?}", terminal.get_termios().expect("it can be asked"))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
    }
}
