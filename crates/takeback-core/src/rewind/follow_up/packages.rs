//! Folders that a package manager makes from a file of the project: they are not recorded, so a rewind of
//! the file leaves them as they are, and one that was deleted does not come back.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use takeback_store::{CallKind, CallState, Point, StoreError, WorkPath};

use crate::rewind::receipt::Receipt;
use crate::workspace::Workspace;
use crate::worktree::index::{Index, folder_of};
use crate::worktree::scope::may_be_derived;

/// A command that makes a folder again, or brings it in line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallHint {
    /// What to run.
    pub command: String,
    /// Where to run it; `None`: in the root.
    pub directory: Option<WorkPath>,
    /// The folder that is not recorded.
    pub folder: WorkPath,
    /// Why.
    pub reason: InstallReason,
}

/// Why a folder has to be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallReason {
    /// The rewind changes this file, from which the folder is made.
    Stale(WorkPath),
    /// The folder is missing, and this command named it.
    Removed(String),
}

/// A package manager.
struct PackageTool {
    /// The file that has the exact versions. Where there is none: the manifest.
    lock: &'static str,
    /// The file that a project of this kind always has.
    manifest: &'static str,
    /// What it makes, next to the manifest; the first that exists counts.
    folders: &'static [&'static str],
    command: &'static str,
}

const fn tool(
    lock: &'static str,
    manifest: &'static str,
    folders: &'static [&'static str],
    command: &'static str,
) -> PackageTool {
    PackageTool { lock, manifest, folders, command }
}

const NODE: &[&str] = &["node_modules"];
const PYTHON: &[&str] = &[".venv", "venv"];

/// Of several with the same manifest, the one without a lock file is last. Cargo and Go modules are not
/// here: they follow their lock files by themselves.
const TOOLS: &[PackageTool] = &[
    tool("pnpm-lock.yaml", "package.json", NODE, "pnpm install"),
    tool("yarn.lock", "package.json", NODE, "yarn install"),
    tool("bun.lock", "package.json", NODE, "bun install"),
    tool("bun.lockb", "package.json", NODE, "bun install"),
    tool("package-lock.json", "package.json", NODE, "npm install"),
    tool("npm-shrinkwrap.json", "package.json", NODE, "npm install"),
    tool("package.json", "package.json", NODE, "npm install"),
    tool("uv.lock", "pyproject.toml", PYTHON, "uv sync"),
    tool("poetry.lock", "pyproject.toml", PYTHON, "poetry install"),
    tool("pdm.lock", "pyproject.toml", PYTHON, "pdm install"),
    tool("Pipfile.lock", "Pipfile", PYTHON, "pipenv sync"),
    tool("requirements.txt", "requirements.txt", PYTHON, "pip install -r requirements.txt"),
    tool("Gemfile.lock", "Gemfile", &["vendor/bundle"], "bundle install"),
    tool("composer.lock", "composer.json", &["vendor"], "composer install"),
    tool("go.sum", "go.mod", &["vendor"], "go mod vendor"),
    tool("mix.lock", "mix.exs", &["deps"], "mix deps.get"),
    tool("Podfile.lock", "Podfile", &["Pods"], "pod install"),
];

impl PackageTool {
    fn has_lock(&self) -> bool {
        self.lock != self.manifest
    }
}

/// Folders that are there and were made from a file that the rewind changes.
pub(super) fn stale_folders(
    workspace: &Workspace,
    receipt: &Receipt,
) -> Result<Vec<InstallHint>, StoreError> {
    let tree = TreeAfter::of(workspace, receipt);
    let mut hints: Vec<InstallHint> = Vec::new();
    for (directory, names) in &tree.changed {
        for tool in TOOLS.iter().filter(|tool| names.contains(tool.lock)) {
            let is_main = tool.has_lock() || !tree.has_other_lock(directory, tool);
            if !is_main || !tree.exists(&join(directory, tool.manifest)) {
                continue;
            }
            let folders = tool.folders.iter().map(|folder| join(directory, folder));
            let Some(folder) = folders.into_iter().find(|folder| tree.has_folder(folder)) else {
                continue;
            };
            let is_new = hints.iter().all(|hint| hint.folder.as_bytes() != folder);
            let Ok(file) = WorkPath::new(join(directory, tool.lock)) else { continue };
            if is_new && !tree.is_recorded(&folder)? {
                hints.extend(hint(tool, directory, &folder, InstallReason::Stale(file)));
            }
        }
    }
    Ok(hints)
}

/// Folders that are missing and that a command named which deletes folders.
pub(super) fn add_removed_folders(
    workspace: &Workspace,
    then: &Point,
    receipt: &Receipt,
    hints: &mut Vec<InstallHint>,
) -> Result<(), StoreError> {
    let tree = TreeAfter::of(workspace, receipt);
    for call in workspace.store.calls_since(then.created_at)? {
        let CallKind::Shell { command: Some(command), .. } = call.kind else { continue };
        if call.state == CallState::Rejected {
            continue;
        }
        for path in deleted_paths(&command, workspace.root.path()) {
            let Some((directory, tool)) = tree.tool_of(&path) else { continue };
            let is_new = hints.iter().all(|hint| hint.folder.as_bytes() != path);
            if is_new && !tree.has_folder(&path) && !tree.is_recorded(&path)? {
                let ran = InstallReason::Removed(command.clone());
                hints.extend(hint(tool, directory, &path, ran));
            }
        }
    }
    Ok(())
}

fn hint(
    tool: &PackageTool,
    directory: &[u8],
    folder: &[u8],
    reason: InstallReason,
) -> Option<InstallHint> {
    Some(InstallHint {
        command: tool.command.to_owned(),
        directory: WorkPath::new(directory).ok(),
        folder: WorkPath::new(folder).ok()?,
        reason,
    })
}

