//! A user with a home and a project folder of their own, who runs `takeback`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use takeback_testkit::{Thing, tree};
use tempfile::TempDir;

pub(crate) struct User {
    folder: TempDir,
}

/// `nobody`: exists on every system, and may do very little.
const UNPRIVILEGED: u32 = 65_534;

/// Deadlines that no test misses on a busy machine.
const NO_DEADLINES: [(&str, &str); 2] =
    [("TAKEBACK_HOOK_DEADLINE_MS", "60000"), ("TAKEBACK_SCAN_BUDGET_MS", "60000")];

/// What a command answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A success that prints nothing.
pub(crate) const QUIET: Answer = Answer { code: 0, out: String::new(), err: String::new() };

/// Waits for a condition, as long as it may take on a slow machine.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn exited(self, code: i32, args: &[&str]) -> Self {
        assert_eq!(self.code, code, "{args:?}: {self:?}");
        self
    }

    /// Asserts that standard output contains a text.
    #[track_caller]
    pub(crate) fn prints(&self, text: &str) -> &Self {
        assert!(self.out.contains(text), "no {text:?} in {self:?}");
        self
    }

    /// Asserts that standard error contains a text.
    #[track_caller]
    pub(crate) fn reports(&self, text: &str) -> &Self {
        assert!(self.err.contains(text), "no {text:?} in {self:?}");
        self
    }

    /// The message that a hook's answer shows the user.
    pub(crate) fn system_message(&self) -> Option<String> {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        if self.out.is_empty() {
            return None;
        }
        let answer: Value = serde_json::from_str(&self.out).expect("JSON");
        Some(answer["systemMessage"].as_str().expect("a text").to_owned())
    }

    /// Standard output as one line, however it was wrapped.
    pub(crate) fn unwrapped(&self) -> String {
        unwrapped(&self.out)
    }
}

/// A path as an argument.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

/// One field of each object in a list.
pub(crate) fn column(list: &Value, key: &str) -> Vec<Value> {
    let list = list.as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    list.iter().map(|one| one[key].clone()).collect()
}

