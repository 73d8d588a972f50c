//! The actions of [`Takeback`] other than a rewind: take back one turn, call or range, bring paths back,
//! settle conflicts, take back an earlier operation. Each is a plan with a preview, as a rewind is.

use std::path::Path;

use takeback_core::rewind::{
    AmbiguousPolicy, Choice, ConflictPolicy, IncomingChange, OpenConflict, RewindError,
    RewindRequest, RewindScope, Target, open_conflicts,
};
use takeback_core::{Workspace, look_around};
use takeback_store::{CallId, PointId, RewindId, SessionId};

use crate::commands::{adopt, resolve, restore, revert};
use crate::error::CommandError;
use crate::place;
use crate::questions::point_of;
use crate::takeback::{Rewind, Takeback};

/// Why an action could not be planned. Displays the cause and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ActionError {
    message: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl From<CommandError> for ActionError {
    fn from(error: CommandError) -> Self {
        Self { message: error.line(), source: error.source }
    }
}

impl From<RewindError> for ActionError {
    fn from(error: RewindError) -> Self {
        CommandError::from(error).into()
    }
}

/// What [`Takeback::revert`] takes back, and how.
#[derive(Debug, Clone)]
pub struct RevertQuery {
    /// The changes.
    pub what: RevertTarget,
    /// Only at these paths, as globs from the root; without any, at every path.
    pub paths: Vec<String>,
    /// What becomes of changes with an unclear author.
    pub ambiguous: AmbiguousPolicy,
    /// What becomes of lines that were changed again since.
    pub conflicts: ConflictPolicy,
}

impl RevertQuery {
    /// With the defaults: at every path, nothing unclear, conflicting lines stay.
    #[must_use]
    pub fn new(what: RevertTarget) -> Self {
        Self {
            what,
            paths: Vec::new(),
            ambiguous: AmbiguousPolicy::Leave,
            conflicts: ConflictPolicy::Keep,
        }
    }
}

/// Changes of agents that can be taken back alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevertTarget {
    /// What the agent did after this point and before the next one.
    Turn(PointId),
    /// What one tool call did.
    Call {
        /// The session of the call.
        session: SessionId,
        /// The call.
        call: CallId,
    },
    /// What agents did after one point, up to another.
    Range {
        /// The point before it.
        from: PointId,
        /// The point at its end; `None`: now.
        to: Option<PointId>,
        /// Whose changes; `None`: as of a rewind to `from`.
        scope: Option<RewindScope>,
    },
}

/// What [`Takeback::restore`] brings back.
#[derive(Debug, Clone)]
pub struct RestoreQuery {
    /// The paths become what they were at this point.
    pub from: PointId,
    /// Files, folders or globs, from the root; also of what is deleted now.
    pub paths: Vec<String>,
}

/// An open conflict, and how it is settled.
#[derive(Debug, Clone)]
pub struct SettledConflict {
    /// One of [`Takeback::conflicts`].
    pub conflict: OpenConflict,
    /// A choice for each of its places, or one for the file as a whole. `None`: this place stays open.
    pub choices: Vec<Option<Choice>>,
}

impl SettledConflict {
    /// The same choice for every place.
    #[must_use]
    pub fn new(conflict: OpenConflict, choice: &Choice) -> Self {
        let places = conflict.lines.len().max(1);
        Self { conflict, choices: vec![Some(choice.clone()); places] }
    }

    /// `None`: every place stays open.
    pub(crate) fn change(
        &self,
        workspace: &mut Workspace,
    ) -> Result<Option<IncomingChange>, RewindError> {
        self.conflict.settle(&mut *workspace.store, &self.choices)
    }
}

