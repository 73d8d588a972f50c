//! Who changed what, in the rows of the menu; and questions about a file of the preview.

use takeback_tui::{
    Key, Menu, MenuAction, MenuAnswer, MenuOptions, MenuQuestion, MenuScope, OperationRow,
    PartyCount, PointRow, RestoreScope, TakenBack,
};

use crate::menu_actions::{all, chosen, opened_with, press};
use crate::menu_view::text;
use crate::sample::{self, menu_of, operations, options};

fn by_author() -> Menu {
    let you = |lines| PartyCount { who: "you", files: 2, lines };
    let rows = vec![
        PointRow { others: vec![you(Some((4, 0)))], ..sample::row("a1", "1 min ago", "first") },
        PointRow {
            taken_back: TakenBack::Yes,
            git: Some("main 1a2b3c4d".to_owned()),
            ..sample::row("b1", "2 min ago", "second")
        },
        PointRow {
            files: 0,
            lines: Some((0, 0)),
            others: vec![you(None), PartyCount { who: "unclear", files: 1, lines: Some((1, 1)) }],
            ..sample::row("c1", "3 min ago", "third")
        },
        PointRow { taken_back: TakenBack::Partly, ..sample::row("d1", "4 min ago", "fourth") },
    ];
    let undone = OperationRow { undone: TakenBack::Yes, ..operations(&["b1"]).remove(0) };
    let all = [vec![undone], operations(&["a1", "gone"])].concat();
    Menu::new(rows, Vec::new(), options()).with_operations(all)
}

#[test]
fn rows_have_counts_by_author_and_operations_between_them() {
    let list = |width| {
        let drawn = text(&mut by_author(), width, 22);
        drawn.lines().skip(1).take(7).map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(list(80), @"
    > 0 (current)  Do not restore, continue with the current session.
        1 min ago  rewind to a1 prompt  2 files
      1 1 min ago  first                                        1 file +3 -1  you +4
        1 min ago  rewind to b1 prompt  2 files  undone
      2 2 min ago  second                                   1 file +3 -1  taken back
      3 3 min ago  third                                  you 2 files  unclear +1 -1
      4 4 min ago  fourth                            1 file +3 -1  partly taken back
    ");
    let narrow = list(40);
    let ends = |text: &str, end: &str| {
        narrow.lines().any(|line| line.contains(text) && line.ends_with(end))
    };
    assert!(ends("first", " +3 -1") && ends("second", " taken back"), "{narrow}");
    assert!(ends("third", " you 2 files") && ends("fourth", " +3 -1"), "{narrow}");
}

#[test]
fn the_preview_has_what_the_row_has_no_room_for() {
    let mut menu = by_author();
    press(&mut menu, &[Key::Down, Key::Down]);
    let drawn = text(&mut menu, 80, 24);
    assert!(
        drawn.contains("2 min ago  1 file +3 -1  taken back  claude  git: main 1a2b3c4d"),
        "{drawn}"
    );
}

#[test]
fn operations_are_passed_over_by_every_key() {
    let menu = || {
        let options = MenuOptions { keep: 30, scope: MenuScope::Folder, ..options() };
        menu_of(30, options).with_operations(operations(&["p1", "p1", "p2", "p30", "p30", "p30"]))
    };
    for (keys, id) in [
        (&[Key::Down][..], "p1"),
        (&[Key::Down, Key::Down], "p2"),
        (&[Key::End, Key::Up], "p29"),
        (&[Key::End], "p30"),
        (&[Key::Down, Key::Down, Key::Up], "p1"),
    ] {
        let mut menu = menu();
        press(&mut menu, keys);
        assert_eq!(chosen(&mut menu), id, "{keys:?}");
    }
    let mut menu = menu();
    press(&mut menu, &[Key::Down, Key::Up]);
    assert_eq!(menu.press(&Key::Enter), MenuAction::Cancel, "up from the first row is (current)");
}

#[test]
fn a_filter_hides_operations_and_older_rows_hide_theirs() {
    let options = MenuOptions { keep: 2, ..options() };
    let mut menu = menu_of(6, options).with_operations(operations(&["p1", "p5"]));
    let drawn = text(&mut menu, 80, 24);
    assert!(drawn.contains("rewind to p1") && !drawn.contains("rewind to p5"), "{drawn}");
    press(&mut menu, &[Key::Char('/'), Key::Char('p')]);
    assert!(!text(&mut menu, 80, 24).contains("rewind to"), "{drawn}");
    press(&mut menu, &[Key::Esc, Key::End, Key::Enter]);
    assert!(text(&mut menu, 80, 24).contains("rewind to p5"), "{drawn}");
}

fn readme() -> String {
    "README.md".to_owned()
}

fn blame_of_readme() -> MenuQuestion {
    MenuQuestion::Blame { path: readme() }
}

fn blame() -> MenuAnswer {
    let lines = (1..=30)
        .map(|n| format!("{:8} claude    {n:>2}  line {n}", if n == 1 { "1a2b3c4d" } else { "" }));
    let note = "? written while a command ran".to_owned();
    MenuAnswer { text: lines.chain([note]).collect(), file_lines: 30 }
}

#[test]
fn a_key_asks_who_wrote_the_selected_file_and_esc_goes_back() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Down, Key::Down]);
    for (key, question) in
        [('b', blame_of_readme()), ('H', MenuQuestion::History { path: readme() })]
    {
        assert_eq!(menu.press(&Key::Char(key)), MenuAction::Ask(question.clone()));
        assert!(text(&mut menu, 80, 24).contains("loading…"));
        menu.set_answer(&question, Err("README.md was never recorded".to_owned()));
        assert!(text(&mut menu, 80, 24).contains("README.md was never recorded"));
        assert_eq!(menu.press(&Key::Esc), MenuAction::Stay);
        assert!(text(&mut menu, 80, 24).contains("> [x] merge         README.md"));
    }
    menu.set_answer(&blame_of_readme(), Ok(blame()));
    assert!(
        text(&mut menu, 80, 24).contains("> [x] merge"),
        "an answer that comes late is dropped"
    );
    assert_eq!(
        press(&mut menu, &[Key::Enter, Key::Char('b')]),
        all("p1", RestoreScope::FilesAndConversation)
    );
}

