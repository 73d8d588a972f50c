//! Finds out when a command started, for agents that ask for permission but report neither how long the user
//! took to answer nor how long the command ran.
//!
//! The hook for the question starts a process (`takeback watch-command`) that looks for the command among the
//! agent's children. While it looks, it holds a lock on the question's file, and it writes there what it
//! sees. The hook after the call reads that file.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use takeback_agents::{AgentKind, HookEvent, HookEventKind, PermissionQuestion};
use takeback_core::{AgentEvent, process};
use takeback_store::{Process, Timestamp, disk};

use super::deadline::background_command;
use super::location::HookRun;

const FOLDER: &str = "questions";

/// How often the agent's children are listed.
const EVERY: Duration = Duration::from_millis(50);
/// If two listings are further apart, a command may have run unseen in between.
const STALLED: Duration = Duration::from_millis(500);
/// A question is watched for this long.
const MOST: Duration = Duration::from_secs(12 * 60 * 60);
/// The kernel counts the start of a process in hundredths of a second.
const TICK_MS: i64 = 20;
/// The longest time that an unseen command can have run.
const UNSEEN_MS: i64 = 600;

/// What `watch-command` receives on standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WatchRequest {
    file: PathBuf,
    agent: Process,
    command: String,
    asked_at: Timestamp,
}

/// What was seen of a command: the last line of a question's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct CommandSighting {
    /// When it was started.
    began_at: Option<Timestamp>,
    /// When the first other child of the agent was started. It may be the command under another name.
    other_at: Option<Timestamp>,
}

/// When a call started that the user was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StartTime {
    At(Timestamp),
    Unknown,
}

/// Opens and closes questions according to a hook event. At the end of a call, returns when the call started.
pub(super) fn track(
    home: &Path,
    agent: &'static AgentKind,
    run: &HookRun,
    hook_event: &HookEvent,
    now: Timestamp,
) -> Option<CallStart> {
    let questions = Questions { folder: home.join(FOLDER), agent, session: &hook_event.session };
    match &hook_event.kind {
        HookEventKind::PermissionAsked(question) => {
            // If the watcher cannot be started, the start time stays unknown.
            drop(questions.ask(home, question, run.agent, now));
            None
        }
        HookEventKind::AfterTool(call, _) => questions
            .answered(&PermissionQuestion::about(call), run.at.unwrap_or(now))
            .map(CallStart),
        HookEventKind::Prompt { .. } | HookEventKind::TurnEnd | HookEventKind::SessionEnd => {
            questions.forget();
            None
        }
        _ => None,
    }
}

/// When a call that waited for permission started.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallStart(StartTime);

impl CallStart {
    pub(super) fn add_to(self, event: &mut AgentEvent, now: Timestamp) {
        let AgentEvent::AfterTool { report, .. } = event else { return };
        match self.0 {
            StartTime::At(at) => {
                report.ran_for = Some(Duration::from_millis((now.0 - at.0).max(0).unsigned_abs()));
            }
            StartTime::Unknown => report.waited = true,
        }
    }
}

/// The open questions of a session.
struct Questions<'a> {
    folder: PathBuf,
    agent: &'static AgentKind,
    session: &'a str,
}

impl Questions<'_> {
    fn prefix(&self) -> String {
        format!("{}-{}-", self.agent.name, hash(self.session))
    }

    fn file(&self, question: &PermissionQuestion) -> PathBuf {
        let (PermissionQuestion::Command(about) | PermissionQuestion::Tool(about)) = question;
        self.folder.join(format!("{}{}", self.prefix(), hash(about.trim())))
    }

    fn ask(
        &self,
        home: &Path,
        question: &PermissionQuestion,
        agent: Option<Process>,
        asked_at: Timestamp,
    ) -> io::Result<()> {
        disk::make_private_folder(&self.folder)?;
        let file = self.file(question);
        disk::replace_private_file(&file, b"")?;
        let (PermissionQuestion::Command(command), Some(agent)) = (question, agent) else {
            return Ok(());
        };
        let command = command.trim().to_owned();
        let request = serde_json::to_vec(&WatchRequest { file, agent, command, asked_at })?;
        let mut child =
            background_command(home)?.arg("watch-command").stdin(Stdio::piped()).spawn()?;
        child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&request))
    }

    /// `None`: the user was not asked. `ended`: when the agent ran the hook after the call.
    fn answered(&self, question: &PermissionQuestion, ended: Timestamp) -> Option<StartTime> {
        let path = self.file(question);
        let mut file = File::open(&path).ok()?;
        let is_watched = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        let seen = read(&mut file);
        drop(disk::remove_store_file(&path));
        // A process that started with this hook is another hook.
        let is_late = |at: Timestamp| at.0 >= ended.0 - UNSEEN_MS;
        Some(match seen {
            CommandSighting { began_at: Some(at), .. } => StartTime::At(at),
            CommandSighting { other_at, .. } if is_watched && other_at.is_none_or(is_late) => {
                StartTime::At(Timestamp(ended.0 - UNSEEN_MS))
            }
            CommandSighting { .. } => StartTime::Unknown,
        })
    }

    /// Deletes the files of refused and open questions. Their watchers then stop.
    fn forget(&self) {
        let Ok(names) = std::fs::read_dir(&self.folder) else { return };
        let prefix = self.prefix();
        for name in names.filter_map(Result::ok) {
            if name.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
                drop(disk::remove_store_file(&name.path()));
            }
        }
    }
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

