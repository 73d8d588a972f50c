//! The same with git: sessions and people commit, switch, stash, merge, rebase and rewrite, and bob commits to
//! branches out of Takeback's sight.

use std::collections::BTreeMap;

use super::super::project::{Project, git_as, try_git};
use super::{AUTHORS, Model, STEPS, files, for_each_seed, write};

/// How many random histories, unless `TAKEBACK_TEST_RUNS` says otherwise.
const RUNS: u64 = 3;

const BOB: &str = "commit of bob";

#[test]
fn blame_agrees_with_a_plain_list_whatever_git_does() {
    for_each_seed(RUNS, run);
}

/// A git operation. It may fail; then the files are as they were, or as the last commit has them.
const COMMANDS: [&[&[&str]]; 17] = [
    &[&["add", "-A"], &["commit", "-qm", "work"]],
    &[&["add", "-A"], &["commit", "-qm", "work"]],
    &[&["checkout", "-qb", "NEW"]],
    &[&["checkout", "-q", "BRANCH"]],
    &[&["checkout", "-q", "BRANCH"]],
    &[&["stash", "-q", "-u"]],
    &[&["stash", "pop", "-q"], &["reset", "-q", "--hard"]],
    &[&["stash", "-q", "-u"], &["stash", "pop", "-q"], &["reset", "-q", "--hard"]],
    &[&["merge", "-q", "--no-edit", "BRANCH"], &["merge", "--abort"]],
    &[&["pull", "-q", "--no-rebase", "--no-edit", ".", "BRANCH"], &["merge", "--abort"]],
    &[&["merge", "-q", "--squash", "BRANCH"], &["reset", "-q", "--hard"]],
    &[&["rebase", "-q", "BRANCH"], &["rebase", "--abort"]],
    &[&["cherry-pick", "BRANCH"], &["cherry-pick", "--abort"]],
    &[&["add", "-A"], &["commit", "-q", "--amend", "--no-edit"]],
    &[&["reset", "-q", "--soft", "HEAD~1"], &["commit", "-qm", "squashed"]],
    &[&["reset", "-q", "--hard", "HEAD~1"]],
    &[&["rm", "-qrf", "."], &["checkout", "-q", "HEAD", "--", "."]],
];

/// Whether the last command of a list only cleans up after one that failed.
fn is_clean_up(words: &[&str]) -> bool {
    matches!(words, [_, "--abort"] | ["reset", "-q", "--hard"])
}

impl Project {
    /// Seconds since 1970, by the sandbox's clock.
    fn now(&self) -> i64 {
        (self.sandbox.workspace.ambient.now)().0 / 1000
    }

    fn branches(&self) -> Vec<String> {
        let list = git_as(&self.sandbox.root(), "user", None, "branch --format=%(refname:short)");
        // A detached head has a description in place of a name.
        list.lines().filter(|name| !name.contains(' ')).map(str::to_owned).collect()
    }
}

impl Model {
    /// The commands, with names in place of BRANCH and NEW.
    fn git_commands(&mut self, project: &Project) -> Vec<Vec<String>> {
        let commands = COMMANDS[self.below(COMMANDS.len())];
        let branches = project.branches();
        let branch = branches[self.below(branches.len())].clone();
        let new = format!("branch-{}", branches.len());
        let word = |word: &&str| match *word {
            "BRANCH" => branch.clone(),
            "NEW" => new.clone(),
            word => word.to_owned(),
        };
        commands.iter().map(|words| words.iter().map(word).collect()).collect()
    }

