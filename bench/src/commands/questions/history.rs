//! A git repository with many points: sessions of fifty prompts, after each of which an agent makes three
//! small edits. Some files also change now and then, and every version of two of them is a commit.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use takeback_core::watch::{EVERY, TreeWatch, Trust};
use takeback_core::{CallTargets, Workspace};
use takeback_store::{Durability, SessionId};

use crate::Result;
use crate::driver::git::plain;
use crate::driver::library::{Agent, only_store, open_workspace};
use crate::driver::takeback::Takeback;
use crate::measure::Commands;
use crate::scratch::{Scratch, fill, make_empty};
use crate::text::Code;

/// Points of the smaller workspace.
pub(super) const FEW: usize = 100;
/// An agent changes it after every 20th point.
pub(super) const LONG: &str = "src/long.txt";
/// You change it after every 100th point.
pub(super) const MINE: &str = "src/mine.txt";
/// An agent changes it after every fourth of the first points.
pub(super) const OLD: &str = "src/old.txt";
/// An agent changes it after every fourth of the last points.
pub(super) const RECENT: &str = "src/recent.txt";

/// An agent changes it after every 16th point, together with two others.
pub(super) const TOGETHER: &str = "src/5.txt";

const LINES: usize = 2_000;
const FEW_LINES: usize = 200;
const SMALL_FILES: usize = 47;
const EDITS: usize = 3;
/// The default number of points that retention keeps of a session.
const POINTS_PER_SESSION: usize = 50;

pub(super) struct History {
    scratch: Scratch,
    pub(super) takeback: Takeback,
}

/// A version of a file that is to be committed.
struct Commit {
    path: &'static str,
    text: String,
    /// In seconds since 1970.
    time: u64,
}

impl History {
    pub(super) fn open_or_make(
        scratch: Scratch,
        program: &Path,
        files: usize,
        points: usize,
    ) -> Result<Self> {
        let takeback = Takeback::in_scratch(program, &scratch);
        let history = Self { scratch, takeback };
        let complete = history.scratch.path().join("complete");
        if !complete.exists() {
            eprintln!("making {points} points …");
            make_empty(&history.scratch.project())?;
            make_empty(&history.scratch.home())?;
            history.make(files, points)?;
            fs::write(complete, "")?;
        }
        Ok(history)
    }

    /// git in the project.
    pub(super) fn git(&self) -> Commands {
        plain(&self.scratch.project())
    }

    fn make(&self, files: usize, points: usize) -> Result<()> {
        let project = self.scratch.project();
        fill(&project, files, 50)?;
        fs::create_dir(project.join("src"))?;
        for n in 0..SMALL_FILES {
            fs::write(self.small_file(n), format!("file {n}\n").repeat(100))?;
        }
        let mut texts = [LONG, MINE, OLD, RECENT].map(|path| {
            ChangingText::new(path, if [LONG, MINE].contains(&path) { LINES } else { FEW_LINES })
        });
        for text in &texts {
            fs::write(project.join(text.path), text.text())?;
        }
        let commit = ["commit", "-q", "--no-verify", "-m", "first"];
        self.git()
            .run(&["init", "-q", "-b", "main"])
            // Maintenance in the background would disturb the measurements.
            .run(&["config", "gc.auto", "0"])
            .run(&["config", "maintenance.auto", "false"])
            .run(&["add", "-A"])
            .run(&commit)
            .output()?;
        self.takeback.run(&["checkpoint"]).output()?;
        let commits = self.make_points(points, &mut texts)?;
        let history = fast_import(&commits)?;
        self.git().run(&["fast-import", "--quiet"]).time(&history)?;
        self.git().run(&["reset", "-q"]).run(&["gc", "-q"]).output().map(drop)
    }

