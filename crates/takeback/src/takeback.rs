//! [`Takeback`]: the front door for Rust programs. Opens a workspace with the program's own settings and
//! defaults, records what an agent does, and takes it back.
//!
//! Its questions (who wrote a line, what a prompt changed) are in [`crate::questions`].
//! Everything here is a shortcut to `takeback-core`; [`Takeback::with_workspace`] gives access to the rest.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takeback_core::execution::{self, ExecutionError, ResumeState, RollbackFiles};
use takeback_core::history::{self, FileCheckpoint};
use takeback_core::record::RecordError;
use takeback_core::retention::{
    CleanUpError, CleanUpReport, Clock, Occasion, clean_up, enforce_point_limit,
};
use takeback_core::rewind::Preview;
use takeback_core::rewind::needs_recovery;
use takeback_core::rewind::{
    Receipt, RewindError, RewindRequest, Target, preview, recover, rewind,
};
use takeback_core::{AgentEvent, RecordOutcome, Tools, Workspace, record, record_late_events};
use takeback_store::state::{
    CheckpointId, ExecutionId, NewCheckpoint, SaveOutcome, Status, StepIndex, Values,
};
use takeback_store::{Digest, Point, PointId, SessionId, StateError, States, StoreError};

use crate::error::CommandError;
use crate::place::{self, Place, Store};
use crate::point;
use crate::turn::{RecordingGap, Turn};

/// A protected folder. Clones share it; calls from several threads take turns.
#[derive(Clone)]
pub struct Takeback {
    shared: Arc<Mutex<SharedWorkspace>>,
}

pub(crate) struct SharedWorkspace {
    place: Place,
    /// Sessions that this process has introduced.
    sessions: HashSet<SessionId>,
    unrecorded: Vec<RecordingGap>,
}

/// An agent's state after one step of its work.
#[derive(Debug, Clone, Default)]
pub struct Step<'a> {
    /// The run that the step belongs to.
    pub execution: &'a str,
    /// Its number. Steps are in order by it.
    pub index: u32,
    /// A name for people.
    pub name: &'a str,
    /// What [`Takeback::resume`] returns.
    pub values: Values,
    /// Why the step failed, if it did.
    pub error: Option<&'a str>,
    /// The session that did the work; `None`: one with the execution's name.
    pub session: Option<&'a str>,
}

/// Why a folder could not be opened or a point could not be found. Displays the cause and what to do about
/// it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    message: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl From<CommandError> for OpenError {
    fn from(error: CommandError) -> Self {
        Self { message: error.line(), source: error.source }
    }
}