/// The words of a command that name a path from the root, if the command deletes.
fn deleted_paths(command: &str, root: &Path) -> Vec<Vec<u8>> {
    const DELETING: [&str; 3] = ["rm", "rimraf", "rmdir"];
    let separators = |c: char| c.is_whitespace() || ";&|()".contains(c);
    let words = || command.split(separators).map(|word| word.trim_matches(['"', '\'']));
    let program = |word: &str| DELETING.contains(&word.rsplit('/').next().unwrap_or(word));
    if !words().any(program) {
        return Vec::new();
    }
    let from_root = words().filter_map(|word| {
        let path = Path::new(word);
        let path = path.strip_prefix(root).unwrap_or(path);
        let path = path.strip_prefix(".").unwrap_or(path).to_str()?.trim_end_matches('/');
        (!path.starts_with('/') && !path.split('/').any(|part| part == ".."))
            .then(|| path.as_bytes().to_vec())
    });
    from_root.collect()
}

/// The workspace as it is after a rewind, or as it would be.
struct TreeAfter<'a> {
    workspace: &'a Workspace,
    /// Lock files and manifests that the rewind changes, by folder.
    changed: BTreeMap<Vec<u8>, BTreeSet<&'static str>>,
    written: BTreeSet<&'a [u8]>,
    deleted: BTreeSet<&'a [u8]>,
    index: OnceCell<Index>,
}

impl<'a> TreeAfter<'a> {
    fn of(workspace: &'a Workspace, receipt: &'a Receipt) -> Self {
        let mut changed: BTreeMap<Vec<u8>, BTreeSet<&'static str>> = BTreeMap::new();
        let (mut written, mut deleted) = (BTreeSet::new(), BTreeSet::new());
        let mut add = |path: &'a WorkPath, to: &mut BTreeSet<&'a [u8]>| {
            if path.is_outside() {
                return;
            }
            let name = path.file_name();
            for tool in TOOLS {
                for file in [tool.lock, tool.manifest] {
                    if file.as_bytes() == name {
                        changed.entry(folder_of(path).to_vec()).or_default().insert(file);
                        to.insert(path.as_bytes());
                    }
                }
            }
        };
        let merged = receipt.merged_files.iter().map(|note| &note.path);
        receipt.restored_files.iter().chain(merged).for_each(|path| add(path, &mut written));
        receipt.deleted_files.iter().for_each(|path| add(path, &mut deleted));
        Self { workspace, changed, written, deleted, index: OnceCell::new() }
    }

    fn exists(&self, path: &[u8]) -> bool {
        self.written.contains(path)
            || (!self.deleted.contains(path)
                && WorkPath::new(path)
                    .is_ok_and(|path| self.workspace.absolute(&path).symlink_metadata().is_ok()))
    }

    fn has_folder(&self, path: &[u8]) -> bool {
        WorkPath::new(path).is_ok_and(|path| self.workspace.absolute(&path).is_dir())
    }

    /// Whether another package manager has a lock file here for the same manifest.
    fn has_other_lock(&self, directory: &[u8], tool: &PackageTool) -> bool {
        let others = TOOLS.iter().filter(|other| other.manifest == tool.manifest);
        others.filter(|other| other.has_lock()).any(|other| {
            let is_deleted = || {
                let names = self.changed.get(directory);
                names.is_some_and(|names| names.contains(other.lock))
            };
            self.exists(&join(directory, other.lock)) || is_deleted()
        })
    }

    /// The package manager that makes this folder, and where it runs.
    fn tool_of<'p>(&self, folder: &'p [u8]) -> Option<(&'p [u8], &'static PackageTool)> {
        let mut makers = TOOLS.iter().filter_map(|tool| {
            let name = tool.folders.iter().find(|name| is_named(folder, name.as_bytes()))?;
            let directory = &folder[..folder.len() - name.len()];
            Some((directory.strip_suffix(b"/").unwrap_or(directory), tool))
        });
        makers.find(|(directory, tool)| {
            self.exists(&join(directory, tool.lock)) && self.exists(&join(directory, tool.manifest))
        })
    }

    /// Whether the log has what is in a folder, so that a rewind restores it.
    fn is_recorded(&self, folder: &[u8]) -> Result<bool, StoreError> {
        let index = match self.index.get() {
            Some(index) => index,
            None => {
                let file = self.workspace.index_file();
                let loaded = Index::load(&file, &*self.workspace.store)?;
                self.index.get_or_init(|| loaded)
            }
        };
        let Ok(path) = WorkPath::new(folder) else { return Ok(true) };
        Ok(match index.known(&path) {
            Some(known) => !(known.is_skipped() || known.is_left()),
            None => !may_be_derived(&self.workspace.scope, path.file_name()),
        })
    }
}

/// Whether a path ends with this name, which may have several parts.
fn is_named(path: &[u8], name: &[u8]) -> bool {
    path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

fn join(directory: &[u8], name: &str) -> Vec<u8> {
    match directory {
        [] => name.as_bytes().to_vec(),
        directory => [directory, b"/", name.as_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_deletes_names_deleted_paths() {
        let paths = |command: &str| -> Vec<String> {
            let paths = deleted_paths(command, Path::new("/w"));
            paths.into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
        };
        assert_eq!(paths("ls node_modules"), [""; 0]);
        for command in
            ["rm -rf ./node_modules/", "npx rimraf '/w/node_modules'", "cd x;/bin/rm node_modules"]
        {
            assert!(paths(command).contains(&"node_modules".to_owned()), "{command}");
        }
        assert_eq!(paths("rm -r ../node_modules /tmp/node_modules"), ["rm", "-r"]);
    }
}
