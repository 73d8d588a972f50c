//! Takeback, once as the command that people run and once as the library that agents hold open.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde::Deserialize;
use takeback_bench::Result;
use takeback_bench::measure::{Commands, Cost, disk_usage, inside};
use takeback_core::rewind::journal::Exactness;
use takeback_core::rewind::{RewindRequest, Target, rewind};
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, Limits, Outcome, Recorded, Touches, Workspace, WorkspaceOptions,
    checkpoint, record,
};
use takeback_store::{CallId, PointId, SessionId, SqliteStates, SqliteStore, Timestamp};

use super::{Told, Tool, Who};
use crate::corpus::Corpus;
use crate::edits::Edits;

/// Builds the command from the same sources as the library in here (cargo, which runs the bench,
/// builds only what the bench links) and puts both programs where no later build replaces them.
pub(crate) fn set_programs_aside(place: &Path) -> Result<()> {
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
    let programs = place.join("programs");
    fs::create_dir_all(&programs)?;
    fs::copy(command, programs.join("takeback"))?;
    fs::copy(bench, programs.join("takeback-bench"))?;
    Ok(())
}

/// The `takeback` command with a home of its own.
pub(crate) struct TakebackCommand<'a> {
    corpus: &'a Corpus,
    state: PathBuf,
    last: Option<Answer>,
}

/// What `checkpoint` says.
#[derive(Deserialize)]
struct Answer {
    id: String,
    changes: usize,
}

impl<'a> TakebackCommand<'a> {
    pub(crate) fn new(corpus: &'a Corpus) -> Self {
        Self { corpus, state: corpus.states.join("takeback-command"), last: None }
    }

    /// The library on the same store, to tell it what an agent does.
    fn held(&self) -> Result<Held> {
        let mut stores = fs::read_dir(self.state.join("workspaces"))?;
        let store = stores.next().ok_or("the command made no store")??.path();
        Held::open(&self.corpus.tree, store)
    }

    fn command(&self, words: &[&str]) -> Commands {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut run = vec!["-C".to_owned(), text(&self.corpus.tree), "--json".to_owned()];
        run.extend(words.iter().map(|&word| word.to_owned()));
        let home = text(&self.state);
        Commands {
            runner: self.corpus.runner(),
            program: self.corpus.command(),
            runs: vec![run],
            folder: self.corpus.tree.clone(),
            environment: BTreeMap::from([
                ("TAKEBACK_HOME".to_owned(), home.clone()),
                ("HOME".to_owned(), home),
            ]),
        }
    }
}

impl Tool for TakebackCommand<'_> {
    fn who(&self) -> Who {
        Who::Command
    }

    fn empty(&mut self) -> Result<()> {
        self.last = None;
        self.corpus.empty_state("takeback-command").map(drop)
    }

    fn snapshot(&mut self) -> Result<Cost> {
        let (cost, answer) = self.command(&["checkpoint"]).measure_and_ask()?;
        self.last = Some(serde_json::from_str(&answer)?);
        Ok(cost)
    }

    fn files(&mut self) -> Result<usize> {
        // Asked of the answer: what a process goes on with afterwards is not kept yet.
        Ok(self.changed()?.saturating_sub(self.corpus.folders))
    }

    fn changed(&mut self) -> Result<usize> {
        Ok(self.last.as_ref().ok_or(NO_POINT)?.changes)
    }

    fn take_back(&mut self, edits: &Edits, told: Told) -> Result<Cost> {
        let rewind = match told {
            Told::Announced => {
                let point = self.held()?.agent_makes(edits)?;
                self.command(&["rewind", &point.to_string(), "-y"])
            }
            Told::Nothing => {
                edits.make()?;
                let point = &self.last.as_ref().ok_or(NO_POINT)?.id;
                self.command(&["rewind", point, "-y", "--exact"])
            }
        };
        rewind.measure()
    }

    fn size(&self) -> Result<u64> {
        disk_usage(&self.state)
    }
}

const NO_POINT: &str = "there is no point yet";

/// Takeback in this process, which holds the workspace open.
pub(crate) struct TakebackLibrary<'a> {
    corpus: &'a Corpus,
    state: PathBuf,
    held: Option<Held>,
    last: Option<Recorded>,
}

