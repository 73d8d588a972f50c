//! Takeback's store, opened anew for every point, as a hook does.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use takeback_bench::Result;
use takeback_core::retention::{Clock, Occasion, Policy, clean_up};
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, Limits, Outcome, Touches, Workspace, WorkspaceOptions, checkpoint, record,
};
use takeback_store::{CallId, SessionId, SqliteStates, SqliteStore, Timestamp};

use crate::Keeper;
use crate::peers::emptied;
use crate::tree::Tree;

/// How the points come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A point by hand behind the three edits, as peers make theirs.
    Checkpoints,
    /// A prompt, three calls of an edit tool, the end of the turn.
    Agent,
}

pub(crate) struct Takeback {
    tree: PathBuf,
    folder: PathBuf,
    manner: Manner,
}

impl Takeback {
    pub(crate) fn new(tree: &Tree, states: &Path, manner: Manner) -> Result<Self> {
        let name = match manner {
            Manner::Checkpoints => "takeback",
            Manner::Agent => "takeback-agent",
        };
        Ok(Self { tree: tree.root.clone(), folder: emptied(states.join(name))?, manner })
    }

    fn open(&self) -> Result<Workspace> {
        Ok(Workspace::open(WorkspaceOptions {
            root: self.tree.clone(),
            states: Arc::new(SqliteStates::at(&self.folder)),
            store_dir: self.folder.clone(),
            store: Box::new(SqliteStore::create(&self.folder)?),
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
        })?)
    }

    fn tell(&self, event: &AgentEvent) -> Result<()> {
        record(&mut self.open()?, event)?;
        Ok(())
    }

    fn turn(&self, tree: &Tree, round: usize) -> Result<()> {
        let session = SessionId::from("0f7c1c9e-5a0b-4f0e-9d0a-6a1d2c3b4e5f");
        let text = format!("please make the three edits of round {round}");
        let message = Some(format!("{round:08x}-5a0b-4f0e-9d0a-6a1d2c3b4e5f"));
        self.tell(&AgentEvent::Prompt { session: session.clone(), message, text })?;
        for (number, path) in tree.edited(round).enumerate() {
            let call = CallId(format!("toolu_01{round:011}{number:011}"));
            let touches = Touches::Paths(vec![tree.root.join(path)]);
            let (of, id, tool) = (session.clone(), call.clone(), "Edit".to_owned());
            self.tell(&AgentEvent::BeforeTool { session: of, call: id, tool, touches })?;
            tree.edit(path, round)?;
            let outcome = Outcome::Done;
            self.tell(&AgentEvent::AfterTool {
                session: session.clone(),
                call,
                outcome,
                report: takeback_core::CallReport::default(),
            })?;
        }
        self.tell(&AgentEvent::TurnEnd { session })
    }
}

impl Keeper for Takeback {
    fn name(&self) -> &'static str {
        match self.manner {
            Manner::Checkpoints => "takeback",
            Manner::Agent => "takeback, an agent's turns",
        }
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn first(&mut self) -> Result<()> {
        checkpoint(&mut self.open()?, None)?;
        Ok(())
    }

    fn point(&mut self, tree: &Tree, round: usize) -> Result<()> {
        if self.manner == Manner::Agent {
            return self.turn(tree, round);
        }
        tree.edited(round).try_for_each(|path| tree.edit(path, round))?;
        checkpoint(&mut self.open()?, None)?;
        Ok(())
    }

    /// As `cleanup`, with no point too many.
    fn tidy(&mut self) -> Result<bool> {
        let policy = Policy { points_per_session: usize::MAX, ..Policy::default() };
        clean_up(&mut self.open()?, &policy, Occasion::OnDemand, Clock::Trusted)?;
        Ok(true)
    }
}
