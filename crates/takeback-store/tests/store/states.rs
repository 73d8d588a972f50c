//! Agents' states in the database: damage, killed processes, concurrent writers, and large values.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use takeback_store::state::{
    Attempt, BranchName, CheckpointId, CheckpointKey, ExecutionId, ExpectedHead, HeadMove,
    ListQuery, ListScope, MoveTo, NewCheckpoint, NewEffect, SaveOutcome, StepIndex, Values,
};
use takeback_store::{SqliteStates, StateError, States, StoreError, Timestamp};

fn execution() -> ExecutionId {
    ExecutionId::new("e").unwrap()
}

fn id(step: u32) -> CheckpointId {
    CheckpointId { execution: execution(), step: StepIndex(step), attempt: None }
}

fn key(step: u32) -> CheckpointKey {
    CheckpointKey { execution: execution(), step: StepIndex(step), attempt: Attempt::FIRST }
}

fn save(
    states: &dyn States,
    execution: &ExecutionId,
    step: u32,
    values: &Values,
) -> Result<SaveOutcome, StateError> {
    states.save(&NewCheckpoint::success(
        execution,
        StepIndex(step),
        "a step",
        Timestamp(i64::from(step)),
        values,
    ))
}

/// A unique text.
fn text(number: u64, length: usize) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    })
    .take(length)
    .collect()
}

/// The state of an agent whose conversation has this many messages.
fn conversation(messages: u32) -> Values {
    let message = |n| json!({ "role": "user", "content": text(u64::from(n), 1800) });
    let messages: Value = (0..messages).map(message).collect();
    Values { context: json!({ "messages": messages }), ..Values::default() }
}

fn database(dir: &Path) -> Connection {
    Connection::open(dir.join("timeline.db")).unwrap()
}

// --- damage -------------------------------------------------------------------------------------

/// The values of every step, or the error instead.
fn load_all(dir: &Path, steps: u32) -> Vec<Result<Values, String>> {
    let states = SqliteStates::at(dir);
    let load = |step| match states.load(&id(step)) {
        Ok(Some(checkpoint)) => Ok(checkpoint.values),
        Ok(None) => Err("nothing".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    (1..=steps).map(load).collect()
}

#[test]
fn a_flipped_bit_or_a_lost_byte_in_a_value_is_an_error_that_names_the_checkpoint() {
    const STEPS: u32 = 6;
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    for step in 1..=STEPS {
        save(&states, &execution(), step, &conversation(step)).unwrap();
    }
    drop(states);
    let whole = load_all(dir.path(), STEPS);
    let rows: Vec<(&str, i64, Vec<u8>)> = {
        let db = database(dir.path());
        let mut rows = Vec::new();
        for (table, column) in
            [("node", "body"), ("node", "rest"), ("step", "body"), ("step", "digest")]
        {
            let mut select = db.prepare(&format!("SELECT id, {column} FROM {table}")).unwrap();
            let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            for row in found {
                let (id, bytes) = row.unwrap();
                rows.push((if column == "body" { table } else { column }, id, bytes));
            }
        }
        rows
    };
    assert!(rows.len() > 20, "{}", rows.len());
    for (place, row, bytes) in rows {
        let (table, column) = match place {
            "rest" => ("node", "rest"),
            "digest" => ("step", "digest"),
            table => (table, "body"),
        };
        let update = format!("UPDATE {table} SET {column} = ? WHERE id = ?");
        let put = |bytes: &[u8]| {
            database(dir.path()).execute(&update, rusqlite::params![bytes, row]).unwrap();
        };
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(7)) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            for wrong in [flipped, bytes[..at].to_vec()] {
                put(&wrong);
                let what = format!("{table} {row}, {column}, byte {at}");
                let found = load_all(dir.path(), STEPS);
                assert_ne!(found, whole, "{what}");
                for (step, (found, whole)) in found.iter().zip(&whole).enumerate() {
                    if let Err(error) = found {
                        let named = format!("ckpt-e-{}.a1 is damaged: ", step + 1);
                        let row = "the row of checkpoint number";
                        let is_named = error.starts_with(&named) || error.starts_with(row);
                        assert!(is_named, "{what}: {error}");
                    } else {
                        assert_eq!(found, whole, "{what}");
                    }
                }
                let check = SqliteStates::at(dir.path()).check().unwrap();
                assert!(!check.is_empty(), "{what}");
            }
        }
        put(&bytes);
    }
    assert_eq!(load_all(dir.path(), STEPS), whole);
    // A damaged checkpoint does not prevent listing or saving others.
    database(dir.path()).execute("UPDATE step SET body = x'00' WHERE step = 2", []).unwrap();
    let states = SqliteStates::at(dir.path());
    let (execution, scope) = (execution(), ListScope::Branch(None));
    let query = ListQuery { execution: &execution, scope, after: None, limit: None };
    assert_eq!(states.list(&query).unwrap().records.len(), STEPS as usize);
    database(dir.path()).execute("UPDATE step SET status = 9 WHERE step = 3", []).unwrap();
    let page = states.list(&query).unwrap();
    assert_eq!((page.records.len(), page.damaged.len()), (STEPS as usize - 1, 1));
    assert_eq!(page.damaged[0].why, "its status");
    save(&states, &execution, STEPS + 1, &conversation(3)).unwrap();
    assert_eq!(states.load(&id(STEPS + 1)).unwrap().unwrap().values, conversation(3));
}

