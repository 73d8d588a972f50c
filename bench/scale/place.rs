//! A workspace in a folder of its own, with a home beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use takeback_bench::Result;
use takeback_bench::held::only_workspace;
use takeback_bench::measure::Commands;
use takeback_core::{AgentEvent, Outcome, Touches, Workspace, look_around, record};
use takeback_store::{CallId, SessionId};

pub(crate) struct Place {
    folder: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays in a temporary folder does no harm.
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Place {
    pub(crate) fn new() -> Result<Self> {
        let name = format!("takeback-bench-scale-{}", std::process::id());
        let place = Self { folder: std::env::temp_dir().join(name) };
        fs::create_dir_all(place.folder.join("home"))?;
        fs::create_dir_all(place.project())?;
        Ok(place)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(crate) fn file(&self, n: u64, in_one_folder: u64) -> PathBuf {
        let folder = n / in_one_folder;
        self.project().join(format!("{:03}/{folder:06}/{n}.txt", folder / 1000))
    }

    /// Small files, each with bytes of its own.
    pub(crate) fn fill(&self, files: u64, in_one_folder: u64) -> Result<()> {
        for n in 0..files {
            let file = self.file(n, in_one_folder);
            if n.is_multiple_of(in_one_folder) {
                fs::create_dir_all(file.parent().ok_or("it lies in a folder")?)?;
            }
            fs::write(file, format!("this is file {n}\n"))?;
        }
        Ok(())
    }

    /// A prompt after which a command of an agent makes all the files.
    pub(crate) fn agent_makes(&self, files: u64) -> Result<()> {
        self.command(&["checkpoint"]).measure()?;
        let mut workspace = self.open()?;
        let session = SessionId::from("agent");
        let call = CallId::from("make");
        let mut tell = |event: AgentEvent| record(&mut workspace, &event);
        tell(AgentEvent::Prompt {
            session: session.clone(),
            message: None,
            text: "Make many files".to_owned(),
        })?;
        tell(AgentEvent::BeforeTool {
            session: session.clone(),
            call: call.clone(),
            tool: "Bash".to_owned(),
            touches: Touches::anything(Some("make".to_owned())),
        })?;
        self.fill(files, 50)?;
        let outcome = Outcome::Done;
        tell(AgentEvent::AfterTool {
            session: session.clone(),
            call,
            outcome,
            report: takeback_core::CallReport::default(),
        })?;
        tell(AgentEvent::TurnEnd { session })?;
        Ok(())
    }

    /// Whether nothing is left to be recorded.
    pub(crate) fn is_whole(&self) -> Result<()> {
        let surveyed = look_around(&mut self.open()?)?;
        match surveyed.recorded.changes {
            0 => Ok(()),
            left => Err(format!("{left} changes had not been seen").into()),
        }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Commands {
        let this = std::env::current_exe().unwrap_or_default();
        let home = self.folder.join("home").to_string_lossy().into_owned();
        Commands {
            program: this.with_file_name("takeback"),
            runner: this,
            runs: vec![words.iter().map(|&word| word.to_owned()).collect()],
            folder: self.project(),
            environment: BTreeMap::from([
                ("TAKEBACK_HOME".to_owned(), home.clone()),
                ("HOME".to_owned(), home),
            ]),
        }
    }

    fn open(&self) -> Result<Workspace> {
        only_workspace(&self.folder.join("home"), &self.project())
    }
}
