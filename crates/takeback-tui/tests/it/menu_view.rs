//! The menu, drawn.

use crate::sample::{self, execution, point};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use takeback_tui::{
    FileAction, Key, LineKind, Menu, MenuOptions, MenuScope, PointRow, Preview, Theme,
};
use unicode_width::UnicodeWidthStr;

fn cells(menu: &mut Menu, width: u16, height: u16, theme: &Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no I/O is done");
    terminal.draw(|frame| menu.draw(frame, frame.area(), theme)).expect("no I/O is done");
    terminal.backend().buffer().clone()
}

pub(crate) fn text(menu: &mut Menu, width: u16, height: u16) -> String {
    let buffer = cells(menu, width, height, &Theme::colour());
    let rows = buffer.area.rows().map(|row| {
        let mut line = String::new();
        let mut next = 0;
        for x in 0..row.width {
            if x >= next {
                let symbol = buffer[(x, row.y)].symbol();
                line.push_str(symbol);
                next = x + u16::try_from(symbol.width()).unwrap_or(1).max(1);
            }
        }
        line.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn press(menu: &mut Menu, keys: &[Key]) {
    for key in keys {
        menu.press(key);
    }
}

fn sample_menu() -> Menu {
    Menu::new(sample::rows(), sample::executions(), sample::options())
}

fn with_preview() -> Menu {
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Down]);
    menu.set_preview(point("a1"), Ok(sample::preview()));
    menu
}

const SIZES: [(u16, u16); 3] = [(40, 24), (80, 24), (200, 60)];

#[test]
fn the_list_with_the_preview_of_the_selected_row() {
    for (width, height) in SIZES {
        let name = format!("list-{width}x{height}");
        insta::assert_snapshot!(name, text(&mut with_preview(), width, height));
    }
}

#[test]
fn the_files_of_a_row_and_the_choices() {
    for (width, height) in SIZES {
        let mut menu = with_preview();
        press(&mut menu, &[Key::Enter, Key::Down, Key::Char(' '), Key::Enter]);
        let name = format!("row-{width}x{height}");
        insta::assert_snapshot!(name, text(&mut menu, width, height));
    }
}

#[test]
fn marks_stand_in_place_of_the_fate() {
    let mut menu = with_preview();
    press(&mut menu, &[Key::Enter, Key::Char('m'), Key::End, Key::Char('t')]);
    for (width, height) in [(40, 24), (100, 24)] {
        insta::assert_snapshot!(format!("marks-{width}x{height}"), text(&mut menu, width, height));
    }
    press(&mut menu, &[Key::Home, Key::Down, Key::Char('t')]);
    assert!(text(&mut menu, 80, 24).contains("This file is restored anyway."));
    press(&mut menu, &[Key::Home, Key::Char(' ')]);
    assert!(text(&mut menu, 80, 24).contains("This file is marked"));
}

#[test]
fn at_first_nothing_is_to_be_restored() {
    insta::assert_snapshot!(text(&mut sample_menu(), 80, 12));
}

#[test]
fn a_preview_that_is_not_there_yet_or_cannot_be() {
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Down]);
    assert!(text(&mut menu, 80, 24).contains("loading…"));
    press(&mut menu, &[Key::Enter]);
    assert!(text(&mut menu, 80, 24).contains("loading…"));
    menu.set_preview(point("a1"), Err("the contents of utils.ts are damaged".to_owned()));
    assert!(text(&mut menu, 80, 24).contains("the contents of utils.ts are damaged"));
    menu.set_preview(
        point("a1"),
        Ok(Preview { covers: None, files: Vec::new(), notes: Vec::new() }),
    );
    assert!(text(&mut menu, 80, 24).contains("No file would change."));
    press(&mut menu, &[Key::Esc]);
    assert!(text(&mut menu, 80, 24).contains("No file would change."));
}

#[test]
fn older_rows_and_other_sessions() {
    let mut rows = sample::rows();
    rows.extend((1..9).map(|n| sample::row(&format!("x{n}"), "2 h ago", &format!("prompt {n}"))));
    let options = MenuOptions { keep: 4, ..sample::options() };
    let mut menu = Menu::new(rows, Vec::new(), options);
    insta::assert_snapshot!(text(&mut menu, 60, 20));
}

