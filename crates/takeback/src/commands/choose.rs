//! Shows the rewind menu until the user has chosen.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use takeback_tui::{Decoder, Menu, MenuAction, Moment, Terminal, TerminalEvent, Theme};

use super::menu::MenuSource;
use crate::error::CommandError;

/// The user's choice: an action other than `Stay`, `Preview` and `Ask`.
pub(crate) fn choose(
    mut menu: Menu,
    source: &mut MenuSource<'_>,
) -> Result<MenuAction, CommandError> {
    let theme = if super::has_colour() { Theme::colour() } else { Theme::plain() };
    let (send, events) = channel();
    let mut terminal = Terminal::enter(move |event| drop(send.send(event)))?;
    let mut keys = Decoder::new();
    let start = Instant::now();
    let now = || Moment(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    loop {
        terminal.draw(|frame| menu.draw(frame, frame.area(), &theme))?;
        let wait = keys.deadline().map_or(60_000, |until| until.since(now()));
        let presses = match events.recv_timeout(Duration::from_millis(wait)) {
            Ok(TerminalEvent::Bytes(bytes)) => keys.feed(&bytes, now()),
            Ok(TerminalEvent::Resized) => Vec::new(),
            Ok(TerminalEvent::Signal(_) | TerminalEvent::Closed)
            | Err(RecvTimeoutError::Disconnected) => return Ok(MenuAction::Cancel),
            Err(RecvTimeoutError::Timeout) => keys.expire(now()),
        };
        for press in presses {
            match menu.press(&press.key) {
                MenuAction::Stay => {}
                MenuAction::Preview(request) => {
                    let preview = source.preview(&request).map_err(|error| error.line());
                    menu.set_preview(request, preview);
                }
                MenuAction::Ask(question) => {
                    let answer = source.answer(&question).map_err(|error| error.line());
                    menu.set_answer(&question, answer);
                }
                action => return Ok(action),
            }
        }
    }
}
