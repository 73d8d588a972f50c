//! What the log does not cover, for a fork that is to have everything: build output, version control's own
//! files, large ignored files. It is copied as it is now.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::FileType;
use takeback_store::WorkPath;

use super::plan::{FileSource, ForkPlan, PlannedFile};
use super::{LeftOut, MissingReason};
use crate::platform::folder::open_file;
use crate::workspace::Workspace;
use crate::worktree::OutReason;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::below;
use crate::worktree::root::{Access, Root, names_in};

/// Moves everything that can be copied from what the plan leaves out into the plan.
pub(super) fn add(workspace: &Workspace, plan: &mut ForkPlan) {
    let root = &workspace.root;
    let files = plan.files.iter().map(|file| &file.path);
    let planned = files.chain(plan.links.iter().map(|(path, _)| path)).cloned().collect();
    let mut walk = ExtraWalk { root, plan, planned };
    for (path, why) in std::mem::take(&mut walk.plan.left_out) {
        match why {
            LeftOut::NotCovered(
                OutReason::Special
                | OutReason::OtherFileSystem
                | OutReason::Unreachable
                | OutReason::Reserved,
            ) => walk.plan.left_out.push((path, why)),
            LeftOut::VersionControl if leads_elsewhere(root, &path) => {
                walk.plan.left_out.push((path, LeftOut::LinkedRepository));
            }
            LeftOut::NotCovered(reason) => {
                walk.plan.extras.push((path.clone(), reason));
                walk.add(&path);
            }
            LeftOut::VersionControl | LeftOut::LinkedRepository => walk.add(&path),
        }
    }
    plan.files.sort_by(|a, b| a.path.cmp(&b.path));
    plan.add_parents();
}

struct ExtraWalk<'a> {
    root: &'a Root,
    plan: &'a mut ForkPlan,
    /// The paths where the log has a file or link at the point.
    planned: BTreeSet<WorkPath>,
}

impl ExtraWalk<'_> {
    fn add(&mut self, path: &WorkPath) {
        let mut open = vec![path.clone()];
        while let Some(path) = open.pop() {
            // The point decides, where it had something else at this path.
            if std::iter::once(path.clone())
                .chain(path.ancestors())
                .any(|at| self.planned.contains(&at))
            {
                continue;
            }
            let seen = self.root.parent_of(&path).and_then(|dir| stat(dir, path.file_name()));
            match seen {
                Ok(None) => {}
                Ok(Some(seen)) => match seen.kind {
                    FileType::Directory if seen.device != self.root.device => {
                        let why = LeftOut::NotCovered(OutReason::OtherFileSystem);
                        self.plan.left_out.push((path, why));
                    }
                    FileType::Directory => {
                        let names =
                            self.root.folder(path.as_bytes(), Access::Read).and_then(names_in);
                        match names {
                            Ok(names) => {
                                open.extend(names.iter().filter_map(|n| below(path.as_bytes(), n)));
                                self.plan.folders.entry(path).or_insert(seen.mode());
                            }
                            Err(_) => self.miss(path),
                        }
                    }
                    _ if self.plan.folders.contains_key(&path) => {}
                    FileType::Symlink => {
                        let target = self.root.parent_of(&path).and_then(|dir| {
                            Ok(rustix::fs::readlinkat(dir, path.file_name(), Vec::new())?)
                        });
                        match target {
                            Ok(target) => self.plan.links.push((path, target.into_bytes())),
                            Err(_) => self.miss(path),
                        }
                    }
                    FileType::RegularFile => {
                        self.plan.files.push(PlannedFile { path, source: FileSource::Disk });
                    }
                    _ => {
                        let why = LeftOut::NotCovered(OutReason::Special);
                        self.plan.left_out.push((path, why));
                    }
                },
                Err(_) => self.miss(path),
            }
        }
    }

    fn miss(&mut self, path: WorkPath) {
        self.plan.missing.push((path, MissingReason::Unreadable));
    }
}

/// Whether it is a `.git` file that names a repository outside the workspace, or by an absolute path.
fn leads_elsewhere(root: &Root, path: &WorkPath) -> bool {
    const LONGEST: u64 = 64 << 10;
    let Ok(dir) = root.parent_of(path) else { return false };
    let is_file = stat(&dir, path.file_name())
        .is_ok_and(|seen| seen.is_some_and(|seen| seen.kind == FileType::RegularFile));
    if !is_file {
        return false;
    }
    let mut text = Vec::new();
    let read = open_file(&dir, path.file_name())
        .map_err(std::io::Error::from)
        .and_then(|file| file.take(LONGEST).read_to_end(&mut text));
    let Some(target) = text.trim_ascii_end().strip_prefix(b"gitdir: ") else { return true };
    read.is_err() || !stays_inside(path, Path::new(std::ffi::OsStr::from_bytes(target)))
}

/// Whether a relative path that starts in the folder of `path` never leaves the workspace.
fn stays_inside(path: &WorkPath, target: &Path) -> bool {
    let mut depth = path.depth();
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return false,
            },
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_file_stays_inside_only_by_a_relative_path() {
        for (path, target, inside) in [
            (".git", "/elsewhere/.git/worktrees/x", false),
            (".git", "../main/.git", false),
            ("lib/.git", "../.git/modules/lib", true),
            ("lib/.git", "../../.git/modules/lib", false),
            ("a/lib/.git", "../../.git/./modules/lib", true),
            ("a/lib/.git", "../../../a/.git", false),
        ] {
            let path = WorkPath::new(path).expect("a plain path");
            assert_eq!(stays_inside(&path, Path::new(target)), inside, "{target}");
        }
    }
}
