//! What the reference agent promises, behaviour by behaviour.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a failing test panics")]

mod crash;
mod cut;
mod effects;
mod example;
mod human;
mod process_kills;
mod real_workspace;
mod retries;
mod seed_001;
mod concurrency;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use takeback_agents::{RunEvent, Step, StepAgent, StepError};
use takeback_core::Workspace;
use takeback_core::rewind::AmbiguousPolicy;
use takeback_store::state::{ExecutionId, ListQuery, ListScope, Record, Status, Values};
use takeback_testkit::{Sandbox, Thing};

type Tree = BTreeMap<PathBuf, Thing>;

fn execution() -> ExecutionId {
    ExecutionId::new("exec-1").unwrap()
}

/// The state of a new execution.
fn initial() -> Values {
    let (state, variables) = (json!({ "done": [] }), json!({ "begun": [] }));
    Values { state, variables, ..Values::default() }
}

/// Where a step writes: the workspace, and a log outside of it that no rewind changes.
#[derive(Debug, Clone)]
struct Places {
    root: PathBuf,
    log: PathBuf,
}

impl Places {
    fn of(sandbox: &Sandbox) -> Self {
        Self { root: sandbox.root(), log: sandbox.outside().join("log") }
    }

    fn append(path: &Path, line: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn note(&self, line: &str) {
        Self::append(&self.log, line);
    }

    /// The steps' notes, in order.
    fn noted(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.noted().iter().filter(|noted| *noted == line).count()
    }
}

/// Five steps; the third fails `failures` times, across restarts. Each calls `passing` at its start, in its
/// middle and at its end.
///
/// Each adds a line to one file, so that the remains of a failed attempt would be seen in the end.
fn five_steps<'a>(
    places: &Places,
    failures: usize,
    passing: impl Fn(&str, u32) + Clone + 'a,
) -> Vec<Step<'a>> {
    let steps = (1..=5).map(|k: u32| {
        let (places, passing) = (places.clone(), passing.clone());
        Step::new(format!("step {k}"), move |values, _| {
            let at = |name: &str| places.root.join(name);
            places.note(&format!("begin {k}"));
            passing("begin", k);
            Places::append(&at("all.txt"), &format!("step {k}"));
            fs::write(at(&format!("half-{k}.txt")), "half\n")?;
            passing("middle", k);
            values.variables["begun"].as_array_mut().unwrap().push(json!(k));
            if k == 3 && places.count("fail 3") < failures {
                places.note("fail 3");
                return Err(StepError::failed("no luck"));
            }
            fs::rename(at(&format!("half-{k}.txt")), at(&format!("whole-{k}.txt")))?;
            if k == 4 {
                fs::remove_file(at("whole-1.txt"))?;
            }
            values.state["done"].as_array_mut().unwrap().push(json!(k));
            places.note(&format!("end {k}"));
            passing("end", k);
            Ok(())
        })
    });
    steps.collect()
}

fn nothing(_: &str, _: u32) {}

/// An agent that also restores the uncertain files of a killed run.
fn agent(steps: Vec<Step<'_>>) -> StepAgent<'_> {
    let uncertain_files = AmbiguousPolicy::Take;
    StepAgent { uncertain_files, ..StepAgent::new(execution(), steps) }
}

/// The values and the files of a run without a disturbance.
fn undisturbed() -> (Values, Tree) {
    let mut sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine\n");
    let places = Places::of(&sandbox);
    let values =
        agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    assert_eq!(values.state, json!({ "done": [1, 2, 3, 4, 5] }));
    assert_eq!(values.variables, json!({ "begun": [1, 2, 3, 4, 5] }));
    assert_eq!(sandbox.read("all.txt"), "step 1\nstep 2\nstep 3\nstep 4\nstep 5\n");
    (values, sandbox.tree())
}

/// Every attempt: its step, its number, how it ended and with what error.
fn attempts(workspace: &Workspace) -> Vec<(u32, u32, Status, Option<String>)> {
    let summary = |record: Record| {
        let key = record.key;
        (key.step.0, key.attempt.0.get(), record.status, record.error)
    };
    records(workspace, ListScope::All).into_iter().map(summary).collect()
}

fn records(workspace: &Workspace, scope: ListScope<'_>) -> Vec<Record> {
    let execution = execution();
    let query = ListQuery { execution: &execution, scope, after: None, limit: None };
    workspace.states.list(&query).unwrap().records
}

fn head(workspace: &Workspace) -> Record {
    workspace.states.head(&execution(), None).unwrap().unwrap().record.unwrap()
}

/// Describes an event.
fn describe(event: &RunEvent<'_>) -> String {
    match event {
        RunEvent::Resumed(resumed) => format!("resumed {}", resumed.checkpoint.record.id()),
        RunEvent::Saved(record) => format!("{} {}", record.id(), record.status.name()),
        RunEvent::TakenBack(receipt) => {
            let kept: Vec<_> = receipt.kept_files.iter().map(|note| note.path.display()).collect();
            format!("taken back, kept {kept:?}")
        }
        RunEvent::NotCaptured(paths) => format!("not captured: {}", paths.len()),
    }
}
