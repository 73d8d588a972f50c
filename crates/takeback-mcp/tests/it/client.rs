//! A user with a folder, and a client that speaks line by line.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The `takeback` of the same build. Built only if it is missing or older than a source: a separate build has
/// other features than the workspace build and takes minutes.
pub(crate) fn takeback() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_BIN_EXE_takeback-mcp")).parent().expect("a folder");
        let program = folder.join("takeback");
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the other crates");
        let built = fs::metadata(&program).and_then(|about| about.modified()).ok();
        if built.is_none_or(|built| built < newest(crates)) {
            let target = folder.parent().expect("the target folder");
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "-p", "takeback", "--target-dir"]).arg(target);
            if folder.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().expect("cargo runs").success(), "takeback can be built");
        }
        program
    })
}

/// When the last of the sources was written.
fn newest(folder: &Path) -> SystemTime {
    let of = |entry: io::Result<fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        match path.is_dir() {
            true if path.ends_with("tests") || path.ends_with("takeback-mcp") => None,
            true => Some(newest(&path)),
            false if is_source => fs::metadata(path).and_then(|about| about.modified()).ok(),
            false => None,
        }
    };
    let all = fs::read_dir(folder).expect("it can be read").filter_map(of);
    all.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

pub(crate) struct User {
    folder: TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        let user = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        for folder in ["home", "work"] {
            fs::create_dir(user.folder.path().join(folder)).expect("a folder");
        }
        user
    }

    /// A point `first`; after it an agent has changed `a.txt` and made `b.txt`, and the user made `c.txt`.
    pub(crate) fn with_work() -> Self {
        let user = Self::new();
        user.write("a.txt", "one\ntwo\n");
        user.takeback(&["checkpoint", "first"], "");
        user.edit(&["a.txt", "b.txt"], || {
            user.write("a.txt", "one\nTWO\n");
            user.write("b.txt", "new\n");
        });
        user.write("c.txt", "mine\n");
        // A preview reads only the paths that it may change.
        user.takeback(&["diff"], "");
        user
    }

    /// What an agent does in one call.
    pub(crate) fn edit(&self, paths: &[&str], change: impl FnOnce()) {
        let event = |mut event: Value| {
            event["session"] = json!("s1");
            let answer = self.takeback(&["record"], &format!("{event}\n"));
            assert!(answer.contains(r#""ok":true"#), "{answer}");
        };
        event(json!({"event": "prompt", "message": "m1", "text": "Make it better"}));
        event(json!({"event": "before_tool", "call": "c1", "tool": "Write", "paths": paths}));
        change();
        event(json!({"event": "after_tool", "call": "c1", "tool": "Write"}));
        event(json!({"event": "turn_end"}));
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
        fs::write(path, text).expect("a file is written");
    }

    /// Every file with its text, except for a project's settings.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files: Vec<(String, String)> = fs::read_dir(self.work())
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_file())
            .map(|path| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                (name, fs::read_to_string(path).expect("text"))
            })
            .collect();
        files.sort();
        files
    }

    pub(crate) fn set(&self, settings: &str) {
        let home = self.beside("home/.takeback");
        fs::create_dir_all(&home).expect("a home");
        fs::write(home.join("settings.json"), settings).expect("settings are written");
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work()).env_clear().env("HOME", self.beside("home"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub(crate) fn takeback(&self, args: &[&str], input: &str) -> String {
        let mut command = self.command(takeback());
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        let done = child.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{args:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// A `takeback` that writes its process id to the file `pid` next to the home.
    pub(crate) fn leaving_pid(&self) -> PathBuf {
        self.script(&format!(
            "echo $$ > {}\nexec {} \"$@\"",
            self.beside("pid").display(),
            takeback().display()
        ))
    }

    pub(crate) fn script(&self, lines: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let script = self.beside("program");
        fs::write(&script, format!("#!/bin/sh\n{lines}\n")).expect("a script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it may run");
        script
    }

    /// The id that [`Self::leaving_pid`] left.
    pub(crate) fn pid(&self) -> i32 {
        let text = fs::read_to_string(self.beside("pid")).expect("it was started");
        text.trim().parse().expect("a number")
    }

    /// A client that has said nothing yet.
    pub(crate) fn connect(&self) -> Client {
        self.connect_with(takeback())
    }

    pub(crate) fn connect_with(&self, program: &Path) -> Client {
        self.connect_as(program, &[])
    }

    fn connect_as(&self, program: &Path, args: &[&str]) -> Client {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_takeback-mcp")));
        command.args(args);
        command.env("TAKEBACK_PROGRAM", program).env("TAKEBACK_HOOK_DEADLINE_MS", "60000");
        Client::start(command)
    }

    /// A client of a server that was started with these arguments.
    pub(crate) fn initialized_with(&self, args: &[&str]) -> Client {
        let mut client = self.connect_as(takeback(), args);
        client.initialize(&json!({}));
        client
    }

    /// A client of the `initialize` era that can ask its user in these ways.
    pub(crate) fn initialized(&self, capabilities: &Value) -> Client {
        let mut client = self.connect();
        client.initialize(capabilities);
        client
    }
}

pub(crate) struct Client {
    pub(crate) process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    calls: u64,
    /// What every request carries, in the era without `initialize`.
    meta: Option<Value>,
}

impl Client {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().expect("it starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, input, lines, calls: 0, meta: None }
    }

    pub(crate) fn initialize(&mut self, capabilities: &Value) -> Value {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.request("initialize", params);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer["result"].clone()
    }

    /// From now on, every request carries the client's capabilities.
    pub(crate) fn stateless(&mut self, capabilities: &Value) {
        self.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{line}").expect("it reads");
    }

    /// The next line, which is always JSON.
    pub(crate) fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("it says something");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.calls += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let id = self.calls;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&request.to_string());
        id
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The result of a tool.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that asks the user something; what it asks, and the id to answer with.
    pub(crate) fn call_and_be_asked(&mut self, name: &str, arguments: &Value) -> (String, Value) {
        self.send("tools/call", json!({"name": name, "arguments": arguments}));
        self.asked()
    }

    pub(crate) fn asked(&mut self) -> (String, Value) {
        let question = self.hear();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let params = &question["params"];
        assert_eq!(params["mode"], "form");
        assert_eq!(params["requestedSchema"], json!({"type": "object", "properties": {}}));
        (params["message"].as_str().expect("a question").to_owned(), question["id"].clone())
    }

    pub(crate) fn answer(&mut self, id: &Value, action: &str) {
        let result = json!({"action": action, "content": {}});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Until it has ended; its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        wait_for(|| self.process.try_wait().expect("it can be asked").map(|status| status.code()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
        self.wait();
    }
}

/// Until there is one.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn is_running(pid: i32) -> bool {
    Command::new("kill")
        .args(["-0", &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .expect("kill runs")
        .success()
}

/// The text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("text")
}
