//! The input line: keys in, text and cursor out.

use proptest::prelude::*;
use takeback_tui::{Edit, Editor, Key, Layout};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const FAMILY: &str = "👩‍👩‍👧";

/// An editor with this text and the cursor at the `|` in it.
fn at(marked: &str) -> Editor {
    let (before, after) = marked.split_once('|').expect("a cursor");
    let mut editor = Editor::new(Vec::new());
    editor.set_text(after);
    while editor.cursor() > 0 {
        editor.press(&Key::Left);
    }
    editor.insert(before);
    editor
}

fn marked(editor: &Editor) -> String {
    let (before, after) = editor.text().split_at(editor.cursor());
    format!("{before}|{after}")
}

fn after(from: &str, keys: &[Key]) -> String {
    let mut editor = at(from);
    for key in keys {
        editor.press(key);
    }
    marked(&editor)
}

#[test]
fn every_key() {
    for (from, key, to) in [
        ("ab|c", Key::Char('x'), "abx|c"),
        ("ab|c", Key::NewLine, "ab\n|c"),
        ("ab|c", Key::Paste("1\n2".to_owned()), "ab1\n2|c"),
        ("ab|c", Key::Left, "a|bc"),
        ("|abc", Key::Left, "|abc"),
        ("ab|c", Key::Right, "abc|"),
        ("abc|", Key::Right, "abc|"),
        ("ab|c", Key::Ctrl('b'), "a|bc"),
        ("ab|c", Key::Ctrl('f'), "abc|"),
        ("one two|", Key::WordLeft, "one |two"),
        ("one, |two", Key::WordLeft, "|one, two"),
        ("one two|", Key::Alt('b'), "one |two"),
        ("|one two", Key::WordRight, "one| two"),
        ("one|, two", Key::Alt('f'), "one, two|"),
        ("a\nbc|d\ne", Key::Home, "a\n|bcd\ne"),
        ("a\nbc|d\ne", Key::Ctrl('a'), "a\n|bcd\ne"),
        ("a\nb|cd\ne", Key::End, "a\nbcd|\ne"),
        ("a\nb|cd\ne", Key::Ctrl('e'), "a\nbcd|\ne"),
        ("ab|c", Key::Backspace, "a|c"),
        ("|abc", Key::Backspace, "|abc"),
        ("a\n|b", Key::Backspace, "a|b"),
        ("ab|c", Key::Delete, "ab|"),
        ("abc|", Key::Delete, "abc|"),
        ("a|bc", Key::Ctrl('d'), "a|c"),
        ("a|bc\nd", Key::Ctrl('k'), "a|\nd"),
        ("a|\nd", Key::Ctrl('k'), "a|d"),
        ("a\nbc|d", Key::Ctrl('u'), "a\n|d"),
        ("one two.three |x", Key::Ctrl('w'), "one |x"),
        ("one two.three|x", Key::Alt('\x7f'), "one two.|x"),
        ("one| two three", Key::Alt('d'), "one| three"),
    ] {
        assert_eq!(after(from, std::slice::from_ref(&key)), to, "{from:?} {key:?}");
    }
}

#[test]
fn what_the_editor_leaves_to_others() {
    let mut editor = at("ab|c");
    for key in [
        Key::Enter,
        Key::Esc,
        Key::Tab,
        Key::BackTab,
        Key::PageUp,
        Key::F(1),
        Key::Ctrl('c'),
        Key::Ctrl('r'),
    ] {
        assert_eq!(editor.press(&key), Edit::Ignored, "{key:?}");
        assert_eq!(marked(&editor), "ab|c");
    }
    assert_eq!(Editor::new(Vec::new()).press(&Key::Ctrl('d')), Edit::Ignored, "nothing to delete");
    assert_eq!(editor.press(&Key::Left), Edit::Same);
    assert_eq!(editor.press(&Key::Char('x')), Edit::Changed);
}

