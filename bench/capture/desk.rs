//! A project in a folder of its own, an agent that edits one file of it, and what that costs.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

use takeback_bench::Result;
use takeback_bench::measure::millis;
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, Limits, Outcome, Touches, Workspace, WorkspaceOptions, record,
};
use takeback_store::{CallId, Durability, SessionId, SqliteStates, SqliteStore, Timestamp};

/// Files beside the one that is edited.
const OTHERS: usize = 1_000;
const SESSION: &str = "bench";

/// What becomes of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    Sync,
}

pub(crate) struct Desk {
    folder: PathBuf,
    programs: PathBuf,
    workspace: Option<Workspace>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What stays in a temporary folder does no harm.
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Desk {
    /// For processes of their own: a store with a session whose turn is open.
    pub(crate) fn new(programs: &Path) -> Result<Self> {
        let mut desk = Self::laid_out()?;
        programs.clone_into(&mut desk.programs);
        desk.tell(r#"{"event":"session_start","session":"bench"}"#, Durability::Full)?;
        desk.tell(r#"{"event":"prompt","session":"bench","text":"Go on."}"#, Durability::Full)?;
        Ok(desk)
    }

    /// The same, held open in this process.
    pub(crate) fn inside(durability: Durability) -> Result<Self> {
        let mut desk = Self::laid_out()?;
        let store_dir = desk.folder.join("store");
        let mut store = SqliteStore::create(&store_dir)?;
        store.set_durability(durability)?;
        let mut workspace = Workspace::open(WorkspaceOptions {
            root: desk.project(),
            states: std::sync::Arc::new(SqliteStates::at(&store_dir)),
            store_dir,
            store: Box::new(store),
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
        })?;
        let (session, text) = (SessionId::from(SESSION), "Go on.".to_owned());
        record(&mut workspace, &AgentEvent::Prompt { session, message: None, text })?;
        desk.workspace = Some(workspace);
        Ok(desk)
    }

    fn laid_out() -> Result<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("takeback-bench-capture-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let desk = Self { folder, programs: PathBuf::new(), workspace: None };
        fs::create_dir_all(desk.folder.join("home"))?;
        for n in 0..OTHERS {
            let folder = desk.project().join(format!("folder-{}", n / 50));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("{n}.txt")), format!("file {n}\n").repeat(20))?;
        }
        fs::write(desk.edited(), "nothing yet\n")?;
        Ok(desk)
    }

    fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// The file that the agent edits.
    pub(crate) fn edited(&self) -> PathBuf {
        self.project().join("edited.txt")
    }

    /// What a process costs that does nothing.
    pub(crate) fn empty(&self) -> Result<f64> {
        self.run(self.command("empty"), BEFORE)
    }

    /// What it costs to keep the file in a process of its own.
    pub(crate) fn record(&self, durability: Durability) -> Result<f64> {
        let took = self.tell(BEFORE, durability)?;
        self.tell(r#"{"event":"after_tool","session":"bench","call":"c"}"#, durability)?;
        Ok(took)
    }

    fn tell(&self, event: &str, durability: Durability) -> Result<f64> {
        let mut command = self.command("takeback");
        command.arg("record").env("TAKEBACK_DURABILITY", durability.word());
        self.run(command, event)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.project()).env_clear().env("HOME", self.folder.join("home"));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command
    }

    fn run(&self, mut command: Command, line: &str) -> Result<f64> {
        let began = Instant::now();
        let mut process = command.spawn()?;
        let mut input = process.stdin.take().ok_or("no input")?;
        // The program that does nothing may be gone by now.
        drop(input.write_all(line.as_bytes()));
        drop(input);
        let status = process.wait()?;
        let took = millis(began.elapsed());
        if status.success() { Ok(took) } else { Err(format!("{command:?}: {status}").into()) }
    }

    /// What it costs to keep the file in the process that has the workspace open.
    pub(crate) fn capture(&mut self) -> Result<f64> {
        let workspace = self.workspace.as_mut().ok_or("it is not open here")?;
        let (session, call) = (SessionId::from(SESSION), CallId::from("c"));
        let before = AgentEvent::BeforeTool {
            session: session.clone(),
            call: call.clone(),
            tool: "Edit".to_owned(),
            touches: Touches::Paths(vec![PathBuf::from("edited.txt")]),
        };
        let began = Instant::now();
        let recorded = record(workspace, &before)?;
        let took = millis(began.elapsed());
        if recorded.changes != 1 {
            return Err("the file was not kept".into());
        }
        let outcome = Outcome::Done;
        record(
            workspace,
            &AgentEvent::AfterTool {
                session,
                call,
                outcome,
                report: takeback_core::CallReport::default(),
            },
        )?;
        Ok(took)
    }

    /// What it costs to read the file and to write it elsewhere.
    pub(crate) fn copy(&self, then: Then) -> Result<f64> {
        let copy = self.folder.join("copy");
        let began = Instant::now();
        let bytes = fs::read(self.edited())?;
        let mut file = fs::File::create_new(&copy)?;
        file.write_all(&bytes)?;
        if then == Then::Sync {
            file.sync_all()?;
        }
        drop(file);
        let took = millis(began.elapsed());
        fs::remove_file(copy)?;
        Ok(took)
    }
}

const BEFORE: &str =
    r#"{"event":"before_tool","session":"bench","call":"c","tool":"Edit","paths":["edited.txt"]}"#;

/// Texts of which none is like another, and that can be compressed as source code can.
pub(crate) struct Fill {
    state: u64,
}

impl Default for Fill {
    fn default() -> Self {
        Self { state: 0x9e37_79b9_7f4a_7c15 }
    }
}

impl Fill {
    pub(crate) fn text(&mut self, size: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "let ", "self.", "fn ", "match ", "return ", "value", "index", "store", "(", ")",
            " = ", ";\n    ", ".map(", "Some(", "&mut ", "entry",
        ];
        let mut text = Vec::with_capacity(size + 16);
        while text.len() < size {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let mut bits = self.state;
            for _ in 0..6 {
                text.extend_from_slice(WORDS[usize::try_from(bits % 16).unwrap_or(0)].as_bytes());
                bits >>= 4;
            }
            text.extend_from_slice(format!("{:x}", bits % 0x1_0000).as_bytes());
        }
        text.truncate(size);
        text
    }
}
