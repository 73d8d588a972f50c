//! A conversation with the real program in a temporary home, and helpers for its tests.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use takeback_agents::{
    Capture, ChatAgent as _, ChatEvent, Claude, ClaudeOptions, PermissionRequest, TurnResult,
};
use takeback_core::rewind::Receipt;
use takeback_store::{PointId, SessionId};
use takeback_testkit::Sandbox;
use takeback_testkit::model::ModelServer;
use tempfile::TempDir;

pub(crate) const SESSION: &str = "talk";
const TIMEOUT: Duration = Duration::from_secs(90);

pub(crate) struct Lab {
    pub(crate) sandbox: Sandbox,
    pub(crate) model: ModelServer,
    pub(crate) claude: Claude,
    pub(crate) received: Receiver<ChatEvent>,
    pub(crate) options: ClaudeOptions,
    _home: TempDir,
}

/// Options of the program that differ from test to test.
#[derive(Default)]
pub(crate) struct LabOptions<'a> {
    pub(crate) extra_args: &'a [&'a str],
    pub(crate) no_copies: bool,
}

/// `None`: the program is not installed, which has been reported.
pub(crate) fn lab(options: &LabOptions<'_>) -> Option<Lab> {
    let program = program()?;
    let sandbox = Sandbox::new();
    let model = ModelServer::start();
    let home = tempfile::tempdir().unwrap();
    let options = ClaudeOptions {
        program,
        extra_args: options.extra_args.iter().map(OsString::from).collect(),
        folder: sandbox.root(),
        model: None,
        environment: environment(home.path(), &model.url()),
        checkpointing: !options.no_copies,
        resume: Value::Null,
    };
    let (claude, received) = start(&sandbox, &options);
    Some(Lab { sandbox, model, claude, received, options, _home: home })
}

/// A conversation in which edits and shell commands need no permission.
pub(crate) fn trusting() -> Option<Lab> {
    let allowed = "Bash,Write,Edit,Read,Agent,Task";
    lab(&LabOptions {
        extra_args: &["--permission-mode", "acceptEdits", "--allowedTools", allowed],
        ..LabOptions::default()
    })
}

pub(crate) fn start(sandbox: &Sandbox, options: &ClaudeOptions) -> (Claude, Receiver<ChatEvent>) {
    let (say, received) = channel();
    let mut workspace = sandbox.another_process();
    workspace.limits.recorder_patience = TIMEOUT;
    let capture = Capture {
        workspace,
        session: SessionId::from(SESSION),
        tools: takeback_agents::default_tools(),
        say: say.clone(),
        recording: true,
        formatter: false,
    };
    (Claude::start(options.clone(), capture, say).unwrap(), received)
}

#[expect(clippy::print_stderr, reason = "the test output has to show skipped tests")]
fn program() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents/claude");
    let named = env::var_os("TAKEBACK_CLAUDE").map(PathBuf::from);
    let program = named.unwrap_or(installed);
    if program.exists() {
        return Some(program);
    }
    let why = "no claude program: set TAKEBACK_CLAUDE or run scripts/install-claude";
    assert!(env::var_os("TAKEBACK_E2E").is_none_or(|wish| wish != "require"), "{why}");
    eprintln!("skipped: {why}");
    None
}