#[test]
fn what_was_cut_comes_back() {
    assert_eq!(after("one two|", &[Key::Ctrl('u'), Key::Char('x'), Key::Ctrl('y')]), "xone two|");
    assert_eq!(after("one two|", &[Key::Ctrl('w'), Key::Ctrl('k'), Key::Ctrl('y')]), "one two|");
}

#[test]
fn a_grapheme_is_one_character() {
    for grapheme in [FAMILY, "e\u{301}", "🇩🇪", "中", "👍🏽"] {
        let whole = format!("a{grapheme}|b");
        assert_eq!(after(&whole, &[Key::Left]), format!("a|{grapheme}b"));
        assert_eq!(after(&whole, &[Key::Left, Key::Right]), whole);
        assert_eq!(after(&whole, &[Key::Backspace]), "a|b");
        assert_eq!(after(&whole, &[Key::Left, Key::Delete]), "a|b");
    }
    assert_eq!(after("e|", &[Key::Char('\u{301}')]), "e\u{301}|");
}

#[test]
fn up_and_down_keep_the_column() {
    assert_eq!(after("abcd\nef\nghi|j", &[Key::Up]), "abcd\nef|\nghij");
    assert_eq!(after("abcd\nef\ngh|ij", &[Key::Up, Key::Up]), "ab|cd\nef\nghij");
    assert_eq!(after("ab|cd\nef", &[Key::Down]), "abcd\nef|");
    assert_eq!(after("中文|\nabcd", &[Key::Down]), "中文\nabcd|");
    assert_eq!(after("中文\nabc|d", &[Key::Up]), "中|文\nabcd");
}

#[test]
fn up_and_down_go_by_the_rows_that_are_seen() {
    for (from, key, to) in [
        ("abcdefghi|j", Key::Up, "abcde|fghij"),
        ("abcdefgh|", Key::Up, "abcd|efgh"),
        ("ab|cdefghij", Key::Down, "abcdef|ghij"),
        ("abc|defg\nh", Key::Down, "abcdefg|\nh"),
        ("abc|中文def", Key::Down, "abc中文|def"),
        ("abc中文d|ef", Key::Up, "abc|中文def"),
        ("abcd\nefg|h", Key::Up, "abc|d\nefgh"),
        ("|abcd\nefgh", Key::Up, "|abcd\nefgh"),
        ("abcdefg|h", Key::Down, "abcdefgh|"),
    ] {
        let mut editor = at(from);
        editor.set_width(4);
        editor.press(&key);
        assert_eq!(marked(&editor), to, "{from:?} {key:?}");
    }
}

fn history() -> Editor {
    Editor::new(vec!["first".to_owned(), "second\nof two".to_owned()])
}

#[test]
fn history_keeps_the_draft() {
    let mut editor = history();
    editor.insert("draft");
    let mut seen = Vec::new();
    for key in [Key::Up, Key::Up, Key::Up, Key::Up, Key::Down, Key::Down, Key::Down, Key::Down] {
        editor.press(&key);
        seen.push(marked(&editor));
    }
    assert_eq!(
        seen,
        [
            "second\nof two|",
            "second|\nof two",
            "first|",
            "|first",
            "second\nof two|",
            "draft|",
            "draft|",
            "draft|",
        ]
    );
}

#[test]
fn what_is_changed_in_history_stays_until_something_is_entered() {
    let mut editor = history();
    for key in [Key::Up, Key::Char('!'), Key::Down, Key::Up] {
        editor.press(&key);
    }
    assert_eq!(editor.take(), "second\nof two!");
    let mut seen = Vec::new();
    for _ in 0..3 {
        editor.press(&Key::Up);
        seen.push(editor.text().to_owned());
        editor.press(&Key::Home);
    }
    assert_eq!(seen, ["second\nof two!", "second\nof two!", "second\nof two"]);
}

