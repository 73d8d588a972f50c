//! What the keys of the menu do in its lists, and random keys in any order.

use proptest::prelude::*;
use proptest::sample::select;
use takeback_tui::{
    ExecutionRow, FileSelection, Key, Menu, MenuAction, MenuAnswer, MenuCoverage, MenuOptions,
    MenuQuestion, Origin, PointRow, RestoreChoice, RestoreScope, RowId,
};

use crate::menu_actions::{all, chosen, look, look_execution, press, restore_execution, type_in};
use crate::sample::{self, execution, menu_of, options, point};

#[test]
fn enter_at_first_does_nothing() {
    assert_eq!(menu_of(3, options()).press(&Key::Enter), MenuAction::Cancel);
}

#[test]
fn enter_opens_a_row_and_then_asks_what_goes_back() {
    let mut menu = menu_of(3, options());
    let keys = [Key::Down, Key::Down, Key::Enter, Key::Enter, Key::Enter];
    let seen: Vec<MenuAction> = keys.iter().map(|key| menu.press(key)).collect();
    let restore = all("p2", RestoreScope::FilesAndConversation);
    assert_eq!(seen, [look("p1"), look("p2"), MenuAction::Stay, MenuAction::Stay, restore]);
}

#[test]
fn esc_0_q_and_ctrl_c_cancel() {
    for key in [Key::Esc, Key::Char('0'), Key::Char('q'), Key::Ctrl('c')] {
        let mut menu = menu_of(3, options());
        assert_eq!(press(&mut menu, &[Key::Down, key]), MenuAction::Cancel);
    }
}

#[test]
fn keys_that_move() {
    for (keys, id) in [
        (&[Key::Down][..], "p1"),
        (&[Key::Char('j'), Key::Char('j')], "p2"),
        (&[Key::End], "p30"),
        (&[Key::End, Key::Up], "p29"),
        (&[Key::End, Key::Char('k'), Key::Ctrl('p')], "p28"),
        (&[Key::End, Key::Home, Key::Ctrl('n')], "p1"),
        (&[Key::PageDown], "p10"),
        (&[Key::PageDown, Key::PageDown, Key::PageUp], "p10"),
        (&[Key::PageDown, Key::PageDown, Key::PageDown, Key::PageDown], "p30"),
        (&[Key::Up, Key::Down], "p1"),
    ] {
        let mut menu = menu_of(30, MenuOptions { keep: 30, ..options() });
        press(&mut menu, keys);
        assert_eq!(chosen(&mut menu), id, "{keys:?}");
    }
}

#[test]
fn a_number_that_no_other_begins_with_is_chosen_at_once() {
    let mut menu = menu_of(3, options());
    assert_eq!(menu.press(&Key::Char('2')), look("p2"));
    let restore = all("p2", RestoreScope::FilesAndConversation);
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter]), restore);
}

#[test]
fn a_number_that_others_begin_with_ends_with_enter() {
    let mut menu = menu_of(10, options());
    assert_eq!(menu.press(&Key::Char('1')), look("p1"));
    assert_eq!(chosen(&mut menu), "p1");

    let mut menu = menu_of(10, options());
    assert_eq!(menu.press(&Key::Char('1')), look("p1"));
    assert_eq!(menu.press(&Key::Char('0')), look("p10"));
    let restore = all("p10", RestoreScope::FilesAndConversation);
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter]), restore);
}

#[test]
fn a_number_can_be_taken_back() {
    let mut menu = menu_of(10, options());
    assert_eq!(type_in(&mut menu, "1"), look("p1"));
    assert_eq!(menu.press(&Key::Backspace), MenuAction::Stay);
    assert_eq!(type_in(&mut menu, "2"), look("p2"));

    let mut menu = menu_of(10, options());
    assert_eq!(type_in(&mut menu, "1"), look("p1"));
    assert_eq!(menu.press(&Key::Esc), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Char('0')), MenuAction::Cancel);
}