#[test]
fn what_is_older_is_counted_and_named_as_what_it_is() {
    let rows = |by_hand: &[usize]| {
        let row = |n: usize| {
            let row = sample::row(&format!("p{n}"), "1 h ago", &format!("prompt {n}"));
            if by_hand.contains(&n) { sample::by_hand(row) } else { row }
        };
        let other = sample::other(sample::row("o", "1 h ago", "another's"), "codex", "019a");
        (1..=6).map(row).chain([other]).collect::<Vec<_>>()
    };
    for (scope, by_hand, words) in [
        (MenuScope::Session, &[][..], "4 more in this session"),
        (MenuScope::Session, &[1, 2], "4 more in this session"),
        (MenuScope::Session, &[4], "4 more: 3 in this session, 1 by hand"),
        (MenuScope::Session, &[3, 4, 5, 6], "4 more made by hand"),
        (MenuScope::Folder, &[4], "4 more"),
    ] {
        let options = MenuOptions { keep: 2, scope, ..sample::options() };
        let mut menu = Menu::new(rows(by_hand), Vec::new(), options);
        press(&mut menu, &[Key::Down, Key::Down, Key::Down]);
        let drawn = text(&mut menu, 80, 24);
        let ends = |line: &str| line.trim_end().ends_with(&format!("older…  {words}"));
        assert!(drawn.lines().any(ends), "{words}:\n{drawn}");
        assert!(drawn.contains(&format!("enter shows {words}.")), "{words}:\n{drawn}");
    }
}

/// Names of agents, in a list where there are several, and numbers that are whole.
#[test]
fn every_width_has_the_agent_and_the_lines() {
    let row = |id: &str, files, lines| PointRow {
        files,
        lines,
        ..sample::row(id, "12 min ago", "rewrite the importer so that it reads both formats")
    };
    let rows = vec![
        row("a", 12, Some((1234, 987))),
        sample::by_hand(row("b", 1, Some((3, 1)))),
        sample::other(row("c", 3, None), "codex", "019a0b1c"),
        sample::other(row("d", 0, Some((0, 0))), "claude", "7f3e21d0"),
    ];
    for width in [40, 60, 80, 100, 109, 110, 120, 160, 200] {
        let mut menu = Menu::new(rows.clone(), Vec::new(), sample::options());
        press(&mut menu, &[Key::Down]);
        let drawn = text(&mut menu, width, 30);
        let line = |number: &str| {
            let line = drawn.lines().find(|line| line[2..].starts_with(number));
            let line = line.unwrap_or_else(|| panic!("{width}, {number}:\n{drawn}"));
            line.split('│').next().unwrap_or_default().trim_end().to_owned()
        };
        for (number, agent, counts) in
            [("1", "claude", "+1234 -987"), ("2", "by hand", "+3 -1"), ("3", "codex", "3 files")]
        {
            let line = line(number);
            assert!(line.ends_with(&format!(" {counts}")), "{width}: {line}\n{drawn}");
            assert!(line.contains(&format!(" {agent}")), "{width}: {line}\n{drawn}");
            assert!(line.contains(" rew"), "{width}: {line}\n{drawn}");
        }
        assert!(line("4").contains("claude"), "{width}:\n{drawn}");
        if width >= 80 && !(110..160).contains(&width) {
            assert!(line("1").ends_with("12 files +1234 -987"), "{width}:\n{drawn}");
            assert!(line("3").contains(" codex 019a0b1c "), "{width}:\n{drawn}");
        }
    }
}

#[test]
fn one_agent_alone_is_named_outside_its_chat() {
    for (scope, named) in [(MenuScope::Session, false), (MenuScope::Folder, true)] {
        let mut menu = sample::menu_of(3, MenuOptions { scope, ..sample::options() });
        let drawn = text(&mut menu, 80, 24);
        assert_eq!(drawn.contains("1 min ago  claude  prompt 1"), named, "{drawn}");
        assert_eq!(drawn.contains("1 min ago  prompt 1"), !named, "{drawn}");
        press(&mut menu, &[Key::Down]);
        let drawn = text(&mut menu, 80, 24);
        assert!(drawn.contains("1 min ago  1 file +3 -1  claude"), "the preview does:\n{drawn}");
    }
}

