//! How often `bisect` runs its command.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use takeback_core::CallTargets;
use takeback_store::{Durability, SessionId};

use crate::Result;
use crate::driver::library::{Agent, only_store, open_workspace};
use crate::driver::takeback::Takeback;
use crate::scratch::Scratch;

#[derive(Deserialize)]
struct BisectAnswer {
    prompt: Option<String>,
    runs: u32,
}

const POINTS_PER_SESSION: usize = 50;

/// The runs that the worst of some culprits takes: the first and the last prompts, and some in between.
pub(super) fn count_runs(program: &Path, points: usize) -> Result<f64> {
    let scratch = Scratch::new()?;
    let takeback = Takeback::in_scratch(program, &scratch);
    let file = scratch.project().join("number.txt");
    fs::write(&file, "0\n")?;
    takeback.run(&["checkpoint"]).output()?;
    let mut workspace = open_workspace(&scratch.project(), &only_store(&scratch.home())?)?;
    workspace.store.set_durability(Durability::Off)?;
    for point in 1..points {
        let session = SessionId(format!("session-{:03}", point / POINTS_PER_SESSION));
        let mut agent = Agent { session, ..Agent::of(&mut workspace) };
        agent.prompt(None, &format!("Write {point}"))?;
        let targets = CallTargets::Paths(vec![file.clone()]);
        agent.call(&format!("call-{point}"), targets, || {
            Ok(fs::write(&file, format!("{point}\n"))?)
        })?;
        agent.end_turn()?;
    }
    drop(workspace);
    let mut most = 0;
    for culprit in [1, 2, 3, points / 3, points / 2, points / 2 + 1, points - 2, points - 1] {
        let test = format!("test $(cat number.txt) -lt {culprit}");
        let answer = takeback.run(&["bisect", "--json", "--", "sh", "-c", &test]).text()?;
        let answer: BisectAnswer = serde_json::from_str(&answer)?;
        if answer.prompt != Some(format!("Write {culprit}")) {
            return Err(format!("bisect found {:?} instead of {culprit}", answer.prompt).into());
        }
        most = most.max(answer.runs);
    }
    Ok(f64::from(most))
}
