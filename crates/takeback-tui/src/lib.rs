//! Takeback in a terminal: the rewind menu and the interactive session.
//!
//! State and rendering are plain values: keys and times go in, actions come out, and a frame is drawn
//! from the state. Only [`Terminal`] touches the terminal. Nothing here knows a store or an agent.
//!
//! ```
//! use takeback_tui::{Decoder, DoublePress, Key, Moment};
//!
//! let mut decoder = Decoder::new();
//! let mut escape = DoublePress::new(Key::Esc, 300);
//! let mut presses = decoder.feed(b"\x1b", Moment(0));
//! presses.extend(decoder.feed(b"\x1b", Moment(200)));
//! presses.extend(decoder.expire(Moment(300)));
//! assert_eq!(presses.iter().filter(|press| escape.press(press)).count(), 1);
//! ```

#![warn(missing_docs)]

mod chat;
mod safe_text;
mod diff;
mod editor;
mod cut_text;
mod keys;
mod menu;
pub mod palette;
mod slash;
mod terminal;
mod theme;
mod transcript;
mod wrap;

pub use chat::{Activity, Answer, Chat, ChatOptions, Effect, Question, StatusLine};
pub use diff::{DiffLine, LineKind};
pub use editor::{Edit, Editor, Layout};
pub use keys::{
    Decoder, DoublePress, ESC_WAIT_MS, Key, KeyNameError, Moment, Press, key_name, parse_key,
};
pub use menu::{
    ExecutionRow, FileAction, FilePreview, FileSelection, Marks, Menu, MenuAction, MenuAnswer,
    MenuCoverage, MenuOptions, MenuQuestion, MenuScope, OperationRow, Origin, PartyCount, PointRow,
    Preview, PreviewRequest, RestoreChoice, RestoreScope, RowId, TakenBack,
};
pub use slash::{SlashCommand, split_slash};
pub use terminal::{Terminal, TerminalEvent};
pub use theme::Theme;
pub use transcript::{Item, Tone, ToolEnd, Transcript};