/// The stages with pages: the list, an open row, the blame of its file.
fn stage(number: usize) -> Menu {
    let mut menu = menu_of(1, options());
    press(&mut menu, &[Key::Down]);
    menu.set_preview(sample::point("p1"), Ok(sample::preview()));
    if number > 0 {
        press(&mut menu, &[Key::Enter, Key::Down, Key::Down]);
    }
    if number > 1 {
        press(&mut menu, &[Key::Char('b')]);
        menu.set_answer(&blame_of_readme(), Ok(blame()));
    }
    menu
}

#[test]
fn every_key_opens_its_own_page_and_no_other_key_opens_one() {
    let (row, path) = (sample::point("p1"), readme());
    let stats = MenuQuestion::Stats { row: row.clone() };
    let bisect = MenuQuestion::Bisect { row: row.clone() };
    let (history, why) =
        (MenuQuestion::History { path: readme() }, MenuQuestion::Why { path: readme(), line: 1 });
    let cat = MenuQuestion::Cat { row, path };
    let pages: [(usize, char, MenuQuestion, &str); 8] = [
        (0, 's', stats.clone(), "stats since p1"),
        (0, 'B', bisect.clone(), "bisect since p1"),
        (1, 'b', blame_of_readme(), "blame README.md"),
        (1, 'H', history, "history README.md"),
        (1, 'c', cat, "cat p1:README.md"),
        (1, 's', stats, "stats since p1"),
        (1, 'B', bisect, "bisect since p1"),
        (2, 'w', why, "why README.md:1"),
    ];
    for number in 0..3 {
        for key in '!'..='~' {
            let mut menu = stage(number);
            let before = text(&mut menu, 80, 24);
            let action = menu.press(&Key::Char(key));
            let page = pages.iter().find(|(stage, its, ..)| (*stage, *its) == (number, key));
            let Some((_, _, question, title)) = page else {
                assert!(!matches!(action, MenuAction::Ask(_)), "{number} {key}: {action:?}");
                continue;
            };
            assert_eq!(action, MenuAction::Ask(question.clone()), "{number} {key}");
            let drawn = text(&mut menu, 80, 24);
            assert_eq!(drawn.lines().next(), Some(*title), "{number} {key}");
            assert!(drawn.contains("loading…"), "{drawn}");
            let answer = MenuAnswer { text: vec![format!("answer of {title}")], file_lines: 0 };
            menu.set_answer(question, Ok(answer));
            assert!(text(&mut menu, 80, 24).contains(&format!("answer of {title}")), "{title}");
            menu.press(&Key::Esc);
            assert_eq!(text(&mut menu, 80, 24), before, "esc goes back: {number} {key}");
        }
    }
    let mut menu = stage(0);
    press(&mut menu, &[Key::Char('?')]);
    let help = text(&mut menu, 80, 24);
    for (_, key, ..) in &pages {
        let is_named = |line: &str| {
            let keys = line.get(..12).unwrap_or_default();
            keys.split_whitespace().any(|word| word == key.to_string())
        };
        assert!(help.lines().any(is_named), "the help names {key}: {help}");
    }
}

