//! The commands that opencode runs for its snapshots, in their order; what opencode itself does
//! between them is left out.
//!
//! A snapshot is a tree without a commit: `diff-files` and `ls-files` side by side say what changed,
//! and only that is named to `add`. Going back is a `checkout` of the files that the turn touched,
//! a hundred at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use takeback_bench::Result;
use takeback_bench::measure::{self, Commands, Cost, ask_runner, disk_usage};

use super::{Told, Tool, Who, git};
use crate::corpus::Corpus;
use crate::edits::Edits;

/// The word with which this program does opencode's work and measures it.
pub(crate) const RUNNER: &str = "--measure-opencode";

pub(crate) struct Opencode<'a> {
    corpus: &'a Corpus,
    state: PathBuf,
    /// The trees of the snapshots, oldest first.
    trees: Vec<String>,
}

impl<'a> Opencode<'a> {
    pub(crate) fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, state: corpus.states.join("opencode"), trees: Vec::new() }
    }

    fn measure(&self, work: Work) -> Result<(Cost, String)> {
        let environment = git::environment(&self.state, &self.corpus.tree);
        let errand = Errand { tree: self.corpus.tree.clone(), environment, work };
        ask_runner(&self.corpus.runner(), RUNNER, &errand)
    }

    fn commands(&self, words: &[&str]) -> Commands {
        Commands {
            runner: self.corpus.runner(),
            program: PathBuf::from("git"),
            runs: vec![words.iter().map(|&word| word.to_owned()).collect()],
            folder: self.corpus.tree.clone(),
            environment: git::environment(&self.state, &self.corpus.tree),
        }
    }

    fn last(&self) -> Result<&str> {
        Ok(self.trees.last().ok_or("opencode has no snapshot")?)
    }
}

impl Tool for Opencode<'_> {
    fn who(&self) -> Who {
        Who::Opencode
    }

    fn empty(&mut self) -> Result<()> {
        self.trees.clear();
        self.corpus.empty_state("opencode")?;
        self.commands(&["init", "-q"]).answer()?;
        self.commands(&["config", "gc.auto", "0"]).answer()?;
        git::exclude_jj(&self.state)
    }

    fn snapshot(&mut self) -> Result<Cost> {
        let first = self.trees.is_empty();
        let (cost, tree) = self.measure(Work::Track { first })?;
        self.trees.push(tree);
        Ok(cost)
    }

    fn files(&mut self) -> Result<usize> {
        git::names(&self.commands(&["ls-tree", "-r", "-z", "--name-only", self.last()?]))
    }

    fn changed(&mut self) -> Result<usize> {
        let [.., before, last] = &*self.trees else {
            return Err("opencode has one snapshot or none".into());
        };
        git::names(&self.commands(&["diff-tree", "-r", "-z", "--name-only", before, last]))
    }

    /// When the turn ends, opencode looks at what it changed; that is what it goes back to.
    fn take_back(&mut self, edits: &Edits, _: Told) -> Result<Cost> {
        let to = self.last()?.to_owned();
        edits.make()?;
        self.snapshot()?;
        let touched = self.commands(&["diff-tree", "-r", "-z", "--name-only", &to, self.last()?]);
        let files = touched.answer()?.split_terminator('\0').map(str::to_owned).collect();
        let (cost, _) = self.measure(Work::Revert { to, files })?;
        Ok(cost)
    }

    fn size(&self) -> Result<u64> {
        disk_usage(&self.state)
    }
}

#[derive(Serialize, Deserialize)]
struct Errand {
    tree: PathBuf,
    environment: BTreeMap<String, String>,
    work: Work,
}

#[derive(Serialize, Deserialize)]
enum Work {
    /// Naming a hundred thousand paths to `add` does not end in minutes: the first snapshot names
    /// the folder, as opencode's forks do.
    Track {
        first: bool,
    },
    Revert {
        to: String,
        files: Vec<String>,
    },
}

/// The runner's part.
pub(crate) fn run() -> Result<()> {
    measure::run(|errand: Errand| match &errand.work {
        Work::Track { first } => errand.track(*first),
        Work::Revert { to, files } => errand.revert(to, files).map(|()| String::new()),
    })
}

impl Errand {
    fn track(&self, first: bool) -> Result<String> {
        let changed = self.git(&["diff-files", "--name-only", "-z", "--", "."])?;
        let new = self.git(&["ls-files", "--others", "--exclude-standard", "-z", "--", "."])?;
        let listed = |child: Child| -> Result<String> {
            Ok(String::from_utf8(child.wait_with_output()?.stdout)?)
        };
        let (changed, new) = (listed(changed)?, listed(new)?);
        let files: BTreeSet<&str> =
            changed.split_terminator('\0').chain(new.split_terminator('\0')).collect();
        if first {
            self.answer(&["add", "--all", "--sparse", "--", "."], None)?;
        } else if !files.is_empty() {
            let list: String = files.iter().flat_map(|file| [file, "\0"]).collect();
            self.look_for_ignored(&list)?;
            for file in &files {
                // Whether it is too large; a deleted one is not.
                fs::symlink_metadata(self.tree.join(file)).ok();
            }
            let from_input = ["--pathspec-from-file=-", "--pathspec-file-nul"];
            self.answer(&[&["add", "--all", "--sparse"], &from_input[..]].concat(), Some(&list))?;
        }
        Ok(self.answer(&["write-tree"], None)?.trim().to_owned())
    }

    /// By the rules of the user's own repository.
    fn look_for_ignored(&self, list: &str) -> Result<()> {
        let own = self.tree.join(".git");
        let own = own.to_string_lossy();
        let words = ["--git-dir", &own, "check-ignore", "--no-index", "--stdin", "-z"];
        let mut child = self.git(&words)?;
        child.stdin.take().ok_or("no input")?.write_all(list.as_bytes())?;
        let output = child.wait_with_output()?;
        // One: none is ignored.
        if output.status.code() == Some(1) { Ok(()) } else { Err("files are ignored".into()) }
    }

    fn revert(&self, to: &str, files: &[String]) -> Result<()> {
        for some in files.chunks(100) {
            let some: Vec<&str> = some.iter().map(String::as_str).collect();
            let there =
                self.answer(&[&["ls-tree", "--name-only", "-z", to, "--"], &*some].concat(), None)?;
            let there: BTreeSet<&str> = there.split_terminator('\0').collect();
            let (restored, deleted): (Vec<&str>, Vec<&str>) =
                some.into_iter().partition(|file| there.contains(file));
            self.answer(&[&["checkout", to, "--"], &*restored].concat(), None)?;
            for file in deleted {
                fs::remove_file(self.tree.join(file))?;
            }
        }
        Ok(())
    }

    fn answer(&self, words: &[&str], input: Option<&str>) -> Result<String> {
        let mut child = self.git(words)?;
        let mut stdin = child.stdin.take().ok_or("no input")?;
        stdin.write_all(input.unwrap_or_default().as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("git {} failed", words[0]).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    fn git(&self, words: &[&str]) -> Result<Child> {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.tree).env_clear().envs(&self.environment);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        // What git says of a checkout goes nowhere; a failure shows in its end.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(command.spawn()?)
    }
}