#[test]
fn a_number_that_is_not_there_leaves_things_as_they_are() {
    let mut menu = menu_of(3, options());
    press(&mut menu, &[Key::Down]);
    assert_eq!(menu.press(&Key::Char('7')), MenuAction::Stay);
    assert_eq!(chosen(&mut menu), "p1");
}

/// Rows 2 to 19 are folded away, 20 is another session's: `2` is the beginning of a number and none.
#[test]
fn half_a_number_chooses_nothing() {
    let mut rows: Vec<PointRow> =
        (1..20).map(|n| sample::row(&format!("p{n}"), "1 h", "mine")).collect();
    rows.push(sample::other(sample::row("o20", "1 d", "another's"), "claude", "s"));
    let mut menu = Menu::new(rows, Vec::new(), MenuOptions { keep: 1, ..options() });
    assert_eq!(press(&mut menu, &[Key::Char('2'), Key::Enter]), MenuAction::Stay);
    assert_eq!(type_in(&mut menu, "20"), look("o20"));
}

#[test]
fn older_rows_have_no_number_until_they_are_shown() {
    let mut menu = menu_of(12, MenuOptions { keep: 3, ..options() });
    assert_eq!(menu.press(&Key::Char('1')), look("p1"));
    assert_eq!(menu.press(&Key::Esc), MenuAction::Stay);
    assert_eq!(press(&mut menu, &[Key::End, Key::Enter]), look("p4"));
    assert_eq!(menu.press(&Key::Char('1')), look("p1"));
    assert_eq!(menu.press(&Key::Char('2')), look("p12"));
}

#[test]
fn other_sessions_come_last_and_have_files_alone() {
    let other = sample::other(sample::row("o1", "1 d", "old"), "claude", "yesterday");
    let rows = vec![other, sample::row("a1", "1 min", "new")];
    let mut menu = Menu::new(rows, Vec::new(), options());
    assert_eq!(menu.press(&Key::Down), look("a1"));
    assert_eq!(menu.press(&Key::Down), look("o1"), "the heading is passed over");
    assert_eq!(
        press(&mut menu, &[Key::Enter, Key::Enter, Key::Enter]),
        all("o1", RestoreScope::Files)
    );

    let mut menu = Menu::new(vec![sample::rows()[3].clone()], Vec::new(), options());
    assert_eq!(menu.press(&Key::Down), look("d1"));
    assert_eq!(menu.press(&Key::Up), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Enter), MenuAction::Cancel);
}

#[test]
fn the_filter_narrows_by_description_and_label() {
    for (text, id) in [("MULTIPLY", "a1"), ("works", "b1"), ("auth", "d1"), ("add test", "b1")] {
        let mut menu = Menu::new(sample::rows(), Vec::new(), options());
        press(&mut menu, &[Key::Char('/')]);
        type_in(&mut menu, text);
        assert_eq!(chosen(&mut menu), id, "{text}");
    }
}

/// The rows that a filter leaves.
fn left_by(filter: &str, ids: &[(&str, &str)]) -> Vec<String> {
    let rows = ids.iter().map(|(id, description)| sample::row(id, "1 min ago", description));
    let mut menu = Menu::new(rows.collect(), Vec::new(), options());
    press(&mut menu, &[Key::Char('/')]);
    type_in(&mut menu, filter);
    let drawn = crate::menu_view::text(&mut menu, 80, 24);
    let is_left = |description: &&str| {
        drawn.lines().take(1 + ids.len()).any(|line| line.contains(description))
    };
    ids.iter().map(|(_, description)| *description).filter(is_left).map(str::to_owned).collect()
}