#[test]
fn a_point_that_is_called_by_its_label_is_named_once() {
    let label = "before the storm".to_owned();
    let row = sample::by_hand(sample::row("a", "1 h ago", &label));
    let rows = vec![PointRow { label: Some(label), ..row }, sample::row("b", "2 h ago", "one")];
    for width in [40, 80] {
        let mut menu = Menu::new(rows.clone(), Vec::new(), sample::options());
        let drawn = text(&mut menu, width, 24);
        let line = drawn.lines().nth(2).unwrap_or_default();
        assert_eq!(line.matches("before").count(), 1, "{drawn}");
        assert!(line.contains("[before th"), "{drawn}");
    }
}

#[test]
fn no_number_is_cut_at_any_width() {
    let huge = PointRow {
        files: 12_345,
        lines: Some((1_234_567, 7_654_321)),
        ..sample::row("a", "12 min ago", "all")
    };
    let rows = vec![huge, sample::by_hand(sample::row("b", "1 h ago", "one"))];
    let allowed = ["12345", "1234567", "7654321", "12", "1", "2", "3", "0"];
    for width in 8..200 {
        for selected in [Key::Home, Key::Down] {
            let mut menu = Menu::new(rows.clone(), Vec::new(), sample::options());
            press(&mut menu, &[selected]);
            let drawn = text(&mut menu, width, 30);
            for number in drawn.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()) {
                assert!(allowed.contains(&number), "{width}: {number}\n{drawn}");
            }
        }
    }
}

#[test]
fn executions() {
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Tab, Key::Down]);
    insta::assert_snapshot!(text(&mut menu, 80, 12));
    menu.set_preview(execution("exec-1"), Ok(sample::preview()));
    assert!(text(&mut menu, 80, 24).contains("restore       utils.ts"));
    let mut menu = Menu::new(Vec::new(), Vec::new(), sample::options());
    press(&mut menu, &[Key::Tab]);
    insta::assert_snapshot!("no_executions", text(&mut menu, 80, 10));
}

#[test]
fn the_files_of_an_execution_and_the_choice() {
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Tab, Key::Down]);
    menu.set_preview(execution("exec-1"), Ok(sample::preview()));
    press(&mut menu, &[Key::Enter, Key::Enter]);
    insta::assert_snapshot!("execution", text(&mut menu, 80, 22));
}

#[test]
fn the_filter_and_a_number_are_seen_as_they_are_typed() {
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Char('/'), Key::Char('a'), Key::Char('d')]);
    insta::assert_snapshot!("filter", text(&mut menu, 80, 12));
    press(&mut menu, &[Key::Char('!')]);
    assert!(text(&mut menu, 80, 12).contains("Nothing matches."));

    let mut menu = sample::menu_of(12, MenuOptions { keep: 12, ..sample::options() });
    press(&mut menu, &[Key::Char('1')]);
    let drawn = text(&mut menu, 80, 24);
    assert!(drawn.contains("1   enter opens this row"), "{drawn}");
    press(&mut menu, &[Key::Char('9')]);
    assert!(text(&mut menu, 80, 24).contains("There is no row 19."));
}

#[test]
fn the_help_lists_the_keys() {
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Char('?')]);
    insta::assert_snapshot!(text(&mut menu, 40, 24));
}

#[test]
fn without_colour_there_is_none() {
    for keys in [&[][..], &[Key::Enter], &[Key::Enter, Key::Enter], &[Key::Char('?')]] {
        let mut menu = with_preview();
        press(&mut menu, keys);
        let plain = cells(&mut menu, 80, 24, &Theme::plain());
        for cell in plain.content() {
            let style = cell.style();
            let none = Some(ratatui::style::Color::Reset);
            assert_eq!((style.fg, style.bg), (none, none));
        }
        let mut coloured = cells(&mut menu, 80, 24, &Theme::colour());
        coloured.set_style(coloured.area, ratatui::style::Style::reset());
        let mut plain = plain;
        plain.set_style(plain.area, ratatui::style::Style::reset());
        assert_eq!(plain, coloured, "the same words");
    }
}

