//! An agent in five steps, the third of which fails twice.
//!
//! It writes release notes and announces them. Each step ends with a checkpoint: what the agent knows,
//! and the files. After a failure the run continues from the last success; after the last step, the
//! example rolls back to step 2, with state and files.
//!
//! ```sh
//! cargo run -p takeback-agents --example five_steps
//! ```
//!
//! With a folder it can be killed and started again:
//!
//! ```sh
//! cargo run -p takeback-agents --example five_steps -- /tmp/five --stop-after 2
//! cargo run -p takeback-agents --example five_steps -- /tmp/five
//! ```

#![expect(clippy::disallowed_methods, reason = "a program writes its own files")]
#![expect(clippy::print_stdout, reason = "a program talks to its user")]

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use takeback_agents::{EffectDecision, RunEvent, Step, StepAgent, StepError};
use takeback_core::execution::{RollbackFiles, resume, rollback_to};
use takeback_core::rewind::AmbiguousPolicy;
use takeback_core::worktree::ScopeOptions;
use takeback_core::{Ambient, Limits, Workspace, WorkspaceOptions};
use takeback_store::state::{
    CheckpointId, ExecutionId, ListQuery, ListScope, Record, StepIndex, Values,
};
use takeback_store::{SqliteStates, SqliteStore};

const USAGE: &str = "five_steps [FOLDER [--stop-after STEP]]";

fn main() -> Result<(), Box<dyn Error>> {
    let (mut folder, mut stop_after) = (None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--stop-after" => {
                let step = words.next().and_then(|step| step.parse().ok());
                stop_after =
                    Some(StepIndex(step.ok_or("--stop-after needs the number of a step")?));
            }
            word if word.starts_with('-') => return Err(USAGE.into()),
            _ => folder = Some(PathBuf::from(word)),
        }
    }
    match folder {
        Some(folder) => play(&folder, stop_after),
        None if stop_after.is_some() => Err("--stop-after needs a folder to continue in".into()),
        None => play(tempfile::tempdir()?.path(), stop_after),
    }
}

/// Runs the agent in a folder: the project in `project`, Takeback's store in `store`.
pub(crate) fn play(folder: &Path, stop_after: Option<StepIndex>) -> Result<(), Box<dyn Error>> {
    let (project, announced) = (folder.join("project"), folder.join("announced.txt"));
    fs::create_dir_all(&project)?;
    let mut workspace = open(&project, &folder.join("store"))?;
    let execution = ExecutionId::new("release-notes")?;

    let mut agent = StepAgent {
        // Announcing twice does no harm here. Check whether that is so for your effects.
        on_ambiguous: Box::new(|_| EffectDecision::Repeat),
        // Only this agent writes into the project.
        uncertain_files: AmbiguousPolicy::Take,
        on_event: Box::new(|event| {
            print_event(event);
            let RunEvent::Saved(record) = event else { return };
            if Some(record.key.step) == stop_after {
                println!("… and the process dies. Start it again without --stop-after.");
                std::process::abort();
            }
        }),
        ..StepAgent::new(execution.clone(), steps(&project, &announced))
    };
    let initial = Values { state: json!({ "features": [] }), ..Values::default() };
    let values = agent.run(&mut workspace, &initial)?;
    drop(agent);
    println!("\nThe state at the end: {}", values.state);

    println!("\nEvery attempt:");
    let query =
        ListQuery { execution: &execution, scope: ListScope::All, after: None, limit: None };
    for record in workspace.states.list(&query)?.records {
        println!("  {}", line(&record));
    }

    println!("\nThe files:");
    show_files(&project, &project)?;
    let second = CheckpointId { execution, step: StepIndex(2), attempt: None };
    println!("\nA change of mind: back to {second}, with state and files.");
    let known = workspace.states.find(&second)?.ok_or("step 2 was saved")?;
    let receipt = rollback_to(&mut workspace, &known.key, RollbackFiles::All)?;
    assert!(receipt.success, "no other work is in the way: {receipt:?}");
    let resumed = resume(&*workspace.states, &second)?;
    println!("The state: {}", resumed.checkpoint.values.state);
    for effect in &resumed.happened {
        println!("This effect has happened and stays: {} {}", effect.key, effect.intent);
    }
    println!("The files:");
    show_files(&project, &project)?;
    println!("\nStarted again, the agent continues with step 3.");
    Ok(())
}

