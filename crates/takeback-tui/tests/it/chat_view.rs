//! The session as it is drawn.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use takeback_tui::chat::{Chat, ChatOptions, Question, Status};
use takeback_tui::keys::{Key, Moment, Press};
use takeback_tui::menu::{DiffLine, LineKind};
use takeback_tui::slash::SlashCommand;
use takeback_tui::theme::Theme;
use takeback_tui::transcript::{Item, Tone, ToolEnd};
use takeback_tui::view::draw;

static COMMANDS: [SlashCommand; 2] = [
    SlashCommand {
        name: "rewind",
        aliases: &["restore"],
        arguments: "[point]",
        help: "go back to a point, or choose one",
    },
    SlashCommand { name: "redo", aliases: &[], arguments: "", help: "take back the last undo" },
];

fn chat() -> Chat {
    let options = ChatOptions {
        commands: &COMMANDS,
        theme: Theme::plain(),
        rewind_key: Key::Esc,
        double_ms: 300,
        history: Vec::new(),
    };
    let status = Status {
        agent: "claude".into(),
        session: "chat-0badcafe".into(),
        points: Some(2),
        files: 1,
        lines: Some((12, 3)),
        hint: "esc esc rewinds".into(),
    };
    let mut chat = Chat::new(options, status);
    chat.begin_turn("Add multiply and divide functions to utils.ts", Moment(0));
    chat.transcript.add_text("I add them below the others, and export them too.");
    chat.transcript.end_text();
    chat.transcript.push(Item::Tool { call: "1".into(), title: "Edit utils.ts".into(), end: None });
    let line = |kind, text: &str| DiffLine { kind, text: text.into() };
    let end = ToolEnd {
        ok: true,
        line: "updated".into(),
        insertions: 12,
        deletions: 3,
        diff: vec![
            line(LineKind::Context, "}"),
            line(LineKind::Removed, "export function sub() {}"),
            line(LineKind::Added, "export function multiply(a: number, b: number): number {"),
        ],
    };
    chat.transcript.end_tool("1", end);
    chat
}

fn shown(chat: &mut Chat, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no I/O is done");
    terminal.draw(|frame| draw(chat, frame, Moment(5000))).expect("no I/O is done");
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.area.rows().map(|row| {
        let cells = (0..row.width).map(|x| buffer[(x, row.y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn types(chat: &mut Chat, text: &str) {
    for c in text.chars() {
        chat.press(&Press { key: Key::Char(c), at: Moment(0) });
    }
}

#[test]
fn a_turn_at_80_columns() {
    let mut chat = chat();
    chat.queued.push_back("and then test it".into());
    insta::assert_snapshot!(shown(&mut chat, 80, 20), @"
    > Add multiply and divide functions to utils.ts
    ● I add them below the others, and export them too.
    ◆ Edit utils.ts
      └ +12 -3 updated
        -export function sub() {}
        +export function multiply(a: number, b: number): number {
        … 1 more line, ctrl-o shows them






    ⠙ working 5 s
      next: and then test it
    ────────────────────────────────────────────────────────────────────────────────
    > esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    claude · chat-0badcafe · 2 points · 1 file +12 -3 · esc esc rewinds
    ");
}

#[test]
fn at_40_columns_the_most_important_is_there() {
    let mut chat = chat();
    chat.end_turn();
    types(&mut chat, "a line that is longer than the terminal is wide");
    insta::assert_snapshot!(shown(&mut chat, 40, 20), @"
    > Add multiply and divide functions to
      utils.ts
    ● I add them below the others, and
      export them too.
    ◆ Edit utils.ts
      └ +12 -3 updated
        -export function sub() {}
        +export function multiply(a: number…
        … 1 more line, ctrl-o shows them





    ────────────────────────────────────────
    > a line that is longer than the termina
      l is wide
    ────────────────────────────────────────
    claude · 2 points · 1 file +12 -3
    ");
}

#[test]
fn a_question_and_what_it_is_about() {
    let mut chat = chat();
    chat.questions.push_back(Question {
        request: "1".into(),
        title: "$ rm -rf build && make".into(),
        detail: "rm -rf build &&\n  make".into(),
    });
    insta::assert_snapshot!(shown(&mut chat, 60, 18), @"
    > Add multiply and divide functions to utils.ts
    ● I add them below the others, and export them too.
    ◆ Edit utils.ts
      └ +12 -3 updated
        -export function sub() {}
        +export function multiply(a: number, b: number): number…
        … 1 more line, ctrl-o shows them


    Allow $ rm -rf build && make?
      rm -rf build &&
        make
    y yes · a always in this session · n no · esc no, and stop
    ────────────────────────────────────────────────────────────
    > esc interrupts
    ────────────────────────────────────────────────────────────
    claude · 2 points · 1 file +12 -3 · esc esc rewinds
    ");
}

#[test]
fn what_a_slash_may_become() {
    let mut chat = chat();
    chat.end_turn();
    types(&mut chat, "/re");
    insta::assert_snapshot!(shown(&mut chat, 60, 18), @"
    > Add multiply and divide functions to utils.ts
    ● I add them below the others, and export them too.
    ◆ Edit utils.ts
      └ +12 -3 updated
        -export function sub() {}
        +export function multiply(a: number, b: number): number…
        … 1 more line, ctrl-o shows them




      /rewind [point]        go back to a point, or choose one
      /redo                  take back the last undo
    ────────────────────────────────────────────────────────────
    > /re
    ────────────────────────────────────────────────────────────
    claude · 2 points · 1 file +12 -3 · esc esc rewinds
    ");
}

#[test]
fn whoever_scrolls_is_told_that_there_is_more() {
    let mut chat = chat();
    chat.end_turn();
    for n in 0..10_000 {
        chat.transcript.say(Tone::Plain, format!("line {n}"));
    }
    shown(&mut chat, 40, 9);
    chat.press(&Press { key: Key::PageUp, at: Moment(0) });
    insta::assert_snapshot!(shown(&mut chat, 40, 9), @"
    line 9992
    line 9993
    line 9994
    line 9995
    line 9996 3 more lines below, page down
    ────────────────────────────────────────
    > say what to do, / for commands
    ────────────────────────────────────────
    claude · 2 points · 1 file +12 -3
    ");
}

#[test]
fn no_size_is_too_small() {
    let mut chat = chat();
    for width in 1..12 {
        for height in 1..12 {
            shown(&mut chat, width, height);
        }
    }
}
