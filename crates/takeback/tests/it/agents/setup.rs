//! An agent's program with a home, a project and a scripted model.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use takeback_agents::AgentKind;
use takeback_testkit::model::ModelServer;

use super::{AgentDriver, Conversation};
use crate::user::User;

/// A program that takes longer than this for a prompt is stuck.
const PATIENCE: Duration = Duration::from_secs(240);

pub(super) struct AgentSetup {
    pub(super) driver: &'static AgentDriver,
    pub(super) user: Arc<User>,
    pub(super) model: ModelServer,
    /// Where the agent works.
    pub(super) folder: PathBuf,
    program: PathBuf,
}

impl AgentSetup {
    /// An agent in the project of a new user. `None` if its program is neither installed nor required.
    pub(super) fn new(driver: &'static AgentDriver, files: &[(&str, &str)]) -> Option<Self> {
        let user = Arc::new(User::with(files));
        let folder = user.work();
        Self::of(driver, user, folder)
    }

    /// As [`Self::new`], for this user and in any folder.
    pub(super) fn of(
        driver: &'static AgentDriver,
        user: Arc<User>,
        folder: PathBuf,
    ) -> Option<Self> {
        let program = program(driver.kind)?;
        let setup = Self { driver, user, model: ModelServer::start(), folder, program };
        // Other tests may slow this machine down; hook deadlines are not tested here.
        setup.user.set(r#"{"hookDeadlineMs": 60000, "scanBudgetMs": 60000}"#);
        (driver.configure)(&setup);
        Some(setup)
    }

    /// Sends a prompt with the model's answers, and waits until the program has ended.
    pub(super) fn prompt(&self, conversation: Conversation, text: &str, answers: &[Vec<Value>]) {
        let mut answers = answers.concat();
        answers.push(json!("done"));
        let prompt = format!("{text}. <<LAB {} LAB>>", Value::Array(answers));
        let command = (self.driver.command)(self, conversation, &prompt);
        self.finish(command, text);
    }

    /// Runs a command line with the environment of the agent, whose program is on `PATH`.
    pub(super) fn shell(&self, line: &str) {
        let agent = (self.driver.command)(self, Conversation::New, "");
        let folder = self.program.parent().expect("it is in a folder");
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [folder.to_owned()].into_iter().chain(env::split_paths(&path));
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.user.home()).env_clear();
        command.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PATH", env::join_paths(folders).expect("folders without a colon"));
        self.finish(command, line);
    }

    /// Waits until a command has ended, which must be with success.
    fn finish(&self, mut command: Command, what: &str) {
        let output = self.user.home().join(format!("{}-output", self.driver.kind.name));
        let into = || File::create(&output).expect("a file");
        command.stdin(Stdio::null()).stdout(into()).stderr(into());
        let mut child = command.spawn().expect("the program starts");
        let started = Instant::now();
        let status = loop {
            match child.try_wait().expect("it can be waited for") {
                Some(status) => break Some(status),
                None if started.elapsed() > PATIENCE => {
                    child.kill().expect("it can be ended");
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let output = fs::read_to_string(&output).unwrap_or_default();
        let requests = self.model.asked().len();
        assert!(
            status.is_some_and(|status| status.success()),
            "{what}: {status:?} after {requests} requests: {output}"
        );
    }

    pub(super) fn write(&self, path: &str, text: &str) -> Vec<Value> {
        (self.driver.write)(self, path, text)
    }

    pub(super) fn replace(&self, path: &str, line: &str, with: &str) -> Vec<Value> {
        (self.driver.replace)(self, path, line, with)
    }

    pub(super) fn run(&self, command: &str) -> Vec<Value> {
        (self.driver.run)(command)
    }

    /// The program in its folder, with this home and an otherwise empty environment.
    pub(super) fn program(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env_clear().env("HOME", self.user.home());
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command
    }

    /// A file in the agent's folder, as an absolute path.
    pub(super) fn absolute(&self, path: &str) -> String {
        self.folder.join(path).display().to_string()
    }

    /// Writes one of the agent's files into the home.
    pub(super) fn write_home(&self, path: &str, text: &str) {
        let path = self.user.home().join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
        fs::write(path, text).expect("settings are written");
    }

    /// Has `takeback` install its hooks in the agent's settings.
    pub(super) fn init(&self) {
        self.user.succeeds(&["init", "--agent", self.driver.kind.name, "-y"]);
    }

    /// The only recorded session, which is this agent's. None of its hooks reported a problem.
    pub(super) fn session(&self) -> String {
        let agent = self.driver.kind.name;
        let sessions = self.user.json(&["sessions"]);
        let [session] = sessions.as_array().map_or(&[][..], Vec::as_slice) else {
            panic!("{sessions}");
        };
        assert_eq!(session["agent"], agent);
        let folder = self.user.home().join(".takeback/hooks").join(agent);
        for file in fs::read_dir(folder).expect("hooks have run") {
            let beat = fs::read(file.expect("it has a name").path()).expect("a heartbeat");
            let beat: Value = serde_json::from_slice(&beat).expect("it is JSON");
            assert_eq!(beat["problem"], Value::Null, "{beat}");
        }
        session["id"].as_str().expect("it has an id").to_owned()
    }
}

fn program(agent: &AgentKind) -> Option<PathBuf> {
    let name = agent.name;
    let variable = format!("TAKEBACK_{}", name.to_uppercase());
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents");
    // `scripts/install-claude` makes a link outside `bin`.
    let installed = [agents.join("bin").join(name), agents.join(name)];
    let installed = installed.into_iter().find(|program| program.is_file());
    let named = env::var_os(&variable).map(PathBuf::from);
    if let Some(program) = named.or(installed)
        && let Ok(folder) = program.parent().unwrap_or(&program).canonicalize()
        && program.exists()
    {
        return Some(folder.join(program.file_name()?));
    }
    let required = env::var("TAKEBACK_E2E_AGENTS").unwrap_or_else(|_| "claude".to_owned());
    let is_required = env::var_os("TAKEBACK_E2E").is_some_and(|mode| mode == "require")
        && required.split_whitespace().any(|required| required == name);
    let why = format!("{name} is not installed (scripts/install-agents {name})");
    assert!(!is_required, "{why}");
    // The test harness hides what a passing test prints, but not this.
    drop(writeln!(io::stderr(), "skipped: {why}"));
    None
}