fn read(file: &mut File) -> CommandSighting {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    let last = text.lines().last().filter(|_| read.is_ok());
    last.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
}

fn write(file: &mut File, seen: CommandSighting) -> io::Result<()> {
    disk::append(file, format!("{}\n", serde_json::to_string(&seen)?).as_bytes())
}

/// `watch-command`: looks for a command among an agent's children until it is found, the question is
/// answered, or the agent exits.
pub(crate) fn watch_command() -> u8 {
    let mut given = Vec::new();
    let request = io::stdin().lock().take(super::LONGEST).read_to_end(&mut given);
    let request = request.and_then(|_| Ok(serde_json::from_slice::<WatchRequest>(&given)?));
    u8::from(request.and_then(|request| watch(&request, STALLED)).is_err())
}

/// `stalled`: stops if more than this passed since the last listing.
fn watch(request: &WatchRequest, stalled: Duration) -> io::Result<()> {
    let mut file = disk::open_private_file(&request.file)?;
    file.lock()?;
    let mut seen = CommandSighting::default();
    let (begun, mut looked) = (Instant::now(), None::<Instant>);
    let mut known = HashSet::new();
    while begun.elapsed() < MOST && is_open(request, &file) {
        for child in children(request)? {
            match classify_child(child, request, &known) {
                Child::Known => {}
                Child::Command(at) => {
                    seen.began_at = Some(at);
                    return write(&mut file, seen);
                }
                Child::Other(at) => {
                    known.insert(child);
                    // Children that exist at the first listing have nothing to do with the question.
                    if looked.is_some() && seen.other_at.is_none() {
                        seen.other_at = Some(at);
                        write(&mut file, seen)?;
                    }
                }
            }
        }
        if looked.is_some_and(|last| last.elapsed() > stalled) {
            break;
        }
        looked = Some(Instant::now());
        std::thread::sleep(EVERY);
    }
    Ok(())
}

enum Child {
    /// Seen before, or still before its `exec`.
    Known,
    Command(Timestamp),
    Other(Timestamp),
}

fn classify_child(child: u32, request: &WatchRequest, known: &HashSet<u32>) -> Child {
    if known.contains(&child) {
        return Child::Known;
    }
    let (line, agents) =
        (process::command_line_of(child), process::command_line_of(request.agent.pid));
    let (Some(line), Some(at)) = (line, process::started_at(child)) else { return Child::Known };
    let command = request.command.as_bytes();
    let has_command = line.windows(command.len().max(1)).any(|part| part == command);
    match has_command {
        true if at.0 + TICK_MS >= request.asked_at.0 => Child::Command(at),
        // A fork of the agent that has not called `exec` yet.
        _ if Some(&line) == agents.as_ref() => Child::Known,
        _ => Child::Other(at),
    }
}

