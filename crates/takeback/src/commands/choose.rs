//! The rewind menu for one command: opened, used, and gone.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use takeback_tui::keys::{Decoder, Moment};
use takeback_tui::menu::{ExecutionRow, Menu, MenuOptions, Outcome, Preview, Row, Scope};
use takeback_tui::terminal::{Terminal, TerminalEvent};
use takeback_tui::theme::Theme;

use super::menu::Picks;
use crate::error::CommandError;

/// What somebody chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chosen {
    Point { id: String, picks: Picks },
    Execution(String),
    Undo,
    Nothing,
}

/// What the menu is filled with.
pub(crate) struct Choices {
    pub(crate) rows: Vec<Row>,
    pub(crate) executions: Vec<ExecutionRow>,
    pub(crate) keep: usize,
    pub(crate) can_undo: bool,
    pub(crate) can_mark: bool,
}

/// What somebody looks at before they choose it.
pub(crate) enum Looked<'a> {
    Point(&'a str),
    Execution(&'a str),
}

/// Shows the menu until something is chosen. `look` says what choosing it would do.
pub(crate) fn choose(
    choices: Choices,
    mut look: impl FnMut(Looked<'_>) -> Result<Preview, CommandError>,
) -> Result<Chosen, CommandError> {
    let theme = if super::has_colour() { Theme::colour() } else { Theme::plain() };
    let options = MenuOptions {
        keep: choices.keep,
        scope: Scope::Folder,
        conversation: false,
        can_undo: choices.can_undo,
        can_mark: choices.can_mark,
    };
    let mut menu = Menu::new(choices.rows, choices.executions, options);
    let (send, receive) = channel();
    let mut terminal = Terminal::enter(move |event| drop(send.send(event)))?;
    let mut keys = Decoder::new();
    let began = Instant::now();
    let now = || Moment(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    loop {
        terminal.draw(|frame| menu.draw(frame, frame.area(), &theme))?;
        let wait = keys.deadline().map_or(60_000, |until| until.since(now()));
        let presses = match receive.recv_timeout(Duration::from_millis(wait)) {
            Ok(TerminalEvent::Bytes(bytes)) => keys.feed(&bytes, now()),
            Ok(TerminalEvent::Resized) => Vec::new(),
            Ok(TerminalEvent::Signal(_) | TerminalEvent::Closed)
            | Err(RecvTimeoutError::Disconnected) => return Ok(Chosen::Nothing),
            Err(RecvTimeoutError::Timeout) => keys.expire(now()),
        };
        for press in presses {
            match menu.press(&press.key) {
                // The preview of an execution is made by nobody; the menu goes on looking.
                Outcome::Stay => {}
                Outcome::LookExecution(execution) => {
                    let preview = look(Looked::Execution(&execution)).map_err(|error| error.line());
                    menu.set_execution_preview(&execution, preview);
                }
                Outcome::Look(id) => {
                    let preview = look(Looked::Point(&id)).map_err(|error| error.line());
                    menu.set_preview(&id, preview);
                }
                Outcome::Cancel => return Ok(Chosen::Nothing),
                Outcome::Restore { id, paths, marks, .. } => {
                    return Ok(Chosen::Point { id, picks: Picks { paths, marks } });
                }
                Outcome::RestoreExecution(execution) => return Ok(Chosen::Execution(execution)),
                Outcome::Undo => return Ok(Chosen::Undo),
            }
        }
    }
}
