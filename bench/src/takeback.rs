//! Takeback, once as the command that people run and once as the library that agents hold open.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use takeback_bench::Result;
use takeback_bench::measure::{Commands, Cost, inside};
use takeback_core::rewind::journal::Exactness;
use takeback_core::rewind::{Receipt, RewindRequest, Target, rewind};
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, Limits, Outcome, Recorded, Touches, Workspace, WorkspaceOptions,
    checkpoint, record,
};
use takeback_store::{CallId, PointId, SessionId, SqliteStates, SqliteStore, Timestamp};

use crate::corpus::Corpus;
use crate::edits::Edits;

/// Builds the command from the same sources as the library in here (cargo, which runs the bench,
/// builds only what the bench links) and puts both programs where no later build replaces them.
pub(crate) fn set_programs_aside(corpus: &Corpus) -> Result<()> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        let built = Command::new(cargo)
            .args(["build", "--release", "-q", "-p", "takeback"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()?;
        if !built.success() {
            return Err("the takeback command cannot be built".into());
        }
    }
    let bench = std::env::current_exe()?;
    let command = bench.with_file_name("takeback");
    if !command.is_file() {
        return Err("there is no takeback beside this program".into());
    }
    fs::create_dir_all(&corpus.programs)?;
    fs::copy(command, corpus.command())?;
    fs::copy(bench, corpus.runner())?;
    Ok(())
}

/// The `takeback` command with a home of its own.
pub(crate) struct TakebackCommand {
    tree: PathBuf,
    program: PathBuf,
    runner: PathBuf,
    pub(crate) state: PathBuf,
}

impl TakebackCommand {
    /// Without a store; what was there before is removed.
    pub(crate) fn new(corpus: &Corpus) -> Result<Self> {
        let state = emptied(corpus.states.join("takeback-command"))?;
        Ok(Self {
            tree: corpus.tree.clone(),
            program: corpus.command(),
            runner: corpus.runner(),
            state,
        })
    }

    pub(crate) fn checkpoint(&self) -> Commands {
        self.command(&["checkpoint"])
    }

    pub(crate) fn rewind(&self, point: PointId, exactness: Exactness) -> Commands {
        let point = point.to_string();
        match exactness {
            Exactness::AgentsOnly => self.command(&["rewind", &point, "-y"]),
            Exactness::Exact => self.command(&["rewind", &point, "-y", "--exact"]),
        }
    }

    /// The library on the same store, to tell it what an agent does.
    pub(crate) fn library(&self) -> Result<TakebackLibrary> {
        let mut stores = fs::read_dir(self.state.join("workspaces"))?;
        let store = stores.next().ok_or("the command made no store")??.path();
        TakebackLibrary::open_at(&self.tree, store)
    }

    fn command(&self, words: &[&str]) -> Commands {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut run = vec!["-C".to_owned(), text(&self.tree), "-q".to_owned()];
        run.extend(words.iter().map(|&word| word.to_owned()));
        let home = text(&self.state);
        Commands {
            runner: self.runner.clone(),
            program: self.program.clone(),
            runs: vec![run],
            folder: self.tree.clone(),
            environment: BTreeMap::from([
                ("TAKEBACK_HOME".to_owned(), home.clone()),
                ("HOME".to_owned(), home),
            ]),
        }
    }
}

/// A workspace held open in this process.
pub(crate) struct TakebackLibrary {
    workspace: Workspace,
}

impl TakebackLibrary {
    pub(crate) fn remove(corpus: &Corpus) -> Result<()> {
        emptied(corpus.states.join("takeback-library")).map(drop)
    }

    /// Makes the store if there is none.
    pub(crate) fn open(corpus: &Corpus) -> Result<Self> {
        Self::open_at(&corpus.tree, corpus.states.join("takeback-library"))
    }

    /// As the command opens it.
    fn open_at(tree: &Path, store_dir: PathBuf) -> Result<Self> {
        let store = Box::new(SqliteStore::create(&store_dir)?);
        let workspace = Workspace::open(WorkspaceOptions {
            root: tree.to_owned(),
            states: std::sync::Arc::new(SqliteStates::at(&store_dir)),
            store_dir,
            store,
            home: None,
            scope: ScopeOptions::default(),
            limits: Limits::default(),
            ambient: Ambient {
                now: Box::new(|| {
                    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
                    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
                }),
                random: Box::new(|| RandomState::new().build_hasher().finish()),
                watch: None,
            },
        })?;
        Ok(Self { workspace })
    }

    pub(crate) fn checkpoint(&mut self) -> Result<Recorded> {
        Ok(checkpoint(&mut self.workspace, None)?)
    }

    /// An agent does a piece of work with its edit tool, announced and recorded; the point before it
    /// and what the recording cost.
    pub(crate) fn agent_makes(&mut self, edits: &Edits) -> Result<(PointId, Cost)> {
        let session = SessionId(format!("{:016x}", (self.workspace.ambient.random)()));
        let call = CallId::from("1");
        let mut tell = |event: AgentEvent| Ok(record(&mut self.workspace, &event)?);
        tell(AgentEvent::SessionStart {
            session: session.clone(),
            agent: Some("bench".to_owned()),
            parent: None,
            owner: None,
        })?;
        let prompt = tell(AgentEvent::Prompt {
            session: session.clone(),
            message: None,
            text: "ten changes".to_owned(),
        })?;
        let point = prompt.point.ok_or("a prompt makes a point")?;
        let touches = Touches::Paths(edits.paths().map(Path::to_owned).collect());
        let (session_of_call, tool) = (session.clone(), "Edit".to_owned());
        let before =
            AgentEvent::BeforeTool { session: session_of_call, call: call.clone(), tool, touches };
        let (_, before) = inside(|| tell(before))?;
        edits.make()?;
        let after =
            AgentEvent::AfterTool { session: session.clone(), call, outcome: Outcome::Done };
        let (_, after) = inside(|| tell(after))?;
        tell(AgentEvent::TurnEnd { session })?;
        let cost = Cost {
            wall_ms: before.wall_ms + after.wall_ms,
            cpu_ms: before.cpu_ms + after.cpu_ms,
            peak_mb: None,
        };
        Ok((point, cost))
    }

    /// From the plan to the verified receipt.
    pub(crate) fn rewind(
        &mut self,
        point: PointId,
        exactness: Exactness,
    ) -> Result<(Receipt, Cost)> {
        let request = RewindRequest { exactness, ..RewindRequest::new(Target::Point(point)) };
        inside(|| Ok(rewind(&mut self.workspace, &request, None)?))
    }
}

fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
