//! The scratch copy in which the command runs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

use takeback_core::history::Verdict;
use takeback_core::worktree::OutReason;
use takeback_core::{TreeCopy, Workspace};
use takeback_store::{Point, PointKind, Seq, Store, WorkPath};

use super::search::{BisectRequest, CommandOutput};
use crate::commands::log::described;
use crate::error::{CommandError, Kind};
use crate::place::quoted;
use crate::screen::{FAILURE, HINT, SUCCESS, WARNING, count, name, plain};

/// The exit code by which a command says that it cannot be tested here.
const SKIP: i32 = 125;

/// A position of the log.
pub(super) struct Position<'a> {
    pub(super) seq: Seq,
    /// The point that is there.
    pub(super) point: Option<&'a Point>,
    /// Whether it is the end of the log.
    pub(super) is_now: bool,
}

impl Position<'_> {
    pub(super) fn title(&self) -> String {
        match self.point {
            Some(point) => {
                let label = point.label.as_deref().map(plain);
                let title = label.unwrap_or_else(|| plain(&described(point)));
                // A prompt's point is the files before it.
                let when = if point.kind == PointKind::Prompt { "before" } else { "at" };
                format!("{when} {} {title}", &point.id.to_string()[..8])
            }
            None if self.is_now => "now".to_owned(),
            None => format!("after change {}", self.seq.0),
        }
    }
}

/// The folder in which the command runs.
pub(super) struct Scratch<'a, 'r> {
    /// Removed with everything in it when the search ends.
    folder: tempfile::TempDir,
    copy: TreeCopy,
    /// Where the command runs, from the root.
    below: PathBuf,
    request: &'a BisectRequest<'a>,
    report: &'r mut dyn FnMut(&str),
    pub(super) runs: usize,
    pub(super) skipped: usize,
}

impl<'a, 'r> Scratch<'a, 'r> {
    pub(super) fn make(
        workspace: &Workspace,
        request: &'a BisectRequest<'a>,
        out: &[(WorkPath, OutReason)],
        report: &'r mut dyn FnMut(&str),
    ) -> Result<Self, CommandError> {
        let root = workspace.root.path();
        let folder = tempfile::Builder::new().prefix("takeback-bisect-").tempdir()?;
        let path = folder.path().canonicalize()?;
        let below = request.folder.strip_prefix(root).unwrap_or(Path::new("")).to_owned();
        let copy = TreeCopy::in_folder(&path, root)
            .map_err(|error| CommandError::new(Kind::Error, error))?;
        for wanted in &request.query.with {
            copy_into(&path, root, &request.folder.join(wanted))?;
        }
        let is_copied = |path: &WorkPath| {
            let there = workspace.absolute(path);
            request.query.with.iter().any(|wanted| request.folder.join(wanted) == there)
        };
        let absent: Vec<String> = out
            .iter()
            .filter(|(path, reason)| *reason == OutReason::Derived && !is_copied(path))
            .map(|(path, _)| name(path))
            .collect();
        if !absent.is_empty() {
            let absent = absent.join(", ");
            report(&format!("{HINT}not in the copy: {absent} (--with copies them){HINT:#}"));
        }
        Ok(Self { folder, copy, below, request, report, runs: 0, skipped: 0 })
    }

    /// Runs the command at a position.
    pub(super) fn test(
        &mut self,
        store: &dyn Store,
        position: &Position<'_>,
        left: Option<u32>,
    ) -> Result<Verdict, CommandError> {
        self.stop_if_interrupted()?;
        let failed = |error| CommandError::new(Kind::Error, error);
        let gaps = self.copy.move_to(store, position.seq).map_err(failed)?;
        let folder = self.folder.path().join(&self.below);
        let began = Instant::now();
        let (verdict, what) = if folder.is_dir() {
            let status =
                self.command(&folder).status().map_err(|error| self.cannot_start(&error))?;
            self.stop_if_interrupted()?;
            self.runs += 1;
            match status.code() {
                Some(0) => (Verdict::Good, "good".to_owned()),
                Some(SKIP) => (Verdict::Skip, "skipped".to_owned()),
                Some(code @ (126 | 127)) => return Err(self.cannot_run(code)),
                Some(code) => (Verdict::Bad, format!("bad (exit code {code})")),
                None => (Verdict::Bad, format!("bad ({status})")),
            }
        } else {
            (Verdict::Skip, format!("skipped: {} is not there", self.below.display()))
        };
        self.skipped += usize::from(verdict == Verdict::Skip);
        let style = match verdict {
            Verdict::Good => SUCCESS,
            Verdict::Bad => FAILURE,
            Verdict::Skip => WARNING,
        };
        let mut line = format!(
            "{HINT}[{}]{HINT:#} {}  {style}{what}{style:#} {HINT}{:.1} s",
            self.runs,
            position.title(),
            began.elapsed().as_secs_f64()
        );
        if let Some(left) = left.filter(|left| *left > 1) {
            line += &format!(", about {} left", left - 1);
        }
        if !gaps.missing.is_empty() {
            line += &format!(", {} not captured", count(gaps.missing.len(), "file"));
        }
        (self.report)(&format!("{line}{HINT:#}"));
        Ok(verdict)
    }

    fn command(&self, folder: &Path) -> Command {
        let command = &self.request.query.command;
        let mut run = Command::new(&command[0]);
        run.args(&command[1..]).current_dir(folder).stdin(Stdio::null());
        if self.request.output == CommandOutput::Hidden {
            run.stdout(Stdio::null()).stderr(Stdio::null());
        } else {
            // Standard output belongs to the answer.
            run.stdout(io::stderr());
        }
        run
    }

    fn stop_if_interrupted(&self) -> Result<(), CommandError> {
        if self.request.interrupted.load(Ordering::Relaxed) {
            return Err(CommandError::new(Kind::Error, "interrupted"));
        }
        Ok(())
    }

    fn cannot_start(&self, error: &io::Error) -> CommandError {
        let program = PathBuf::from(&self.request.query.command[0]);
        let text = format!("{} could not start: {error}", quoted(&program));
        CommandError::new(Kind::Error, text).hint("Use `sh -c '…'` for shell syntax.")
    }

    fn cannot_run(&self, code: i32) -> CommandError {
        let command = plain(&words(&self.request.query.command));
        CommandError::new(Kind::Error, format!("`{command}` could not run (exit code {code})"))
            .hint("-v shows what it prints.")
    }
}

/// Copies a file or folder that is not recorded.
fn copy_into(scratch: &Path, root: &Path, wanted: &Path) -> Result<(), CommandError> {
    let wrong = |why: &str| {
        CommandError::new(Kind::Usage, format!("cannot copy {}: {why}", quoted(wanted)))
    };
    // Without links and `..`: the copy must stay in its folder.
    let real = wanted.canonicalize().map_err(|_gone| wrong("it does not exist"))?;
    let below = real.strip_prefix(root).map_err(|_outside| wrong("it is not in the workspace"))?;
    let to = scratch.join(below);
    let parent = to.parent().unwrap_or(scratch);
    let made = Command::new("mkdir").arg("-p").arg("--").arg(parent).status()?;
    let copied = Command::new("cp").arg("-a").arg("--").arg(&real).arg(&to).status()?;
    if made.success() && copied.success() { Ok(()) } else { Err(wrong("`cp -a` failed")) }
}

pub(super) fn words(command: &[OsString]) -> String {
    let words: Vec<String> =
        command.iter().map(|word| OsStr::to_string_lossy(word).into_owned()).collect();
    words.join(" ")
}
