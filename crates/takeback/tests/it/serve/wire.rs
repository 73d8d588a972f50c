//! A program at the other end.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::User;

/// What goes in and comes out, line by line.
pub(super) struct Line {
    pub(super) input: Box<dyn Write + Send>,
    pub(super) output: BufReader<Box<dyn Read + Send>>,
    /// What was told before an answer came.
    news: VecDeque<Value>,
    next: u64,
}

impl Line {
    pub(super) fn new(
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
    ) -> Self {
        let (input, output) = (Box::new(input), BufReader::new(Box::new(output) as Box<_>));
        Self { input, output, news: VecDeque::new(), next: 1 }
    }

    pub(super) fn send(&mut self, line: &[u8]) {
        self.input.write_all(line).and_then(|()| self.input.write_all(b"\n")).expect("it listens");
        self.input.flush().expect("it listens");
    }

    /// The next message.
    pub(super) fn message(&mut self) -> Value {
        self.news.pop_front().unwrap_or_else(|| self.read())
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it says something");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The answer to a call, whole.
    pub(super) fn answer(&mut self, method: &str, params: &Value) -> Value {
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
            self.news.push_back(message);
        }
    }

    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    /// The code and the kind of the error that a call comes to.
    pub(super) fn fault(&mut self, method: &str, params: &Value) -> (i64, String) {
        let answer = self.answer(method, params);
        let error = &answer["error"];
        let kind = error["data"]["kind"].as_str().unwrap_or_else(|| panic!("{method}: {answer}"));
        (error["code"].as_i64().expect("a code"), kind.to_owned())
    }

    /// An agent's edit: before it, the edit, after it.
    pub(super) fn edit(&mut self, session: &str, call: &str, path: &str, edit: impl FnOnce()) {
        self.told(&json!({
            "event": "before_tool", "session": session, "call": call, "tool": "Edit", "paths": [path],
        }));
        edit();
        self.told(&json!({ "event": "after_tool", "session": session, "call": call }));
    }

    pub(super) fn told(&mut self, event: &Value) -> Value {
        let answer = self.call("event:record", event);
        assert_eq!(answer["ok"], true, "{event}: {answer}");
        answer
    }
}

/// `takeback serve --stdio`, until it is dropped.
pub(super) struct Served {
    pub(super) line: Line,
    pub(super) child: Child,
}

pub(super) fn stdio(user: &User) -> Served {
    stdio_with(user, &[])
}

pub(super) fn stdio_with(user: &User, options: &[&str]) -> Served {
    let mut command = user.patient(&["serve", "--stdio"]);
    command.args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let input = child.stdin.take().expect("it is piped");
    let output = child.stdout.take().expect("it is piped");
    Served { line: Line::new(input, output), child }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended, or been ended, already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A server of a user's home on its socket, until it is dropped.
pub(super) struct Listening {
    pub(super) socket: PathBuf,
    pub(super) child: Child,
}

impl Listening {
    pub(super) fn start(user: &User) -> Self {
        Self::started_by(user.patient(&["serve", "--json"]))
    }

    /// With this many open files at most, of which it may be given as many at the start.
    pub(super) fn limited(user: &User, soft: u32, hard: u32) -> Self {
        let program = user.patient(&["serve", "--json"]);
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

    pub(super) fn connect(&self) -> Line {
        connect(&self.socket)
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }
}

pub(super) fn connect(socket: &Path) -> Line {
    let stream = UnixStream::connect(socket).expect("it listens");
    Line::new(stream.try_clone().expect("a second"), stream)
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended, or been ended, already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
