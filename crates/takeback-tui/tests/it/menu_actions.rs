//! Actions of the menu, and how tests press its keys.

use takeback_tui::{
    FileSelection, Key, Marks, Menu, MenuAction, MenuCoverage, Preview, RestoreChoice, RestoreScope,
};

use crate::sample::{execution, menu_of, options, point};

pub(crate) fn look(id: &str) -> MenuAction {
    MenuAction::Preview(point(id).into())
}

pub(crate) fn look_execution(name: &str) -> MenuAction {
    MenuAction::Preview(execution(name).into())
}

pub(crate) fn restore_execution(execution: &str) -> MenuAction {
    MenuAction::RestoreExecution(execution.to_owned())
}

pub(crate) fn all(id: &str, scope: RestoreScope) -> MenuAction {
    let files = FileSelection::default();
    MenuAction::Restore(RestoreChoice {
        point: id.to_owned(),
        coverage: MenuCoverage::Session,
        scope,
        files,
    })
}

pub(crate) fn some(id: &str, scope: RestoreScope, paths: &[&str]) -> MenuAction {
    let files = FileSelection { paths: Some(owned(paths)), marks: Marks::default() };
    MenuAction::Restore(RestoreChoice {
        point: id.to_owned(),
        coverage: MenuCoverage::Session,
        scope,
        files,
    })
}

pub(crate) fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

pub(crate) fn marked(action: MenuAction, take: &[&str], mine: &[&str]) -> MenuAction {
    match action {
        MenuAction::Restore(mut choice) => {
            choice.files.marks = Marks { take: owned(take), mine: owned(mine) };
            MenuAction::Restore(choice)
        }
        other => other,
    }
}

/// The action of the last key.
pub(crate) fn press(menu: &mut Menu, keys: &[Key]) -> MenuAction {
    keys.iter().map(|key| menu.press(key)).last().expect("at least one key")
}

pub(crate) fn type_in(menu: &mut Menu, text: &str) -> MenuAction {
    press(menu, &text.chars().map(Key::Char).collect::<Vec<_>>())
}

/// Which row Enter, Enter, Enter restores.
pub(crate) fn chosen(menu: &mut Menu) -> String {
    match press(menu, &[Key::Enter, Key::Enter, Key::Enter]) {
        MenuAction::Restore(choice) => choice.point,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn opened_with(preview: Preview) -> Menu {
    let mut menu = menu_of(1, options());
    assert_eq!(menu.press(&Key::Down), look("p1"));
    menu.set_preview(point("p1"), Ok(preview));
    assert_eq!(menu.press(&Key::Enter), MenuAction::Stay);
    menu
}

/// The same restore, of other changes.
pub(crate) fn covering(action: MenuAction, coverage: MenuCoverage) -> MenuAction {
    match action {
        MenuAction::Restore(choice) => MenuAction::Restore(RestoreChoice { coverage, ..choice }),
        other => other,
    }
}
