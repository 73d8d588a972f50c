//! The error of a command: message, hints and exit code.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use rustix::io::Errno;
use takeback_core::execution::ExecutionError;
use takeback_core::fork::ForkError;
use takeback_core::record::RecordError;
use takeback_core::retention::CleanUpError;
use takeback_core::rewind::RewindError;
use takeback_core::worktree::StageError;
use takeback_core::{MarkError, PointNameError, WorkspaceError};
use takeback_store::{StateError, StoreError};

use crate::answers::ErrorAnswer;
use crate::place::quoted;
use crate::screen::{ERROR, HINT, count, plain};

/// Exit codes, as `docs/reference.md` promises them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Error = 1,
    Usage = 2,
    Partly = 3,
    Conflicts = 4,
    Nothing = 5,
    NoStore = 10,
    Locked = 11,
    CannotStart = 125,
}

#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: Kind,
    pub(crate) source: Box<dyn Error + Send + Sync>,
    /// What to do next.
    pub(crate) hints: Vec<String>,
}

impl CommandError {
    pub(crate) fn new(kind: Kind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into(), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Prints the error on standard error, as text or JSON.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let code = ExitCode::from(self.kind as u8);
        // `takeback log | head` is not a failure.
        if is_closed_pipe(&*self.source) {
            return ExitCode::SUCCESS;
        }
        let (message, hints) = self.words();
        let mut err = anstream::stderr().lock();
        let written = if json {
            let answer = ErrorAnswer { error: message, hints, code: self.kind as u8 };
            writeln!(err, "{}", serde_json::to_string(&answer).unwrap_or(answer.error))
        } else {
            writeln!(err, "{ERROR}takeback:{ERROR:#} {}", plain(&message)).and_then(|()| {
                let mut hints = hints.iter();
                hints.try_for_each(|hint| writeln!(err, "{HINT}  {}{HINT:#}", plain(hint)))
            })
        };
        // Standard error is closed; there is nowhere left to report this.
        drop(written);
        code
    }

    /// The message without the hints.
    pub(crate) fn what(&self) -> String {
        self.words().0
    }

    /// The hints.
    pub(crate) fn all_hints(&self) -> Vec<String> {
        self.words().1
    }

    /// Message and hints in one line.
    pub(crate) fn line(&self) -> String {
        let (message, hints) = self.words();
        let line =
            if hints.is_empty() { message } else { format!("{message}. {}", hints.join(" ")) };
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The message with its causes, and the hints.
    fn words(&self) -> (String, Vec<String>) {
        let mut message = self.source.to_string();
        let mut hints = self.hints.clone();
        if disk_problem(&*self.source) == Some(DiskProblem::Full) {
            hints.push("Free some disk space and try again; nothing was lost.".to_owned());
        }
        for cause in causes(&*self.source).skip(1) {
            let text = cause.to_string();
            // SQLite repeats its message, the second time with a number.
            if !message.ends_with(&text) && !text.starts_with("Error code ") {
                message = format!("{message}: {text}");
            }
        }
        (message, hints)
    }
}

/// An error, what caused it, what caused that.
pub(crate) fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}

/// A problem with the disk that users can fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskProblem {
    Full,
    /// Not writable for this user, or read-only.
    NotAllowed,
    Failing,
}

pub(crate) fn disk_problem(error: &(dyn Error + 'static)) -> Option<DiskProblem> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).find_map(
        |error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(DiskProblem::Full),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Some(DiskProblem::NotAllowed)
            }
            _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                Some(DiskProblem::Failing)
            }
            _ => None,
        },
    )
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether arguments that could not be parsed contain `--json`.
pub(crate) fn wants_json(args: impl Iterator<Item = OsString>) -> bool {
    args.take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

impl From<clap::Error> for CommandError {
    fn from(error: clap::Error) -> Self {
        if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Self::new(Kind::Usage, "a command is missing")
                .hint("`takeback --help` lists the commands.");
        }
        let text = error.render().to_string();
        // clap prints what is wrong, then advice, on separate lines.
        let mut parts = text.split("\n\n").map(|part| {
            part.lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        });
        let wrong = parts.next().unwrap_or_default();
        let wrong = wrong.strip_prefix("error: ").unwrap_or(&wrong).to_owned();
        let advice =
            parts.filter(|part| !part.is_empty() && !part.starts_with("For more information"));
        Self { kind: Kind::Usage, source: wrong.into(), hints: advice.collect() }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::new(Kind::Error, error)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(Kind::Error, error)
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        of_store(error, "Your files were not changed.")
    }
}