#[test]
fn the_filter_knows_an_id_by_its_looks() {
    let ids = [
        ("4f0a97c2d3b1e586", "add the face"),
        ("face12ab00000000", "feed the cat"),
        ("deadbeefcafebabe", "count to 4004"),
        ("0000444444444444", "decade"),
    ];
    for (filter, left) in [
        // Digits and words that stand in some id.
        ("4", &["count to 4004"][..]),
        ("97c", &[]),
        ("face", &["add the face"]),
        ("dead", &[]),
        ("decade", &["decade"]),
        ("feed", &["feed the cat"]),
        // From four digits on it may be an id, if one of them is no letter: its beginning.
        ("4f0a", &["add the face"]),
        ("4F0A97", &["add the face"]),
        ("f0a9", &[]),
        ("0000", &["decade"]),
        ("4004", &["count to 4004"]),
        ("face12", &["feed the cat"]),
        // Eight of these letters are hardly a word.
        ("deadbeef", &["count to 4004"]),
        ("deadbee", &[]),
        ("deadbeefcafebabe", &["count to 4004"]),
        ("deadbeefcafebabe0", &[]),
        // Every word counts.
        ("4f0a face", &["add the face"]),
        ("4f0a cat", &[]),
    ] {
        assert_eq!(left_by(filter, &ids), left, "{filter}");
    }
}

#[test]
fn the_filter_knows_the_names_of_checkpoints() {
    for (filter, executions) in [
        ("ckpt-exec-1-3", &["exec-1"][..]),
        ("ckpt-exec-10-0", &["exec-10"]),
        ("ckpt-exec-1", &["exec-1", "exec-10"]),
        ("ckpt-", &["exec-1", "exec-10"]),
        ("ckpt-exec-2-1", &[]),
        ("ckpt-exec-1-plan", &[]),
    ] {
        let mut menu = Menu::new(Vec::new(), sample::executions(), options());
        press(&mut menu, &[Key::Char('/')]);
        type_in(&mut menu, filter);
        let drawn = crate::menu_view::text(&mut menu, 80, 24);
        let is_left = |name: &&&str| drawn.contains(&format!("Restore {name}  "));
        let left: Vec<&str> = ["exec-1", "exec-10"].iter().filter(is_left).copied().collect();
        assert_eq!(left, executions, "{filter}");
    }
}

#[test]
fn the_filter_takes_every_letter_and_esc_leaves_it_first() {
    let mut menu = Menu::new(sample::rows(), Vec::new(), options());
    assert_eq!(menu.press(&Key::Char('/')), look("a1"));
    for c in "jkqu0?9".chars() {
        assert_eq!(menu.press(&Key::Char(c)), MenuAction::Stay, "{c}");
    }
    assert_eq!(menu.press(&Key::Enter), MenuAction::Stay, "nothing matches");
    assert_eq!(menu.press(&Key::Esc), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Esc), MenuAction::Cancel);
}

#[test]
fn leaving_the_filter_stays_on_the_row_also_among_the_older_ones() {
    let mut menu = menu_of(40, MenuOptions { keep: 5, ..options() });
    press(&mut menu, &[Key::Char('/')]);
    assert_eq!(type_in(&mut menu, "prompt 33"), look("p33"));
    press(&mut menu, &[Key::Esc]);
    assert_eq!(menu.press(&Key::Down), look("p34"));
}

#[test]
fn an_empty_filter_is_left_with_backspace() {
    let mut menu = menu_of(3, options());
    press(&mut menu, &[Key::Char('/'), Key::Char('x'), Key::Backspace, Key::Backspace]);
    assert_eq!(menu.press(&Key::Char('0')), MenuAction::Cancel);
}

#[test]
fn a_preview_is_asked_for_once() {
    let mut menu = menu_of(3, options());
    assert_eq!(menu.press(&Key::Down), look("p1"));
    assert_eq!(menu.press(&Key::Down), look("p2"));
    menu.set_preview(point("p2"), Err("no".to_owned()));
    assert_eq!(menu.press(&Key::Up), look("p1"), "it was not answered");
    menu.set_preview(point("p1"), Ok(sample::preview()));
    assert_eq!(menu.press(&Key::Down), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Up), MenuAction::Stay);
}

#[test]
fn a_preview_that_was_dropped_is_asked_for_again() {
    let mut menu = menu_of(100, MenuOptions { keep: 100, ..options() });
    for n in 1..=100 {
        assert_eq!(menu.press(&Key::Down), look(&format!("p{n}")));
        menu.set_preview(point(&format!("p{n}")), Ok(sample::preview()));
    }
    assert_eq!(menu.press(&Key::Home), MenuAction::Stay);
    for n in 0..100 {
        menu.set_preview(point(&format!("another{n}")), Ok(sample::preview()));
    }
    assert_eq!(menu.press(&Key::End), look("p100"), "the one that was asked for last too");
    assert_eq!(press(&mut menu, &[Key::Home, Key::Down]), look("p1"));
}