#[test]
fn without_a_selected_row_there_is_nothing_to_ask_about() {
    let mut menu = menu_of(1, options());
    for key in ['s', 'B'] {
        assert_eq!(menu.press(&Key::Char(key)), MenuAction::Stay);
        assert!(text(&mut menu, 80, 24).contains("Select a row first."));
    }
    let mut menu = Menu::new(sample::rows(), sample::executions(), options());
    press(&mut menu, &[Key::Tab, Key::Down]);
    let row = sample::execution("exec-1");
    let asked = menu.press(&Key::Char('s'));
    assert_eq!(asked, MenuAction::Ask(MenuQuestion::Stats { row }));
    assert!(text(&mut menu, 80, 24).starts_with("stats since exec-1\n"));
}

#[test]
fn a_line_of_a_blame_is_asked_why_it_is_there() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Down, Key::Down, Key::Char('b')]);
    assert_eq!(menu.press(&Key::Char('w')), MenuAction::Stay, "there is no line yet");
    menu.set_answer(&blame_of_readme(), Ok(blame()));
    press(&mut menu, &[Key::Down, Key::Down]);
    insta::assert_snapshot!(text(&mut menu, 60, 8), @"
    blame README.md
    1a2b3c4d claude     1  line 1
             claude     2  line 2
             claude     3  line 3
             claude     4  line 4
             claude     5  line 5
             claude     6  line 6
    w why this line  esc back  ↑ ↓ line  pgup pgdn page  ? keys
    ");
    let why = MenuQuestion::Why { path: readme(), line: 3 };
    assert_eq!(menu.press(&Key::Char('w')), MenuAction::Ask(why.clone()));
    menu.set_answer(
        &why,
        Ok(MenuAnswer { text: vec!["author   claude".to_owned()], file_lines: 0 }),
    );
    insta::assert_snapshot!(text(&mut menu, 60, 3), @"
    why README.md:3
    author   claude
    esc back  ↑ ↓ scroll  pgup pgdn page  ? keys
    ");
    press(&mut menu, &[Key::Esc, Key::End]);
    let drawn = text(&mut menu, 60, 8);
    assert!(drawn.contains("line 30") && drawn.contains("? written while"), "{drawn}");
    assert_eq!(
        menu.press(&Key::Enter),
        MenuAction::Ask(MenuQuestion::Why { path: readme(), line: 30 })
    );
    press(&mut menu, &[Key::Esc, Key::Esc, Key::Esc]);
    assert_eq!(menu.press(&Key::Esc), MenuAction::Cancel, "back to the list, stage by stage");
}

#[test]
fn answers_do_not_steer_the_terminal_and_fit_any_size() {
    let evil = MenuAnswer { text: vec!["\x1b[2J\u{202e}x".to_owned(); 3], file_lines: 3 };
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Down, Key::Down, Key::Char('b')]);
    menu.set_answer(&blame_of_readme(), Ok(evil));
    for (width, height) in [(1, 1), (8, 3), (9, 4), (80, 24), (200, 60)] {
        let drawn = text(&mut menu, width, height);
        assert!(!drawn.contains(['\x1b', '\u{202e}']), "{drawn}");
    }
    assert!(text(&mut menu, 80, 24).contains("␛[2J"));
}
