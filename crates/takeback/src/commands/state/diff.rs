//! `state diff`: what differs between the values of two checkpoints.

use std::io::Write as _;

use serde_json::{Value, json};
use takeback_store::States;
use takeback_store::state::{Checkpoint, StateError};

use super::find_checkpoint;
use super::input::escaped;
use crate::answers::{StateDiffAnswer, StateDifference};
use crate::args::{Options, StateDiffArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{FAILURE, HINT, SUCCESS, Screen, WARNING, count, plain, shorten};
use crate::table::{Cell, Overflow, Table};

pub(crate) fn diff(
    options: &Options,
    args: &StateDiffArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    let states = &*place.workspace.states;
    let (from, to) = (whole(states, &args.from)?, whole(states, &args.to)?);
    let mut differences = Vec::new();
    compare(&from, &to, String::new(), &mut differences);
    if screen.json {
        screen.json(&differences)?;
        return Ok(0);
    }
    screen.page()?;
    let mut table = Table::new(2, [Overflow::Nothing, Overflow::Start(16), Overflow::End(16)]);
    for StateDifference { path, before, after } in &differences {
        let (verb, style, values) = match (before, after) {
            (None, Some(after)) => ("added", SUCCESS, brief(after, 200)),
            (Some(before), None) => ("removed", FAILURE, brief(before, 200)),
            (before, after) => {
                let [before, after] = [before, after]
                    .map(|value| value.as_ref().map_or_else(String::new, |value| brief(value, 40)));
                ("changed", WARNING, format!("{before} → {after}"))
            }
        };
        let path = shorten(&plain(path), 400);
        table.rows.push([Cell::new(style, verb), Cell::plain(path), Cell::new(HINT, values)]);
    }
    table.print(&mut screen.out)?;
    match differences.len() {
        0 => writeln!(screen.out, "No differences.")?,
        n => writeln!(screen.out, "{}", count(n, "difference"))?,
    }
    Ok(0)
}

/// The compared part of a checkpoint: everything except its id, position and time.
fn whole(states: &dyn States, name: &str) -> Result<Value, CommandError> {
    let id = find_checkpoint(states, name)?.key.id();
    let checkpoint = states.load(&id)?.ok_or(StateError::NotFound { id })?;
    let Checkpoint { record, values } = checkpoint;
    let mut whole = json!({
        "state": values.state,
        "context": values.context,
        "variables": values.variables,
        "metadata": values.metadata,
        "status": record.status.name(),
    });
    if let Some(error) = record.error {
        whole["error"] = json!(error);
    }
    Ok(whole)
}

/// Paths refer to the second side, except for values that only the first side has.
fn compare(before: &Value, after: &Value, path: String, all: &mut StateDiffAnswer) {
    let below = |key: &str| format!("{path}/{}", escaped(key));
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                side_by_side(old.get(key), new.get(key), below(key), all);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let same = |pair: &(&Value, &Value)| pair.0 == pair.1;
            let first = old.iter().zip(new).take_while(same).count();
            let (old, new) = (&old[first..], &new[first..]);
            let last = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
            let (old, new) = (&old[..old.len() - last], &new[..new.len() - last]);
            for at in 0..old.len().max(new.len()) {
                side_by_side(old.get(at), new.get(at), below(&(first + at).to_string()), all);
            }
        }
        _ => all.push(StateDifference {
            path,
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn side_by_side(
    before: Option<&Value>,
    after: Option<&Value>,
    path: String,
    all: &mut StateDiffAnswer,
) {
    match (before, after) {
        (Some(before), Some(after)) => compare(before, after, path, all),
        (before, after) => {
            all.push(StateDifference { path, before: before.cloned(), after: after.cloned() });
        }
    }
}

/// A value shortened to one line.
fn brief(value: &Value, room: usize) -> String {
    shorten(&plain(&value.to_string()), room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_by_its_pointer_and_what_is_the_same_is_not() {
        for (before, after, expected) in [
            (json!({"a": 1}), json!({"a": 1}), json!([])),
            (json!(1), json!(1.0), json!([{"path": "", "before": 1, "after": 1.0}])),
            (
                json!({"a/b": 1, "m~": [], "gone": null}),
                json!({"a/b": 2, "m~": {}, "new": null}),
                json!([
                    {"path": "/a~1b", "before": 1, "after": 2},
                    {"path": "/gone", "before": null},
                    {"path": "/m~0", "before": [], "after": {}},
                    {"path": "/new", "after": null},
                ]),
            ),
            (json!([1, 2]), json!([1, 2, 3]), json!([{"path": "/2", "after": 3}])),
            (json!([1, 2]), json!([0, 1, 2]), json!([{"path": "/0", "after": 0}])),
            (
                json!([1, 2, 3, 4]),
                json!([1, 4]),
                json!([{"path": "/1", "before": 2}, {"path": "/2", "before": 3}]),
            ),
            (json!([7, 7]), json!([7, 7, 7]), json!([{"path": "/2", "after": 7}])),
            (
                json!([{"t": "a", "u": 1}, {"t": "b"}]),
                json!([{"t": "c", "u": 1}, {"t": "b"}, {"t": "d"}]),
                json!([{"path": "/0/t", "before": "a", "after": "c"}, {"path": "/2", "after": {"t": "d"}}]),
            ),
        ] {
            let mut found = Vec::new();
            compare(&before, &after, String::new(), &mut found);
            assert_eq!(serde_json::to_value(&found).unwrap(), expected, "{before} and {after}");
        }
    }
}
