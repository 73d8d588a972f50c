//! What a hook costs the agent that waits for it, next to an empty hook, or next to the hooks and the
//! unchanged checkpoint of another build of Takeback.
//!
//! Each hook is a process of its own, started as agents start it: by a shell, with JSON on standard
//! input.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Result;
use crate::driver::empty_program::EmptyProgram;
use crate::driver::takeback::{Takeback, build, copy_program};
use crate::measure::Cost;
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, fill};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Another build of takeback to compare with, an earlier one for example
    #[arg(long, value_name = "PROGRAM")]
    beside: Option<PathBuf>,
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// Numbers of files in the project
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    files: Vec<usize>,
}

/// A hook or a checkpoint may take this many times as long as in the other build.
const GOAL: Goal = Goal::AtMost(1.1);
const EDITED_BYTES: usize = 10 << 10;

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let mut tables = Vec::new();
    for &files in &args.files {
        let rows = match &args.beside {
            None => next_to_empty(files, args.rounds)?,
            Some(other) => next_to_build(other, files, args.rounds)?,
        };
        let title = format!("{files} files, {} rounds", args.rounds);
        println!("{}", comparison(&title, &rows));
        tables.push((title, rows));
    }
    results.finish("hooks", tables).map(drop)
}

fn next_to_empty(files: usize, rounds: usize) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let project = Project::new(&scratch, &build(scratch.path())?, files)?;
    let empty = EmptyProgram::build(scratch.path())?;
    let empty = project.takeback.run_by_shell(empty.program(), "");
    let rounds = Rounds { count: rounds, warm_up: 1, group: 1 };
    let mut times = rounds.run(STEPS.len(), |step, round| match STEPS[step] {
        // Instead of the checkpoint, which is no hook.
        Step::Checkpoint => Ok(empty.time("{}")?.wall_ms),
        _ => Ok(project.run(STEPS[step], round)?.wall_ms),
    })?;
    let empty = times.pop().unwrap_or_default();
    let rows = STEPS.iter().zip(times);
    Ok(rows.map(|(step, ours)| Row::new(step.name(), &ours, "an empty hook", &empty)).collect())
}

fn next_to_build(other: &Path, files: usize, rounds: usize) -> Result<Vec<Row>> {
    let scratches = [Scratch::new()?, Scratch::new()?];
    let programs = [build(scratches[0].path())?, copy_program(other, scratches[1].path())?];
    let projects = [
        Project::new(&scratches[0], &programs[0], files)?,
        Project::new(&scratches[1], &programs[1], files)?,
    ];
    // Both builds of one step follow each other, each as often the first.
    let rounds = Rounds { count: rounds, warm_up: 3, group: 2 };
    let costs = rounds
        .run(2 * STEPS.len(), |case, round| projects[case % 2].run(STEPS[case / 2], round))?;
    let row = |name: &str, steps: &[usize], of: fn(&Cost) -> f64| {
        let [ours, theirs] = [0, 1].map(|build| sums(&costs, steps, build, of));
        Row::new(name, &ours, "the other build", &theirs)
    };
    let wall = |cost: &Cost| cost.wall_ms;
    let cpu = |cost: &Cost| cost.cpu_ms;
    let checkpoint = STEPS.len() - 1;
    let hooks: Vec<usize> = (0..checkpoint).collect();
    let single = hooks.iter().map(|&n| row(STEPS[n].name(), &[n], wall));
    Ok(single
        .chain([
            row("all hooks of a turn", &hooks, wall).goal(GOAL),
            row("all hooks of a turn, processor time", &hooks, cpu),
            row(STEPS[checkpoint].name(), &[checkpoint], wall).goal(GOAL),
            row("the same, processor time", &[checkpoint], cpu),
        ])
        .collect())
}

/// The costs of these steps in one of two builds, added up by round.
fn sums(costs: &[Vec<Cost>], steps: &[usize], build: usize, of: fn(&Cost) -> f64) -> Vec<f64> {
    let rounds = costs.first().map_or(0, Vec::len);
    let sum = |round: usize| steps.iter().map(|step| of(&costs[2 * step + build][round])).sum();
    (0..rounds).map(sum).collect()
}

/// A project of small files with an agent at work.
struct Project {
    takeback: Takeback,
    root: PathBuf,
}

/// What an agent reports in one turn, and a checkpoint after it.
#[derive(Debug, Clone, Copy)]
enum Step {
    BeforeRead,
    BeforeEdit,
    AfterEdit,
    BeforeShell,
    AfterShell,
    TurnEnd,
    Prompt,
    Checkpoint,
}

const STEPS: [Step; 8] = [
    Step::Prompt,
    Step::BeforeRead,
    Step::BeforeEdit,
    Step::AfterEdit,
    Step::BeforeShell,
    Step::AfterShell,
    Step::TurnEnd,
    Step::Checkpoint,
];

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Prompt => "at a prompt",
            Self::BeforeRead => "before a read-only tool",
            Self::BeforeEdit => "before an edit of 10 KB",
            Self::AfterEdit => "after the edit",
            Self::BeforeShell => "before a shell command",
            Self::AfterShell => "after the shell command",
            Self::TurnEnd => "at the end of a turn",
            Self::Checkpoint => "`checkpoint`, nothing changed",
        }
    }
}

impl Project {
    fn new(scratch: &Scratch, program: &Path, files: usize) -> Result<Self> {
        let root = scratch.project();
        fill(&root, files, 50)?;
        fs::write(root.join("edited.txt"), vec![b'x'; EDITED_BYTES])?;
        Ok(Self { takeback: Takeback::in_scratch(program, scratch), root })
    }

    fn run(&self, step: Step, round: usize) -> Result<Cost> {
        let edited = self.root.join("edited.txt");
        let tool = |event: &str, name: &str, input: Value| json!({"hook_event_name": event, "tool_name": name, "tool_use_id": name, "tool_input": input});
        let write = json!({"file_path": edited, "content": ""});
        let mut payload = match step {
            Step::Checkpoint => return self.takeback.run(&["checkpoint", "--quiet"]).time(""),
            Step::Prompt => json!({"hook_event_name": "UserPromptSubmit", "prompt": "Go on."}),
            Step::BeforeRead => tool("PreToolUse", "Read", json!({"file_path": edited})),
            Step::BeforeEdit => tool("PreToolUse", "Write", write),
            Step::AfterEdit => {
                fs::write(&edited, vec![b'a' + u8::try_from(round % 26)?; EDITED_BYTES])?;
                tool("PostToolUse", "Write", write)
            }
            Step::BeforeShell => tool("PreToolUse", "Bash", json!({"command": "true"})),
            Step::AfterShell => tool("PostToolUse", "Bash", json!({"command": "true"})),
            Step::TurnEnd => json!({"hook_event_name": "Stop"}),
        };
        payload["session_id"] = json!("bench");
        payload["transcript_path"] = json!("");
        payload["cwd"] = json!(self.root);
        payload["prompt_id"] = json!("p");
        self.takeback.hook("claude").time(&payload.to_string())
    }
}