impl<'a> TakebackLibrary<'a> {
    pub(crate) fn new(corpus: &'a Corpus) -> Self {
        let state = corpus.states.join("takeback-library");
        Self { corpus, state, held: None, last: None }
    }
}

impl Tool for TakebackLibrary<'_> {
    fn who(&self) -> Who {
        Who::Library
    }

    fn empty(&mut self) -> Result<()> {
        (self.held, self.last) = (None, None);
        self.corpus.empty_state("takeback-library").map(drop)
    }

    fn snapshot(&mut self) -> Result<Cost> {
        let (recorded, cost) = inside(|| {
            let held = match self.held.take() {
                Some(held) => held,
                None => Held::open(&self.corpus.tree, self.state.clone())?,
            };
            self.held.insert(held).checkpoint()
        })?;
        self.last = Some(recorded);
        Ok(cost)
    }

    fn files(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.last.as_ref().ok_or(NO_POINT)?.stats.files)?)
    }

    fn changed(&mut self) -> Result<usize> {
        Ok(self.last.as_ref().ok_or(NO_POINT)?.changes)
    }

    fn take_back(&mut self, edits: &Edits, told: Told) -> Result<Cost> {
        let held = self.held.as_mut().ok_or(NO_POINT)?;
        match told {
            Told::Announced => {
                let point = held.agent_makes(edits)?;
                held.rewind(point, Exactness::AgentsOnly)
            }
            Told::Nothing => {
                edits.make()?;
                let point = self.last.as_ref().and_then(|last| last.point).ok_or(NO_POINT)?;
                held.rewind(point, Exactness::Exact)
            }
        }
    }

    fn size(&self) -> Result<u64> {
        disk_usage(&self.state)
    }
}

/// A workspace held open in this process.
struct Held {
    workspace: Workspace,
}

impl Held {
    /// As the command opens it. Makes the store if there is none.
    fn open(tree: &Path, store_dir: PathBuf) -> Result<Self> {
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
                file_time: Box::new(takeback_core::system_file_time),
                random: Box::new(|| RandomState::new().build_hasher().finish()),
                watch: None,
            },
        })?;
        Ok(Self { workspace })
    }

    fn checkpoint(&mut self) -> Result<Recorded> {
        Ok(checkpoint(&mut self.workspace, None)?)
    }

    /// An agent does a piece of work with its edit tool, announced and recorded; the point before it.
    fn agent_makes(&mut self, edits: &Edits) -> Result<PointId> {
        let session = SessionId(format!("{:016x}", (self.workspace.ambient.random)()));
        let call = CallId::from("1");
        let mut tell = |event: AgentEvent| record(&mut self.workspace, &event);
        tell(AgentEvent::SessionStart {
            session: session.clone(),
            agent: Some("bench".to_owned()),
            parent: None,
            owner: None,
        })?;
        let prompt = tell(AgentEvent::Prompt {
            session: session.clone(),
            message: None,
            text: "a piece of work".to_owned(),
        })?;
        let point = prompt.point.ok_or("a prompt makes a point")?;
        let touches = Touches::Paths(edits.paths().map(Path::to_owned).collect());
        let (session_of_call, tool) = (session.clone(), "Edit".to_owned());
        let before =
            AgentEvent::BeforeTool { session: session_of_call, call: call.clone(), tool, touches };
        tell(before)?;
        edits.make()?;
        tell(AgentEvent::AfterTool {
            session: session.clone(),
            call,
            outcome: Outcome::Done,
            report: takeback_core::CallReport::default(),
        })?;
        tell(AgentEvent::TurnEnd { session })?;
        Ok(point)
    }

    /// From the plan to the verified receipt.
    fn rewind(&mut self, point: PointId, exactness: Exactness) -> Result<Cost> {
        let request = RewindRequest { exactness, ..RewindRequest::new(Target::Point(point)) };
        let (receipt, cost) = inside(|| Ok(rewind(&mut self.workspace, &request, None)?))?;
        if receipt.success {
            Ok(cost)
        } else {
            Err(format!("the rewind had problems: {receipt:?}").into())
        }
    }
}
