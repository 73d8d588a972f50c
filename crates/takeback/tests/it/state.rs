//! An agent's state: saved step by step, inspected, and rolled back with the files.

mod first_step;
mod inspection;
mod json_files;
mod recovery;
pub(crate) mod rollback;
mod save;

use serde_json::{Value, json};

use crate::user::{Answer, User, column};

/// A checkpoint of `e`, with these fields besides or instead.
fn checkpoint(step: u32, with: &Value) -> String {
    let mut checkpoint = json!({
        "execution_id": "e",
        "step_name": format!("step {step}"),
        "step_index": step,
        "state": { "step": step },
        "context": {},
    });
    for (key, value) in with.as_object().expect("fields") {
        checkpoint[key] = value.clone();
    }
    checkpoint.to_string()
}

impl User {
    fn save(&self, step: u32, with: &Value) -> Answer {
        self.feed(&["state", "save"], &checkpoint(step, with))
    }

    /// Steps 1 to `last`, each with its own state.
    fn saved(&self, last: u32) {
        for step in 1..=last {
            let answer = self.save(step, &json!({}));
            assert_eq!(answer.code, 0, "{answer:?}");
        }
    }

    /// A JSON answer to a command that reads `input`, ids and times as they are.
    fn feed_json(&self, args: &[&str], input: &str) -> Value {
        let answer = self.feed(&[args, &["--json"]].concat(), input);
        assert_eq!(answer.code, 0, "{answer:?}");
        serde_json::from_str(&answer.out).expect("JSON")
    }

    /// The ids in a list.
    fn ids(&self, args: &[&str]) -> Vec<Value> {
        column(&self.json(&[&["state", "list"], args].concat()), "id")
    }
}
