//! A tree with one case of everything that a rewind handles.

use std::os::unix::fs::symlink;

use takeback_core::checkpoint;
use takeback_core::rewind::Receipt;
use takeback_testkit::{Sandbox, SandboxImage};

use crate::{PointTree, Tree};

/// A starting state and the expected result of a rewind.
pub(crate) struct Scene {
    pub(crate) frozen: SandboxImage,
    /// Oldest first.
    pub(crate) listed: Vec<PointTree>,
    pub(crate) before: Tree,
    pub(crate) after: Tree,
    /// Of the rewind without a crash.
    pub(crate) receipt: Receipt,
}

impl Scene {
    /// An agent has changed many files; the rewind takes back its work since the point `listed[1]`.
    pub(crate) fn before_a_rewind() -> Self {
        let mut sandbox = Sandbox::new();
        let listed = play(&mut sandbox);
        Self::of(sandbox, listed, |sandbox, listed| {
            let receipt = sandbox.rewind_to(listed[1].point);
            let conflicts: Vec<String> =
                receipt.conflicts.iter().map(|c| c.path.display()).collect();
            assert_eq!(conflicts, ["conflict.txt"]);
            assert_eq!(receipt.merged_files.len(), 1, "{receipt:?}");
            assert_eq!(receipt.kept_files.len(), 1, "{receipt:?}");
            receipt
        })
    }

    pub(crate) fn before_an_undo() -> Self {
        let mut sandbox = Sandbox::new();
        let listed = play(&mut sandbox);
        let _receipt = sandbox.rewind_to(listed[1].point);
        Self::of(sandbox, listed, |sandbox, _| sandbox.undo())
    }

    pub(crate) fn before_a_redo() -> Self {
        let mut sandbox = Sandbox::new();
        let listed = play(&mut sandbox);
        let _receipt = sandbox.rewind_to(listed[1].point);
        assert!(sandbox.undo().success);
        Self::of(sandbox, listed, |sandbox, _| sandbox.redo())
    }

    pub(crate) fn of(
        sandbox: Sandbox,
        listed: Vec<PointTree>,
        work: impl FnOnce(&mut Sandbox, &[PointTree]) -> Receipt,
    ) -> Self {
        let before = sandbox.tree();
        let frozen = sandbox.freeze();
        let mut sandbox = frozen.thaw();
        let receipt = work(&mut sandbox, &listed);
        assert!(receipt.errors.is_empty() && receipt.changed_something(), "{receipt:?}");
        let after = sandbox.tree();
        assert_ne!(before, after);
        Self { frozen, listed, before, after, receipt }
    }
}

fn lay_out(sandbox: &Sandbox) {
    sandbox.write("edit.txt", "one\n");
    sandbox.write("sub/deep/edit.txt", "deep one\n");
    sandbox.write("merge.txt", "first\na\nb\nc\nd\ne\nlast\n");
    sandbox.write("conflict.txt", "one\n");
    sandbox.write("gone.txt", "gone\n");
    sandbox.write("tree/a.txt", "a\n");
    sandbox.write("tree/below/b.txt", "b\n");
    sandbox.write("run.sh", "#!/bin/sh\n");
    sandbox.write("to-folder", "a file\n");
    sandbox.write("to-file/inside.txt", "in a folder\n");
    sandbox.write("to-link", "a file\n");
    sandbox.write("closed/in.txt", "in\n");
    symlink("edit.txt", sandbox.at("link")).unwrap();
    symlink("edit.txt", sandbox.at("link-gone")).unwrap();
}

pub(crate) fn play(sandbox: &mut Sandbox) -> Vec<PointTree> {
    lay_out(sandbox);
    let mut listed = Vec::new();
    let point = checkpoint(&mut sandbox.workspace, Some("first")).unwrap().point.unwrap();
    listed.push(PointTree { point, tree: sandbox.tree() });
    sandbox.write("mine.txt", "mine\n");
    let point = sandbox.prompt("s", "do it");
    listed.push(PointTree { point, tree: sandbox.tree() });
    sandbox.agent_writes("s", "edit.txt", "two\n");
    sandbox.agent_writes("s", "sub/deep/edit.txt", "deep two\n");
    sandbox.agent_writes("s", "merge.txt", "FIRST\na\nb\nc\nd\ne\nlast\n");
    sandbox.agent_writes("s", "conflict.txt", "two\n");
    sandbox.agent_writes("s", "made.txt", "made\n");
    sandbox.agent_writes("s", "made/new/file.txt", "made too\n");
    sandbox.agent_runs("s", "./run", |sandbox| {
        sandbox.remove("gone.txt");
        sandbox.remove("tree");
        sandbox.set_mode("run.sh", 0o755);
        sandbox.set_mode("closed", 0o700);
        for path in ["link", "link-gone", "to-folder", "to-file", "to-link"] {
            sandbox.remove(path);
        }
    });
    sandbox.agent_runs("s", "./run more", |sandbox| {
        symlink("run.sh", sandbox.at("link")).unwrap();
        symlink("run.sh", sandbox.at("link-new")).unwrap();
        symlink("run.sh", sandbox.at("to-link")).unwrap();
        sandbox.write("to-folder/inside.txt", "in a folder\n");
        sandbox.write("to-folder/and/below.txt", "deeper\n");
        sandbox.write("to-file", "a file\n");
    });
    sandbox.turn_end("s");
    sandbox.write("merge.txt", "FIRST\na\nb\nc\nd\ne\nLAST\n");
    sandbox.write("conflict.txt", "mine\n");
    sandbox.write("mine.txt", "still mine\n");
    let point = sandbox.prompt("s", "go on");
    listed.push(PointTree { point, tree: sandbox.tree() });
    sandbox.agent_writes("s", "edit.txt", "three\n");
    sandbox.turn_end("s");
    listed
}
