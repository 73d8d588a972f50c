//! What a scan of the oracle's tree finds.

use super::*;

#[derive(Default)]
pub(super) struct Scan {
    pub(super) ignored: Vec<&'static str>,
    /// The same, by rules that hide what is new.
    pub(super) hidden: Vec<&'static str>,
    pub(super) found: BTreeMap<String, (Seen, Option<Thing>)>,
    pub(super) listed: BTreeSet<String>,
    pub(super) skipped: BTreeSet<String>,
}

/// What holds for all that is in a folder.
#[derive(Default, Clone, Copy)]
pub(super) struct Inside {
    pub(super) ignored: bool,
    pub(super) hidden: bool,
    /// It was not there at the last scan.
    pub(super) is_new: bool,
}

impl Scan {
    pub(super) fn folder(&mut self, oracle: &Oracle, folder: &str, inside: Inside) {
        for (path, thing) in &oracle.disk {
            if folders_above(path).next().unwrap_or_default() != folder {
                continue;
            }
            let known = oracle.known.get(path);
            let is_folder = matches!(thing, Thing::Folder { .. });
            let names = |folders: &[&str]| is_folder && folders.contains(&path.as_str());
            let ignored = inside.ignored || names(&self.ignored);
            let hidden = inside.hidden || names(&self.hidden);
            let before = match known {
                Some(thing) => Seen::A(thing.clone()),
                None if oracle.skipped.contains(path) => Seen::Unknown,
                None if inside.is_new || oracle.listed.contains(folder) => Seen::Nothing,
                None => Seen::Unknown,
            };
            // What came just now is hidden only by rules that no agent wrote.
            let is_out = if before == Seen::Nothing { ignored && hidden } else { ignored };
            if known.is_none() && is_out {
                self.skipped.insert(path.clone());
                continue;
            }
            if is_folder {
                let is_new = !matches!(before, Seen::A(Thing::Folder { .. }) | Seen::Unknown);
                self.folder(oracle, path, Inside { ignored, hidden, is_new });
            }
            if before != Seen::A(thing.clone()) {
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
