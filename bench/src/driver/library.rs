//! Takeback as a library, in this process, and the events that an agent would send it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use takeback_core::retention::{Clock, Occasion, Policy, clean_up};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target, rewind};
use takeback_core::worktree::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, CallReport, CallTargets, Limits, Outcome, RecordOutcome, Workspace,
    WorkspaceOptions, checkpoint, record, system_random,
};
use takeback_store::{CallId, PointId, SessionId, SqliteStates, SqliteStore};

use super::{Driver, EditSource, Tool, WorkFolders};
use crate::Result;
use crate::edits::Edits;
use crate::measure::{Cost, inside, timed};
use crate::scratch::make_empty;

/// How points are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By checkpoints in a workspace that stays open.
    KeptOpen,
    /// By checkpoints in a workspace that is opened for each.
    Reopened,
    /// By an agent's turns, the workspace opened for each event, as hooks do.
    AgentTurns,
}

pub(crate) struct Library {
    tree: PathBuf,
    store: PathBuf,
    mode: Mode,
    workspace: Option<Workspace>,
    last: Option<RecordOutcome>,
}

const NO_POINT: &str = "there is no point yet";

impl Library {
    pub(crate) fn new(site: &WorkFolders, mode: Mode) -> Self {
        let store = site.states.join(format!("takeback-{mode:?}"));
        Self { tree: site.tree.clone(), store, mode, workspace: None, last: None }
    }

    fn open(&mut self) -> Result<Workspace> {
        self.workspace.take().map_or_else(|| open_workspace(&self.tree, &self.store), Ok)
    }
}

impl Driver for Library {
    fn tool(&self) -> Tool {
        Tool::Library
    }

    fn reset(&mut self) -> Result<()> {
        (self.workspace, self.last) = (None, None);
        make_empty(&self.store)
    }

    fn make_point(&mut self) -> Result<Cost> {
        let ((workspace, recorded), cost) = inside(|| {
            let mut workspace = self.open()?;
            let recorded = checkpoint(&mut workspace, None)?;
            Ok(((self.mode == Mode::KeptOpen).then_some(workspace), recorded))
        })?;
        (self.workspace, self.last) = (workspace, Some(recorded));
        Ok(cost)
    }

    fn files(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.last.as_ref().ok_or(NO_POINT)?.stats.files)?)
    }

    fn changed(&mut self) -> Result<usize> {
        Ok(self.last.as_ref().ok_or(NO_POINT)?.changes)
    }

    fn store_edits(&mut self, edits: &Edits) -> Result<()> {
        if self.mode != Mode::AgentTurns {
            edits.make()?;
            return self.make_point().map(drop);
        }
        let session = SessionId::from("0f7c1c9e-5a0b-4f0e-9d0a-6a1d2c3b4e5f");
        let record =
            |event: &AgentEvent| Ok(record(&mut open_workspace(&self.tree, &self.store)?, event)?);
        let mut agent = Agent { session, record };
        agent.prompt(Some(random_id()), "please make the three edits of this round")?;
        for path in edits.paths() {
            let targets = CallTargets::Paths(vec![path.to_owned()]);
            agent.call(&random_id(), targets, || edits.make_one(path))?;
        }
        agent.end_turn()
    }

    fn rewind(&mut self, edits: &Edits, source: EditSource) -> Result<Cost> {
        let workspace = self.workspace.as_mut().ok_or(NO_POINT)?;
        let (point, exactness) = match source {
            EditSource::Agent => (Agent::of(workspace).make(edits)?, Exactness::AgentsOnly),
            EditSource::Unannounced => {
                edits.make()?;
                let last = self.last.as_ref().and_then(|last| last.point);
                (last.ok_or(NO_POINT)?, Exactness::Exact)
            }
        };
        let request = RewindRequest { exactness, ..RewindRequest::new(Target::Point(point)) };
        let (receipt, cost) = inside(|| Ok(rewind(workspace, &request, None)?))?;
        if receipt.success { Ok(cost) } else { Err(format!("incomplete: {receipt:?}").into()) }
    }

    /// As `takeback cleanup`, but every point stays.
    fn clean_up(&mut self) -> Result<()> {
        let policy = Policy { points_per_session: usize::MAX, ..Policy::default() };
        clean_up(&mut self.open()?, &policy, Occasion::OnDemand, Clock::Trusted)?;
        Ok(())
    }

    fn store(&self) -> &Path {
        &self.store
    }
}

