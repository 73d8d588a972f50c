//! Whose changes the menu takes back: `S` cycles, `R` takes back one turn alone.

use takeback_tui::{
    FileAction, Key, LineKind, Menu, MenuAction, MenuCoverage, Preview, PreviewRequest,
    RestoreScope,
};

use crate::menu_actions::{all, covering, look, press};
use crate::menu_view::text;
use crate::sample::{self, menu_of, options, point};

fn look_at(id: &str, coverage: MenuCoverage) -> MenuAction {
    MenuAction::Preview(PreviewRequest { row: point(id), coverage })
}

fn covering_preview(covers: &str) -> Preview {
    let both = &[
        (LineKind::Heading, "line 5 stays; it was:"),
        (LineKind::Removed, "last, by me"),
        (LineKind::Added, "last"),
    ];
    let mut files = vec![sample::file(
        "a.txt",
        FileAction::Conflict,
        Some("both changed the same lines"),
        both,
    )];
    files.extend(sample::preview().files.into_iter().take(1));
    files.push(sample::file("docs/", FileAction::Keep, Some("12 files, changed by you"), &[]));
    Preview { covers: Some(covers.to_owned()), files, notes: Vec::new() }
}

fn answered(menu: &mut Menu, action: MenuAction, covers: &str) {
    let MenuAction::Preview(request) = action else { panic!("{action:?}") };
    menu.set_preview(request, Ok(covering_preview(covers)));
}

#[test]
fn a_key_cycles_whose_changes_are_taken_back() {
    use MenuCoverage::{AllAgents, Everyone, Session};
    let mut menu = menu_of(2, options());
    assert_eq!(press(&mut menu, &[Key::Down]), look("p1"));
    for (coverage, said) in [
        (AllAgents, "Takes back: all agents"),
        (Everyone, "Takes back: everyone's changes, yours too"),
    ] {
        assert_eq!(menu.press(&Key::Char('S')), look_at("p1", coverage));
        assert!(text(&mut menu, 80, 24).contains(said), "{coverage:?}");
    }
    // Another row is previewed in the same way.
    assert_eq!(menu.press(&Key::Down), look_at("p2", Everyone));
    assert_eq!(menu.press(&Key::Char('S')), look_at("p2", Session));
    // So is an open row, and what is restored is what was shown.
    press(&mut menu, &[Key::Enter]);
    let action = menu.press(&Key::Char('S'));
    assert_eq!(action, look_at("p2", AllAgents));
    answered(&mut menu, action, "Takes back: all agents (your own edits stay)");
    press(&mut menu, &[Key::Enter]);
    let expected = covering(all("p2", RestoreScope::Files), AllAgents);
    assert_eq!(menu.press(&Key::Char('f')), expected);
}

#[test]
fn a_late_preview_is_not_shown_for_other_changes() {
    let mut menu = menu_of(1, options());
    let first = press(&mut menu, &[Key::Down]);
    menu.press(&Key::Char('S'));
    answered(&mut menu, first, "Takes back: claude");
    let drawn = text(&mut menu, 80, 24);
    assert!(drawn.contains("loading…") && !drawn.contains("claude aaaa"), "{drawn}");
}

#[test]
fn one_turn_is_taken_back_alone_after_its_preview() {
    let mut menu = menu_of(2, options());
    menu.press(&Key::Down);
    let action = menu.press(&Key::Char('R'));
    assert_eq!(action, look_at("p1", MenuCoverage::Turn));
    assert!(text(&mut menu, 80, 24).contains("loading…"));
    answered(&mut menu, action, "Takes back: claude; later changes stay");
    insta::assert_snapshot!(text(&mut menu, 80, 16));
    // No conversation: the later prompts stay.
    menu.press(&Key::Enter);
    insta::assert_snapshot!(text(&mut menu, 80, 16));
    for key in ['b', 'c'] {
        assert_eq!(menu.press(&Key::Char(key)), MenuAction::Stay);
    }
    let expected = covering(all("p1", RestoreScope::Files), MenuCoverage::Turn);
    assert_eq!(menu.press(&Key::Enter), expected);

    // The same key goes back to a restore; the list keeps its own coverage.
    let mut menu = menu_of(2, options());
    press(&mut menu, &[Key::Down, Key::Char('S'), Key::Char('R')]);
    assert_eq!(menu.press(&Key::Char('R')), look_at("p1", MenuCoverage::AllAgents));
}

#[test]
fn an_execution_and_no_row_have_no_turn() {
    let mut menu = Menu::new(sample::rows(), sample::executions(), options());
    assert_eq!(menu.press(&Key::Char('R')), MenuAction::Stay);
    assert!(text(&mut menu, 80, 24).contains("Select a row first."));
    press(&mut menu, &[Key::Tab, Key::Down]);
    for key in ['S', 'R'] {
        assert_eq!(menu.press(&Key::Char(key)), MenuAction::Stay);
        assert!(text(&mut menu, 80, 24).contains("An execution is restored as a whole."));
    }
}