#[test]
fn what_comes_from_outside_does_not_steer_the_terminal() {
    let evil = "\x1b[2J\x07\u{9b}31m\r\n\t\u{202e}x";
    let mut row = sample::row("a1", evil, evil);
    row.label = Some(evil.to_owned());
    row.agent = evil.to_owned();
    row.session = Some(evil.to_owned());
    let mut menu = Menu::new(vec![row], sample::executions(), sample::options());
    press(&mut menu, &[Key::Down]);
    let file = sample::file(evil, FileAction::Restore, Some(evil), &[(LineKind::Added, evil)]);
    menu.set_preview(
        point("a1"),
        Ok(Preview { covers: None, files: vec![file], notes: vec![evil.to_owned()] }),
    );
    for _ in 0..3 {
        for (width, height) in SIZES {
            let drawn = text(&mut menu, width, height);
            assert!(drawn.contains('␛'));
            let bad = drawn.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(bad, None);
        }
        press(&mut menu, &[Key::Enter]);
    }
}

#[test]
fn no_size_is_too_small() {
    for width in (0..50).chain([79, 80, 109, 110, 111, 300]) {
        for height in (0..26).chain([60, 200]) {
            for keys in [&[][..], &[Key::Enter], &[Key::Enter, Key::Enter], &[Key::Char('?')]] {
                let mut menu = with_preview();
                press(&mut menu, keys);
                cells(&mut menu, width, height, &Theme::colour());
            }
        }
    }
}

#[test]
fn the_selected_row_is_always_seen() {
    let mut menu = sample::menu_of(300, MenuOptions { keep: 300, ..sample::options() });
    for (key, times) in [
        (Key::Down, 90),
        (Key::PageDown, 9),
        (Key::Up, 50),
        (Key::PageUp, 30),
        (Key::End, 1),
        (Key::Home, 1),
    ] {
        for _ in 0..times {
            press(&mut menu, std::slice::from_ref(&key));
            for (width, height) in [(80, 24), (40, 5), (200, 60)] {
                let drawn = text(&mut menu, width, height);
                assert_eq!(drawn.lines().filter(|line| line.starts_with("> ")).count(), 1);
            }
        }
    }
}

#[test]
fn a_long_diff_scrolls_to_its_end_and_no_further() {
    let lines: Vec<String> = (1..=100).map(|n| format!("line {n} of 100")).collect();
    let diff: Vec<_> = lines.iter().map(|line| (LineKind::Added, line.as_str())).collect();
    let file = sample::file("a", FileAction::Restore, None, &diff);
    let mut menu = sample_menu();
    press(&mut menu, &[Key::Down, Key::Enter]);
    menu.set_preview(
        point("a1"),
        Ok(Preview { covers: None, files: vec![file], notes: Vec::new() }),
    );
    assert!(text(&mut menu, 80, 24).contains("+line 1 of"));
    for _ in 0..50 {
        press(&mut menu, &[Key::PageDown]);
        text(&mut menu, 80, 24);
    }
    let drawn = text(&mut menu, 80, 24);
    assert!(drawn.contains("+line 100 of") && drawn.contains("+line 90 of"), "{drawn}");
    press(&mut menu, &[Key::PageUp]);
    assert!(!text(&mut menu, 80, 24).contains("+line 100 of"));
}

#[test]
fn ten_thousand_rows() {
    let mut menu = sample::menu_of(10_000, MenuOptions { keep: 10_000, ..sample::options() });
    press(&mut menu, &[Key::End]);
    assert!(text(&mut menu, 80, 24).contains("> 10000 10000 min ago"));
    press(&mut menu, &[Key::Char('/')]);
    press(&mut menu, &"prompt 777".chars().map(Key::Char).collect::<Vec<_>>());
    let drawn = text(&mut menu, 80, 24);
    assert!(
        drawn.contains(">   777 777 min ago") && drawn.contains("  7770 7770 min ago"),
        "{drawn}"
    );
    press(&mut menu, &[Key::Esc, Key::Down]);
    assert!(text(&mut menu, 80, 24).contains(">   778 778 min ago"));
}