#[test]
fn what_was_taken_is_history() {
    let mut editor = Editor::new(Vec::new());
    for text in ["one", "one", "  ", "two"] {
        editor.set_text(text);
        assert_eq!(editor.take(), text);
        assert!(editor.is_empty());
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        editor.press(&Key::Up);
        seen.push(editor.text().to_owned());
    }
    assert_eq!(seen, ["two", "one", "one"]);
}

fn layout(lines: &[&str], row: usize, column: usize) -> Layout {
    Layout { lines: lines.iter().map(|line| (*line).to_owned()).collect(), row, column }
}

#[test]
fn lines_are_cut_at_the_width() {
    assert_eq!(at("|").layout(4), layout(&[""], 0, 0));
    assert_eq!(at("abc|").layout(4), layout(&["abc"], 0, 3));
    assert_eq!(at("abcd|").layout(4), layout(&["abcd", ""], 1, 0));
    assert_eq!(at("abcd|e").layout(4), layout(&["abcd", "e"], 1, 0));
    assert_eq!(at("abc|de").layout(4), layout(&["abcd", "e"], 0, 3));
    assert_eq!(at("abcd|\ne").layout(4), layout(&["abcd", "", "e"], 1, 0));
    assert_eq!(at("abcd\n|e").layout(4), layout(&["abcd", "e"], 1, 0));
    assert_eq!(at("a\n\n|b").layout(4), layout(&["a", "", "b"], 2, 0));
    assert_eq!(at("a\n|").layout(4), layout(&["a", ""], 1, 0));
}

#[test]
fn a_wide_character_is_never_split() {
    assert_eq!(at("a中|文").layout(4), layout(&["a中", "文"], 1, 0));
    assert_eq!(at("中文|字").layout(4), layout(&["中文", "字"], 1, 0));
    let family = format!("abc{FAMILY}|");
    assert_eq!(at(&family).layout(4), layout(&["abc", FAMILY], 1, 2));
    assert_eq!(at("中|").layout(1), layout(&["?", ""], 1, 0));
}

#[test]
fn control_characters_are_shown_as_signs() {
    assert_eq!(at("a\tb|").layout(20), layout(&["a    b"], 0, 6));
    assert_eq!(at("\u{1b}[2J|").layout(20), layout(&["␛[2J"], 0, 4));
}

fn any_key() -> impl Strategy<Value = Key> {
    let text = prop_oneof![
        Just("a"),
        Just(" "),
        Just("\n"),
        Just("中"),
        Just(FAMILY),
        Just("\u{301}"),
        Just("\u{200d}"),
        Just("🇩"),
        Just("\t"),
        Just("\r"),
        Just("word "),
        Just("\u{1f3fd}"),
    ];
    prop_oneof![
        3 => text.prop_map(|text| Key::Paste(text.to_owned())),
        1 => any::<char>().prop_map(Key::Char),
        4 => proptest::sample::select(vec![
            Key::Left, Key::Right, Key::Up, Key::Down, Key::WordLeft, Key::WordRight, Key::Home, Key::End,
            Key::Backspace, Key::Delete, Key::NewLine, Key::Ctrl('k'), Key::Ctrl('u'), Key::Ctrl('w'),
            Key::Ctrl('y'), Key::Alt('d'), Key::Alt('\x7f'), Key::Ctrl('d'),
        ]),
    ]
}

proptest! {
    #[test]
    fn the_cursor_is_never_inside_a_grapheme(keys in proptest::collection::vec(any_key(), 0..60), width in 1u16..12) {
        let mut editor = history();
        editor.set_width(width);
        for key in &keys {
            editor.press(key);
            let text = editor.text();
            let mut places = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]);
            prop_assert!(places.any(|at| at == editor.cursor()), "{:?} at {}", text, editor.cursor());

            let shown = editor.layout(width);
            prop_assert!(shown.row < shown.lines.len());
            prop_assert!(shown.column < usize::from(width));
            for line in &shown.lines {
                prop_assert!(line.graphemes(true).map(UnicodeWidthStr::width).sum::<usize>() <= usize::from(width));
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