impl Takeback {
    /// Protects `folder`, or opens it if it is already protected.
    ///
    /// Uses what the program would use: the nearest protected folder or project above `folder`, the
    /// store below `TAKEBACK_HOME` or `~/.takeback`, and the settings of the user and the project. A
    /// rewind that a crash interrupted is finished first.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenError> {
        Ok(Self::open_in(folder.as_ref(), &place::home_of(None)?, Store::Create)?)
    }

    /// Like [`Takeback::open`], with another home than `~/.takeback`. Writes nothing outside of it, so a
    /// store that is deleted with its home is not reported as lost.
    pub fn open_with_home(
        folder: impl AsRef<Path>,
        home: impl AsRef<Path>,
    ) -> Result<Self, OpenError> {
        let home = place::home_of(Some(home.as_ref()))?;
        Ok(Self::open_in(folder.as_ref(), &home, Store::Temporary)?)
    }

    fn open_in(folder: &Path, home: &Path, store: Store) -> Result<Self, CommandError> {
        let root = place::root_of(&place::existing_folder(folder)?, home);
        let prepared = place::prepare_at(root, home.to_owned())?;
        if let Some(refusal) = prepared.refusal() {
            return Err(refusal);
        }
        let mut place = prepared.open(store)?;
        if needs_recovery(&place.workspace)? {
            recover(&mut place.workspace)?;
        }
        record_late_events(&mut place.workspace)?;
        let shared = SharedWorkspace { place, sessions: HashSet::new(), unrecorded: Vec::new() };
        Ok(Self { shared: Arc::new(Mutex::new(shared)) })
    }

    /// The folder that is protected.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.lock().place.workspace.root.path().to_owned()
    }

    /// Starts a session. Optional: the first prompt or call of a session starts it, too.
    ///
    /// `agent` is a name for people; `parent` is the session that this one continues. The session ends
    /// with this process, or with [`Takeback::end_session`].
    pub fn start_session(
        &self,
        session: &str,
        agent: Option<&str>,
        parent: Option<&str>,
    ) -> Result<(), RecordError> {
        self.lock().start(&SessionId::from(session), agent, parent)
    }

    /// Ends a session: what changes from now on is not its work.
    pub fn end_session(&self, session: &str) -> Result<(), RecordError> {
        let session = SessionId::from(session);
        let mut shared = self.lock();
        shared.sessions.remove(&session);
        record(&mut shared.place.workspace, &AgentEvent::SessionEnd { session, model: None })
            .map(drop)
    }

    /// Records a prompt and makes a point: the tree as the agent finds it.
    ///
    /// [`RecordError::Locked`]: another process kept the workspace locked. The prompt is queued and gets
    /// its point later.
    pub fn prompt(&self, session: &str, text: &str) -> Result<Turn, RecordError> {
        self.prompt_as(session, None, text)
    }

    /// Like [`Takeback::prompt`], for a message with an id. `SESSION:MESSAGE` then names the point, too.
    pub fn prompt_as(
        &self,
        session: &str,
        message: Option<&str>,
        text: &str,
    ) -> Result<Turn, RecordError> {
        let session = SessionId::from(session);
        let mut shared = self.lock();
        shared.introduce(&session)?;
        let event = AgentEvent::Prompt {
            session: session.clone(),
            message: message.map(str::to_owned),
            text: text.to_owned(),
            model: None,
        };
        let recorded = shared.record("", &event)?;
        let point = recorded.point.ok_or(RecordError::Locked)?;
        let policy = shared.place.settings.retention();
        // The next cleanup drops excess points at the latest.
        drop(enforce_point_limit(&mut shared.place.workspace, &policy));
        Ok(Turn { takeback: self.clone(), session, point })
    }

    /// Makes a point of the tree as it is, for all agents.
    pub fn checkpoint(&self, label: Option<&str>) -> Result<PointId, OpenError> {
        if let Some(label) = label {
            point::check_label(label)?;
        }
        let mut shared = self.lock();
        let recorded = takeback_core::checkpoint(&mut shared.place.workspace, label)
            .map_err(CommandError::from)?;
        Ok(recorded.point.expect("a checkpoint makes a point"))
    }

    /// All points, oldest first.
    pub fn points(&self) -> Result<Vec<Point>, StoreError> {
        self.lock().place.workspace.store.points()
    }

    /// The point that `name` means, as on the command line: `@`, `@~2`, an id, a label, a message id,
    /// `SESSION:MESSAGE`, or a time such as `10m`.
    pub fn point(&self, name: &str) -> Result<PointId, OpenError> {
        let shared = self.lock();
        Ok(point::find_in(&*shared.place.workspace.store, name)?.id)
    }

    /// Plans to take back what the point's session did since. Nothing changes before
    /// [`Rewind::apply`].
    pub fn rewind(&self, point: PointId) -> Result<Rewind, RewindError> {
        self.plan(RewindRequest::new(Target::Point(point)))
    }

    /// Plans to take back the newest rewind.
    pub fn undo(&self) -> Result<Rewind, RewindError> {
        self.plan(RewindRequest::new(Target::Undo))
    }

    /// Plans to take back the newest undo.
    pub fn redo(&self) -> Result<Rewind, RewindError> {
        self.plan(RewindRequest::new(Target::Redo))
    }

    /// Plans any rewind: single paths, other sessions, everything as it was.
    pub fn plan(&self, request: RewindRequest) -> Result<Rewind, RewindError> {
        let shown = preview(&mut self.lock().place.workspace, &request)?;
        Ok(Rewind { takeback: self.clone(), request, shown })
    }

    /// The contents of each path before this session's calls changed it, oldest first.
    pub fn file_checkpoints(&self, session: &str) -> Result<Vec<FileCheckpoint>, StoreError> {
        let shared = self.lock();
        history::file_checkpoints(&*shared.place.workspace.store, &SessionId::from(session))
    }

    /// The bytes with this digest, verified.
    pub fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.lock().place.workspace.store.contents(digest)
    }

    /// Deletes expired points and reclaims disk space, by the settings `pointsPerSession`,
    /// `archiveDays` and `maxStoreBytes`.
    pub fn cleanup(&self) -> Result<CleanUpReport, CleanUpError> {
        let mut shared = self.lock();
        let policy = shared.place.settings.retention();
        clean_up(&mut shared.place.workspace, &policy, Occasion::OnDemand, Clock::Doubted)
    }

    /// Saves an agent's state at a step, together with its files.
    pub fn save_step(&self, step: &Step<'_>) -> Result<SaveOutcome, ExecutionError> {
        let execution = ExecutionId::new(step.execution).map_err(StateError::from)?;
        let session = step.session.map(SessionId::from);
        let mut shared = self.lock();
        let new = NewCheckpoint {
            status: if step.error.is_some() { Status::Failed } else { Status::Success },
            error: step.error,
            session: session.as_ref(),
            ..NewCheckpoint::success(
                &execution,
                StepIndex(step.index),
                step.name,
                (shared.place.workspace.ambient.now)(),
                &step.values,
            )
        };
        let (saved, recorded) = execution::save_step(&mut shared.place.workspace, &new)?;
        shared.note_missing("", &recorded);
        Ok(saved)
    }

    /// Where the states of agents are kept.
    #[must_use]
    pub fn states(&self) -> Arc<dyn States> {
        Arc::clone(&self.lock().place.workspace.states)
    }

    /// The state in a checkpoint, for the agent to continue from.
    pub fn resume(&self, id: &CheckpointId) -> Result<ResumeState, StateError> {
        execution::resume(&*self.lock().place.workspace.states, id)
    }

    /// Takes an agent's state and its files back to a checkpoint, or neither.
    pub fn rollback(&self, id: &CheckpointId) -> Result<Receipt, ExecutionError> {
        let mut shared = self.lock();
        let record = shared.place.workspace.states.find(id)?;
        let key = record.ok_or_else(|| StateError::NotFound { id: id.clone() })?.key;
        execution::rollback_to(&mut shared.place.workspace, &key, RollbackFiles::All)
    }

    /// Returns what could not be recorded since the last call, and forgets it. The tools ran anyway; the log
    /// has a gap there.
    #[must_use]
    pub fn unrecorded(&self) -> Vec<RecordingGap> {
        std::mem::take(&mut self.lock().unrecorded)
    }

    /// Calls `work` with the workspace, for what has no method here.
    pub fn with_workspace<R>(&self, work: impl FnOnce(&mut Workspace) -> R) -> R {
        work(&mut self.lock().place.workspace)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SharedWorkspace> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Takeback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Takeback").field(&self.root()).finish()
    }
}

