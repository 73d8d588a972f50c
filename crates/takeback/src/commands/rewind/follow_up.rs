//! What a rewind leaves to the user, for the screen and as JSON.

use std::io::{self, Write as _};

use takeback_core::Workspace;
use takeback_core::rewind::{FollowUp, InstallHint, InstallReason, Preview, Receipt};
use takeback_store::StoreError;

use crate::answers;
use crate::commands::log::head_move;
use crate::screen::{HINT, Screen, plain, width, wrap};

/// What the previewed rewind would leave to the user.
pub(crate) fn before_rewind(
    workspace: &Workspace,
    shown: &Preview,
) -> Result<answers::FollowUp, StoreError> {
    FollowUp::of_preview(workspace, shown).map(|follow_up| answer(&follow_up))
}

/// What the rewind leaves to the user.
pub(crate) fn after_rewind(
    workspace: &Workspace,
    done: &Receipt,
) -> Result<answers::FollowUp, StoreError> {
    FollowUp::of_receipt(workspace, done).map(|follow_up| answer(&follow_up))
}

/// Prints one paragraph for each thing to know or do.
pub(super) fn print(follow_up: &answers::FollowUp, screen: &mut Screen) -> io::Result<()> {
    for line in follow_up.lines() {
        for line in wrap(&plain(&line), width()) {
            writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
        }
    }
    Ok(())
}

fn answer(follow_up: &FollowUp) -> answers::FollowUp {
    let git = follow_up.git.as_ref().map(|git| answers::GitFollowUp {
        head: head_move(&git.head),
        status: git.status.as_ref().map(|status| answers::GitStatus {
            modified: status.modified,
            added: status.added,
            deleted: status.deleted,
            untracked: status.untracked,
            commits: status
                .commits
                .iter()
                .map(|commit| answers::CrossedCommit {
                    id: commit.id.clone(),
                    summary: commit.summary.clone(),
                    session: commit.session.as_ref().map(|session| session.0.clone()),
                })
                .collect(),
            reset: status.reset.clone(),
        }),
    });
    answers::FollowUp { git, hints: follow_up.installs.iter().map(hint).collect() }
}

fn hint(install: &InstallHint) -> answers::InstallHint {
    let (file, removed_by) = match &install.reason {
        InstallReason::Stale(file) => (Some(answers::path(file)), None),
        InstallReason::Removed(command) => (None, Some(command.clone())),
    };
    let directory = install.directory.as_ref();
    answers::InstallHint {
        command: install.command.clone(),
        directory: directory.map_or_else(|| ".".to_owned(), |path| answers::path(path).file_path),
        folder: answers::path(&install.folder),
        file,
        removed_by,
    }
}