fn steps<'a>(project: &'a Path, announced: &'a Path) -> Vec<Step<'a>> {
    let notes = || project.join("NOTES.md");
    let mut tries = 0;
    vec![
        Step::new("collect", |values, _| {
            values.state["features"] = json!(["checkpoints", "rollback"]);
            Ok(())
        }),
        Step::new("draft", move |values, _| {
            let features = values.state["features"].as_array().ok_or_else(no_features)?;
            let lines = features.iter().filter_map(Value::as_str).map(|name| format!("- {name}\n"));
            fs::write(notes(), lines.collect::<String>())?;
            Ok(())
        }),
        Step::new("polish", move |values, _| {
            // Fails after it has started to write: the next attempt must not find this.
            let text = fs::read_to_string(notes())?;
            fs::write(notes(), format!("# Release notes\n\n{text}"))?;
            fs::write(project.join("scratch.txt"), "half a thought\n")?;
            tries += 1;
            if tries <= 2 {
                return Err(StepError::failed(format!("the model was busy ({tries})")));
            }
            fs::remove_file(project.join("scratch.txt"))?;
            values.state["title"] = json!("Release notes");
            Ok(())
        }),
        Step::new("announce", move |values, effects| {
            let title = values.state["title"].clone();
            let text = fs::read_to_string(notes())?;
            values.state["announced"] = effects.once("announce", &title, || {
                let mut file = OpenOptions::new().create(true).append(true).open(announced)?;
                file.write_all(text.as_bytes())?;
                io::Result::Ok(json!({ "bytes": text.len() }))
            })?;
            Ok(())
        }),
        Step::new("archive", move |values, _| {
            fs::create_dir_all(project.join("archive"))?;
            fs::rename(notes(), project.join("archive/NOTES.md"))?;
            values.state["archived"] = json!(true);
            Ok(())
        }),
    ]
}

fn no_features() -> StepError {
    StepError::failed("step 1 left no features")
}

fn print_event(event: &RunEvent<'_>) {
    match event {
        RunEvent::Resumed(resumed) => {
            println!("continues after {}", line(&resumed.checkpoint.record));
        }
        RunEvent::Saved(record) => println!("{}", line(record)),
        RunEvent::TakenBack(receipt) => {
            let (restored, deleted) = (receipt.restored_files.len(), receipt.deleted_files.len());
            println!("  its changes are taken back: {restored} restored, {deleted} deleted");
            for note in &receipt.kept_files {
                println!("  stays: {} ({})", note.path.display(), note.reason);
            }
        }
        RunEvent::NotCaptured(paths) => {
            for (path, reason) in *paths {
                println!("  not captured: {} ({})", path.display(), reason.describe());
            }
        }
    }
}

fn line(record: &Record) -> String {
    let error = record.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{:26} {:9} {}{error}", record.id().to_string(), record.step_name, record.status.name())
}

fn show_files(project: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            show_files(project, &path)?;
        } else {
            let name = path.strip_prefix(project)?.display();
            println!("  {name}: {:?}", fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn open(project: &Path, store: &Path) -> Result<Workspace, Box<dyn Error>> {
    Ok(Workspace::open(WorkspaceOptions {
        root: project.to_owned(),
        store_dir: store.to_owned(),
        store: Box::new(SqliteStore::create(store)?),
        states: Arc::new(SqliteStates::at(store)),
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient::system(),
    })?)
}