#[test]
fn a_missing_node_and_a_newer_store_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    save(&states, &execution(), 1, &conversation(1)).unwrap();
    database(dir.path()).execute("DELETE FROM node", []).unwrap();
    let error = SqliteStates::at(dir.path()).load(&id(1)).unwrap_err();
    assert_eq!(error.to_string(), "ckpt-e-1.a1 is damaged: a node of it is missing");
    database(dir.path()).execute_batch("PRAGMA user_version = 99").unwrap();
    let error = SqliteStates::at(dir.path()).load(&id(1)).unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::Newer { found: 99, .. })), "{error}");
    let nowhere = tempfile::tempdir().unwrap();
    let error = SqliteStates::at(nowhere.path()).load(&id(1)).unwrap_err();
    assert!(matches!(error, StateError::Store(StoreError::Missing { .. })), "{error}");
}

#[test]
fn damage_does_not_block_a_collection() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    let large = ExecutionId::new("large").unwrap();
    let values = Values { state: json!(text(2, 500_000)), ..Values::default() };
    save(&states, &execution(), 1, &conversation(2)).unwrap();
    save(&states, &execution(), 2, &conversation(1)).unwrap();
    save(&states, &large, 1, &values).unwrap();
    database(dir.path()).execute("UPDATE step SET body = x'01ff' WHERE step = 2", []).unwrap();
    let full = database_size(dir.path());
    assert!(states.delete_execution(&large).unwrap());
    states.collect().unwrap();
    assert!(database_size(dir.path()) < full - 250_000, "{full}");
    assert_eq!(states.load(&id(1)).unwrap().unwrap().values, conversation(2));
    // A damaged checkpoint can be deleted, whatever part of it is damaged.
    database(dir.path()).execute("UPDATE step SET digest = x'00' WHERE step = 2", []).unwrap();
    assert!(states.load(&id(2)).is_err());
    assert!(states.delete(&key(2)).unwrap());
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
}

// --- processes ----------------------------------------------------------------------------------

const TASK: &str = "TAKEBACK_TEST_STATES";

/// A child process that saves steps of a growing conversation for ever and prints each one once it
/// is saved.
fn saver(dir: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["states::child_process", "--exact", "--ignored", "--nocapture"])
        .env(TASK, format!("{name} {}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the body of a child process"]
fn child_process() {
    let Ok(task) = std::env::var(TASK) else { return };
    let (name, dir) = task.split_once(' ').unwrap();
    let states = SqliteStates::at(Path::new(dir));
    let execution = ExecutionId::new(name).unwrap();
    for step in 1.. {
        save(&states, &execution, step, &conversation(step)).unwrap();
        println!("saved {step}");
    }
}

/// The steps that a child reported, up to this many; then kills it.
fn killed_after(child: &mut Child, steps: usize) -> BTreeSet<u32> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let reported = lines.filter_map(|line| line.split_once("saved ")?.1.trim().parse().ok());
    let reported: BTreeSet<u32> = reported.take(steps).collect();
    // In the middle of the next save.
    std::thread::sleep(Duration::from_micros((steps as u64 * 97) % 1500));
    child.kill().unwrap();
    child.wait().unwrap();
    reported
}

#[test]
fn reported_saves_survive_a_kill() {
    for round in [1, 2, 3, 5, 8, 13, 21, 34] {
        let dir = tempfile::tempdir().unwrap();
        drop(SqliteStates::create(dir.path()).unwrap());
        let mut children = ["e", "f"].map(|name| saver(dir.path(), name));
        let reported = children.each_mut().map(|child| killed_after(child, round));
        let states = SqliteStates::at(dir.path());
        assert_eq!(states.check().unwrap(), Vec::<String>::new());
        for (name, reported) in ["e", "f"].into_iter().zip(reported) {
            assert!(reported.len() >= round, "{name} saved {}", reported.len());
            for step in reported {
                let id = format!("ckpt-{name}-{step}").parse().unwrap();
                let found = states.load(&id).unwrap().expect("it was reported as saved");
                assert_eq!(found.values, conversation(step), "{id}");
                assert_eq!(found.record.key.attempt, Attempt::FIRST, "{id}");
            }
        }
    }
}

