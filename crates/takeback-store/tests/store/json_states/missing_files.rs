//! Files that another program deleted are reported.

use takeback_store::state::Damage;

use super::*;

const GONE: &str = "its file is gone, and no command of Takeback deleted it";

const NOTHING: [Vec<String>; 3] = [Vec::new(), Vec::new(), Vec::new()];

fn sample() -> (TempDir, JsonStates) {
    let (dir, states) = states();
    for step in 1..=3 {
        save(&states, "e", step, &format!("state of step {step}")).unwrap();
    }
    (dir, states)
}

fn remove(dir: &TempDir, name: &str) {
    fs::remove_file(persistence(dir).join(name)).unwrap();
}

/// What is reported as missing: by a list of the execution, by the list of all, and by a check.
fn reported(states: &JsonStates) -> [Vec<String>; 3] {
    let describe = |damaged: &Damage| format!("{}: {}", damaged.what, damaged.why);
    let listed = page(states, "e", ListScope::All).damaged.iter().map(describe).collect();
    let all = states.executions().unwrap().damaged.iter().map(describe).collect();
    [listed, all, states.check().unwrap()]
}

fn assert_reported(states: &JsonStates, by_name: &[&str], in_all: &str) {
    let by_name: Vec<String> = by_name.iter().map(|name| format!("{name}: {GONE}")).collect();
    let in_all = vec![format!("{in_all}: {GONE}")];
    assert_eq!(reported(states), [by_name.clone(), in_all, by_name]);
}

#[test]
fn a_checkpoint_that_others_follow_is_named() {
    let (dir, states) = sample();
    assert_eq!(reported(&states), NOTHING);
    remove(&dir, "checkpoint/ckpt-e-2.json");
    for _ in 0..2 {
        assert_reported(&states, &["ckpt-e-2.a1"], "a checkpoint of execution e");
        assert_eq!(places(&page(&states, "e", ListScope::All)), [(1, 1), (3, 1)]);
        save(&states, "e", 4, "goes on").unwrap();
        states.delete(&key("ckpt-e-4.a1")).unwrap();
    }
}

#[test]
fn the_newest_is_reported_and_stays_reported_after_the_next_save() {
    let (dir, states) = sample();
    remove(&dir, "checkpoint/ckpt-e-3.json");
    assert_reported(&states, &["ckpt-e-3.a1"], "a checkpoint of execution e");
    assert_eq!(save(&states, "e", 4, "goes on").unwrap().parent.unwrap().0, StepIndex(2));
    let [listed, all, checked] = reported(&states);
    assert_eq!((listed.len(), all.len(), checked.len()), (1, 1, 1), "{listed:?}");
    remove(&dir, "checkpoint/ckpt-e-1.json");
    remove(&dir, "checkpoint/ckpt-e-4.json");
    assert!(reported(&states)[1][0].starts_with("3 checkpoints of execution e: "));
}

#[test]
fn the_only_checkpoint_and_all_of_them_are_missed() {
    let (dir, states) = states();
    save(&states, "e", 1, "first").unwrap();
    remove(&dir, "checkpoint/ckpt-e-1.json");
    assert_reported(&states, &["ckpt-e-1.a1"], "a checkpoint of execution e");

    let (dir, states) = sample();
    fs::remove_dir_all(persistence(&dir).join("checkpoint")).unwrap();
    // The proof of the last save was in the lock file, which is gone too.
    assert!(
        reported(&states)[1][0].starts_with("2 checkpoints of execution e: "),
        "{:?}",
        reported(&states)
    );
}

#[test]
fn an_older_attempt_is_missed() {
    let (dir, states) = sample();
    save(&states, "e", 2, "again").unwrap();
    save(&states, "e", 2, "and again").unwrap();
    remove(&dir, "checkpoint/ckpt-e-2.a1.json");
    let [listed, all, _] = reported(&states);
    assert_eq!((listed.len(), all.len()), (1, 1), "{listed:?}");
}

#[test]
fn deleted_and_set_aside_checkpoints_are_not_missed() {
    let (_dir, states) = sample();
    save(&states, "e", 2, "again").unwrap();
    states.delete(&key("ckpt-e-2.a1")).unwrap();
    states.delete(&key("ckpt-e-3.a1")).unwrap();
    move_to(&states, "ckpt-e-1.a1");
    save(&states, "e", 2, "another way").unwrap();
    assert_eq!(reported(&states), NOTHING);

    let (other_dir, other) = sample();
    fs::write(persistence(&other_dir).join("checkpoint/ckpt-e-2.json"), "{").unwrap();
    let [listed, all, checked] = reported(&other);
    assert_eq!((listed.len(), all.len(), checked.len()), (1, 1, 1), "{listed:?} {checked:?}");
}

#[test]
fn an_interrupted_save_is_not_missed() {
    let (dir, states) = sample();
    save(&states, "e", 4, "cut off").unwrap();
    let lock = persistence(&dir).join("checkpoint/ckpt-e-4.json.lock");
    remove(&dir, "checkpoint/ckpt-e-4.json");
    // The note is written after the file, so an interrupted process leaves none.
    fs::write(lock, "").unwrap();
    assert_eq!(reported(&states), NOTHING);
}

#[test]
fn the_file_of_an_execution_is_missed() {
    let (dir, states) = sample();
    remove(&dir, "execution/e.json");
    let [listed, _, checked] = reported(&states);
    assert_eq!(listed, Vec::<String>::new());
    assert_eq!(checked.len(), 1, "{checked:?}");
    assert!(
        checked[0].ends_with("e.json is gone: retries and effects of e are lost"),
        "{checked:?}"
    );
    // A file of another program needs none.
    let (_dir, states) = states_with_a_foreign_file();
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
}

fn states_with_a_foreign_file() -> (TempDir, JsonStates) {
    let (dir, states) = states();
    let folder = persistence(&dir).join("checkpoint");
    fs::create_dir_all(&folder).unwrap();
    let file = json!({
        "id": "ckpt-e-1", "execution_id": "e", "step_name": "s", "step_index": 1,
        "timestamp": "2024-01-01T00:00:00", "state": {}, "context": {}, "variables": {},
    });
    fs::write(folder.join("ckpt-e-1.json"), file.to_string()).unwrap();
    (dir, states)
}