impl SharedWorkspace {
    pub(crate) fn place_mut(&mut self) -> &mut Place {
        &mut self.place
    }

    /// Starts the session unless this process has done so.
    pub(crate) fn introduce(&mut self, session: &SessionId) -> Result<(), RecordError> {
        if self.sessions.contains(session) { Ok(()) } else { self.start(session, None, None) }
    }

    fn start(
        &mut self,
        session: &SessionId,
        agent: Option<&str>,
        parent: Option<&str>,
    ) -> Result<(), RecordError> {
        let event = AgentEvent::SessionStart {
            session: session.clone(),
            agent: agent.map(str::to_owned),
            parent: parent.map(SessionId::from),
            owner: place::this_process(),
            model: None,
        };
        record(&mut self.place.workspace, &event)?;
        self.sessions.insert(session.clone());
        Ok(())
    }

    /// Records an event of `call`, and keeps what could not be captured for [`Takeback::unrecorded`].
    pub(crate) fn record(
        &mut self,
        call: &str,
        event: &AgentEvent,
    ) -> Result<RecordOutcome, RecordError> {
        let recorded = record(&mut self.place.workspace, event)?;
        self.note_missing(call, &recorded);
        Ok(recorded)
    }

    fn note_missing(&mut self, call: &str, recorded: &RecordOutcome) {
        let missing = recorded.not_captured.iter().cloned();
        self.unrecorded.extend(missing.map(|(path, reason)| RecordingGap::Contents {
            call: call.to_owned(),
            path,
            reason,
        }));
    }

    /// Like [`SharedWorkspace::record`], for an event whose failure must not fail the agent.
    pub(crate) fn record_or_note(&mut self, call: &str, event: &AgentEvent) {
        if let Err(source) = self.record(call, event) {
            self.unrecorded.push(RecordingGap::Event { call: call.to_owned(), source });
        }
    }

    pub(crate) fn tools(&self) -> Tools {
        self.place.settings.tools()
    }
}

/// A rewind that is planned but not applied.
#[derive(Debug)]
pub struct Rewind {
    takeback: Takeback,
    request: RewindRequest,
    shown: Preview,
}

impl Rewind {
    /// What it would do, file by file.
    #[must_use]
    pub fn preview(&self) -> &Preview {
        &self.shown
    }

    /// Applies the rewind and returns what happened, verified on disk. If the files have changed since the
    /// plan was made, changes nothing and returns [`RewindError::Changed`].
    pub fn apply(self) -> Result<Receipt, RewindError> {
        let mut shared = self.takeback.lock();
        rewind(&mut shared.place.workspace, &self.request, Some(&self.shown))
    }
}