#[test]
fn one_of_many_concurrent_children_follows_a_parent() {
    let dir = tempfile::tempdir().unwrap();
    drop(SqliteStates::create(dir.path()).unwrap());
    save(&SqliteStates::at(dir.path()), &execution(), 0, &Values::default()).unwrap();
    for step in 1..=20 {
        let parent = id(step - 1);
        let won = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..4_u32)
                .map(|writer| {
                    let (dir, parent) = (dir.path(), &parent);
                    scope.spawn(move || {
                        let values = Values { state: json!({ "by": writer }), ..Values::default() };
                        let execution = execution();
                        SqliteStates::at(dir).save(&NewCheckpoint {
                            expect: ExpectedHead::Newest(Some(parent)),
                            ..NewCheckpoint::success(
                                &execution,
                                StepIndex(step),
                                "a step",
                                Timestamp(0),
                                &values,
                            )
                        })
                    })
                })
                .collect();
            let ended: Vec<_> = tries.into_iter().map(|one| one.join().unwrap()).collect();
            let (won, lost): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
            for lost in lost {
                assert!(matches!(lost, Err(StateError::Conflict { .. })), "{lost:?}");
            }
            won.len()
        });
        assert_eq!(won, 1, "step {step}");
    }
}

#[test]
fn a_collection_keeps_a_step_that_reuses_the_number_of_a_deleted_one() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    let (large, small) = (ExecutionId::new("large").unwrap(), ExecutionId::new("small").unwrap());
    // Enough steps that marking takes a while.
    for step in 0..40 {
        let texts: Vec<String> = (0..40).map(|n| text(step * 100 + n, 2000)).collect();
        let values = Values { state: json!(texts), ..Values::default() };
        save(&states, &large, u32::try_from(step).unwrap(), &values).unwrap();
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = SqliteStates::at(dir.path());
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                other.collect().unwrap();
                // Let the writer make progress, even on a busy machine.
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let _ends_the_other = SetOnDrop(&is_over);
        for round in 0..60 {
            let values =
                Values { state: json!(text(1_000_000 + round, 5000)), ..Values::default() };
            save(&states, &small, 1, &values).unwrap();
            std::thread::sleep(Duration::from_millis(round % 20));
            let found = SqliteStates::at(dir.path()).load(&"ckpt-small-1".parse().unwrap());
            let found = found.map(|found| found.is_some_and(|found| found.values == values));
            assert!(matches!(found, Ok(true)), "round {round}: {found:?}");
            states.delete_execution(&small).unwrap();
        }
    });
}

/// Sets the flag when dropped, also after a panic.
struct SetOnDrop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn the_cached_parent_agrees_with_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    let number = |number: u32| Values { state: json!(number), ..Values::default() };
    for n in 1..=2 {
        save(&states, &execution(), 1, &number(n)).unwrap();
    }
    states.delete(&key(1)).unwrap();
    let (execution, parent, nine) = (execution(), id(1), number(9));
    let new = NewCheckpoint {
        attempt: Some(Attempt::FIRST),
        ..NewCheckpoint::success(&execution, StepIndex(1), "a step", Timestamp(0), &nine)
    };
    states.save(&new).unwrap();
    // The newest attempt of step 1 is its second, and the head is its first.
    let (step, attempt, values) = (StepIndex(2), None, &number(3));
    let next =
        NewCheckpoint { step, attempt, values, expect: ExpectedHead::Newest(Some(&parent)), ..new };
    for states in [states, SqliteStates::at(dir.path())] {
        let refused = states.save(&next);
        assert!(matches!(refused, Err(StateError::Conflict { .. })), "{refused:?}");
    }
}

#[test]
fn the_first_step_may_choose_its_branch_also_after_an_effect() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    let (execution, branch) = (execution(), BranchName::new("mine").unwrap());
    let (key, intent, time) = ("mail", json!(1), Timestamp(1));
    let effect = NewEffect { execution: &execution, key, step: None, intent: &intent, time };
    states.declare_effect(&effect).unwrap();
    let values = Values::default();
    let new = NewCheckpoint {
        branch: Some(&branch),
        ..NewCheckpoint::success(&execution, StepIndex(1), "a step", time, &values)
    };
    assert_eq!(states.save(&new).unwrap().record.branch, branch);
    assert_eq!(states.executions().unwrap().executions[0].branches, [branch]);
}