#[test]
fn tab_goes_to_the_executions_and_back() {
    let mut menu = Menu::new(sample::rows(), sample::executions(), options());
    assert_eq!(menu.press(&Key::Down), look("a1"));
    assert_eq!(menu.press(&Key::Tab), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Down), look_execution("exec-1"));
    assert_eq!(menu.press(&Key::Down), look_execution("exec-10"));
    press(&mut menu, &[Key::BackTab, Key::Down, Key::Up]);
    assert_eq!(chosen(&mut menu), "a1");
}

#[test]
fn an_execution_is_chosen_by_number_too() {
    let mut menu = Menu::new(Vec::new(), sample::executions(), options());
    assert_eq!(press(&mut menu, &[Key::Char('2')]), look_execution("exec-10"));
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter]), restore_execution("exec-10"));
    let none: Vec<ExecutionRow> = Vec::new();
    let mut menu = Menu::new(Vec::new(), none, options());
    assert_eq!(press(&mut menu, &[Key::Tab, Key::Down, Key::Enter]), MenuAction::Cancel);
}

#[test]
fn an_execution_is_looked_at_before_it_is_restored() {
    for (keys, id) in [
        (&[Key::Down][..], "exec-1"),
        (&[Key::Char('/'), Key::Char('p'), Key::Char('l')], "exec-10"),
    ] {
        for restore in [Key::Enter, Key::Char('s')] {
            let mut menu = Menu::new(sample::rows(), sample::executions(), options());
            press(&mut menu, &[Key::Tab]);
            press(&mut menu, keys);
            menu.set_preview(execution(id), Ok(sample::preview()));
            assert_eq!(menu.press(&Key::Enter), MenuAction::Stay, "the files");
            assert_eq!(menu.press(&Key::Char(' ')), MenuAction::Stay, "there are no ticks");
            assert_eq!(menu.press(&Key::Enter), MenuAction::Stay, "the choice");
            assert_eq!(menu.press(&Key::Char('f')), MenuAction::Stay);
            assert_eq!(menu.press(&restore), restore_execution(id));
        }
    }
}

#[test]
fn an_execution_that_cannot_be_looked_at_is_not_restored() {
    let mut menu = Menu::new(sample::rows(), sample::executions(), options());
    press(&mut menu, &[Key::Tab, Key::Down]);
    menu.set_preview(execution("exec-1"), Err("damaged".to_owned()));
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter, Key::Enter]), MenuAction::Stay);
    assert_eq!(press(&mut menu, &[Key::Esc, Key::Esc]), MenuAction::Cancel);

    // Nor if that is known only after it was chosen.
    let mut menu = Menu::new(sample::rows(), sample::executions(), options());
    press(&mut menu, &[Key::Tab, Key::Down, Key::Enter, Key::Enter]);
    menu.set_preview(execution("exec-1"), Err("damaged".to_owned()));
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter, Key::Enter]), MenuAction::Stay);
}

#[test]
fn a_point_and_an_execution_of_one_name_have_their_own_previews() {
    let execution = ExecutionRow { execution: "p1".into(), step: "a".into(), age: "now".into() };
    let rows = vec![sample::row("p1", "now", "prompt")];
    let mut menu = Menu::new(rows, vec![execution], options());
    assert_eq!(menu.press(&Key::Down), look("p1"));
    menu.set_preview(point("p1"), Ok(sample::preview()));
    assert_eq!(press(&mut menu, &[Key::Tab, Key::Down]), look_execution("p1"));
}

#[test]
fn u_undoes_where_there_is_something_to_undo() {
    assert_eq!(menu_of(1, options()).press(&Key::Char('u')), MenuAction::Undo);
    let mut menu = menu_of(1, MenuOptions { can_undo: false, ..options() });
    assert_eq!(menu.press(&Key::Char('u')), MenuAction::Stay);
}

