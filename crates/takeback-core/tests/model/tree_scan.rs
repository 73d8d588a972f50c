//! A scan of the oracle's tree.

use super::*;

#[derive(Default)]
pub(super) struct Scan {
    pub(super) ignored: Vec<&'static str>,
    /// Folders ignored by the rules that hide new files.
    pub(super) hidden: Vec<&'static str>,
    pub(super) found: BTreeMap<String, (PathState, Option<Thing>)>,
    pub(super) listed: BTreeSet<String>,
    pub(super) skipped: BTreeSet<String>,
}

/// Properties shared by everything in a folder.
#[derive(Default, Clone, Copy)]
pub(super) struct FolderContext {
    pub(super) ignored: bool,
    pub(super) hidden: bool,
    /// Whether the folder was absent at the last scan.
    pub(super) is_new: bool,
}

impl Scan {
    pub(super) fn scan_folder(&mut self, oracle: &Oracle, folder: &str, context: FolderContext) {
        for (path, thing) in &oracle.disk {
            if folders_above(path).next().unwrap_or_default() != folder {
                continue;
            }
            let known = oracle.known.get(path);
            let is_folder = matches!(thing, Thing::Folder { .. });
            let names = |folders: &[&str]| is_folder && folders.contains(&path.as_str());
            let ignored = context.ignored || names(&self.ignored);
            let hidden = context.hidden || names(&self.hidden);
            let before = match known {
                Some(thing) => PathState::Present(thing.clone()),
                None if oracle.skipped.contains(path) => PathState::Unknown,
                None if context.is_new || oracle.listed.contains(folder) => PathState::Absent,
                None => PathState::Unknown,
            };
            // New files are hidden only by rules that no agent wrote.
            let is_out = if before == PathState::Absent { ignored && hidden } else { ignored };
            if known.is_none() && is_out {
                self.skipped.insert(path.clone());
                continue;
            }
            if is_folder {
                let is_new = !matches!(
                    before,
                    PathState::Present(Thing::Folder { .. }) | PathState::Unknown
                );
                self.scan_folder(oracle, path, FolderContext { ignored, hidden, is_new });
            }
            if before != PathState::Present(thing.clone()) {
                self.found.insert(path.clone(), (before, Some(thing.clone())));
            }
        }
        self.listed.insert(folder.to_owned());
    }
}

pub(super) fn ignored_folders(rules: Option<&Thing>) -> Vec<&'static str> {
    match rules {
        Some(Thing::File { bytes, .. }) => match bytes.as_slice() {
            b"ig/\n" | b"/ig/\n" => vec!["ig"],
            b"d/\n" => vec!["d"],
            b"*.log/\n" => vec!["k.log"],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
