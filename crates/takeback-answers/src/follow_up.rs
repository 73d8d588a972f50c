//! What a rewind leaves to the user: git's HEAD, and folders that are not recorded. Also as text, so that
//! every program says the same.

use serde::{Deserialize, Serialize};

use crate::{FilePath, GitState};

/// What a rewind leaves to the user; flattened into the receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FollowUp {
    /// Git, if HEAD has moved since the restored state. Takeback does not move it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitFollowUp>,
    /// Commands that make folders again which are not recorded, or bring them in line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<InstallHint>,
}

/// What was checked out in git before and after something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HeadMove {
    /// Before it.
    pub before: GitState,
    /// After it.
    pub after: GitState,
}

/// Git after a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GitFollowUp {
    /// What was checked out in the restored state, and what is checked out now.
    #[serde(flatten)]
    pub head: HeadMove,
    /// What `git status` shows of the files that the rewind changed. Left out before the rewind, if they
    /// do not differ from the commit, and if git gave no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<GitStatus>,
}

/// What `git status` shows of the files that a rewind changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GitStatus {
    /// Files that differ from the checked out commit.
    pub modified: usize,
    /// Files that are staged and not in the commit.
    pub added: usize,
    /// Files that the commit has and the folder does not.
    pub deleted: usize,
    /// Files that git does not know.
    pub untracked: usize,
    /// The commits since the restored state that changed these files, newest first; empty if HEAD does not
    /// continue what was checked out then.
    pub commits: Vec<CrossedCommit>,
    /// Drops the commits and keeps all files; `null` if it would drop more than what agents committed, or
    /// commits that a remote or a tag has.
    pub reset: Option<String>,
}

/// A commit whose files were taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CrossedCommit {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub summary: String,
    /// The session during whose `git commit` it was made; `null` if it is not known to be an agent's.
    pub session: Option<String>,
}

/// A command for a folder that is not recorded, such as `node_modules`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InstallHint {
    /// What to run.
    pub command: String,
    /// Where to run it, from the root; `.` is the root itself.
    pub directory: String,
    /// The folder that is not recorded.
    pub folder: FilePath,
    /// The file that the rewind changes and the folder is made from; `null` if the folder is missing.
    pub file: Option<FilePath>,
    /// The command that named the folder, if it is missing.
    pub removed_by: Option<String>,
}

/// Characters of a commit's message or of a command that are shown.
const TEXT_MAX: usize = 60;

/// Digits of a commit's id that are shown.
const DIGITS: usize = 8;

impl FollowUp {
    /// One line for each thing to know or do, in plain words.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let git = self.git.iter().flat_map(GitFollowUp::lines);
        git.chain(self.hints.iter().map(InstallHint::line)).collect()
    }
}

impl HeadMove {
    /// `main 1a2b3c4d → 5d6e7f80`, `main → feature 5d6e7f80`.
    #[must_use]
    pub fn describe(&self) -> String {
        let (before, after) = (&self.before, &self.after);
        let moved = match before.branch == after.branch {
            true => format!("{} → {}", before.describe(), commit(after)),
            false if before.head == after.head || before.branch.is_none() => {
                format!("{} → {}", name(before), after.describe())
            }
            false => format!("{} → {}", before.describe(), after.describe()),
        };
        plain(&moved)
    }
}

impl GitState {
    /// `main 1a2b3c4d`
    fn describe(&self) -> String {
        match self.branch {
            Some(_) => format!("{} {}", name(self), commit(self)),
            None => commit(self).to_owned(),
        }
    }
}

fn name(state: &GitState) -> &str {
    state.branch.as_deref().unwrap_or_else(|| commit(state))
}

fn commit(state: &GitState) -> &str {
    state.head.as_deref().map_or("no commit", short)
}

fn short(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}

impl GitFollowUp {
    fn lines(&self) -> Vec<String> {
        let moved = || {
            let moved = self.head.describe();
            format!("HEAD moved since then: {moved}. Takeback does not move it back.")
        };
        let Some(status) = &self.status else { return vec![moved()] };
        let mut line = format!("`git status` shows {}", status.counts());
        if let [newest, older @ ..] = status.commits.as_slice() {
            let is_agents = status.commits.iter().all(|commit| commit.session.is_some());
            let whose = if is_agents { "the agent's " } else { "" };
            let (newest, commits) = (newest.describe(), older.len() + 1);
            line += &match commits {
                1 => format!(": HEAD still has {whose}commit {newest}"),
                _ => format!(": HEAD still has {whose}{commits} commits, the newest is {newest}"),
            };
        }
        line += ".";
        if let Some(reset) = &status.reset {
            let them = if status.commits.len() == 1 { "the commit" } else { "the commits" };
            line += &format!(" To drop {them} and keep the files: `{reset}`.");
        }
        match status.commits.is_empty() || self.head.before.branch != self.head.after.branch {
            true => vec![moved(), line],
            false => vec![line],
        }
    }
}

