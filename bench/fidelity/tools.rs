//! The tools, each as it is used.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::Result;

/// Something that keeps a state of a folder and brings it back.
pub(crate) trait Tool {
    /// Its name and version.
    fn title(&self) -> String;
    /// Takes a snapshot, then lets the script do its damage.
    fn damage_with(&mut self, root: &Path, script: &str) -> Result<()>;
    fn restore(&self, root: &Path) -> Result<()>;
}

/// `takeback run -- sh -c SCRIPT`, `takeback rewind @ -y`.
pub(crate) struct Takeback {
    program: PathBuf,
    home: PathBuf,
}

impl Takeback {
    /// Builds the command first: cargo, which runs this, builds only what this links.
    pub(crate) fn new(place: &Path) -> Result<Self> {
        if let Some(cargo) = std::env::var_os("CARGO") {
            let mut build = Command::new(cargo);
            build.args(["build", "-q", "-p", "takeback"]).current_dir(env!("CARGO_MANIFEST_DIR"));
            if !cfg!(debug_assertions) {
                build.arg("--release");
            }
            done(&mut build)?;
        }
        let program = std::env::current_exe()?.with_file_name("takeback");
        if !program.is_file() {
            return Err("there is no takeback beside this program".into());
        }
        Ok(Self { program, home: place.join("home") })
    }

    fn command(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--home").arg(&self.home).current_dir(root);
        command
    }
}

impl Tool for Takeback {
    fn title(&self) -> String {
        version(Command::new(&self.program).arg("--version"))
    }

    fn damage_with(&mut self, root: &Path, script: &str) -> Result<()> {
        done(self.command(root).args(["run", "--", "sh", "-ec", script])).map(drop)
    }

    fn restore(&self, root: &Path) -> Result<()> {
        done(self.command(root).args(["rewind", "@", "-y"])).map(drop)
    }
}

/// A shadow repository: `add -A`, `write-tree`; then the files that are not in the tree removed,
/// `read-tree`, `checkout-index -a -f`.
pub(crate) struct Git {
    repository: PathBuf,
    tree: String,
}

impl Git {
    pub(crate) fn new(place: &Path) -> Result<Self> {
        let repository = place.join("shadow");
        done(plain_git().args(["init", "-q", "--bare"]).arg(&repository))?;
        Ok(Self { repository, tree: String::new() })
    }

    fn git(&self, root: &Path, words: &[&str]) -> Result<Vec<u8>> {
        let mut command = plain_git();
        command.env("GIT_DIR", &self.repository).env("GIT_WORK_TREE", root);
        Ok(done(command.args(words).current_dir(root))?.stdout)
    }
}

impl Tool for Git {
    fn title(&self) -> String {
        version(Command::new("git").arg("--version"))
    }

    fn damage_with(&mut self, root: &Path, script: &str) -> Result<()> {
        self.git(root, &["add", "-A"])?;
        self.tree = String::from_utf8(self.git(root, &["write-tree"])?)?.trim().to_owned();
        done(Command::new("sh").args(["-ec", script]).current_dir(root)).map(drop)
    }

    fn restore(&self, root: &Path) -> Result<()> {
        self.git(root, &["add", "-A"])?;
        let new = ["diff-index", "--cached", "-z", "--name-only", "--diff-filter=A", &self.tree];
        let new = self.git(root, &new)?;
        for name in new.split(|b| *b == 0).filter(|name| !name.is_empty()) {
            fs::remove_file(root.join(OsStr::from_bytes(name)))?;
        }
        self.git(root, &["read-tree", &self.tree])?;
        self.git(root, &["checkout-index", "-a", "-f"]).map(drop)
    }
}

/// git without any settings of whoever runs this.
pub(crate) fn plain_git() -> Command {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").args([
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@localhost",
        "-c",
        "gc.auto=0",
        "-c",
        "advice.addEmbeddedRepo=false",
    ]);
    command
}

/// `restic backup .`, `restic restore latest --target FOLDER`.
pub(crate) struct Restic {
    repository: PathBuf,
}

impl Restic {
    pub(crate) fn is_installed() -> bool {
        Command::new("restic").arg("version").output().is_ok()
    }

    pub(crate) fn new(place: &Path) -> Result<Self> {
        let restic = Self { repository: place.join("repository") };
        done(restic.command(place).arg("init"))?;
        Ok(restic)
    }

    fn command(&self, root: &Path) -> Command {
        let mut command = Command::new("restic");
        command.args(["-q", "--no-cache", "-r"]).arg(&self.repository);
        command.env("RESTIC_PASSWORD", "bench").current_dir(root);
        command
    }
}

impl Tool for Restic {
    fn title(&self) -> String {
        version(Command::new("restic").arg("version"))
    }

    fn damage_with(&mut self, root: &Path, script: &str) -> Result<()> {
        done(self.command(root).args(["backup", "."]))?;
        done(Command::new("sh").args(["-ec", script]).current_dir(root)).map(drop)
    }

    fn restore(&self, root: &Path) -> Result<()> {
        done(self.command(root).args(["restore", "latest", "--target"]).arg(root)).map(drop)
    }
}

/// Runs a command to its end; what it complained of, if it did not succeed.
pub(crate) fn done(command: &mut Command) -> Result<Output> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stderr.as_slice(), &output.stdout].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
    Err(format!("{last} ({})", output.status).into())
}

/// The first two words or so: `git version 2.47.3` is `git 2.47.3`.
fn version(command: &mut Command) -> String {
    let said = command.output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let words = said.split_whitespace().filter(|word| *word != "version");
    words.take(2).collect::<Vec<_>>().join(" ")
}