/// The hint for a missing database in a store that still has other files.
pub(crate) const LOST_DATABASE: &str = "Restore the file from a backup. Without one, `takeback forget` deletes the rest, and \
     recording starts over.";

/// The hint for a store written by a build before the first release.
pub(crate) const PRE_RELEASE: &str = "Remove it with `takeback forget`, or keep using that build.";

/// An error of the store; `files` says what that means for the user's files.
fn of_store(error: StoreError, files: &str) -> CommandError {
    let hint = match (&error, disk_problem(&error)) {
        (StoreError::Missing { .. }, _) => return no_store(error),
        (StoreError::Busy { .. }, _) => {
            return CommandError::new(Kind::Locked, error).hint("Try again in a moment.");
        }
        (StoreError::Newer { .. }, _) => "Update Takeback; nothing was changed.".to_owned(),
        (StoreError::LostDatabase { .. }, _) => format!("{LOST_DATABASE} {files}"),
        (StoreError::PreRelease { .. }, _) => format!("{PRE_RELEASE} {files}"),
        (StoreError::Foreign { .. }, _) => {
            "Move it aside, or choose another folder with --home or TAKEBACK_HOME.".to_owned()
        }
        // [`Self::words`] adds the hint for a full disk.
        (_, Some(DiskProblem::Full)) => return CommandError::new(Kind::Error, error),
        (_, Some(DiskProblem::NotAllowed)) => format!(
            "Make the store readable and writable, or choose another home with --home or \
             TAKEBACK_HOME. {files}"
        ),
        (_, Some(DiskProblem::Failing)) => {
            format!("The disk is full or failing: fix that and try again. {files}")
        }
        // It cannot be opened, so it cannot be verified either.
        (StoreError::DamagedDatabase { .. }, _) => format!(
            "Restore the store's folder from a backup, or move it away to start over. {files}"
        ),
        (
            StoreError::Database { .. }
            | StoreError::DamagedRecord { .. }
            | StoreError::DamagedBlob { .. }
            | StoreError::MissingBlob { .. },
            _,
        ) => format!("`takeback verify` shows what is damaged. {files}"),
        _ => return CommandError::new(Kind::Error, error),
    };
    CommandError::new(Kind::Error, error).hint(hint)
}

pub(crate) fn no_store(source: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
    CommandError::new(Kind::NoStore, source)
        .hint("`takeback run -- CMD` or `takeback checkpoint` protects this folder.")
}

impl From<ForkError> for CommandError {
    fn from(error: ForkError) -> Self {
        let hint = match &error {
            ForkError::Store(_) => return of_fork_store(error),
            ForkError::Busy { .. } => return locked(error),
            ForkError::Refused { .. } | ForkError::NotEmpty { .. } => {
                return Self::new(Kind::Usage, error).hint("Name a new or an empty folder.");
            }
            ForkError::NoFork { .. } => {
                return Self::new(Kind::Usage, error).hint(
                    "`takeback fork POINT DIR` makes one; `takeback workspaces` lists them.",
                );
            }
            ForkError::OtherFork { folder } => format!(
                "Choose another folder, or remove it: `rm -r {}`, then `takeback forget {}`.",
                quoted(folder),
                quoted(folder)
            ),
            ForkError::Unfinished { folder } => format!(
                "Run the same `takeback fork` again to finish it, or remove it: `rm -r {}`.",
                quoted(folder)
            ),
            ForkError::InTheWay { .. } => {
                "It was not overwritten. Move it away and run the command again, or choose \
                 another folder."
                    .to_owned()
            }
            ForkError::Write { folder, .. } => format!(
                "Run the command again to continue, or remove the unfinished fork: `rm -r {}`.",
                quoted(folder)
            ),
            ForkError::Damaged { .. } => {
                "What the fork was at its start is lost; its files are not affected.".to_owned()
            }
            ForkError::Changed { .. } => "Try again when nothing writes there.".to_owned(),
            ForkError::Unusable { .. } | ForkError::Scan(_) => {
                return Self::new(Kind::Error, error);
            }
        };
        Self::new(Kind::Error, error).hint(hint)
    }
}

