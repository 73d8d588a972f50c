//! A key press in `takeback chat`, and drawing the screen after it, with a long transcript next to a
//! short one.

use std::convert::Infallible;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use takeback_tui::{Chat, ChatOptions, Item, Key, Moment, Press, StatusLine, Theme, Tone};

use crate::Result;
use crate::measure::timed;
use crate::report::{Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Key presses
    #[arg(long, default_value_t = 400)]
    rounds: usize,
}

const LINES: [usize; 2] = [100, 10_000];

#[derive(Debug, Clone, Copy)]
enum Input {
    Key,
    KeyScrolledToTop,
    AgentWord,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let cases = [
        ("typing", Input::Key),
        ("typing, scrolled to the top", Input::KeyScrolledToTop),
        ("a word of the agent", Input::AgentWord),
    ];
    let mut rows = Vec::new();
    for (name, input) in cases {
        let mut screens = LINES.map(|lines| Screen::new(lines, input));
        let rounds = Rounds { count: args.rounds, warm_up: 1, group: 2 };
        let times = rounds.run(2, |case, _| screens[case].step(input))?;
        rows.push(Row::new(name, &times[1], "100 lines", &times[0]));
    }
    let title = format!("{} lines, at 200×60, {} rounds", LINES[1], args.rounds);
    println!("{}", comparison(&title, &rows));
    results.finish("screen", rows).map(drop)
}

struct Screen {
    chat: Chat,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    fn new(lines: usize, input: Input) -> Self {
        let options = ChatOptions {
            commands: &[],
            theme: Theme::colour(),
            rewind_key: Key::Esc,
            double_ms: 300,
            history: Vec::new(),
        };
        let mut chat = Chat::new(options, StatusLine::default());
        for n in 0..lines {
            match n % 10 {
                0 => chat.transcript.push(Item::Prompt(format!("prompt {n}"))),
                1..8 => chat.transcript.add_text(&format!("What the agent says, in line {n}.\n")),
                _ => chat.transcript.say(Tone::Hint, format!("a remark {n}")),
            }
        }
        if matches!(input, Input::KeyScrolledToTop) {
            chat.transcript.scroll_up(usize::MAX / 2);
        }
        let terminal = Terminal::new(TestBackend::new(200, 60));
        Self { chat, terminal: terminal.unwrap_or_else(|never: Infallible| match never {}) }
    }

    /// Milliseconds from the input to the drawn screen.
    fn step(&mut self, input: Input) -> Result<f64> {
        let ((), ms) = timed(|| {
            match input {
                Input::AgentWord => self.chat.transcript.add_text("word "),
                Input::Key | Input::KeyScrolledToTop => {
                    self.chat.press(&Press { key: Key::Char('x'), at: Moment(0) });
                }
            }
            self.terminal.draw(|frame| self.chat.draw(frame, Moment(0)))?;
            Ok(())
        })?;
        Ok(ms)
    }
}
