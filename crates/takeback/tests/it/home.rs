//! A user with a folder and a home of their own.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) struct User {
    folder: TempDir,
}

/// What a command answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl User {
    pub(crate) fn new() -> Self {
        let user = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        for folder in ["home", "work"] {
            fs::create_dir(user.folder.path().join(folder)).expect("a folder");
        }
        user
    }

    /// A user in whose folder `files` stand.
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

    /// The folder of the store, once there is one.
    pub(crate) fn store(&self) -> PathBuf {
        let stores = self.home().join(".takeback/workspaces");
        let mut found = fs::read_dir(stores).expect("there are stores");
        found.next().expect("there is a store").expect("it has a name").path()
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
        command
    }

    pub(crate) fn takeback(&self, args: &[&str]) -> Answer {
        self.fed(args, "")
    }

    /// With `input` on standard input.
    pub(crate) fn fed(&self, args: &[&str], input: &str) -> Answer {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it listens");
        self.answer(child.wait_with_output().expect("it ends"))
    }

    fn answer(&self, output: Output) -> Answer {
        let text =
            |bytes: Vec<u8>| self.settled(&String::from_utf8(bytes).expect("answers are text"));
        Answer {
            code: output.status.code().expect("it ends by itself"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// What differs from run to run, named instead: ids, times, the temporary folder.
    pub(crate) fn settled(&self, text: &str) -> String {
        let folder = fs::canonicalize(self.folder.path()).expect("it is there");
        let text = text.replace(&folder.display().to_string(), "FOLDER");
        let mut settled = String::new();
        for (at, word) in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).enumerate() {
            let core = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let hex = core.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
            if hex && matches!(core.len(), 8 | 16 | 64) && (at > 0 || core.len() > 1) {
                settled.push_str(match core.len() {
                    8 => "ID",
                    16 => "LONG-ID",
                    _ => "DIGEST",
                });
                settled.push_str(&word[core.len()..]);
            } else {
                settled.push_str(word);
            }
        }
        settled
    }

    /// A JSON answer, with ids and times as they are.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.command(&[args, &["--json"]].concat()).output().expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{args:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        })
    }
}