fn environment(home: &Path, url: &str) -> Vec<(OsString, OsString)> {
    let path = env::var_os("PATH").unwrap_or_default();
    let config = home.join("config");
    let variables: [(&str, OsString); 9] = [
        ("PATH", path),
        ("HOME", home.into()),
        ("CLAUDE_CONFIG_DIR", config.into()),
        ("ANTHROPIC_BASE_URL", url.into()),
        ("ANTHROPIC_API_KEY", "dummy".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("DISABLE_ERROR_REPORTING", "1".into()),
    ];
    variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

impl Lab {
    /// Sends a prompt with its script; returns the message's id.
    pub(crate) fn prompt(&self, text: &str, script: &Value) -> String {
        let number = self.prompts() + 1;
        let message = format!("00000000-0000-4000-8000-{number:012}");
        self.claude.prompt(&message, &format!("{text} <<LAB {script} LAB>>")).unwrap();
        message
    }

    fn prompts(&self) -> usize {
        let points = self.sandbox.another_process().store.points().unwrap();
        points.iter().filter(|point| !point.message_ids.is_empty()).count()
    }

    /// All events up to the first that `ends`, including it.
    pub(crate) fn until(&self, ends: impl Fn(&ChatEvent) -> bool) -> Vec<ChatEvent> {
        let deadline = Instant::now() + TIMEOUT;
        let mut events = Vec::new();
        loop {
            match self.received.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) => {
                    let is_last = ends(&event);
                    events.push(event);
                    if is_last {
                        return events;
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no such event; got: {events:#?}")
                }
            }
        }
    }

    /// All events of a turn, which must succeed.
    pub(crate) fn turn(&self, text: &str, script: &Value) -> (String, Vec<ChatEvent>) {
        let message = self.prompt(text, script);
        let events = self.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
        assert_eq!(events.last(), Some(&ChatEvent::TurnEnd(TurnResult::Done)), "{events:#?}");
        (message, events)
    }

    pub(crate) fn asked(&self) -> (PermissionRequest, Vec<ChatEvent>) {
        let events = self.until(|event| matches!(event, ChatEvent::PermissionRequest(_)));
        match events.last() {
            Some(ChatEvent::PermissionRequest(permission)) => (permission.clone(), events),
            _ => unreachable!("the last one asks"),
        }
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.sandbox.workspace.store_dir.join("lock")
    }

    pub(crate) fn at(&self, path: &str) -> String {
        self.sandbox.at(path).to_str().unwrap().to_owned()
    }

    pub(crate) fn point_of(&self, message: &str) -> PointId {
        let points = self.sandbox.another_process().store.points().unwrap();
        let has = |ids: &[String]| ids.iter().any(|id| id == message);
        points.iter().find(|point| has(&point.message_ids)).expect("the prompt has a point").id
    }

    pub(crate) fn rewind_to(&mut self, message: &str) -> Receipt {
        let point = self.point_of(message);
        self.sandbox.reopen();
        self.sandbox.rewind_to(point)
    }

    /// Calls `Write` for a new file.
    pub(crate) fn write(&self, path: &str, content: &str) -> Value {
        json!([{ "name": "Write", "input": { "file_path": self.at(path), "content": content } }])
    }

    pub(crate) fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        let input = json!({ "file_path": self.at(path), "old_string": old, "new_string": new });
        json!([{ "name": "Edit", "input": input }])
    }

    /// Calls a subagent that plays a script of its own.
    pub(crate) fn task(&self, name: &str, script: &Value) -> Value {
        let file = self.sandbox.outside().join(format!("{name}.json"));
        std::fs::write(&file, script.to_string()).unwrap();
        let prompt = format!("do <<LABFILE {} FILE>>", file.display());
        let input = json!({ "description": name, "prompt": prompt, "run_in_background": false,
            "subagent_type": "general-purpose" });
        json!({ "name": "Task", "input": input })
    }

    pub(crate) fn pid(&self) -> i32 {
        // The one process whose working folder is this workspace and whose program is the one started.
        let root = self.sandbox.root().canonicalize().unwrap();
        let program = self.options.program.canonicalize().unwrap();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path = entry.unwrap().path();
            let is_it = std::fs::read_link(path.join("cwd")).ok()? == root
                && std::fs::read_link(path.join("exe")).ok()? == program;
            if is_it { path.file_name()?.to_str()?.parse().ok() } else { None }
        });
        let found: Vec<i32> = processes.collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }
}

pub(crate) fn run(command: &str) -> Value {
    json!([{ "name": "Bash", "input": { "command": command } }])
}

/// The texts of the prompts and answers that a request showed the model, of those that `tags` name.
pub(crate) fn seen(request: &Value, tags: &[&str]) -> Vec<String> {
    let messages = request["messages"].to_string();
    let mut found: Vec<(usize, String)> =
        tags.iter().filter_map(|tag| Some((messages.find(tag)?, (*tag).to_owned()))).collect();
    found.sort();
    found.into_iter().map(|(_, tag)| tag).collect()
}