impl GitStatus {
    /// `3 of these files as modified and 1 as deleted`
    fn counts(&self) -> String {
        let counts = [
            (self.modified, "modified"),
            (self.added, "added"),
            (self.deleted, "deleted"),
            (self.untracked, "untracked"),
        ];
        let counts = counts.into_iter().filter(|(files, _)| *files > 0);
        let mut words: Vec<String> =
            counts.map(|(files, status)| format!("{files} as {status}")).collect();
        if let Some(first) = words.first_mut() {
            *first = first.replacen(" as ", " of these files as ", 1);
        }
        let last = words.pop().unwrap_or_default();
        if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
    }
}

impl CrossedCommit {
    /// `1a2b3c4d “Add discounts”`
    fn describe(&self) -> String {
        format!("{} “{}”", short(&self.id), cut(&self.summary))
    }
}

impl InstallHint {
    fn line(&self) -> String {
        let folder = plain(&self.folder.file_path);
        let place = match self.directory.as_str() {
            "." => String::new(),
            directory => format!(" in {}/", plain(directory)),
        };
        let command = &self.command;
        match (&self.file, &self.removed_by) {
            (Some(file), _) => format!(
                "{folder} is not recorded and may not match {}: run `{command}`{place}.",
                plain(&file.file_path)
            ),
            (None, Some(removed_by)) => format!(
                "{folder} is missing and not recorded (`{}` ran since then): run `{command}`{place}.",
                cut(removed_by)
            ),
            (None, None) => format!("{folder} is not recorded: run `{command}`{place}."),
        }
    }
}

/// Without line breaks and other control characters: it comes from a repository or an agent.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn cut(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(branch: Option<&str>, head: Option<&str>) -> GitState {
        GitState { head: head.map(str::to_owned), branch: branch.map(str::to_owned) }
    }

    #[test]
    fn a_move_names_what_differs() {
        let (one, two) = (Some("1111111111"), Some("2222222222"));
        let (main, feature) = (Some("main"), Some("feature"));
        for (before, after, expected) in [
            (state(main, one), state(main, two), "main 11111111 → 22222222"),
            (state(main, one), state(feature, one), "main → feature 11111111"),
            (state(main, one), state(feature, two), "main 11111111 → feature 22222222"),
            (state(main, one), state(None, two), "main 11111111 → 22222222"),
            (state(main, one), state(None, one), "main → 11111111"),
            (state(None, one), state(main, two), "11111111 → main 22222222"),
            (state(None, one), state(None, two), "11111111 → 22222222"),
            (state(main, None), state(main, one), "main no commit → 11111111"),
        ] {
            assert_eq!(HeadMove { before, after }.describe(), expected);
        }
    }

    #[test]
    fn the_lines_say_what_is_known_and_no_more() {
        let agents = |session: Option<&str>, summary: &str| CrossedCommit {
            id: "2222222222".to_owned(),
            summary: summary.to_owned(),
            session: session.map(str::to_owned),
        };
        let lines = |status: GitStatus| {
            let head = HeadMove {
                before: state(Some("main"), Some("1111111111")),
                after: state(Some("main"), Some("2222222222")),
            };
            let git = Some(GitFollowUp { head, status: Some(status) });
            FollowUp { git, hints: Vec::new() }.lines()
        };
        let counts = GitStatus { modified: 3, deleted: 1, ..GitStatus::default() };
        assert_eq!(
            lines(counts.clone()),
            [
                "HEAD moved since then: main 11111111 → 22222222. Takeback does not move it back.",
                "`git status` shows 3 of these files as modified and 1 as deleted."
            ]
        );
        let (commits, reset) = (vec![agents(Some("s"), "Add")], Some("git reset 1".to_owned()));
        assert_eq!(
            lines(GitStatus { commits, reset, ..counts }),
            [
                "`git status` shows 3 of these files as modified and 1 as deleted: HEAD still has the \
              agent's commit 22222222 “Add”. To drop the commit and keep the files: `git reset 1`."
            ]
        );
        let commits = vec![agents(Some("s"), "bad\n\u{1b}[31mnews"), agents(None, "")];
        assert_eq!(
            lines(GitStatus { untracked: 1, commits, ..GitStatus::default() }),
            [
                "`git status` shows 1 of these files as untracked: HEAD still has 2 commits, the newest \
              is 22222222 “bad  [31mnews”."
            ]
        );
    }
}
