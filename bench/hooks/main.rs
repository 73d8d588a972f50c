//! What a hook costs the agent that waits for it, beside a hook that does nothing, in one run.
//!
//! Each hook is a process of its own, started as agents start it: by a shell, with JSON on its standard
//! input. The empty one is this program, which reads its input and ends. Rounds are interleaved.
//!
//! `hooks --beside PROGRAM` compares with another build of Takeback: an earlier one, for example.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "the bench plays the user and the agent")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use takeback_bench::Result;
use takeback_bench::machine::load_average;
use takeback_bench::measure::{median, millis};

const ROUNDS: usize = 25;
const FILE: usize = 10 << 10;
const EMPTY: &str = "--empty-hook";

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some(EMPTY) {
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let this = std::env::current_exe()?;
    build()?;
    if let [Some("--beside"), Some(other)] =
        [1, 2].map(|n| std::env::args().nth(n)).each_ref().map(|arg| arg.as_deref())
    {
        return beside(&this, Path::new(other));
    }
    println!("What one hook costs, medians of {ROUNDS} rounds (load {}):\n", load_average()?);
    println!("| hook | 1,000 files | beside an empty hook | 10,000 files | beside an empty hook |");
    println!("|---|---|---|---|---|");
    let tables = [table(&this, 1_000)?, table(&this, 10_000)?];
    for (small, large) in tables[0].iter().zip(&tables[1]) {
        println!(
            "| {} | {:.1} ms | {:.1}x | {:.1} ms | {:.1}x |",
            small.name, small.ms, small.ratio, large.ms, large.ratio
        );
    }
    Ok(())
}

struct Row {
    name: &'static str,
    ms: f64,
    /// Round by round.
    ratio: f64,
}

fn build() -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "takeback", "--bin", "takeback"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    if cargo.status()?.success() { Ok(()) } else { Err("takeback cannot be built".into()) }
}

/// A project of so many files in a folder of its own, with an agent at work.
struct Desk {
    folder: PathBuf,
    takeback: PathBuf,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // What stays in a temporary folder does no harm.
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Desk {
    fn with(takeback: PathBuf, files: usize) -> Result<Self> {
        Self::named("this", takeback, files)
    }

    fn named(name: &str, takeback: PathBuf, files: usize) -> Result<Self> {
        let name = format!("takeback-bench-hooks-{}-{name}-{files}", std::process::id());
        let desk = Self { folder: std::env::temp_dir().join(name), takeback };
        fs::create_dir_all(desk.folder.join("home"))?;
        for n in 0..files {
            let folder = desk.project().join(format!("folder-{}", n / 50));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("{n}.txt")), format!("file {n}\n").repeat(20))?;
        }
        fs::write(desk.project().join("edited.txt"), vec![b'x'; FILE])?;
        Ok(desk)
    }

    fn hook(&self) -> String {
        format!("{} hook --agent claude", self.takeback.display())
    }

    fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    fn given(&self, event: &str, more: &Value) -> Value {
        let mut given = json!({
            "session_id": "bench", "transcript_path": "", "cwd": self.project(),
            "prompt_id": "p", "hook_event_name": event,
        });
        if let (Value::Object(given), Value::Object(more)) = (&mut given, more) {
            given.extend(more.clone());
        }
        given
    }

    fn run(&self, command: &str, given: &Value) -> Result<f64> {
        let given = given.to_string();
        let began = Instant::now();
        let mut hook = Command::new("/bin/sh")
            .args(["-c", command])
            .current_dir(self.project())
            .env("HOME", self.folder.join("home"))
            .env_remove("TAKEBACK_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        hook.stdin.take().ok_or("no input")?.write_all(given.as_bytes())?;
        let status = hook.wait()?;
        let took = millis(began.elapsed());
        if status.success() { Ok(took) } else { Err(format!("{command}: {status}").into()) }
    }
}

