//! Where and when a commit came into the repository, from its files: what was committed here, and since when
//! an object is there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Repository;
use super::head::{common_folder, git_folder};

impl Repository {
    /// The commits that were made in this repository or in one of its worktrees, by a commit, a merge, a
    /// rebase and so on: all that HEAD's log names for another reason than a move. `None`: there is no log.
    pub(crate) fn made_here(&self) -> Option<HashSet<String>> {
        let common = common_folder(&git_folder(self.top())?);
        let worktrees = std::fs::read_dir(common.join("worktrees"));
        let worktrees = worktrees.into_iter().flatten().flatten().map(|entry| entry.path());
        let logs = std::iter::once(common).chain(worktrees);
        let logs: Vec<Vec<u8>> =
            logs.filter_map(|folder| std::fs::read(folder.join("logs/HEAD")).ok()).collect();
        if logs.iter().all(Vec::is_empty) {
            return None;
        }
        let lines = logs.iter().flat_map(|log| log.split(|byte| *byte == b'\n'));
        Some(lines.filter_map(made_by).collect())
    }

    /// A time, in milliseconds since 1970, at which the object was in the repository already: git never dates
    /// an object back. `None`: its files do not tell.
    pub(crate) fn here_since(&self, object: &str) -> Option<i64> {
        let objects = common_folder(&git_folder(self.top())?).join("objects");
        let (folder, name) = object.split_at_checked(2)?;
        if let Some(time) = modified_at(&objects.join(folder).join(name)) {
            return Some(time);
        }
        if objects.join("info/alternates").exists() {
            return None;
        }
        // In one of these.
        let packs = std::fs::read_dir(objects.join("pack")).ok()?.flatten();
        let packs = packs.map(|entry| entry.path());
        let packs: Vec<PathBuf> =
            packs.filter(|path| path.extension().is_some_and(|it| it == "pack")).collect();
        let times: Option<Vec<i64>> = packs.iter().map(|pack| modified_at(pack)).collect();
        times?.into_iter().max()
    }
}

/// The commit that an entry of HEAD's log says was made: `OLD NEW NAME <EMAIL> TIME ZONE<tab>REASON`.
fn made_by(line: &[u8]) -> Option<String> {
    /// Reasons that name a commit which was there before.
    const MOVES: [&str; 7] =
        ["checkout:", "clone:", "reset:", "Fast-forward", "(start)", "(finish)", ": checkout "];
    let line = String::from_utf8_lossy(line);
    let (ids, reason) = line.split_once('\t').unwrap_or((&line, ""));
    let new = ids.split(' ').nth(1)?;
    (!MOVES.iter().any(|text| reason.contains(text))).then(|| new.to_owned())
}

fn modified_at(path: &Path) -> Option<i64> {
    let time: SystemTime = path.symlink_metadata().ok()?.modified().ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::made_by;

    #[test]
    fn a_commit_is_made_by_a_commit_and_not_by_a_move() {
        let made =
            |reason: &str| made_by(format!("a b Ada <a@b> 1 +0000\t{reason}").as_bytes()).is_some();
        for reason in [
            "commit: x",
            "commit (amend): x",
            "commit (initial): x",
            "rebase (pick): x",
            "pull --rebase (pick): x",
            "cherry-pick: x",
            "merge topic: Merge made by the 'ort' strategy.",
            "",
        ] {
            assert!(made(reason), "{reason}");
        }
        for reason in [
            "checkout: moving from a to b",
            "pull: Fast-forward",
            "merge topic: Fast-forward",
            "clone: from there",
            "reset: moving to origin/main",
            "rebase (start): checkout main",
            "rebase (finish): returning to refs/heads/topic",
        ] {
            assert!(!made(reason), "{reason}");
        }
    }
}