#[test]
fn no_attempt_follows_the_last_and_effects_have_a_nesting_limit() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    let (execution, nothing) = (execution(), Values::default());
    let new = NewCheckpoint {
        attempt: Attempt::new(u32::MAX),
        ..NewCheckpoint::success(&execution, StepIndex(u32::MAX), "a step", Timestamp(0), &nothing)
    };
    states.save(&new).unwrap();
    let values = Values { state: json!(2), ..Values::default() };
    let refused = states.save(&NewCheckpoint { attempt: None, values: &values, ..new });
    assert!(matches!(refused, Err(StateError::Taken { .. })), "{refused:?}");
    let intent = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let (key, time) = ("deep", Timestamp(0));
    let effect = NewEffect { execution: &execution, key, step: None, intent: &intent, time };
    let refused = states.declare_effect(&effect);
    assert!(matches!(refused, Err(StateError::Unserialisable { .. })), "{refused:?}");
    assert_eq!(states.effects(&execution).unwrap(), []);
}

#[test]
fn readers_are_not_kept_waiting_by_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    save(&states, &execution(), 1, &conversation(2)).unwrap();
    let writer = database(dir.path());
    writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO session (name) VALUES ('x')").unwrap();
    assert_eq!(states.load(&id(1)).unwrap().unwrap().values, conversation(2));
    assert_eq!(SqliteStates::at(dir.path()).executions().unwrap().executions.len(), 1);
    writer.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn many_threads_save_through_one_handle() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    let name = |writer| ExecutionId::new(format!("w{writer}")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8_u32 {
            let states = &states;
            scope.spawn(move || {
                for step in 1..=40 {
                    // Some saves are refused, which must not affect the others.
                    let missing = "ckpt-nobody-1".parse().unwrap();
                    let (execution, values) = (name(writer), conversation(step % 5));
                    let refused = states.save(&NewCheckpoint {
                        expect: ExpectedHead::Newest(Some(&missing)),
                        ..NewCheckpoint::success(
                            &execution,
                            StepIndex(step),
                            "refused",
                            Timestamp(0),
                            &values,
                        )
                    });
                    assert!(matches!(refused, Err(StateError::MissingParent { .. })));
                    save(states, &execution, step, &values).unwrap();
                }
            });
        }
    });
    let other = SqliteStates::at(dir.path());
    for writer in 0..8 {
        for step in 1..=40 {
            let id = format!("ckpt-w{writer}-{step}").parse().unwrap();
            let found = other.load(&id).unwrap().unwrap();
            assert_eq!(found.values, conversation(step % 5));
        }
    }
    assert_eq!(other.check().unwrap(), Vec::<String>::new());
}

// --- large things -------------------------------------------------------------------------------

#[test]
fn values_of_1_and_50_megabytes_read_back_and_cost_their_difference() {
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    for (number, size) in [(0, 1 << 20), (10, 50 << 20)] {
        let mut values = Values { state: json!({ "blob": text(1, size) }), ..Values::default() };
        save(&states, &execution(), number, &values).unwrap();
        let taken = database_size(dir.path());
        values.state["blob"] = json!(values.state["blob"].as_str().unwrap().to_owned() + "more");
        save(&states, &execution(), number + 1, &values).unwrap();
        assert!(database_size(dir.path()) < taken + 300_000);
        let found = SqliteStates::at(dir.path()).load(&id(number + 1)).unwrap().unwrap();
        assert!(found.values == values, "{size} bytes");
    }
}

/// By the number of pages, including those in the log.
fn database_size(dir: &Path) -> u64 {
    let db = database(dir);
    let pages: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    pages.cast_unsigned() * 4096
}

#[test]
fn ten_thousand_steps_are_listed_forked_and_rewound() {
    const STEPS: u32 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let states = SqliteStates::create(dir.path()).unwrap();
    // Several threads, because one durable save after another would take long.
    std::thread::scope(|scope| {
        for part in 0..8 {
            let states = &states;
            scope.spawn(move || {
                for step in (1..=STEPS).filter(|step| step % 8 == part) {
                    let values = Values { state: json!({ "at": step }), ..Values::default() };
                    save(states, &execution(), step, &values).unwrap();
                }
            });
        }
    });
    let (execution, scope) = (execution(), ListScope::Branch(None));
    let query = ListQuery { execution: &execution, scope, after: None, limit: None };
    let listed = states.list(&query).unwrap().records;
    let steps: Vec<u32> = listed.iter().map(|record| record.key.step.0).collect();
    assert_eq!(steps, (1..=STEPS).collect::<Vec<_>>());
    let last = states.last_successful(&execution, None, Some(StepIndex(5001))).unwrap().unwrap();
    assert_eq!(last.key, key(5000));

    let size = database_size(dir.path());
    states.fork(&key(5000), &BranchName::new("other").unwrap()).unwrap();
    let to = MoveTo::Checkpoint(&listed[41].key);
    states.move_head(&HeadMove { execution: &execution, branch: None, to, by: None }).unwrap();
    assert!(database_size(dir.path()) <= size + 4 * 4096, "nothing is copied");
    let head = states.head(&execution, None).unwrap().unwrap();
    assert_eq!((head.branch.as_str(), head.record.unwrap().key), ("other", key(42)));
}