impl Takeback {
    /// Plans to take back one turn, one call or a range, and to keep everything later.
    ///
    /// ```
    /// # use takeback::{RevertQuery, RevertTarget, Takeback, Tool};
    /// # let (project, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let takeback = Takeback::open_with_home(project.path(), home.path())?;
    /// # let write = |name: &str| std::fs::write(project.path().join(name), "text\n");
    /// let first = takeback.prompt("s", "Add a")?;
    /// first.call("c1", Tool::edit("a.txt"), || write("a.txt"))?;
    /// let second = takeback.prompt("s", "Add b")?;
    /// second.call("c2", Tool::edit("b.txt"), || write("b.txt"))?;
    ///
    /// let query = RevertQuery::new(RevertTarget::Turn(first.point()));
    /// takeback.revert(&query)?.apply()?;
    /// assert!(!project.path().join("a.txt").exists());
    /// assert!(project.path().join("b.txt").exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn revert(&self, query: &RevertQuery) -> Result<Rewind, ActionError> {
        self.prepare(|workspace| {
            look_around(workspace)?;
            Ok(revert::request_for(workspace, query)?.request)
        })
    }

    /// Plans to bring paths back as they were at a point, whoever changed them since.
    ///
    /// ```
    /// # use takeback::{RestoreQuery, Takeback};
    /// # let (project, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let notes = project.path().join("notes.txt");
    /// # std::fs::write(&notes, "mine\n")?;
    /// # let takeback = Takeback::open_with_home(project.path(), home.path())?;
    /// let point = takeback.checkpoint(Some("before"))?;
    /// std::fs::remove_file(&notes)?;
    ///
    /// let paths = vec!["notes.txt".to_owned()];
    /// let plan = takeback.restore(&RestoreQuery { from: point, paths })?;
    /// assert_eq!(plan.preview().receipt().restored_files.len(), 1);
    /// assert!(plan.apply()?.success);
    /// assert!(notes.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(&self, query: &RestoreQuery) -> Result<Rewind, ActionError> {
        self.prepare(|workspace| {
            look_around(workspace)?;
            let point = point_of(workspace, query.from)?;
            Ok(restore::request_for(&point, &query.paths, query.paths.clone()))
        })
    }

    /// The conflicts that the last operation left and that are not settled yet, by path.
    pub fn conflicts(&self) -> Result<Vec<OpenConflict>, RewindError> {
        self.with_workspace(|workspace| open_conflicts(workspace))
    }

    /// Plans to settle conflicts as chosen. Settled places are no conflicts any more; the others stay open.
    ///
    /// ```
    /// # use takeback::core::rewind::Choice;
    /// # use takeback::{SettledConflict, Takeback, Tool};
    /// # let (project, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let file = project.path().join("a.txt");
    /// # std::fs::write(&file, "1\n2\n3\n4\n5\n")?;
    /// # let takeback = Takeback::open_with_home(project.path(), home.path())?;
    /// let turn = takeback.prompt("s", "Change both ends")?;
    /// let edit = || std::fs::write(&file, "one\n2\n3\n4\nfive\n");
    /// turn.call("c1", Tool::edit("a.txt"), edit)?;
    /// std::fs::write(&file, "one\n2\n3\n4\nfive, by me\n")?;
    /// takeback.rewind(turn.point())?.apply()?;
    /// assert_eq!(std::fs::read_to_string(&file)?, "1\n2\n3\n4\nfive, by me\n");
    ///
    /// let open = takeback.conflicts()?;
    /// let settled: Vec<SettledConflict> =
    ///     open.into_iter().map(|one| SettledConflict::new(one, &Choice::Before)).collect();
    /// takeback.resolve(&settled)?.apply()?;
    /// assert_eq!(std::fs::read_to_string(&file)?, "1\n2\n3\n4\n5\n");
    /// assert!(takeback.conflicts()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve(&self, settled: &[SettledConflict]) -> Result<Rewind, ActionError> {
        self.prepare(|workspace| {
            let mut changes = Vec::new();
            for one in settled {
                changes.extend(one.change(workspace)?);
            }
            let open: Vec<OpenConflict> = settled.iter().map(|one| one.conflict.clone()).collect();
            Ok(resolve::request(&open, changes)?.request)
        })
    }

    /// Plans to merge what happened in a fork since it was made. `folder`: absolute, or relative to the
    /// root. `paths`: only these, as globs from the root; without any, every path.
    ///
    /// ```
    /// # use takeback::core::fork::ForkExtent;
    /// # use takeback::core::rewind::ConflictPolicy;
    /// # use takeback::Takeback;
    /// # let (folders, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let (project, attempt) = (folders.path().join("project"), folders.path().join("try"));
    /// # std::fs::create_dir(&project)?;
    /// # std::fs::write(project.join("a.txt"), "1\n2\n3\n")?;
    /// # let takeback = Takeback::open_with_home(&project, home.path())?;
    /// let point = takeback.checkpoint(Some("before"))?;
    /// takeback.fork(point, &[&attempt], ForkExtent::Covered)?;
    /// std::fs::write(attempt.join("a.txt"), "1\n2\nthree\n")?;
    /// std::fs::write(project.join("a.txt"), "one\n2\n3\n")?;
    ///
    /// assert!(takeback.adopt(&attempt, &[], ConflictPolicy::Keep)?.apply()?.success);
    /// assert_eq!(std::fs::read_to_string(project.join("a.txt"))?, "one\n2\nthree\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn adopt(
        &self,
        folder: impl AsRef<Path>,
        paths: &[String],
        conflicts: ConflictPolicy,
    ) -> Result<Rewind, ActionError> {
        let home = self.lock().place_mut().home.clone();
        let home = place::home_of(Some(&home))?;
        self.prepare(|workspace| {
            look_around(workspace)?;
            let folder = workspace.root.path().join(folder);
            Ok(adopt::request(workspace, &home, &folder, paths.to_vec(), conflicts)?.request)
        })
    }

    /// Plans to take back one operation (a rewind, a revert, a restore …) and to keep the later ones.
    ///
    /// ```
    /// # use takeback::{Takeback, Tool};
    /// # let (project, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let file = project.path().join("a.txt");
    /// # let takeback = Takeback::open_with_home(project.path(), home.path())?;
    /// let turn = takeback.prompt("s", "Add a")?;
    /// turn.call("c1", Tool::edit("a.txt"), || std::fs::write(&file, "text\n"))?;
    /// let receipt = takeback.rewind(turn.point())?.apply()?;
    ///
    /// let operation = receipt.rewind.expect("it changed something");
    /// takeback.undo_operation(operation)?.apply()?;
    /// assert!(file.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn undo_operation(&self, operation: RewindId) -> Result<Rewind, RewindError> {
        self.plan(RewindRequest::new(Target::Operation(operation)))
    }

    fn prepare(
        &self,
        request: impl FnOnce(&mut Workspace) -> Result<RewindRequest, CommandError>,
    ) -> Result<Rewind, ActionError> {
        let request = self.with_workspace(request)?;
        Ok(self.plan(request)?)
    }
}
