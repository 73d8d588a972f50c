//! The user's git repository. Only `write_notes` and `commit_writer` write to it, when the user asks for
//! that; nothing runs its hooks or filters, or contacts a remote.
//!
//! The checked out commit is read from the repository's files ([`git_state`]), because every point needs
//! it. Everything else is asked of the `git` program, and only when a question needs it.

mod commit_blame;
mod commit_origin;
mod commit_writer;
mod commits;
mod head;
mod named_commits;
mod notes;
mod status;
mod text_blame;
mod versions;
mod write_notes;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

pub use self::commit_blame::CommitLine;
pub(crate) use self::commit_writer::{CommitWriter, IndexEntry, NewBranch, NewCommit};
pub(crate) use self::commits::ListedCommit;
pub use self::head::{HeadMove, git_state};
pub(crate) use self::named_commits::{NamedCommit, is_text};
pub(crate) use self::status::FileStatus;
pub(crate) use self::versions::PathVersion;
pub(crate) use self::write_notes::{GitUser, NewNote, WrittenNotes};

/// A repository with a working tree.
#[derive(Debug, Clone)]
pub struct Repository {
    top: PathBuf,
    /// How long one git command may take; `None`: as long as it needs.
    time_limit: Option<Duration>,
}

/// A commit, as far as attribution needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    /// Its id in full.
    pub id: String,
    /// The author's name.
    pub name: String,
    /// The author's address.
    pub email: String,
    /// When it was written, in seconds since 1970. A rebase keeps it.
    pub authored_at: i64,
    /// When this commit was made, in seconds since 1970.
    pub committed_at: i64,
    /// The first line of its message.
    pub summary: String,
}

impl Commit {
    /// Who wrote it and when: what a rebase, a cherry-pick or an amendment keeps.
    #[must_use]
    pub fn authorship(&self) -> (i64, &str, &str) {
        (self.authored_at, &self.email, &self.name)
    }
}

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum GitError {
    #[error("git is not installed")]
    NotInstalled,
    #[error("git {command} could not run")]
    Start { command: String, source: io::Error },
    #[error("git {command} failed: {message}")]
    Failed { command: String, message: String },
    #[error("git {command} printed what Takeback cannot read")]
    Unreadable { command: String },
    #[error("git {command} took too long and was stopped")]
    TooSlow { command: String },
}

/// Variables by which another program may have pointed git at a repository of its own.
const FOREIGN: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

impl Repository {
    /// The repository that contains this folder; `None`: neither it nor a folder above has a `.git`.
    #[must_use]
    pub fn around(folder: &Path) -> Option<Self> {
        let top = folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
        top.map(|top| Self { top: top.to_owned(), time_limit: None })
    }

