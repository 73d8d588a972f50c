//! A client of `takeback serve`.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::user::User;

/// One connection: a message per line.
pub(super) struct Client {
    pub(super) input: Box<dyn Write + Send>,
    pub(super) output: BufReader<Box<dyn Read + Send>>,
    /// Notifications that arrived before the answer to a call.
    notifications: VecDeque<Value>,
    next: u64,
}

impl Client {
    pub(super) fn new(
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
    ) -> Self {
        let (input, output) = (Box::new(input), BufReader::new(Box::new(output) as Box<_>));
        Self { input, output, notifications: VecDeque::new(), next: 1 }
    }

    pub(super) fn send(&mut self, line: &[u8]) {
        self.input.write_all(line).and_then(|()| self.input.write_all(b"\n")).expect("it listens");
        self.input.flush().expect("it listens");
    }

    /// The next message.
    pub(super) fn message(&mut self) -> Value {
        self.notifications.pop_front().unwrap_or_else(|| self.read())
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it says something");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The whole response to a call.
    pub(super) fn response(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(call.to_string().as_bytes());
        loop {
            let message = self.read();
            if message["id"] == id {
                return message;
            }
            assert!(message.get("method").is_some(), "an answer to something else: {message}");
            self.notifications.push_back(message);
        }
    }

    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.response(method, params);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// The code and kind of the error with which a call fails.
    pub(super) fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        let answer = self.response(method, params);
        let error = &answer["error"];
        let kind = error["data"]["kind"].as_str().unwrap_or_else(|| panic!("{method}: {answer}"));
        (error["code"].as_i64().expect("a code"), kind.to_owned())
    }

    /// An agent's edit, with the events before and after it.
    pub(super) fn edit(&mut self, session: &str, call: &str, path: &str, edit: impl FnOnce()) {
        self.record(&json!({
            "event": "before_tool", "session": session, "call": call, "tool": "Edit", "paths": [path],
        }));
        edit();
        self.record(&json!({ "event": "after_tool", "session": session, "call": call }));
    }

    pub(super) fn record(&mut self, event: &Value) -> Value {
        let answer = self.call("event:record", event);
        assert_eq!(answer["ok"], true, "{event}: {answer}");
        answer
    }
}

/// `takeback serve --stdio`, until it is dropped.
pub(super) struct StdioServer {
    pub(super) client: Client,
    pub(super) child: Child,
}

impl Deref for StdioServer {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for StdioServer {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// A user with a file `a.txt`, and a server in the user's folder.
pub(super) fn user_with_server() -> (User, StdioServer) {
    let user = User::with(&[("a.txt", "one\n")]);
    let server = stdio(&user);
    (user, server)
}

pub(super) fn stdio(user: &User) -> StdioServer {
    stdio_with(user, &[])
}

pub(super) fn stdio_with(user: &User, options: &[&str]) -> StdioServer {
    let mut command = user.patient_command(&["serve", "--stdio"]);
    command.args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let input = child.stdin.take().expect("it is piped");
    let output = child.stdout.take().expect("it is piped");
    StdioServer { client: Client::new(input, output), child }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `takeback serve` on the socket of a user's home, until it is dropped.
pub(super) struct SocketServer {
    pub(super) socket: PathBuf,
    pub(super) child: Child,
}

impl SocketServer {
    pub(super) fn start(user: &User) -> Self {
        Self::started_by(user.patient_command(&["serve", "--json"]))
    }

    /// With these soft and hard limits on open files.
    pub(super) fn limited(user: &User, soft: u32, hard: u32) -> Self {
        let program = user.patient_command(&["serve", "--json"]);
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -Sn {soft}; ulimit -Hn {hard}; exec \"$0\" \"$@\""));
        command.arg(program.get_program()).args(program.get_args()).current_dir(user.work());
        command.env_clear().envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
        Self::started_by(command)
    }

    fn started_by(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut said = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut said).expect("it says where it is");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        Self { socket: said["socket"].as_str().expect("a path").into(), child }
    }

    pub(super) fn connect(&self) -> Client {
        connect(&self.socket)
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }
}

pub(super) fn connect(socket: &Path) -> Client {
    let stream = UnixStream::connect(socket).expect("it listens");
    Client::new(stream.try_clone().expect("a second"), stream)
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
