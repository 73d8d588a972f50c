//! The session, drawn.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use takeback_tui::{
    Answer, Chat, ChatOptions, DiffLine, Effect, Item, Key, LineKind, Moment, Press, Question,
    SlashCommand, StatusLine, Theme, Tone, ToolEnd,
};

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
    let status = StatusLine {
        agent: "claude".into(),
        session: "chat-0badcafe".into(),
        points: Some(2),
        can_rewind: true,
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
    terminal.draw(|frame| chat.draw(frame, Moment(5000))).expect("no I/O is done");
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.area.rows().map(|row| {
        let cells = (0..row.width).map(|x| buffer[(x, row.y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn asks(chat: &mut Chat, title: &str, detail: &str) {
    let (title, detail) = (title.into(), detail.into());
    chat.ask(Question { request: "1".into(), title, detail }, Moment(0));
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
    asks(&mut chat, "$ rm -rf build && make", "rm -rf build &&\n  make");
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

/// What is allowed must be seen: a line that is too long is not cut.
#[test]
fn a_question_is_wrapped() {
    let mut chat = chat();
    let title = "$ cd build && make && make install && rm -rf ../everything";
    asks(&mut chat, title, "a line of its detail that has its end at the far right");
    insta::assert_snapshot!(shown(&mut chat, 40, 14), @"
    ◆ Edit utils.ts
      └ +12 -3 updated
        -export function sub() {}
        +export function multiply(a: number…
        … 1 more line, ctrl-o shows them
    Allow $ cd build && make && make
      install && rm -rf ../everything?
      a line of its detail that has its end
      at the far right
    y yes · a always · n no · esc stop
    ────────────────────────────────────────
    > esc interrupts
    ────────────────────────────────────────
    claude · 2 points · 1 file +12 -3
    ");
}

#[test]
fn at_any_height_a_question_has_its_keys_and_the_input() {
    let detail: Vec<String> = (1..=30).map(|n| format!("line {n} of 30")).collect();
    for height in 4..40 {
        for waiting in [0, 1, 20] {
            let mut chat = chat();
            chat.queued.extend((0..waiting).map(|n| format!("prompt {n}")));
            asks(&mut chat, "Write a.txt", &detail.join("\n"));
            let drawn = shown(&mut chat, 40, height);
            assert!(drawn.contains("Allow Write a.txt?"), "{height} rows:\n{drawn}");
            assert!(drawn.contains("n no"), "{height} rows:\n{drawn}");
            assert!(drawn.contains("> esc interrupts"), "{height} rows:\n{drawn}");
            let more = drawn.contains(" more lines, ↓");
            assert_eq!(more, !drawn.contains("line 30 of 30"), "{height} rows:\n{drawn}");
        }
    }
}

fn key(chat: &mut Chat, key: Key, at: u64) -> Vec<Effect> {
    chat.press(&Press { key, at: Moment(at) })
}

#[test]
fn nothing_is_allowed_before_its_last_line_was_seen() {
    let detail: Vec<String> = (1..=30).map(|n| format!("line {n} of 30")).collect();
    for (scroll, times) in [(Key::Down, 25), (Key::PageDown, 5)] {
        for (letter, answer) in [('y', Answer::Yes), ('a', Answer::Always)] {
            let mut chat = chat();
            asks(&mut chat, "Write a.txt", &detail.join("\n"));
            let mut seen: Vec<String> =
                shown(&mut chat, 40, 12).lines().map(str::to_owned).collect();
            for _ in 0..times {
                assert_eq!(key(&mut chat, Key::Char(letter), 9000), []);
                assert_eq!(key(&mut chat, scroll.clone(), 9000), []);
                seen.extend(shown(&mut chat, 40, 12).lines().map(str::to_owned));
            }
            for line in &detail {
                assert!(seen.iter().any(|seen| seen.trim() == line), "{line} was skipped");
            }
            // It was visible: the user may scroll up and answer.
            key(&mut chat, Key::PageUp, 9000);
            shown(&mut chat, 40, 12);
            let answered = Effect::Answer("1".into(), answer);
            assert_eq!(key(&mut chat, Key::Char(letter), 9000), [answered]);
        }
    }
}

#[test]
fn a_question_is_answered_by_a_key() {
    let mut chat = chat();
    for request in ["1", "2"] {
        let (title, detail) = ("$ rm -rf x".into(), String::new());
        chat.ask(Question { request: request.into(), title, detail }, Moment(0));
    }
    shown(&mut chat, 40, 12);
    let yes = Effect::Answer("1".into(), Answer::Yes);
    assert_eq!(key(&mut chat, Key::Char('y'), 9000), [yes]);
    assert_eq!(key(&mut chat, Key::Char('y'), 19_000), [], "the second one was not seen");
    shown(&mut chat, 40, 12);
    for written in ['x', 'y', 'a', 'n'] {
        assert_eq!(key(&mut chat, Key::Char(written), 9000), []);
    }
    assert_eq!(chat.editor.text(), "xyan");
    key(&mut chat, Key::Ctrl('c'), 9000);
    let no = Effect::Answer("2".into(), Answer::No);
    assert_eq!(key(&mut chat, Key::Esc, 9000), [no, Effect::Interrupt]);
}

/// [`shown`] draws at 5000: what was asked before could not be seen before.
#[test]
fn who_is_typing_when_a_question_comes_does_not_answer_it() {
    for (letter, answer) in [('y', Answer::Yes), ('a', Answer::Always)] {
        let mut chat = chat();
        asks(&mut chat, "Write a.txt", "text");
        let second =
            Question { request: "2".into(), title: "Write b.txt".into(), detail: "".into() };
        chat.ask(second, Moment(0));
        shown(&mut chat, 40, 20);
        assert_eq!(key(&mut chat, Key::Char(letter), 5499), []);
        assert_eq!(chat.editor.text(), "");
        shown(&mut chat, 50, 20);
        let answered = |request: &str| [Effect::Answer(request.into(), answer)];
        assert_eq!(key(&mut chat, Key::Char(letter), 5500), answered("1"));
        shown(&mut chat, 50, 20);
        assert_eq!(key(&mut chat, Key::Char(letter), 5999), [], "this is the next one");
        assert_eq!(key(&mut chat, Key::Char(letter), 6000), answered("2"));
    }
}

#[test]
fn enter_is_not_yes() {
    let mut chat = chat();
    asks(&mut chat, "Write a.txt", "text");
    shown(&mut chat, 40, 20);
    assert_eq!(key(&mut chat, Key::Enter, 9000), []);
    types(&mut chat, "go on");
    assert_eq!(key(&mut chat, Key::Enter, 9000), []);
    assert_eq!(chat.queued, ["go on"]);
    assert_eq!(chat.questions().count(), 1);
}

#[test]
fn no_is_taken_at_once() {
    let detail = "line\n".repeat(30);
    for (no, effects) in [
        (Key::Char('n'), vec![Effect::Answer("1".into(), Answer::No)]),
        (Key::Esc, vec![Effect::Answer("1".into(), Answer::No), Effect::Interrupt]),
    ] {
        let mut chat = chat();
        asks(&mut chat, "Write a.txt", &detail);
        assert_eq!(key(&mut chat, no, 0), effects);
    }
}

#[test]
fn what_was_scrolled_past_at_another_width_is_shown_again() {
    let mut chat = chat();
    asks(&mut chat, "Write a.txt", &"a few words in a line\n".repeat(30));
    shown(&mut chat, 12, 12);
    for _ in 0..6 {
        key(&mut chat, Key::PageDown, 9000);
        shown(&mut chat, 12, 12);
    }
    assert!(shown(&mut chat, 80, 12).contains("Allow Write a.txt?"));
    assert_eq!(key(&mut chat, Key::Char('y'), 9000), []);
}

#[test]
fn the_arrows_scroll_only_what_has_no_room() {
    let mut chat = chat();
    types(&mut chat, "earlier");
    key(&mut chat, Key::Enter, 0);
    asks(&mut chat, "Write a.txt", "one\ntwo");
    shown(&mut chat, 40, 20);
    key(&mut chat, Key::Up, 9000);
    assert_eq!(chat.editor.text(), "earlier");
    asks(&mut chat, "Write a.txt", &"line\n".repeat(30));
    shown(&mut chat, 40, 8);
    key(&mut chat, Key::Ctrl('c'), 9000);
    key(&mut chat, Key::Up, 9000);
    key(&mut chat, Key::Down, 9000);
    assert_eq!(chat.editor.text(), "");
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
fn lines_below_the_window_are_counted() {
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
    > Type a prompt, or / for commands
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

#[test]
fn the_hint_at_a_second_press_has_room_at_every_width() {
    for width in [24, 40, 60, 80, 120] {
        let mut chat = chat();
        chat.end_turn();
        chat.press(&Press { key: Key::Esc, at: Moment(4000) });
        let foot = shown(&mut chat, width, 12).lines().last().unwrap_or_default().to_owned();
        assert!(foot.contains("Esc again to rewind"), "{width}: {foot}");
        chat.expire_hint(Moment(5500));
        let foot = shown(&mut chat, width, 12).lines().last().unwrap_or_default().to_owned();
        assert!(!foot.contains("again"), "{width}: {foot}");
    }
}