/// This build and another one, round by round.
fn beside(this: &Path, other: &Path) -> Result<()> {
    const FILES: usize = 1_000;
    let mut desks = [
        Desk::with(this.with_file_name("takeback"), FILES)?,
        Desk::named("other", other.to_owned(), FILES)?,
    ];
    // Where a program is and how it was written shows in the time it takes to start: both are copies.
    for desk in &mut desks {
        let copy = desk.folder.join("takeback");
        fs::copy(&desk.takeback, &copy)?;
        desk.takeback = copy;
    }
    let hooks = desks.each_ref().map(|desk| hooks(desk));
    let mut took = [(); 2].map(|()| vec![Vec::new(); hooks[0].len()]);
    for (desk, hooks) in desks.iter().zip(&hooks) {
        desk.run(&desk.hook(), &hooks[5].1)?;
    }
    for round in 0..2 * ROUNDS {
        for n in 0..hooks[0].len() {
            // Each is the first as often as the other.
            for which in [round % 2, (round + 1) % 2] {
                let desk = &desks[which];
                if n == 2 {
                    let bytes = vec![b'a' + u8::try_from(round % 26)?; FILE];
                    fs::write(desk.project().join("edited.txt"), bytes)?;
                }
                took[which][n].push(desk.run(&desk.hook(), &hooks[which][n].1)?);
            }
        }
    }
    println!(
        "Hooks of this build beside {}, {FILES} files, medians of {} rounds (load {}):\n",
        other.display(),
        2 * ROUNDS,
        load_average()?
    );
    println!("| hook | this | other | ratio |\n|---|---|---|---|");
    for (n, (name, _)) in hooks[0].iter().enumerate() {
        let ratio = median(took[0][n].iter().zip(&took[1][n]).map(|(this, other)| this / other));
        let [this, other] = [0, 1].map(|which: usize| median(took[which][n].iter().copied()));
        println!("| {name} | {this:.1} ms | {other:.1} ms | {ratio:.2}x |");
    }
    Ok(())
}

fn table(this: &Path, files: usize) -> Result<Vec<Row>> {
    let desk = Desk::with(this.with_file_name("takeback"), files)?;
    let hook = desk.hook();
    let empty = format!("{} {EMPTY}", this.display());
    let edited = desk.project().join("edited.txt");
    let hooks = hooks(&desk);
    // The first snapshot is measured elsewhere.
    desk.run(&hook, &hooks[5].1)?;
    let mut took = vec![Vec::new(); hooks.len()];
    let mut nothing = Vec::new();
    for round in 0..ROUNDS {
        nothing.push(desk.run(&empty, &hooks[1].1)?);
        for (n, (_, given)) in hooks.iter().enumerate() {
            if n == 2 {
                fs::write(&edited, vec![b'a' + u8::try_from(round % 26)?; FILE])?;
            }
            took[n].push(desk.run(&hook, given)?);
        }
    }
    let rows = hooks.iter().zip(took).map(|((name, _), took)| Row {
        name,
        ms: median(took.iter().copied()),
        ratio: median(took.iter().zip(&nothing).map(|(took, nothing)| took / nothing)),
    });
    let empty = Row { name: "an empty hook", ms: median(nothing.clone()), ratio: 1.0 };
    Ok(std::iter::once(empty).chain(rows).collect())
}

/// What an agent gives its hooks in one turn.
fn hooks(desk: &Desk) -> [(&'static str, Value); 7] {
    let edited = desk.project().join("edited.txt");
    let write = json!({
        "tool_name": "Write", "tool_use_id": "w", "tool_input": {"file_path": edited, "content": ""},
    });
    let read = json!({
        "tool_name": "Read", "tool_use_id": "r", "tool_input": {"file_path": edited},
    });
    let bash = json!({
        "tool_name": "Bash", "tool_use_id": "b", "tool_input": {"command": "true"},
    });
    [
        ("before a tool that only reads", desk.given("PreToolUse", &read)),
        ("before an edit of 10 KB", desk.given("PreToolUse", &write)),
        ("after the edit", desk.given("PostToolUse", &write)),
        ("before a shell command", desk.given("PreToolUse", &bash)),
        ("after the shell command", desk.given("PostToolUse", &bash)),
        ("at a prompt", desk.given("UserPromptSubmit", &json!({"prompt": "Go on."}))),
        ("at the end of a turn", desk.given("Stop", &json!({}))),
    ]
}