    /// The same repository, whose commands are stopped after this time.
    pub(crate) fn with_time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// The folder with the `.git`.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// A path as git names it, from the top of the repository. `None`: the path is outside.
    #[must_use]
    pub fn path_of<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.top).ok()
    }

    /// The commit that is checked out; `None`: there is none yet.
    pub fn head(&self) -> Result<Option<String>, GitError> {
        self.commit("HEAD")
    }

    /// The id of a commit that the user named; `None`: there is no such commit.
    pub fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let name = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        match self.run(args, b"") {
            Ok(id) => Ok(Some(String::from_utf8_lossy(&id).trim().to_owned())),
            Err(GitError::Failed { message, .. }) if message.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What each of these objects contains (`COMMIT:PATH`, or an id), in order; `None`: there is none.
    pub fn contents(&self, objects: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let input = objects.join(&b'\n');
        let output = self.run(["cat-file", "--batch"], &[input, b"\n".to_vec()].concat())?;
        let unreadable = || GitError::Unreadable { command: "cat-file".to_owned() };
        let mut rest = output.as_slice();
        let mut contents = Vec::new();
        for _ in objects {
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(unreadable)?;
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if line.ends_with(b" missing") || line.ends_with(b" ambiguous") {
                contents.push(None);
                continue;
            }
            let size = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let size: usize = std::str::from_utf8(size)
                .ok()
                .and_then(|size| size.parse().ok())
                .ok_or_else(unreadable)?;
            let text = rest.get(..size).ok_or_else(unreadable)?;
            contents.push(Some(text.to_vec()));
            rest = rest.get(size + 1..).unwrap_or_default();
        }
        Ok(contents)
    }

    /// Runs git and returns what it prints.
    fn run<I, S>(&self, args: I, input: &[u8]) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.run_with(&[], args, input)
    }

    /// The same with these settings (`KEY=VALUE`) in place of the repository's.
    fn run_with<I, S>(
        &self,
        settings: &[String],
        args: I,
        input: &[u8],
    ) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.run_in(settings, &[], args, input)
    }

    /// The same with these environment variables.
    fn run_in<I, S>(
        &self,
        settings: &[String],
        variables: &[(&str, OsString)],
        args: I,
        input: &[u8],
    ) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let name = || args[0].to_string_lossy().into_owned();
        let mut command = Command::new("git");
        // A repository's own settings must not make git run anything.
        command
            .args(["--no-pager", "--no-optional-locks", "--literal-pathspecs"])
            .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
            .args(["-c", "diff.external=", "-c", "log.showSignature=false"])
            .args(settings.iter().flat_map(|setting| ["-c", setting.as_str()]))
            .arg("-C")
            .arg(&self.top)
            .args(&args)
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C");
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.time_limit.is_some() {
            // What git starts holds its output open, so all of it is stopped together.
            command.process_group(0);
        }
        let start = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => GitError::NotInstalled,
            _ => GitError::Start { command: name(), source },
        };
        let mut git = command.spawn().map_err(start)?;
        let (mut stdin, stderr) = (git.stdin.take().expect("piped"), git.stderr.take());
        let mut stderr = stderr.expect("piped");
        let group = group_of(&git);
        let (output, message, is_too_slow) = std::thread::scope(|scope| {
            // Dropped when everything was read.
            let (reading, is_read) = channel::<()>();
            let watch = self.time_limit.map(|limit| {
                scope.spawn(move || {
                    let is_too_slow = is_read.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                    if is_too_slow && let Some(group) = group {
                        kill_process_group(group, Signal::KILL).ok();
                    }
                    is_too_slow
                })
            });
            // git ends early when it fails; its message says why.
            scope.spawn(move || stdin.write_all(input));
            let message = scope.spawn(move || {
                let mut message = Vec::new();
                drop(stderr.read_to_end(&mut message));
                message
            });
            let mut output = Vec::new();
            let read = git.stdout.take().expect("piped").read_to_end(&mut output);
            let message = message.join().unwrap_or_default();
            drop(reading);
            let is_too_slow = watch.is_some_and(|watch| watch.join().unwrap_or_default());
            (read.map(|_| output), message, is_too_slow)
        });
        // Only now: until here the process id cannot belong to another process.
        let status = git.wait();
        let (output, status) = match (output, status) {
            (Ok(output), Ok(status)) => (output, status),
            (Err(source), _) | (_, Err(source)) => {
                return Err(GitError::Start { command: name(), source });
            }
        };
        if is_too_slow {
            return Err(GitError::TooSlow { command: name() });
        }
        if status.success() {
            return Ok(output);
        }
        let message = String::from_utf8_lossy(&message);
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_prefix("fatal: ").unwrap_or(message).to_owned();
        Err(GitError::Failed { command: name(), message })
    }
}

fn group_of(git: &Child) -> Option<Pid> {
    i32::try_from(git.id()).ok().and_then(Pid::from_raw)
}

/// A path below the top as an argument.
fn path_arg(path: &Path) -> &OsStr {
    OsStr::from_bytes(path.as_os_str().as_bytes())
}