fn of_fork_store(error: ForkError) -> CommandError {
    match error {
        ForkError::Store(error) => error.into(),
        other => CommandError::new(Kind::Error, other),
    }
}

impl From<WorkspaceError> for CommandError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Store(error) => error.into(),
            WorkspaceError::Refused { .. } => Self::new(Kind::Usage, error),
            WorkspaceError::Unreachable { .. } => Self::new(Kind::Error, error),
        }
    }
}

pub(crate) fn locked(error: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
    CommandError::new(Kind::Locked, error).hint("Wait until it is done, then try again.")
}

impl From<RecordError> for CommandError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Store(error) => error.into(),
            RecordError::Locked => locked(error),
            RecordError::LabelTaken { .. } => {
                Self::new(Kind::Usage, error).hint("Choose another label.")
            }
            RecordError::Scan(_) => Self::new(Kind::Error, error),
        }
    }
}

impl From<MarkError> for CommandError {
    fn from(error: MarkError) -> Self {
        match error {
            MarkError::Store(error) => error.into(),
            MarkError::NoPoint(_) => {
                Self::new(Kind::Error, error).hint("`takeback log` lists the points.")
            }
            MarkError::Safety(_) => Self::new(Kind::Usage, error)
                .hint("`takeback checkpoint LABEL` makes a point that does not expire."),
            MarkError::LabelTaken { .. } | MarkError::NotALabel { .. } => {
                Self::new(Kind::Usage, error).hint("Choose another label.")
            }
        }
    }
}

impl From<CleanUpError> for CommandError {
    fn from(error: CleanUpError) -> Self {
        match error {
            CleanUpError::Store(error) => error.into(),
            CleanUpError::Record(error) => error.into(),
            CleanUpError::Rewind(error) => (*error).into(),
            CleanUpError::State(error) => error.into(),
            CleanUpError::Locked => locked(error),
            CleanUpError::NoSession(_) => {
                Self::new(Kind::Error, error).hint("`takeback sessions` lists the sessions.")
            }
        }
    }
}

impl From<RewindError> for CommandError {
    fn from(error: RewindError) -> Self {
        match error {
            // The error may have come after the journal was written.
            RewindError::Store(error) => {
                of_store(error, "If the rewind had begun, the next command finishes it.")
            }
            RewindError::Record(error) => error.into(),
            RewindError::State(error) => error.into(),
            RewindError::Locked => locked(error),
            RewindError::NothingToUndo | RewindError::NothingToRedo => {
                Self::new(Kind::Nothing, error)
            }
            RewindError::TakenBack(_) => Self::new(Kind::Nothing, error)
                .hint("`takeback redo` takes the last undo back; `takeback log --ops` lists all."),
            RewindError::NoOperation(_) => {
                Self::new(Kind::Error, error).hint("`takeback log --ops` lists the operations.")
            }
            RewindError::SessionDeleted => Self::new(Kind::Nothing, error)
                .hint("`takeback log` lists the points that are left."),
            RewindError::RewoundNothing => Self::new(Kind::Nothing, error)
                .hint("`takeback undo` once more takes back the rewind before it."),
            RewindError::Pattern { .. } => Self::new(Kind::Usage, error),
            RewindError::NotChanged { .. } => Self::new(Kind::Usage, error)
                .hint("`takeback rewind POINT --dry-run` lists the files that have."),
            RewindError::NoPoint(_) => {
                Self::new(Kind::Error, error).hint("`takeback log` lists the points.")
            }
            RewindError::Stage(_) => {
                let hint = match (&error, disk_problem(&error)) {
                    (_, Some(DiskProblem::NotAllowed)) => {
                        Some("Make the folder writable and try again.")
                    }
                    (RewindError::Stage(StageError::Contents { .. }), _) => {
                        Some("`takeback verify` shows what is damaged.")
                    }
                    (RewindError::Stage(StageError::InTheWay), _) => Some("Move it aside."),
                    _ => None,
                };
                let mut refusal = Self::new(Kind::Error, error).hint("Nothing was changed.");
                refusal.hints.extend(hint.map(str::to_owned));
                refusal
            }
            RewindError::Unfinished { .. } => Self::new(Kind::Error, error).hint(
                "Fix the disk, then run `takeback recover` to continue the rewind. The next \
                 command that changes something does the same.",
            ),
            RewindError::NotClosed { ref receipt, .. } => {
                let places = [&receipt.restored_files, &receipt.deleted_files].map(Vec::len);
                let files = count(places[0] + places[1] + receipt.merged_files.len(), "path");
                Self::new(Kind::Error, error).hint(format!(
                    "{files} of the rewind are in place. Fix the disk, then run `takeback recover`: it \
                     finishes the rewind or takes it back, and says which. `takeback undo` takes \
                     back a finished one."
                ))
            }
            RewindError::Stages { .. } => Self::new(Kind::Error, error)
                .hint("Takeback needs the folder .takeback in the workspace: check what is there."),
            RewindError::UnwritablePlan { .. } => {
                Self::new(Kind::Error, error).hint("Nothing was changed.")
            }
            RewindError::Changed(_) | RewindError::NoState | RewindError::DamagedPlan { .. } => {
                Self::new(Kind::Error, error)
            }
        }
    }
}

