//! What the keys of the menu do in an open row: choices, ticks and marks.

use takeback_tui::{FileAction, Key, MenuAction, MenuCoverage, MenuOptions, Preview, RestoreScope};

use crate::menu_actions::{all, covering, marked, opened_with, press, some, type_in};
use crate::sample::{self, menu_of, options, point};

#[test]
fn the_choices_by_arrow_and_by_key() {
    for (keys, scope) in [
        (&[Key::Enter][..], RestoreScope::FilesAndConversation),
        (&[Key::Down, Key::Enter], RestoreScope::Files),
        (&[Key::Down, Key::Down, Key::Down, Key::Enter], RestoreScope::Conversation),
        (&[Key::Char('j'), Key::Char('k'), Key::Enter], RestoreScope::FilesAndConversation),
        (&[Key::Char('b')], RestoreScope::FilesAndConversation),
        (&[Key::Char('f')], RestoreScope::Files),
        (&[Key::Char('c')], RestoreScope::Conversation),
    ] {
        let mut menu = opened_with(sample::preview());
        press(&mut menu, &[Key::Enter]);
        assert_eq!(press(&mut menu, keys), all("p1", scope), "{keys:?}");
    }
}

#[test]
fn esc_goes_back_stage_by_stage() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Enter]);
    for action in [MenuAction::Stay, MenuAction::Stay, MenuAction::Cancel] {
        assert_eq!(menu.press(&Key::Esc), action);
    }
}

#[test]
fn a_file_without_its_tick_stays() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Down, Key::Char(' '), Key::Enter]);
    let restore = some("p1", RestoreScope::Files, &["utils.ts", "README.md"]);
    assert_eq!(menu.press(&Key::Char('f')), restore);
}

#[test]
fn a_tick_comes_back() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Char(' '), Key::Char(' '), Key::Enter]);
    assert_eq!(menu.press(&Key::Char('f')), all("p1", RestoreScope::Files));

    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Char(' '), Key::Char('a'), Key::Enter]);
    assert_eq!(menu.press(&Key::Char('f')), all("p1", RestoreScope::Files));
}

#[test]
fn only_what_would_change_has_a_tick() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::End, Key::Char(' '), Key::Up, Key::Char(' '), Key::Enter]);
    assert_eq!(menu.press(&Key::Char('f')), all("p1", RestoreScope::Files));
}

#[test]
fn the_conversation_has_no_paths() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Char(' '), Key::Enter]);
    assert_eq!(menu.press(&Key::Char('c')), all("p1", RestoreScope::Conversation));
}

// The rows of the sample: utils.ts restored, generated.ts deleted, README.md merged, notes.txt kept, main.ts
// in conflict, big.bin not captured, log.txt unclear.

#[test]
fn t_marks_what_is_unclear_or_kept_and_m_what_is_unclear_or_taken_back() {
    let down = |n: usize| vec![Key::Down; n];
    for (row, take, mine) in [
        (0, None, Some("utils.ts")),
        (1, None, Some("src/a/deep/folder/with/generated.ts")),
        (2, None, Some("README.md")),
        (3, Some("notes.txt"), None),
        (4, None, None),
        (5, None, None),
        (6, Some("log.txt"), Some("log.txt")),
    ] {
        for (key, path) in [('t', take), ('m', mine)] {
            let mut menu = opened_with(sample::preview());
            press(&mut menu, &[down(row), vec![Key::Char(key), Key::Enter]].concat());
            let paths: Vec<&str> = path.into_iter().collect();
            let (take, mine) =
                if key == 't' { (&paths[..], &[][..]) } else { (&[][..], &paths[..]) };
            let expected = marked(all("p1", RestoreScope::Files), take, mine);
            assert_eq!(menu.press(&Key::Char('f')), expected, "{key} on row {row}");
        }
    }
}

#[test]
fn the_same_key_removes_a_mark_and_the_other_one_replaces_it() {
    for (keys, take, mine) in [
        ("tt", &[][..], &[][..]),
        ("mm", &[], &[]),
        ("tm", &[], &["log.txt"]),
        ("mt", &["log.txt"], &[]),
        ("mtt", &[], &[]),
    ] {
        let mut menu = opened_with(sample::preview());
        press(&mut menu, &[Key::End]);
        type_in(&mut menu, keys);
        press(&mut menu, &[Key::Enter]);
        let expected = marked(all("p1", RestoreScope::Files), take, mine);
        assert_eq!(menu.press(&Key::Char('f')), expected, "{keys}");
    }
}