/// A text as one line, however it was wrapped.
pub(crate) fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl User {
    pub(crate) fn new() -> Self {
        let user = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        for folder in ["home", "work"] {
            fs::create_dir(user.folder.path().join(folder)).expect("a folder");
        }
        user
    }

    /// A user whose folder has these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let user = Self::new();
        for (path, text) in files {
            user.write(path, text);
        }
        user
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The folder of the store, once there is one. Forks have stores of their own.
    pub(crate) fn store(&self) -> PathBuf {
        let stores = self.home().join(".takeback/workspaces");
        let found = fs::read_dir(stores).expect("there are stores");
        let mut found: Vec<PathBuf> =
            found.map(|entry| entry.expect("it has a name").path()).collect();
        if found.len() > 1 {
            found.retain(|store| {
                store.file_name().is_some_and(|name| name.to_string_lossy().starts_with("work-"))
            });
        }
        found.pop().expect("there is a store")
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        let metadata = fs::metadata(self.work().join(path)).expect("it is there");
        metadata.permissions().mode() & 0o777
    }

    pub(crate) fn set_mode(&self, path: &str, mode: u32) {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(self.work().join(path), mode).expect("a mode is set");
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.work().join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .expect("it is removed");
    }

    /// The store's database, past Takeback.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.store().join("timeline.db")).expect("the database opens")
    }

    /// Changes one row of the store's database, as if the clock or the disk had done it.
    #[track_caller]
    pub(crate) fn change_database(&self, sql: &str) {
        assert_eq!(self.database().execute(sql, []).expect("it is changed"), 1, "{sql}");
    }

    /// The points' descriptions, newest first.
    pub(crate) fn descriptions(&self) -> Vec<String> {
        let described = column(&self.json(&["log", "-n", "1000"]), "description");
        described.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
    }

    /// Writes the user's own settings.
    pub(crate) fn set(&self, settings: &str) {
        let home = self.home().join(".takeback");
        fs::create_dir_all(&home).expect("a home");
        fs::write(home.join("settings.json"), settings).expect("settings are written");
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
        fs::write(path, text).expect("a file is written");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work().join(path)).expect("it can be read")
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.work().join(path).exists()
    }

    /// `takeback ARGS`, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_takeback"));
        command.args(args).current_dir(self.work()).env_clear();
        command.env("HOME", self.home()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Times must not depend on this machine's zone.
        command.env("TZ", "UTC");
        // Wait for agents to print their version, however busy this machine is.
        command.env("TAKEBACK_VERSION_PATIENCE_MS", "60000");
        command
    }

    /// As [`Self::command`], without deadlines that a busy machine would miss.
    pub(crate) fn patient_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.envs(NO_DEADLINES);
        command
    }

    /// `takeback ARGS` with failing system calls: `rule` is strace's `inject=`; `only` limits it to calls
    /// about this path.
    pub(crate) fn with_failing(&self, rule: &str, only: Option<&str>, args: &[&str]) -> Answer {
        self.answer_of(self.failing(rule, only, args), "")
    }

    /// As [`Self::with_failing`], with `input` on standard input and no deadline.
    pub(crate) fn with_failing_and_input(&self, rule: &str, args: &[&str], input: &str) -> Answer {
        let mut command = self.failing(rule, None, args);
        command.envs(NO_DEADLINES);
        self.answer_of(command, input)
    }

    /// As [`Self::with_failing`], not yet started.
    pub(crate) fn failing(&self, rule: &str, only: Option<&str>, args: &[&str]) -> Command {
        let (call, _) = rule.split_once(':').expect("a call and how it fails");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
        command.arg("-e").arg(format!("inject={rule}"));
        command.args(only.map(|path| ["-P", path]).into_iter().flatten());
        let program = self.command(args);
        command.arg(program.get_program()).args(program.get_args()).current_dir(self.work());
        command.env_clear().env("HOME", self.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// How often `takeback ARGS` makes a system call.
    pub(crate) fn count_calls(&self, call: &str, args: &[&str]) -> usize {
        let trace = self.home().join("trace");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "signal=none", "-e"]).arg(format!("trace={call}"));
        command.arg("-o").arg(&trace).arg(env!("CARGO_BIN_EXE_takeback")).args(args);
        command.current_dir(self.work()).env_clear().env("HOME", self.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let answer = self.answer_of(command, "");
        assert_eq!(answer.code, 0, "{answer:?}");
        let lines = fs::read_to_string(&trace).expect("a trace");
        fs::remove_file(trace).expect("it goes");
        lines.lines().filter(|line| line.contains(&format!("{call}("))).count()
    }

    /// Everything in the user's folder.
    pub(crate) fn tree(&self) -> BTreeMap<PathBuf, Thing> {
        tree(&self.work())
    }

    /// Copies folder and home; the returned closure restores them.
    pub(crate) fn backup(&self) -> impl Fn() {
        let folder = self.folder.path().to_owned();
        let copy = |from: PathBuf, to: PathBuf| {
            let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
            assert!(status.expect("it runs").success());
        };
        let kept =
            ["home", "work"].map(|name| (folder.join(name), folder.join(format!("{name}-kept"))));
        for (now, kept) in &kept {
            copy(now.clone(), kept.clone());
        }
        move || {
            for (now, kept) in &kept {
                fs::remove_dir_all(now).expect("it goes");
                copy(kept.clone(), now.clone());
            }
        }
    }

    /// Whether the tests run as root, who may do everything.
    fn is_root(&self) -> bool {
        fs::metadata(self.work()).expect("it is there").uid() == 0
    }

    /// Gives everything to an unprivileged user: if we are root, to uid 65534.
    pub(crate) fn drop_privileges(&self) {
        if !self.is_root() {
            return;
        }
        // Another process copies it: a descriptor open for writing in this one could leak into a child of
        // a parallel test, and the kernel refuses to run a program that is open for writing.
        let folder = self.folder.path();
        let program = folder.join("takeback");
        let run = |command: &mut Command| assert!(command.status().expect("it runs").success());
        run(Command::new("cp").arg(env!("CARGO_BIN_EXE_takeback")).arg(program));
        run(Command::new("chown")
            .arg("-R")
            .arg(format!("{UNPRIVILEGED}:{UNPRIVILEGED}"))
            .arg(folder));
        run(Command::new("chmod").arg("0755").arg(folder));
    }

    /// `takeback ARGS` as the user of [`Self::drop_privileges`].
    pub(crate) fn unprivileged(&self, args: &[&str]) -> Answer {
        self.unprivileged_with_input(args, "")
    }

    /// As [`Self::unprivileged`]; it must exit with this code.
    #[track_caller]
    pub(crate) fn unprivileged_exits(&self, code: i32, args: &[&str]) -> Answer {
        self.unprivileged(args).exited(code, args)
    }

    /// As [`Self::unprivileged`], with `input` on standard input.
    pub(crate) fn unprivileged_with_input(&self, args: &[&str], input: &str) -> Answer {
        self.unprivileged_with(args, input, &[])
    }

    /// As [`Self::unprivileged_with_input`], with more variables.
    pub(crate) fn unprivileged_with(
        &self,
        args: &[&str],
        input: &str,
        variables: &[(&str, &Path)],
    ) -> Answer {
        let mut command = self.command(args);
        if self.has_dropped_privileges() {
            command = Command::new(self.folder.path().join("takeback"));
            command.args(args).current_dir(self.work()).env_clear().env("HOME", self.home());
            command.uid(UNPRIVILEGED);
        }
        command.envs(NO_DEADLINES).envs(variables.iter().copied());
        self.answer_of(command, input)
    }

    /// `takeback ARGS` as an ordinary user, killed at a system call: `rule` is strace's `inject=`. Whether
    /// it got that far.
    pub(crate) fn killed_unprivileged(&self, rule: &str, args: &[&str]) -> bool {
        let (call, _) = rule.split_once(':').expect("a call and when");
        let mut tracer = Command::new("strace");
        tracer.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
        tracer.arg("-e").arg(format!("inject={rule}"));
        tracer.arg(self.program()).args(args).current_dir(self.work()).env_clear();
        tracer.env("HOME", self.home()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if self.has_dropped_privileges() {
            tracer.uid(UNPRIVILEGED);
        }
        let status = tracer.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.expect("it starts").code().is_none()
    }

    fn program(&self) -> PathBuf {
        match self.has_dropped_privileges() {
            true => self.folder.path().join("takeback"),
            false => env!("CARGO_BIN_EXE_takeback").into(),
        }
    }

    fn has_dropped_privileges(&self) -> bool {
        self.folder.path().join("takeback").exists()
    }

    pub(crate) fn takeback(&self, args: &[&str]) -> Answer {
        self.feed(args, "")
    }

    /// `takeback ARGS`, which must exit with 0.
    #[track_caller]
    pub(crate) fn succeeds(&self, args: &[&str]) -> Answer {
        self.exits(0, args)
    }

    /// `takeback ARGS`, which must exit with this code.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32, args: &[&str]) -> Answer {
        self.takeback(args).exited(code, args)
    }

    /// `takeback record`, which must accept all of these lines.
    #[track_caller]
    pub(crate) fn record(&self, events: &str) {
        self.feed(&["record"], events).exited(0, &[events]);
    }

    /// One turn of an agent in session `s`: a prompt, then a call of `tool` that makes `changes`. The call
    /// announces `paths`, and its id is the message.
    #[track_caller]
    pub(crate) fn agent_turn(
        &self,
        message: &str,
        text: &str,
        (tool, paths): (&str, &[&str]),
        changes: impl FnOnce(),
    ) {
        let event = |event: &str| json!({"event": event, "session": "s", "call": message});
        let (mut prompt, mut before) = (event("prompt"), event("before_tool"));
        prompt["message"] = json!(message);
        prompt["text"] = json!(text);
        before["tool"] = json!(tool);
        before["paths"] = json!(paths);
        self.record(&format!("{prompt}\n{before}"));
        changes();
        self.record(&format!("{}\n{}", event("after_tool"), event("turn_end")));
    }

    /// `takeback ARGS` in another folder.
    pub(crate) fn takeback_in(&self, folder: &Path, args: &[&str]) -> Answer {
        let mut command = self.command(args);
        command.current_dir(folder);
        self.answer_of(command, "")
    }

    /// `takeback ARGS`, with `input` on standard input.
    pub(crate) fn feed(&self, args: &[&str], input: &str) -> Answer {
        self.answer_of(self.command(args), input)
    }

    /// What a command made by [`Self::command`] answers.
    pub(crate) fn answer_of(&self, mut command: Command, input: &str) -> Answer {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let written = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        // A command that refuses its arguments may exit before it reads.
        if let Err(why) = written {
            assert_eq!(why.kind(), std::io::ErrorKind::BrokenPipe, "it listens");
        }
        self.answer(child.wait_with_output().expect("it ends"))
    }

    /// The output of a command that a signal may end.
    pub(crate) fn output_of(&self, mut command: Command) -> Output {
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    fn answer(&self, output: Output) -> Answer {
        let text =
            |bytes: Vec<u8>| self.normalize(&String::from_utf8(bytes).expect("answers are text"));
        Answer {
            code: output.status.code().expect("it ends by itself"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Replaces what differs from run to run: ids and the temporary folder.
    pub(crate) fn normalize(&self, text: &str) -> String {
        let folder = fs::canonicalize(self.folder.path()).expect("it is there");
        let text = text.replace(&folder.display().to_string(), "FOLDER");
        let mut normalized = String::new();
        for (at, word) in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).enumerate() {
            let core = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let hex = core.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
            if hex && matches!(core.len(), 8 | 16 | 64) && (at > 0 || core.len() > 1) {
                normalized.push_str(match core.len() {
                    8 => "ID",
                    16 => "LONG-ID",
                    _ => "DIGEST",
                });
                normalized.push_str(&word[core.len()..]);
            } else {
                normalized.push_str(word);
            }
        }
        normalized
    }

    /// A JSON answer, with ids and times as they are.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.command(&[args, &["--json"]].concat()).output().expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{args:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        })
    }
}