    fn make_points(&self, points: usize, texts: &mut [ChangingText; 4]) -> Result<Vec<Commit>> {
        let mut workspace =
            open_workspace(&self.scratch.project(), &only_store(&self.scratch.home())?)?;
        // No one reads these points back after a crash, so they are not synced; and a scan would read the whole tree.
        workspace.store.set_durability(Durability::Off)?;
        workspace.watched = Some(Arc::new(TreeWatch::new(Trust::WithScans { every: EVERY })));
        let [long, mine, old, recent] = texts;
        let mut commits = Vec::new();
        for point in 0..points {
            let prompt =
                format!("Do task number {point}, and add a test that shows that it is done");
            Agent { session: session(point), ..Agent::of(&mut workspace) }
                .prompt(Some(format!("message-{point}")), &prompt)?;
            self.edit_small_files(&mut workspace, point)?;
            if point.is_multiple_of(20) {
                commits.push(self.edit(&mut workspace, long, point)?);
            }
            if point % 4 == 3 && point < FEW {
                self.edit(&mut workspace, old, point)?;
            }
            if point % 4 == 1 && point + FEW >= points {
                self.edit(&mut workspace, recent, point)?;
            }
            Agent { session: session(point), ..Agent::of(&mut workspace) }.end_turn()?;
            if point % 100 == 50 {
                mine.change();
                fs::write(self.scratch.project().join(MINE), mine.text())?;
                commits.push(mine.commit(&self.scratch.project())?);
            }
        }
        Ok(commits)
    }

    /// An agent changes a file in one call.
    fn edit(
        &self,
        workspace: &mut Workspace,
        text: &mut ChangingText,
        point: usize,
    ) -> Result<Commit> {
        let path = self.scratch.project().join(text.path);
        text.change();
        let call = format!("{}-{point}", text.path);
        let targets = CallTargets::Paths(vec![path.clone()]);
        Agent { session: session(point), ..Agent::of(workspace) }
            .call(&call, targets, || Ok(fs::write(&path, text.text())?))?;
        text.commit(&self.scratch.project())
    }

    /// An agent changes the first lines of some files in one call.
    fn edit_small_files(&self, workspace: &mut Workspace, point: usize) -> Result<()> {
        let paths: Vec<PathBuf> =
            (0..EDITS).map(|at| self.small_file((point * EDITS + at) % SMALL_FILES)).collect();
        let write = || {
            for path in &paths {
                let text = fs::read_to_string(path)?;
                let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
                fs::write(path, format!("task {point} was here\n{rest}"))?;
            }
            Ok(())
        };
        Agent { session: session(point), ..Agent::of(workspace) }
            .call(&format!("call-{point}"), CallTargets::Paths(paths.clone()), write)
            .map(drop)
    }

    fn small_file(&self, n: usize) -> PathBuf {
        self.scratch.project().join(format!("src/{n}.txt"))
    }
}

fn session(point: usize) -> SessionId {
    SessionId(format!("session-{:04}", point / POINTS_PER_SESSION))
}

/// Commits on top of what is checked out, as git reads them.
fn fast_import(commits: &[Commit]) -> Result<String> {
    let mut stream = String::new();
    for (n, Commit { path, text, time }) in commits.iter().enumerate() {
        writeln!(stream, "commit refs/heads/main\ncommitter bench <bench@localhost> {time} +0000")?;
        writeln!(stream, "data 8\nversion\n")?;
        if n == 0 {
            writeln!(stream, "from refs/heads/main^0")?;
        }
        writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len())?;
    }
    Ok(stream)
}

/// A file in which each change replaces three lines, adds one and removes one, each time elsewhere.
struct ChangingText {
    path: &'static str,
    lines: Vec<String>,
    version: usize,
    code: Code,
}

impl ChangingText {
    fn new(path: &'static str, lines: usize) -> Self {
        let mut text = Self { path, lines: Vec::new(), version: 0, code: Code::new() };
        text.lines = (0..lines).map(|_| text.line()).collect();
        text
    }

    fn change(&mut self) {
        self.version += 1;
        // A prime number: the places are all over the file.
        let at = self.version * 7_919 % (self.lines.len() - 4);
        for line in at..at + 3 {
            self.lines[line] = self.line();
        }
        let (new, other) = (self.line(), (at + self.lines.len() / 2) % self.lines.len());
        self.lines.insert(other, new);
        self.lines.remove((at + self.lines.len() / 3) % self.lines.len());
    }

    fn line(&mut self) -> String {
        String::from_utf8_lossy(&self.code.text(40)).replace('\n', " ")
    }

    fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// This version as a commit, made when the file was written.
    fn commit(&self, project: &Path) -> Result<Commit> {
        let written = fs::metadata(project.join(self.path))?.modified()?;
        let time = written.duration_since(UNIX_EPOCH)?.as_secs();
        Ok(Commit { path: self.path, text: self.text(), time })
    }
}
