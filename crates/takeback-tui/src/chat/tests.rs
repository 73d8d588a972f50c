//! Which key does what in the session.

use super::*;

static COMMANDS: [SlashCommand; 1] =
    [SlashCommand { name: "rewind", aliases: &[], arguments: "[point]", help: "" }];

fn chat() -> Chat {
    let options = ChatOptions {
        commands: &COMMANDS,
        theme: Theme::plain(),
        rewind_key: Key::Esc,
        double_ms: 300,
        history: Vec::new(),
    };
    Chat::new(options, StatusLine::default())
}

fn press(chat: &mut Chat, keys: &[(Key, u64)]) -> Vec<Effect> {
    let presses = keys.iter().map(|(key, at)| Press { key: key.clone(), at: Moment(*at) });
    presses.flat_map(|press| chat.press(&press)).collect()
}

#[test]
fn esc_twice_opens_the_menu_if_it_is_quick() {
    let mut chat = chat();
    assert_eq!(press(&mut chat, &[(Key::Esc, 0), (Key::Esc, 300)]), [Effect::OpenMenu]);
    assert_eq!(press(&mut chat, &[(Key::Esc, 1000), (Key::Esc, 1350)]), []);
    chat.begin_turn("go", Moment(0));
    let effects = press(&mut chat, &[(Key::Esc, 2000), (Key::Esc, 2100)]);
    assert_eq!(effects, [Effect::Interrupt, Effect::OpenMenu]);
}

fn recorded() -> Chat {
    let mut chat = chat();
    chat.status.can_rewind = true;
    chat
}

#[test]
fn a_second_esc_counts_while_the_hint_shows() {
    let mut chat = recorded();
    assert_eq!(press(&mut chat, &[(Key::Esc, 1000)]), []);
    let hint = Some("Esc again to rewind".to_owned());
    assert_eq!((chat.rewind_hint(Moment(1000)), chat.rewind_hint(Moment(2500))), (hint, None));
    assert_eq!(chat.hint_deadline(), Some(Moment(2500)));
    assert_eq!(press(&mut chat, &[(Key::Esc, 2499)]), [Effect::OpenMenu]);
    assert_eq!((chat.rewind_hint(Moment(2499)), chat.hint_deadline()), (None, None));
    assert_eq!(press(&mut chat, &[(Key::Esc, 2600)]), [], "a third is a first one");
    assert_eq!(press(&mut chat, &[(Key::Esc, 4100)]), [], "the hint is gone");
    assert_eq!(press(&mut chat, &[(Key::Esc, 5599)]), [Effect::OpenMenu]);
}

#[test]
fn another_key_takes_the_hint_away() {
    let mut chat = recorded();
    assert_eq!(press(&mut chat, &[(Key::Esc, 0), (Key::Char('x'), 100)]), []);
    assert_eq!(chat.rewind_hint(Moment(100)), None);
    assert_eq!(press(&mut chat, &[(Key::Esc, 200)]), [], "it begins anew");
    assert!(chat.rewind_hint(Moment(200)).is_some(), "also with a text that is written");
}

#[test]
fn an_esc_that_does_something_else_hints_at_nothing() {
    let mut chat = recorded();
    chat.begin_turn("go", Moment(0));
    assert_eq!(press(&mut chat, &[(Key::Esc, 1000)]), [Effect::Interrupt]);
    assert_eq!(chat.rewind_hint(Moment(1000)), None);
    assert_eq!(press(&mut chat, &[(Key::Esc, 1400)]), [], "later than a double press");
    let (request, title, detail) = ("1".to_owned(), "Write a".to_owned(), String::new());
    chat.end_turn();
    let question =
        || Question { request: request.clone(), title: title.clone(), detail: detail.clone() };
    chat.ask(question(), Moment(1500));
    assert_eq!(chat.rewind_hint(Moment(1500)), None, "esc means no now");
    let no = [Effect::Answer(request.clone(), Answer::No)];
    assert_eq!(press(&mut chat, &[(Key::Esc, 1900)]), no);
    assert_eq!(chat.rewind_hint(Moment(1900)), None);
    chat.status.can_rewind = false;
    assert_eq!(press(&mut chat, &[(Key::Esc, 9000)]), []);
    assert_eq!(chat.rewind_hint(Moment(9000)), None, "there is nothing to go back to");
    assert_eq!(press(&mut chat, &[(Key::Esc, 9400)]), []);
}

#[test]
fn the_hint_names_the_key_and_waits_for_one_that_does_nothing_else() {
    let mut chat = recorded();
    chat.rewind = DoublePress::new(Key::Tab, 300);
    press(&mut chat, &[(Key::Paste("/rew".into()), 0), (Key::Tab, 0)]);
    assert_eq!((chat.editor.text(), chat.rewind_hint(Moment(0))), ("/rewind ", None));
    press(&mut chat, &[(Key::Tab, 1000)]);
    assert_eq!(chat.rewind_hint(Moment(1000)), Some("Tab again to rewind".to_owned()));
}

#[test]
fn esc_interrupts_a_turn_once() {
    let mut chat = chat();
    assert_eq!(press(&mut chat, &[(Key::Esc, 0)]), [], "there is nothing to interrupt");
    chat.begin_turn("go", Moment(0));
    assert_eq!(press(&mut chat, &[(Key::Esc, 1000)]), [Effect::Interrupt]);
    assert_eq!(press(&mut chat, &[(Key::Esc, 2000)]), [], "it is ending already");
}

#[test]
fn a_prompt_waits_for_the_turn_before_it() {
    let mut chat = chat();
    let go = [(Key::Paste("go".into()), 0), (Key::Enter, 0)];
    assert_eq!(press(&mut chat, &go), [Effect::Prompt("go".into())]);
    chat.begin_turn("go", Moment(0));
    assert_eq!(press(&mut chat, &go), []);
    chat.end_turn();
    assert_eq!(chat.queued, ["go"]);
}

#[test]
fn leaving() {
    let mut chat = chat();
    assert_eq!(press(&mut chat, &[(Key::Ctrl('c'), 0)]), []);
    assert_eq!(press(&mut chat, &[(Key::Ctrl('c'), 5000)]), [], "too late");
    assert_eq!(press(&mut chat, &[(Key::Ctrl('c'), 6000)]), [Effect::Exit]);
    assert_eq!(press(&mut chat, &[(Key::Ctrl('d'), 9000)]), [Effect::Exit]);
}
