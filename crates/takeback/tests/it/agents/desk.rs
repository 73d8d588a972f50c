//! A place for an agent: a home of its own, a project, a model, and its program.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use takeback_agents::AgentKind;

use serde_json::{Value, json};
use takeback_testkit::model::ModelServer;

use super::{Conversation, Driven};
use crate::home::User;

/// How long a program may take for a prompt before it is called stuck.
const PATIENCE: Duration = Duration::from_secs(240);

pub(super) struct Desk {
    pub(super) user: User,
    pub(super) model: ModelServer,
    program: PathBuf,
}

impl Desk {
    /// `None`: the program is not there, and need not be.
    pub(super) fn of<A: Driven>(files: &[(&str, &str)]) -> Option<Self> {
        let program = program(A::AGENT)?;
        let desk = Self { user: User::with(files), model: ModelServer::start(), program };
        // Whether hooks are in time on a machine that is busy with tests is not the question here.
        desk.user.set(r#"{"hookDeadlineMs": 60000, "scanBudgetMs": 60000}"#);
        A::settle(&desk);
        Some(desk)
    }

    /// Asks, with what the model is to say, and waits until the program has ended.
    pub(super) fn ask<A: Driven>(&self, conversation: Conversation, what: &str, says: &[Value]) {
        let mut says = says.to_vec();
        says.push(json!("done"));
        let prompt = format!("{what}. <<LAB {} LAB>>", Value::Array(says));
        let mut command = A::ask(self, conversation, &prompt);
        let said = self.user.home().join("said");
        let into = || File::create(&said).expect("a file");
        command.stdin(Stdio::null()).stdout(into()).stderr(into());
        let mut child = command.spawn().expect("the program starts");
        let begun = Instant::now();
        let status = loop {
            match child.try_wait().expect("it can be waited for") {
                Some(status) => break Some(status),
                None if begun.elapsed() > PATIENCE => {
                    child.kill().expect("it can be ended");
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let said = fs::read_to_string(&said).unwrap_or_default();
        let asked = self.model.asked().len();
        assert!(
            status.is_some_and(|status| status.success()),
            "{what}: {status:?} after {asked} requests: {said}"
        );
    }

    /// The program, in the project, with this home and nothing else of ours.
    pub(super) fn program(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.user.work()).env_clear().env("HOME", self.user.home());
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Writes a file of the agent's into the home.
    pub(super) fn settle(&self, path: &str, text: &str) {
        let path = self.user.home().join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
        fs::write(path, text).expect("settings are written");
    }

    /// Has `takeback` put the hooks into the agent's settings.
    pub(super) fn init(&self, agent: &AgentKind) {
        let answer = self.user.takeback(&["init", "--agent", agent.name, "-y"]);
        assert_eq!(answer.code, 0, "{answer:?}");
    }

    /// The one session that is known, of this agent. Its hooks had nothing to complain of.
    pub(super) fn session<A: Driven>(&self) -> String {
        let sessions = self.user.json(&["sessions"]);
        let [session] = sessions.as_array().map_or(&[][..], Vec::as_slice) else {
            panic!("{sessions}");
        };
        assert_eq!(session["agent"], A::AGENT.name);
        let folder = self.user.home().join(".takeback/hooks").join(A::AGENT.name);
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
    // Claude Code's is a link beside the others' folders.
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
    let is_required = env::var_os("TAKEBACK_E2E").is_some_and(|wish| wish == "require")
        && required.split_whitespace().any(|required| required == name);
    let why = format!("{name} is not installed (scripts/install-agents {name})");
    assert!(!is_required, "{why}");
    // What a test prints that passes is not shown; what is written here is.
    drop(writeln!(io::stderr(), "skipped: {why}"));
    None
}