/// An agent's session; `record` receives its events.
pub(crate) struct Agent<R> {
    pub(crate) session: SessionId,
    pub(crate) record: R,
}

impl Agent<()> {
    /// A new session in a workspace that is open.
    pub(crate) fn of(
        workspace: &mut Workspace,
    ) -> Agent<impl FnMut(&AgentEvent) -> Result<RecordOutcome>> {
        let record = |event: &AgentEvent| Ok(record(workspace, event)?);
        Agent { session: SessionId(random_id()), record }
    }
}

impl<R: FnMut(&AgentEvent) -> Result<RecordOutcome>> Agent<R> {
    pub(crate) fn prompt(&mut self, message: Option<String>, text: &str) -> Result<PointId> {
        let (session, text) = (self.session.clone(), text.to_owned());
        let recorded = (self.record)(&AgentEvent::Prompt { session, message, text, model: None })?;
        Ok(recorded.point.ok_or("a prompt makes a point")?)
    }

    /// Announces a call, lets `work` change files, and reports its end. Answers what the announcement
    /// recorded, and how many milliseconds it took.
    pub(crate) fn call(
        &mut self,
        call: &str,
        touches: CallTargets,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<(RecordOutcome, f64)> {
        let tool =
            if matches!(touches, CallTargets::Paths(_)) { "Edit" } else { "Bash" }.to_owned();
        let (session, call) = (self.session.clone(), CallId::from(call));
        let before = AgentEvent::BeforeTool { session, call: call.clone(), tool, touches };
        let announced = timed(|| (self.record)(&before))?;
        work()?;
        let (session, outcome) = (self.session.clone(), Outcome::Done);
        let report = CallReport::default();
        (self.record)(&AgentEvent::AfterTool { session, call, outcome, report })?;
        Ok(announced)
    }

    pub(crate) fn end_turn(&mut self) -> Result<()> {
        (self.record)(&AgentEvent::TurnEnd { session: self.session.clone(), model: None }).map(drop)
    }

    /// A turn that makes the edits in one call; the point before it.
    pub(crate) fn make(&mut self, edits: &Edits) -> Result<PointId> {
        (self.record)(&AgentEvent::SessionStart {
            session: self.session.clone(),
            agent: Some("bench".to_owned()),
            parent: None,
            owner: None,
            model: None,
        })?;
        let point = self.prompt(None, "a piece of work")?;
        let targets = CallTargets::Paths(edits.paths().map(Path::to_owned).collect());
        self.call("1", targets, || edits.make())?;
        self.end_turn()?;
        Ok(point)
    }
}

/// Opens a workspace as the command does. Creates the store if there is none.
pub(crate) fn open_workspace(tree: &Path, store_dir: &Path) -> Result<Workspace> {
    open_with_store(tree, store_dir, SqliteStore::create(store_dir)?)
}

pub(crate) fn open_with_store(
    tree: &Path,
    store_dir: &Path,
    store: SqliteStore,
) -> Result<Workspace> {
    Ok(Workspace::open(WorkspaceOptions {
        root: tree.to_owned(),
        states: Arc::new(SqliteStates::at(store_dir)),
        store_dir: store_dir.to_owned(),
        store: Box::new(store),
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient::system(),
    })?)
}

/// The store of the only workspace that the command has in this home.
pub(crate) fn only_store(home: &Path) -> Result<PathBuf> {
    let mut stores = fs::read_dir(home.join("workspaces"))?;
    Ok(stores.next().ok_or("the command created no store")??.path())
}

pub(crate) fn random_id() -> String {
    format!("{:016x}{:016x}", system_random(), system_random())
}