#[test]
fn a_mark_is_enough_to_go_on_and_decides_for_a_tick() {
    let unclear = |path| sample::file(path, FileAction::Unclear, None, &[]);
    let files = vec![unclear("a"), unclear("b")];
    for key in ['t', 'm'] {
        let mut menu =
            opened_with(Preview { covers: None, files: files.clone(), notes: Vec::new() });
        press(&mut menu, &[Key::Down, Key::Char(key), Key::Enter]);
        let (take, mine) = if key == 't' { (&["b"][..], &[][..]) } else { (&[][..], &["b"][..]) };
        assert_eq!(menu.press(&Key::Char('f')), marked(all("p1", RestoreScope::Files), take, mine));
    }
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Char('m'), Key::Char(' '), Key::Down, Key::Char(' '), Key::Enter]);
    let expected = marked(some("p1", RestoreScope::Files, &["README.md"]), &[], &["utils.ts"]);
    assert_eq!(menu.press(&Key::Char('f')), expected);
}

#[test]
fn a_file_with_two_rows_is_marked_once() {
    let row = |fate| sample::file("a", fate, None, &[]);
    let files = vec![row(FileAction::Merge), row(FileAction::Unclear)];
    let mut menu = opened_with(Preview { covers: None, files, notes: Vec::new() });
    press(&mut menu, &[Key::Down, Key::Char('t'), Key::Enter]);
    assert_eq!(menu.press(&Key::Char('f')), marked(all("p1", RestoreScope::Files), &["a"], &[]));
}

#[test]
fn marks_need_files_of_a_point_that_is_not_exact() {
    let mut menu = opened_with(sample::preview());
    press(&mut menu, &[Key::Char('m'), Key::Enter]);
    assert_eq!(menu.press(&Key::Char('c')), all("p1", RestoreScope::Conversation));

    let everyone = MenuCoverage::Everyone;
    let mut menu = menu_of(1, MenuOptions { coverage: everyone, ..options() });
    let MenuAction::Preview(request) = press(&mut menu, &[Key::Down]) else { panic!("a preview") };
    menu.set_preview(request, Ok(sample::preview()));
    press(&mut menu, &[Key::Enter, Key::Char('m'), Key::End, Key::Char('t'), Key::Enter]);
    let all = covering(all("p1", RestoreScope::Files), everyone);
    assert_eq!(menu.press(&Key::Char('f')), all);
}

#[test]
fn without_files_to_restore_there_is_the_conversation() {
    let kept = Preview {
        covers: None,
        files: vec![sample::file("a", FileAction::Keep, None, &[])],
        notes: Vec::new(),
    };
    for (preview, keys) in
        [(kept, &[Key::Enter][..]), (sample::preview(), &[Key::Char('a'), Key::Enter])]
    {
        let mut menu = opened_with(preview);
        press(&mut menu, keys);
        assert_eq!(menu.press(&Key::Char('f')), MenuAction::Stay);
        assert_eq!(menu.press(&Key::Char('b')), MenuAction::Stay);
        assert_eq!(menu.press(&Key::Enter), all("p1", RestoreScope::Conversation));
    }
}

#[test]
fn without_a_conversation_there_are_the_files() {
    let mut menu = menu_of(1, MenuOptions { conversation: false, ..options() });
    press(&mut menu, &[Key::Down, Key::Enter, Key::Enter]);
    assert_eq!(menu.press(&Key::Char('c')), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Char('b')), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Enter), all("p1", RestoreScope::Files));

    let mut menu = menu_of(1, MenuOptions { conversation: false, ..options() });
    press(&mut menu, &[Key::Down]);
    menu.set_preview(point("p1"), Err("damaged".to_owned()));
    assert_eq!(press(&mut menu, &[Key::Enter, Key::Enter, Key::Enter]), MenuAction::Stay);
}

/// With the cursor on files and conversation, Enter must not restore the conversation alone because a preview
/// arrived in the meantime.
#[test]
fn a_preview_that_comes_late_never_changes_what_enter_means() {
    let mut menu = menu_of(1, options());
    press(&mut menu, &[Key::Down, Key::Enter, Key::Enter]);
    menu.set_preview(point("p1"), Err("damaged".to_owned()));
    assert_eq!(menu.press(&Key::Enter), MenuAction::Stay);
    assert_eq!(menu.press(&Key::Enter), all("p1", RestoreScope::Conversation));
}
