//! Rows and previews for the tests.

use takeback_tui::{
    DiffLine, ExecutionRow, FileAction, FilePreview, LineKind, Menu, MenuCoverage, MenuOptions,
    MenuScope, OperationRow, Origin, PointRow, Preview, RowId, TakenBack,
};

pub(crate) fn point(id: &str) -> RowId {
    RowId::Point(id.to_owned())
}

pub(crate) fn execution(name: &str) -> RowId {
    RowId::Execution(name.to_owned())
}

pub(crate) fn row(id: &str, age: &str, description: &str) -> PointRow {
    PointRow {
        id: id.to_owned(),
        age: age.to_owned(),
        description: description.to_owned(),
        label: None,
        files: 1,
        lines: Some((3, 1)),
        others: Vec::new(),
        taken_back: TakenBack::No,
        git: None,
        agent: "claude".to_owned(),
        session: None,
        origin: Origin::ThisSession,
    }
}

/// A row of another session.
pub(crate) fn other(row: PointRow, agent: &str, session: &str) -> PointRow {
    let (agent, session) = (agent.to_owned(), Some(session.to_owned()));
    PointRow { agent, session, origin: Origin::OtherSession, ..row }
}

/// A row that was made by hand.
pub(crate) fn by_hand(row: PointRow) -> PointRow {
    PointRow { agent: "by hand".to_owned(), origin: Origin::Manual, ..row }
}

pub(crate) fn options() -> MenuOptions {
    MenuOptions {
        keep: 10,
        scope: MenuScope::Session,
        conversation: true,
        can_undo: true,
        coverage: MenuCoverage::Session,
    }
}

/// `count` rows `p1`, `p2`, … of this session, newest first.
pub(crate) fn menu_of(count: usize, options: MenuOptions) -> Menu {
    let rows =
        (1..=count).map(|n| row(&format!("p{n}"), &format!("{n} min ago"), &format!("prompt {n}")));
    Menu::new(rows.collect(), Vec::new(), options)
}

pub(crate) fn rows() -> Vec<PointRow> {
    let labelled = PointRow {
        label: Some("works".to_owned()),
        files: 2,
        lines: Some((10, 1)),
        ..row(
            "b1",
            "12 min ago",
            "create utils.ts with add and subtract, and a test for each of them",
        )
    };
    let quiet = PointRow {
        files: 0, ..row("c1", "1 h ago", "这个函数做什么？请解释一下 👩‍👩‍👧")
    };
    let other = other(row("d1", "2 days ago", "look at auth.rs"), "codex", "019a0b1c");
    vec![row("a1", "3 min ago", "add multiply and divide"), labelled, quiet, other]
}

/// An operation above each of these points.
pub(crate) fn operations(above: &[&str]) -> Vec<OperationRow> {
    let row = |above: &&str| OperationRow {
        above: (*above).to_owned(),
        age: "1 min ago".to_owned(),
        description: format!("rewind to {above} prompt"),
        files: 2,
        undone: TakenBack::No,
    };
    above.iter().map(row).collect()
}

pub(crate) fn executions() -> Vec<ExecutionRow> {
    let row = |execution: &str, step: &str, age: &str| ExecutionRow {
        execution: execution.to_owned(),
        step: step.to_owned(),
        age: age.to_owned(),
    };
    vec![row("exec-1", "write tests", "5 min ago"), row("exec-10", "plan", "1 h ago")]
}

pub(crate) fn file(
    path: &str,
    action: FileAction,
    reason: Option<&str>,
    diff: &[(LineKind, &str)],
) -> FilePreview {
    FilePreview {
        path: path.to_owned(),
        action,
        reason: reason.map(str::to_owned),
        diff: diff
            .iter()
            .map(|(kind, text)| DiffLine { kind: *kind, text: (*text).to_owned() })
            .collect(),
    }
}

pub(crate) fn preview() -> Preview {
    use LineKind::{Added, Context, Heading, Removed};
    Preview {
        covers: None,
        files: vec![
            file(
                "utils.ts",
                FileAction::Restore,
                None,
                &[
                    (Heading, "@@ -1,4 +1,2 @@"),
                    (Context, "export const add = (a, b) => a + b;"),
                    (Removed, "export const multiply = (a, b) => a * b;"),
                    (Removed, "export const divide = (a, b) => a / b;"),
                    (Added, "\t// end"),
                ],
            ),
            file(
                "src/a/deep/folder/with/generated.ts",
                FileAction::Delete,
                None,
                &[(Removed, "let x;")],
            ),
            file("README.md", FileAction::Merge, Some("you changed it too"), &[(Added, "hello")]),
            file("notes.txt", FileAction::Keep, Some("written by you"), &[]),
            file("main.ts", FileAction::Conflict, Some("both changed line 3"), &[]),
            file("big.bin", FileAction::NotCaptured, Some("larger than 1 MiB"), &[]),
            file("log.txt", FileAction::Unclear, Some("changed while a command ran"), &[]),
        ],
        notes: vec!["1 file could not be captured".to_owned()],
    }
}