#[test]
fn any_key_closes_the_help_and_does_nothing_else() {
    let mut menu = menu_of(1, options());
    assert_eq!(press(&mut menu, &[Key::Char('?'), Key::Esc]), MenuAction::Stay);
    assert_eq!(press(&mut menu, &[Key::Down]), look("p1"));
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Char('?'), Key::Char('q')]), MenuAction::Stay);
    let restore = all("p1", RestoreScope::FilesAndConversation);
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter]), restore);
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        6 => select(vec![
            Key::Up, Key::Down, Key::PageUp, Key::PageDown, Key::Home, Key::End, Key::Enter, Key::Enter,
            Key::Esc, Key::Tab, Key::Backspace, Key::Left, Key::Right, Key::Ctrl('u'), Key::Ctrl('d'),
        ]),
        4 => select("0123456789/jkqua? bfcpromttmtmbHHwwsBBcc".chars().collect::<Vec<_>>()).prop_map(Key::Char),
        1 => any::<char>().prop_map(Key::Char),
        1 => Just(Key::Paste("p1\n2".to_owned())),
    ]
}

proptest! {
    /// Whatever is pressed, drawn or answered in between: only rows that exist, only files that would
    /// change, and at no size a panic.
    #[test]
    fn any_keys_in_any_order(
        keys in proptest::collection::vec((any_key(), any::<bool>(), 0u16..130, 0u16..30), 0..80),
        keep in 1usize..8,
    ) {
        let mut rows: Vec<PointRow> = (0..25).map(|n| sample::row(&format!("p{n}"), "1 h", "prompt")).collect();
        for row in rows.iter_mut().skip(18) {
            *row = sample::other(row.clone(), "codex", "another");
        }
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let fresh = || {
            Menu::new(rows.clone(), sample::executions(), MenuOptions { keep, ..options() })
                .with_operations(sample::operations(&["p0", "p0", "p3", "p17", "p20"]))
        };
        let mut menu = fresh();
        for (key, answer, width, height) in keys {
            let action = menu.press(&key);
            crate::menu_view::text(&mut menu, width, height);
            match action {
                MenuAction::Preview(request) => {
                    let exists = match &request.row {
                        RowId::Point(id) => ids.contains(id),
                        RowId::Execution(name) => name.starts_with("exec-1"),
                    };
                    prop_assert!(exists);
                    if answer {
                        menu.set_preview(request, Ok(sample::preview()));
                    }
                }
                MenuAction::Ask(question) => {
                    let text = (1..=40).map(|n| format!("row {n}")).collect();
                    if answer {
                        menu.set_answer(&question, Ok(MenuAnswer { text, file_lines: 38 }));
                    }
                    if let MenuQuestion::Why { line, .. } = question {
                        prop_assert!((1..=38).contains(&line));
                    }
                }
                MenuAction::Restore(RestoreChoice { point: id, coverage, scope, files }) => {
                    let FileSelection { paths, marks } = files;
                    prop_assert!(ids.contains(&id));
                    let other = rows.iter().any(|row| row.id == id && row.origin == Origin::OtherSession);
                    prop_assert!(!other || scope == RestoreScope::Files);
                    prop_assert!(coverage != MenuCoverage::Turn || scope == RestoreScope::Files);
                    for path in paths.into_iter().flatten() {
                        prop_assert!(["utils.ts", "src/a/deep/folder/with/generated.ts", "README.md"].contains(&path.as_str()));
                    }
                    prop_assert!(scope != RestoreScope::Conversation || marks.is_empty());
                    prop_assert!(marks.take.iter().all(|path| ["notes.txt", "log.txt"].contains(&path.as_str())));
                    prop_assert!(!marks.mine.iter().any(|path| marks.take.contains(path)));
                    menu = fresh();
                }
                MenuAction::RestoreExecution(execution) => {
                    prop_assert!(execution.starts_with("exec-1"));
                    menu = fresh();
                }
                MenuAction::Cancel | MenuAction::Undo => menu = fresh(),
                MenuAction::Stay => {}
            }
        }
    }
}