impl From<StateError> for CommandError {
    fn from(error: StateError) -> Self {
        let (kind, hint) = match error {
            StateError::Store(error) => return error.into(),
            StateError::Conflict { .. } | StateError::Taken { .. } => (
                Kind::Conflicts,
                "Another process saved in the meantime: `takeback state list` shows the newest checkpoint.",
            ),
            StateError::NotFound { .. } | StateError::MissingParent { .. } => {
                (Kind::Error, "`takeback state list EXECUTION` lists its checkpoints.")
            }
            StateError::NoExecution(_) => {
                (Kind::Error, "`takeback state list` lists the executions.")
            }
            StateError::NoBranch { .. } | StateError::NoLine { .. } => {
                (Kind::Error, "`takeback state list` names the branches.")
            }
            StateError::BranchExists { .. } => (Kind::Usage, "Choose another name."),
            StateError::InvalidKey(_) => (Kind::Usage, "See `takeback state --help`."),
            StateError::Locked { .. } => (Kind::Locked, "Try again in a moment."),
            StateError::Newer { .. } => (Kind::Error, "Update Takeback; nothing was changed."),
            StateError::Damaged { .. } => {
                (Kind::Error, "`takeback verify` shows what else is damaged.")
            }
            StateError::NoSuccessBefore { .. } => {
                (Kind::Error, "Start the execution from its first step.")
            }
            StateError::RetriesExhausted { .. } => (
                Kind::Error,
                "Raise --max-retries to try again; a success of the step resets the count.",
            ),
            StateError::Unsupported { .. }
            | StateError::NoIntent { .. }
            | StateError::Unserialisable { .. }
            | StateError::NotCommitted { .. }
            | StateError::Io { .. } => return Self::new(Kind::Error, error),
        };
        Self::new(kind, error).hint(hint)
    }
}

impl From<ExecutionError> for CommandError {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::State(error) => error.into(),
            ExecutionError::Record(error) => error.into(),
            ExecutionError::Rewind(error) => (*error).into(),
            ExecutionError::NoFiles { .. } | ExecutionError::FilesGone { .. } => {
                Self::new(Kind::Error, error).hint("--state-only restores only the state.")
            }
        }
    }
}

/// Whether git reads the name as a commit, and no point has such a name. A point's id has 16 digits.
fn is_commit(name: &str) -> bool {
    let is_head = name
        .strip_prefix("HEAD")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '^', '@']));
    let is_hash = (17..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit());
    is_head || is_hash || name.starts_with("refs/") || name.starts_with("origin/")
}

impl From<PointNameError> for CommandError {
    fn from(error: PointNameError) -> Self {
        let hint = match &error {
            PointNameError::NoPoints => "`takeback checkpoint` makes one.".to_owned(),
            PointNameError::NotFound { nearest: Some(nearest), .. } => {
                format!("Did you mean {nearest}? `takeback log` lists the points.")
            }
            PointNameError::NotFound { name, .. } if is_commit(name) => {
                "A commit of git is not a point. `takeback log` lists the points.".to_owned()
            }
            PointNameError::NotFound { .. } => "`takeback log` lists the points.".to_owned(),
            PointNameError::Several { .. } => "Name one of them by its id.".to_owned(),
        };
        Self::new(Kind::Error, error).hint(hint)
    }
}
