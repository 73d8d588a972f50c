//! A key and the picture after it, in a short transcript and in a long one, in one run.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use takeback_tui::chat::{Chat, ChatOptions, Status};
use takeback_tui::keys::{Key, Moment, Press};
use takeback_tui::theme::Theme;
use takeback_tui::transcript::{Item, Tone};
use takeback_tui::view::draw;

const SHORT: usize = 100;
const LONG: usize = 10_000;
const KEYS: usize = 400;

fn main() {
    println!("A key and its picture at 200x60, median of {KEYS}:");
    for (name, key, scrolled) in [
        ("typing", Key::Char('x'), false),
        ("typing, scrolled to the top", Key::Char('x'), true),
        ("a word of the agent", Key::Ctrl('t'), false),
    ] {
        let (short, long) = (measured(SHORT, &key, scrolled), measured(LONG, &key, scrolled));
        let ratio = long.as_secs_f64() / short.as_secs_f64();
        let (short, long) = (short.as_micros(), long.as_micros());
        println!(
            "  {name:<28} {SHORT} lines {short:>5} µs   {LONG} lines {long:>5} µs   {ratio:.2}x"
        );
    }
}

fn measured(lines: usize, key: &Key, scrolled: bool) -> Duration {
    let options = ChatOptions {
        commands: &[],
        theme: Theme::colour(),
        rewind_key: Key::Esc,
        double_ms: 300,
        history: Vec::new(),
    };
    let mut chat = Chat::new(options, Status::default());
    for n in 0..lines {
        match n % 10 {
            0 => chat.transcript.push(Item::Person(format!("prompt {n}"))),
            1..8 => chat.transcript.add_text(&format!("What the agent says, in line {n}.\n")),
            _ => chat.transcript.say(Tone::Hint, format!("a remark {n}")),
        }
    }
    if scrolled {
        chat.transcript.scroll_up(usize::MAX / 2);
    }
    let mut terminal = match Terminal::new(TestBackend::new(200, 60)) {
        Ok(terminal) => terminal,
        Err(never) => match never {},
    };
    let mut took: Vec<Duration> = (0..KEYS)
        .map(|_| {
            let began = Instant::now();
            if *key == Key::Ctrl('t') {
                chat.transcript.add_text("word ");
            } else {
                chat.press(&Press { key: key.clone(), at: Moment(0) });
            }
            match terminal.draw(|frame| draw(&mut chat, frame, Moment(0))) {
                Ok(_) => began.elapsed(),
                Err(never) => match never {},
            }
        })
        .collect();
    took.sort_unstable();
    took[KEYS / 2]
}