fn children(request: &WatchRequest) -> io::Result<Vec<u32>> {
    process::children_of(request.agent.pid).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Whether the agent still runs and the question's file still exists.
fn is_open(request: &WatchRequest, file: &File) -> bool {
    let is_there = file.metadata().is_ok_and(|found| found.nlink() > 0);
    is_there && process::is_alive(request.agent)
}

#[cfg(test)]
mod tests {
    use std::process::{Child as Running, ChildStdin, Command};
    use std::thread::JoinHandle;

    use super::*;
    use crate::time::now;

    /// A shell that plays the agent: it runs each line that it is given, in a shell below it.
    struct Agent {
        shell: Running,
        lines: Option<ChildStdin>,
        process: Process,
    }

    impl Agent {
        fn start() -> Self {
            let run = "while read -r line; do sh -c \"$line; :\"; done";
            let mut command = Command::new("sh");
            let mut shell = command.args(["-c", run]).stdin(Stdio::piped()).spawn().expect("sh");
            let process = process::started(shell.id()).expect("it runs");
            Self { lines: shell.stdin.take(), shell, process }
        }

        fn runs(&mut self, line: &str) {
            let lines = self.lines.as_mut().expect("it takes lines");
            writeln!(lines, "{line}").expect("it reads");
        }
    }

    impl Drop for Agent {
        fn drop(&mut self) {
            drop(self.lines.take());
            self.shell.wait().expect("it ends");
        }
    }

    fn questions(folder: &Path) -> Questions<'_> {
        Questions { folder: folder.to_owned(), agent: &takeback_agents::GEMINI, session: "s" }
    }

    /// Creates a question's file and starts its watcher.
    fn request(folder: &Path, agent: &Agent, command: &str) -> JoinHandle<io::Result<()>> {
        let file = questions(folder).file(&PermissionQuestion::Command(command.to_owned()));
        disk::replace_private_file(&file, b"").expect("a file");
        let request = WatchRequest {
            file,
            agent: agent.process,
            command: command.to_owned(),
            asked_at: now(),
        };
        let path = request.file.clone();
        let watcher = std::thread::spawn(move || watch(&request, Duration::from_secs(60)));
        while File::open(&path).expect("it is there").try_lock_shared().is_ok() {
            std::thread::sleep(EVERY);
        }
        // Wait until it has listed the children once.
        std::thread::sleep(EVERY);
        watcher
    }

    fn answered(folder: &Path, command: &str, ended: Timestamp) -> Option<StartTime> {
        questions(folder).answered(&PermissionQuestion::Command(command.to_owned()), ended)
    }

    #[test]
    fn a_command_begins_when_its_process_does() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut agent = Agent::start();
        let watcher = request(dir.path(), &agent, "sleep 1.5");
        let before = now();
        agent.runs("sleep 1.5");
        watcher.join().expect("it ends").expect("it was found");
        let found = now();
        let Some(StartTime::At(at)) = answered(dir.path(), "sleep 1.5", Timestamp(found.0 + 9_000))
        else {
            panic!("unknown")
        };
        assert!((before.0 - TICK_MS..=found.0).contains(&at.0), "{before:?} {at:?} {found:?}");
        assert_eq!(answered(dir.path(), "sleep 1.5", found), None, "it was answered");
    }

    #[test]
    fn a_command_that_no_look_found_was_short() {
        let dir = tempfile::tempdir().expect("a folder");
        let agent = Agent::start();
        let watcher = request(dir.path(), &agent, "echo made > made.txt");
        let ended = Timestamp(now().0 + 9_000);
        let short = StartTime::At(Timestamp(ended.0 - UNSEEN_MS));
        assert_eq!(answered(dir.path(), "echo made > made.txt", ended), Some(short));
        watcher.join().expect("it ends with its question").expect("it looked");
    }

    #[test]
    fn when_it_began_is_not_known_if_it_may_have_been_another_process() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut agent = Agent::start();
        let watcher = request(dir.path(), &agent, "make it");
        agent.runs("sleep 1");
        let file = questions(dir.path()).file(&PermissionQuestion::Command("make it".to_owned()));
        while std::fs::read(&file).expect("it is there").is_empty() {
            std::thread::sleep(EVERY);
        }
        let began = answered(dir.path(), "make it", Timestamp(now().0 + 9_000));
        assert_eq!(began, Some(StartTime::Unknown));
        watcher.join().expect("it ends with its question").expect("it looked");
    }

    #[test]
    fn when_it_began_is_not_known_if_no_process_looked() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = questions(dir.path()).file(&PermissionQuestion::Command("make it".to_owned()));
        disk::replace_private_file(&file, b"").expect("a file");
        assert_eq!(answered(dir.path(), "make it", now()), Some(StartTime::Unknown));
    }

    #[test]
    fn the_same_command_of_an_earlier_call_is_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut agent = Agent::start();
        agent.runs("sleep 1.7");
        std::thread::sleep(Duration::from_millis(100));
        let watcher = request(dir.path(), &agent, "sleep 1.7");
        let ended = Timestamp(now().0 + 9_000);
        let short = StartTime::At(Timestamp(ended.0 - UNSEEN_MS));
        assert_eq!(answered(dir.path(), "sleep 1.7", ended), Some(short));
        watcher.join().expect("it ends with its question").expect("it looked");
    }

    #[test]
    fn a_question_that_was_refused_is_forgotten_and_an_agent_that_ended_asks_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let agent = Agent::start();
        let refused = request(dir.path(), &agent, "rm it");
        questions(dir.path()).forget();
        refused.join().expect("it ends with its question").expect("it looked");
        assert_eq!(answered(dir.path(), "rm it", now()), None);
        let left_open = request(dir.path(), &agent, "rm it");
        drop(agent);
        // The last listing may find that the agent has exited.
        drop(left_open.join().expect("it ends with the agent"));
    }
}
