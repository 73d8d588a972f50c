//! The commands that opencode runs for its snapshots, in their order, without opencode's own work
//! between them.
//!
//! A snapshot is a tree without a commit: `diff-files` and `ls-files`, side by side, list what changed,
//! and only that is passed to `add`. Going back is a `checkout` of the files that the turn touched, a
//! hundred at a time.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use serde::{Deserialize, Serialize};

use super::git::{count_names, create, shadow};
use super::{Driver, EditSource, Tool, WorkFolders};
use crate::Result;
use crate::edits::Edits;
use crate::measure::{Commands, Cost, ask_runner, run_request};

/// The first argument that makes this program carry out and measure the [`Request`] on standard
/// input.
pub(crate) const RUNNER: &str = "--measure-opencode";

pub(crate) struct Opencode {
    tree: PathBuf,
    store: PathBuf,
    /// Ids of the snapshots' trees, oldest first.
    trees: Vec<String>,
}

impl Opencode {
    pub(crate) fn new(site: &WorkFolders) -> Self {
        let (tree, store) = (site.tree.clone(), site.states.join("opencode"));
        Self { tree, store, trees: Vec::new() }
    }

    fn measure(&self, work: Work) -> Result<(Cost, String)> {
        let (tree, store) = (self.tree.clone(), self.store.clone());
        ask_runner(RUNNER, &Request { tree, store, work })
    }

    fn git(&self, words: &[&str]) -> Commands {
        shadow(&self.store, &self.tree).run(words)
    }

    fn last(&self) -> Result<&str> {
        Ok(self.trees.last().ok_or("opencode has no snapshot")?)
    }
}

impl Driver for Opencode {
    fn tool(&self) -> Tool {
        Tool::Opencode
    }

    fn reset(&mut self) -> Result<()> {
        self.trees.clear();
        create(&self.store, &self.tree)
    }

    fn make_point(&mut self) -> Result<Cost> {
        let is_first = self.trees.is_empty();
        let (cost, tree) = self.measure(Work::Track { is_first })?;
        self.trees.push(tree);
        Ok(cost)
    }

    fn files(&mut self) -> Result<usize> {
        count_names(&self.git(&["ls-tree", "-r", "-z", "--name-only", self.last()?]))
    }

    fn changed(&mut self) -> Result<usize> {
        let [.., before, last] = &*self.trees else {
            return Err("opencode has fewer than two snapshots".into());
        };
        count_names(&self.git(&["diff-tree", "-r", "-z", "--name-only", before, last]))
    }

    /// At the end of a turn opencode lists what the turn changed; going back restores those files.
    fn rewind(&mut self, edits: &Edits, _: EditSource) -> Result<Cost> {
        let to = self.last()?.to_owned();
        edits.make()?;
        self.make_point()?;
        let touched = self.git(&["diff-tree", "-r", "-z", "--name-only", &to, self.last()?]);
        let files = touched.text()?.split_terminator('\0').map(str::to_owned).collect();
        let (cost, _) = self.measure(Work::Revert { to, files })?;
        Ok(cost)
    }

    fn store(&self) -> &Path {
        &self.store
    }
}

#[derive(Serialize, Deserialize)]
struct Request {
    tree: PathBuf,
    store: PathBuf,
    work: Work,
}

#[derive(Serialize, Deserialize)]
enum Work {
    /// Passing a hundred thousand paths to `add` takes longer than minutes: the first one passes
    /// the folder, as opencode's forks do.
    Track {
        is_first: bool,
    },
    Revert {
        to: String,
        files: Vec<String>,
    },
}

/// The runner's side.
pub(crate) fn run_requests() -> Result<()> {
    run_request(|request: Request| match &request.work {
        Work::Track { is_first } => request.track(*is_first),
        Work::Revert { to, files } => request.revert(to, files).map(|()| String::new()),
    })
}

impl Request {
    fn track(&self, is_first: bool) -> Result<String> {
        let changed = self.git(&["diff-files", "--name-only", "-z", "--", "."])?;
        let new = self.git(&["ls-files", "--others", "--exclude-standard", "-z", "--", "."])?;
        let (changed, new) = (finish(changed, "")?.1, finish(new, "")?.1);
        let files: BTreeSet<&str> =
            changed.split_terminator('\0').chain(new.split_terminator('\0')).collect();
        if is_first {
            self.answer(&["add", "--all", "--sparse", "--", "."], "")?;
        } else if !files.is_empty() {
            let list: String = files.iter().flat_map(|file| [file, "\0"]).collect();
            self.check_ignored(&list)?;
            for file in &files {
                // opencode looks for files that are too large; deleted ones are not.
                fs::symlink_metadata(self.tree.join(file)).ok();
            }
            let add = ["add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"];
            self.answer(&add, &list)?;
        }
        Ok(self.answer(&["write-tree"], "")?.trim().to_owned())
    }

    /// By the rules of the user's own repository.
    fn check_ignored(&self, list: &str) -> Result<()> {
        let repository = self.tree.join(".git");
        let repository = repository.to_string_lossy();
        let words = ["--git-dir", &repository, "check-ignore", "--no-index", "--stdin", "-z"];
        match finish(self.git(&words)?, list)?.0.code() {
            // One: none is ignored.
            Some(1) => Ok(()),
            _ => Err("git check-ignore: files of the corpus are ignored".into()),
        }
    }

    fn revert(&self, to: &str, files: &[String]) -> Result<()> {
        for some in files.chunks(100) {
            let some: Vec<&str> = some.iter().map(String::as_str).collect();
            let list = [&["ls-tree", "--name-only", "-z", to, "--"], &*some].concat();
            let stored = self.answer(&list, "")?;
            let stored: BTreeSet<&str> = stored.split_terminator('\0').collect();
            let (restored, deleted): (Vec<&str>, Vec<&str>) =
                some.into_iter().partition(|file| stored.contains(file));
            self.answer(&[&["checkout", to, "--"], &*restored].concat(), "")?;
            for file in deleted {
                fs::remove_file(self.tree.join(file))?;
            }
        }
        Ok(())
    }

    fn answer(&self, words: &[&str], input: &str) -> Result<String> {
        match finish(self.git(words)?, input)? {
            (status, answer) if status.success() => Ok(answer),
            (status, _) => Err(format!("git {}: {status}", words[0]).into()),
        }
    }

    fn git(&self, words: &[&str]) -> Result<Child> {
        shadow(&self.store, &self.tree).run(words).spawn()
    }
}

fn finish(mut git: Child, input: &str) -> Result<(ExitStatus, String)> {
    git.stdin.take().ok_or("git has no input")?.write_all(input.as_bytes())?;
    let output = git.wait_with_output()?;
    Ok((output.status, String::from_utf8(output.stdout)?))
}
