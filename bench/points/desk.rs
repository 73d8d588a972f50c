//! A workspace with so many points, and what is done with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use takeback_bench::Result;
use takeback_bench::held::only_workspace;
use takeback_bench::measure::{millis, settle_disk};
use takeback_core::rewind::{RewindRequest, Target, Whose, rewind};
use takeback_core::{AgentEvent, Outcome, Touches, Workspace, look_around, record};
use takeback_store::{CallId, PointId, SessionId};

const FILES: usize = 50;
const EDITS: usize = 3;
/// As many as retention keeps of one session.
const POINTS_PER_SESSION: usize = 50;

pub(crate) struct Desk {
    folder: PathBuf,
    oldest: PointId,
    sessions: usize,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What stays in a temporary folder does no harm.
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Desk {
    pub(crate) fn with_points(points: usize) -> Result<Self> {
        let name = format!("takeback-bench-points-{}-{points}", std::process::id());
        let mut desk =
            Self { folder: std::env::temp_dir().join(name), oldest: PointId(0), sessions: 0 };
        fs::create_dir_all(desk.folder.join("home"))?;
        fs::create_dir_all(desk.folder.join("project/src"))?;
        for n in 0..FILES {
            fs::write(desk.file(n), format!("file {n}\n").repeat(100))?;
        }
        desk.command(&["checkpoint"])?;
        let mut workspace = desk.open()?;
        for point in 0..points {
            if point.is_multiple_of(POINTS_PER_SESSION) {
                desk.sessions += 1;
            }
            let prompt = AgentEvent::Prompt {
                session: desk.session(),
                message: Some(format!("message-{point}")),
                text: format!("Do the thing that is number {point}"),
            };
            let made = record(&mut workspace, &prompt)?.point.ok_or("a prompt makes a point")?;
            if point == 0 {
                desk.oldest = made;
            }
            let files: Vec<usize> = (0..EDITS).map(|at| (point * EDITS + at) % FILES).collect();
            desk.edit_with(&mut workspace, &format!("call-{point}"), &files)?;
        }
        record(&mut workspace, &AgentEvent::TurnEnd { session: desk.session() })?;
        drop(workspace);
        copy(&desk.folder, &desk.folder.join("saved"))?;
        Ok(desk)
    }

    /// How long the command takes.
    pub(crate) fn command(&self, words: &[&str]) -> Result<f64> {
        let program = std::env::current_exe()?.with_file_name("takeback");
        let home = self.folder.join("home");
        let mut command = Command::new(program);
        command.args(words).current_dir(self.folder.join("project"));
        command.env("HOME", &home).env("TAKEBACK_HOME", &home);
        let began = Instant::now();
        let output = command.output()?;
        let took = millis(began.elapsed());
        if output.status.success() {
            return Ok(took);
        }
        Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }

    pub(crate) fn prompt(&self) -> Result<f64> {
        let mut workspace = self.open()?;
        let event = AgentEvent::Prompt {
            session: self.session(),
            message: Some(format!("m-{:x}", (workspace.ambient.random)())),
            text: "And now?".to_owned(),
        };
        let began = Instant::now();
        record(&mut workspace, &event)?;
        Ok(millis(began.elapsed()))
    }

    pub(crate) fn edit(&self) -> Result<f64> {
        let mut workspace = self.open()?;
        let call = format!("c-{:x}", (workspace.ambient.random)());
        let began = Instant::now();
        self.edit_with(&mut workspace, &call, &[7])?;
        Ok(millis(began.elapsed()))
    }

    pub(crate) fn rewind(&self) -> Result<f64> {
        self.bring_back()?;
        let mut workspace = self.open()?;
        // Every session's, as somebody asks who wants the files of that day.
        let mut request = RewindRequest::new(Target::Point(self.oldest));
        request.whose = Some(Whose::AllAgents);
        let began = Instant::now();
        let receipt = rewind(&mut workspace, &request, None)?;
        let took = millis(began.elapsed());
        if receipt.restored_files.len() != FILES || !receipt.success {
            return Err(format!("{} files came back", receipt.restored_files.len()).into());
        }
        Ok(took)
    }

    pub(crate) fn rewind_command(&self, more: &[&str]) -> Result<f64> {
        self.bring_back()?;
        let oldest = self.oldest.to_string();
        self.command(&[&["rewind", &oldest, "--all-agents"], more].concat())
    }

    /// Everything as it was before anything was measured.
    fn bring_back(&self) -> Result<()> {
        copy(&self.folder.join("saved"), &self.folder)?;
        look_around(&mut self.open()?)?;
        settle_disk()
    }

    /// An agent changes these files in one call.
    fn edit_with(&self, workspace: &mut Workspace, call: &str, files: &[usize]) -> Result<()> {
        let paths: Vec<PathBuf> = files.iter().map(|n| self.file(*n)).collect();
        let before = AgentEvent::BeforeTool {
            session: self.session(),
            call: CallId::from(call),
            tool: "Edit".to_owned(),
            touches: Touches::Paths(paths.clone()),
        };
        record(workspace, &before)?;
        for path in paths {
            let text = fs::read_to_string(&path)?;
            let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
            fs::write(&path, format!("{call} was here\n{rest}"))?;
        }
        let (session, call) = (self.session(), CallId::from(call));
        record(
            workspace,
            &AgentEvent::AfterTool {
                session,
                call,
                outcome: Outcome::Done,
                report: takeback_core::CallReport::default(),
            },
        )?;
        Ok(())
    }

    fn session(&self) -> SessionId {
        SessionId(format!("session-{:04}", self.sessions))
    }

    fn file(&self, n: usize) -> PathBuf {
        self.folder.join(format!("project/src/{n}.txt"))
    }

    fn open(&self) -> Result<Workspace> {
        only_workspace(&self.folder.join("home"), &self.folder.join("project"))
    }
}

/// The workspace and its store, in the place of what is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for part in ["home", "project"] {
        if to.join(part).exists() {
            fs::remove_dir_all(to.join(part))?;
        }
        let copied = Command::new("cp")
            .args(["-a", "--"])
            .args([from.join(part), to.join(part)])
            .status()?;
        if !copied.success() {
            return Err("cp failed".into());
        }
    }
    Ok(())
}