    /// Bob commits to a branch of his own, which begins at some branch.
    fn bob_commits(&mut self, project: &Project) {
        let branches = project.branches();
        let from = &branches[self.below(branches.len())];
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        let name = format!("bob-{}", branches.len());
        let (root, tree_name) = (project.sandbox.root(), tree.display());
        git_as(&root, "bob", None, &format!("worktree add -qb {name} {tree_name} {from}"));
        for _ in 0..=self.below(2) {
            let present = files(&tree);
            let edits = self.edit(BOB, &present);
            if let [(_, None), (_, Some(lines))] = &edits[..] {
                self.carried.extend(lines.iter().map(|line| line.trim().to_owned()));
            }
            write(&tree, &edits);
            let at = Some(project.now());
            git_as(&tree, "bob", at, "add -A");
            git_as(&tree, "bob", at, "commit -q --allow-empty -m bobs");
        }
        git_as(&root, "bob", None, &format!("worktree remove --force {tree_name}"));
        project.sandbox.milliseconds_pass(5000);
    }
}

/// Runs commands until one fails; then its clean-up.
fn run_commands(project: &Project, at: i64, commands: &[Vec<String>]) {
    let root = project.sandbox.root();
    let mut is_well = true;
    for words in commands {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if is_well != is_clean_up(&words) {
            is_well &= try_git(&root, "user", Some(at), &words).1;
        }
    }
}

fn run(seed: u64) {
    let mut model = Model::new(seed, true);
    let mut project = Project::new("");
    for session in &AUTHORS[1..] {
        project.sandbox.prompt(session, "begin");
    }
    let mut story = Vec::new();
    for step in 0..STEPS {
        let author = AUTHORS[model.below(AUTHORS.len())];
        let root = project.sandbox.root();
        let present = files(&root);
        project.sandbox.milliseconds_pass(5000);
        let choice = model.below(12);
        let what = match (author, choice) {
            (_, 0) => {
                let is_to_point = model.below(2) == 0;
                model.rewind(&mut project.sandbox, is_to_point);
                "rewinds".to_owned()
            }
            (_, 1) => {
                model.bob_commits(&project);
                "lets bob commit".to_owned()
            }
            (_, 2..=6) => {
                let commands = model.git_commands(&project);
                let at = project.now();
                if author == "you" {
                    run_commands(&project, at, &commands);
                } else {
                    let call = project.sandbox.before_shell(author, "git");
                    run_commands(&project, at, &commands);
                    project.sandbox.after(author, &call);
                }
                format!("{commands:?}")
            }
            ("you", _) => {
                let edits = model.edit(author, &present);
                write(&root, &edits);
                format!("{edits:?}")
            }
            (session, 7) => {
                model.points.push(project.sandbox.prompt(session, "go on"));
                "is prompted".to_owned()
            }
            (session, 8) => {
                let edits = model.edit(session, &present);
                project.sandbox.agent_runs(session, "edit", |_| write(&root, &edits));
                format!("runs {edits:?}")
            }
            (session, _) => {
                let edits = model.edit(session, &present);
                model.agent_edits(session, &edits, &mut project.sandbox);
                format!("edits {edits:?}")
            }
        };
        story.push(format!("{step}: {author} {what}"));
        project.look();
        let now = files(&root);
        model.remember(&now);
        check(&model, &project, &present, &now, &|| format!("seed {seed}\n{}", story.join("\n")));
    }
}

/// Compares the authors of the files that changed. A line that is there twice has been copied by a merge.
fn check(
    model: &Model,
    project: &Project,
    before: &super::Files,
    now: &super::Files,
    story: &dyn Fn() -> String,
) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for line in now.values().flatten() {
        *times.entry(line.trim()).or_default() += 1;
    }
    for (name, lines) in now.iter().filter(|(name, lines)| before.get(*name) != Some(*lines)) {
        let found = project.authors_of(name);
        assert_eq!(found.len(), lines.len(), "{name}, {}", story());
        for (line, author) in found.iter().filter(|(line, _)| times[line.as_str()] == 1) {
            let is_carried = author == "commit of user" && model.carried.contains(line);
            if line != "}" && !is_carried {
                assert_eq!(author, model.wrote[line], "{name}: {line}, {}", story());
            }
        }
    }
}
