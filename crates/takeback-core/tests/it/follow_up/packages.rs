//! Folders that a package manager makes, beside a rewind of the files they are made from.

use takeback_core::rewind::{FollowUp, InstallReason, RewindRequest, Target, preview};
use takeback_store::{PointId, WorkPath};
use takeback_testkit::Sandbox;

use super::follow_up;

fn text(path: &WorkPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}

/// Folder, command, where it runs, and why.
fn described(follow_up: &FollowUp) -> Vec<String> {
    let described = follow_up.installs.iter().map(|hint| {
        let directory = hint.directory.as_ref().map(text).unwrap_or_default();
        let why = match &hint.reason {
            InstallReason::Stale(file) => format!("{} changes", text(file)),
            InstallReason::Removed(command) => format!("missing after {command}"),
        };
        format!("{}: {} in {directory:?}, {why}", text(&hint.folder), hint.command)
    });
    described.collect()
}

/// The preview and the receipt say the same.
fn rewound(sandbox: &mut Sandbox, point: PointId) -> Vec<String> {
    let request = RewindRequest::new(Target::Point(point));
    let shown = preview(&mut sandbox.workspace, &request).unwrap();
    let before = described(&FollowUp::of_preview(&sandbox.workspace, &shown).unwrap());
    let receipt = sandbox.rewind_to(point);
    assert_eq!(described(&follow_up(sandbox, &receipt)), before);
    before
}

/// An agent changes these files; `before` is what was there.
fn after_changes(before: &[&str], changed: &[&str]) -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    for path in before {
        sandbox.write(path, "before\n");
    }
    let point = sandbox.prompt("s", "add a package");
    for path in changed {
        sandbox.agent_writes("s", path, "after\n");
    }
    (sandbox, point)
}

#[test]
fn a_folder_is_stale_if_its_lock_file_is_taken_back() {
    const NODE: &str = "node_modules/x/index.js";
    let npm = ["node_modules: npm install in \"\", package-lock.json changes"];
    let none: &[&str] = &[];
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (
            &["package.json", "package-lock.json", NODE],
            &["package.json", "package-lock.json"],
            &npm,
        ),
        // Nothing was installed.
        (&["package.json", "package-lock.json", NODE], &["package.json"], none),
        (&["package.json", "package-lock.json"], &["package-lock.json"], none),
        (
            &["package.json", NODE],
            &["package.json"],
            &["node_modules: npm install in \"\", package.json changes"],
        ),
        // The agent made the lock file, and the rewind deletes it.
        (
            &["package.json", NODE],
            &["package.json", "pnpm-lock.yaml"],
            &["node_modules: pnpm install in \"\", pnpm-lock.yaml changes"],
        ),
        (
            &["web/package.json", "web/yarn.lock", "web/node_modules/x.js"],
            &["web/yarn.lock"],
            &["web/node_modules: yarn install in \"web\", web/yarn.lock changes"],
        ),
        (
            &["pyproject.toml", "uv.lock", ".venv/bin/python"],
            &["uv.lock"],
            &[".venv: uv sync in \"\", uv.lock changes"],
        ),
        (
            &["requirements.txt", "venv/bin/python"],
            &["requirements.txt"],
            &["venv: pip install -r requirements.txt in \"\", requirements.txt changes"],
        ),
        // It is recorded, so the rewind takes it back itself.
        (&["composer.json", "composer.lock", "vendor/x.php"], &["composer.lock"], none),
        // Cargo follows its lock file by itself.
        (&["Cargo.toml", "Cargo.lock", "target/debug/x"], &["Cargo.toml", "Cargo.lock"], none),
        // Without its manifest nothing can be made.
        (&["README"], &["package.json", "package-lock.json", "node_modules.txt"], none),
    ];
    for (before, changed, expected) in cases {
        let (mut sandbox, point) = after_changes(before, changed);
        assert_eq!(rewound(&mut sandbox, point), *expected, "{before:?} {changed:?}");
    }
}

#[test]
fn an_undo_makes_a_folder_stale_again() {
    let files = ["package.json", "package-lock.json", "node_modules/x.js"];
    let (mut sandbox, point) = after_changes(&files, &["package-lock.json"]);
    sandbox.rewind_to(point);
    let undone = sandbox.undo();
    let expected = ["node_modules: npm install in \"\", package-lock.json changes"];
    assert_eq!(described(&follow_up(&sandbox, &undone)), expected);
}

#[test]
fn a_deleted_folder_that_was_not_recorded_has_a_command() {
    let files = ["package.json", "bun.lock", "node_modules/x.js", "web/package.json", "a.txt"];
    let (mut sandbox, point) = after_changes(&files, &[]);
    sandbox.agent_runs("s", "ls node_modules", |_| ());
    assert_eq!(rewound(&mut sandbox, point), [""; 0]);
    let command = "rm -rf node_modules web/node_modules dist";
    sandbox.agent_runs("s", command, |sandbox| sandbox.remove("node_modules"));
    // Nothing else has changed, so nothing is rewound.
    let expected = [
        format!("node_modules: bun install in \"\", missing after {command}"),
        format!("web/node_modules: npm install in \"web\", missing after {command}"),
    ];
    assert_eq!(rewound(&mut sandbox, point), expected);
    sandbox.write("node_modules/x.js", "installed again\n");
    assert_eq!(rewound(&mut sandbox, point), expected[1..]);
}
