//! `takeback chat` with the real program, a home of its own, and a scripted model.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Once;

use serde_json::{Value, json};
use takeback_testkit::model::{Answer, Block, ModelServer};

use crate::pty::{ENTER, ESC, Terminal};
use crate::user::User;

pub(super) struct ClaudeChat {
    pub(super) terminal: Terminal,
    pub(super) model: ModelServer,
    pub(super) program: PathBuf,
    pub(super) user: User,
}

/// Edits and shell commands need no permission.
const TRUSTING: &[&str] =
    &["--permission-mode", "acceptEdits", "--allowedTools", "Bash,Write,Edit,Read,Agent,Task"];

impl ClaudeChat {
    /// `None` if the program is not installed.
    pub(super) fn new(files: &[(&str, &str)]) -> Option<Self> {
        Self::start(files, TRUSTING)
    }

    /// The user is asked before every change.
    pub(super) fn with_permissions() -> Option<Self> {
        Self::start(&[], &[])
    }

    fn start(files: &[(&str, &str)], extra: &[&str]) -> Option<Self> {
        let program = program()?;
        let user = User::with(files);
        let model = ModelServer::start();
        let terminal = start(&user, &model, &program, &[], extra);
        let mut chat = Self { terminal, model, program, user };
        chat.terminal.sees("claude ");
        Some(chat)
    }

    /// Exits, and continues the same conversation.
    pub(super) fn restarts(&mut self) {
        self.terminal.types("\x15/exit\r");
        assert_eq!(self.terminal.ends(), 0);
        self.terminal = start(&self.user, &self.model, &self.program, &["--continue"], TRUSTING);
        self.terminal.sees("Continued after");
    }

    /// Sends a prompt, which the model answers with these messages, and waits for the text of the last one.
    pub(super) fn turn(&mut self, prompt: &str, answers: &[Value]) -> &mut Terminal {
        self.begin(prompt, answers);
        let last = answers.last().and_then(Value::as_str).expect("a turn ends with a text");
        self.terminal.sees(last).sees_no("working")
    }

    /// The same without waiting.
    pub(super) fn begin(&mut self, prompt: &str, answers: &[Value]) -> &mut Terminal {
        for answer in answers {
            self.model.answer(Answer::Says(vec![block(answer)]));
        }
        self.terminal.says(prompt)
    }

    /// Waits until a file exists.
    #[track_caller]
    pub(super) fn waits_for(&mut self, path: &str) {
        let user = &self.user;
        self.terminal.sees_that(path, |_| user.exists(path));
    }

    /// Presses Esc twice, and restores files and conversation of the row with this number.
    pub(super) fn goes_back_to(&mut self, number: &str) -> &mut Terminal {
        self.terminal.types(ESC).types(ESC).sees("Checkpoints").sees("(current)").types(number);
        self.terminal.sees("[x] ").types(ENTER).sees("Restore what?").types(ENTER)
    }

    /// A call that writes a new file, or one that was read before.
    pub(super) fn write(&self, path: &str, content: &str) -> Value {
        let input = json!({ "file_path": self.at(path), "content": content });
        json!({ "name": "Write", "input": input })
    }

    pub(super) fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        let input = json!({ "file_path": self.at(path), "old_string": old, "new_string": new });
        json!({ "name": "Edit", "input": input })
    }

    pub(super) fn look_at(&self, path: &str) -> Value {
        json!({ "name": "Read", "input": { "file_path": self.at(path) } })
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.user.work().canonicalize().expect("it is there").join(path)
    }

    /// The entries of `metadata.json`, newest first.
    pub(super) fn metadata(&self) -> Vec<Value> {
        let sessions = self.user.home().join(".takeback/sessions");
        let session = fs::read_dir(sessions).expect("sessions").next().expect("one").expect("it");
        let text = fs::read_to_string(session.path().join("checkpoints/metadata.json"));
        let metadata: Value = serde_json::from_str(&text.expect("it is there")).expect("JSON");
        metadata["checkpoints"].as_array().expect("a list").clone()
    }

    /// The messages of the model's last request, as one text.
    pub(super) fn shown_last(&self) -> String {
        self.model.asked().last().expect("it was asked")["messages"].to_string()
    }

    /// The agent's process id.
    pub(super) fn pid(&self) -> u32 {
        let parent = format!("PPid:\t{}", self.terminal.pid());
        let is_child = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line == parent)
        };
        let processes = fs::read_dir("/proc").expect("processes").filter_map(|entry| {
            entry.expect("an entry").file_name().to_str()?.parse::<u32>().ok().filter(is_child)
        });
        let found: Vec<u32> = processes.collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]
    }
}

pub(super) fn run(command: &str) -> Value {
    json!({ "name": "Bash", "input": { "command": command } })
}

/// A call that starts a subagent; the next answers are the subagent's.
pub(super) fn subagent() -> Value {
    let input = json!({ "description": "help", "prompt": "Do your part.",
        "run_in_background": false, "subagent_type": "general-purpose" });
    json!({ "name": "Task", "input": input })
}

/// The agent's configuration folder.
pub(crate) fn config(user: &User) -> PathBuf {
    user.home().join("claude")
}

/// The agent's environment, except HOME.
pub(crate) fn environment(user: &User, url: &str) -> Vec<(&'static str, String)> {
    vec![
        ("CLAUDE_CONFIG_DIR", config(user).display().to_string()),
        ("ANTHROPIC_BASE_URL", url.to_owned()),
        ("ANTHROPIC_API_KEY", "dummy".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
        ("DISABLE_TELEMETRY", "1".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("DISABLE_ERROR_REPORTING", "1".to_owned()),
    ]
}

fn start(
    user: &User,
    model: &ModelServer,
    program: &Path,
    how: &[&str],
    extra: &[&str],
) -> Terminal {
    let mut place = user.terminal(100, 40);
    for (name, value) in environment(user, &model.url()) {
        place = place.with(name, value);
    }
    let program = program.to_str().expect("a path in UTF-8");
    place.start(&[&["chat", "--program", program], how, &["--"], extra].concat())
}

fn block(answer: &Value) -> Block {
    match answer.as_str() {
        Some(text) => Block::text(text),
        None => {
            Block::tool(answer["name"].as_str().expect("a tool's name"), answer["input"].clone())
        }
    }
}

/// `None` if it is not installed, which is printed once.
pub(crate) fn program() -> Option<PathBuf> {
    static SAID: Once = Once::new();
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents/claude");
    let named = env::var_os("TAKEBACK_CLAUDE").map(PathBuf::from);
    let program = named.unwrap_or(installed);
    if let Ok(program) = program.canonicalize() {
        return Some(program);
    }
    let why = "no claude program: set TAKEBACK_CLAUDE or run scripts/install-claude";
    assert!(env::var_os("TAKEBACK_E2E").is_none_or(|wish| wish != "require"), "{why}");
    // The test harness hides what a passing test prints, but not this.
    SAID.call_once(|| {
        drop(writeln!(io::stderr(), "tests of `chat` and `import` are skipped: {why}"));
    });
    None
}
