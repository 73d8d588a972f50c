//! Agents' states as JSON files, from outside: the layout, other programs' files, locks, damage,
//! crashes.

mod crash;
mod damage;
mod foreign_files;
mod missing_files;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use takeback_store::state::{
    Attempt, Category, CheckpointId, CheckpointKey, DocumentKey, ExecutionId, HeadMove, ListQuery,
    ListScope, MoveTo, NewCheckpoint, NewEffect, Page, Record, StateError, States, Status,
    StepIndex, Values,
};
use takeback_store::{JsonStates, PointId, Timestamp, disk};
use tempfile::TempDir;

fn states() -> (TempDir, JsonStates) {
    let dir = tempfile::tempdir().unwrap();
    let states = JsonStates::at(dir.path().join("persistence"));
    (dir, states)
}

fn execution(name: &str) -> ExecutionId {
    ExecutionId::new(name).unwrap()
}

fn id(text: &str) -> CheckpointId {
    text.parse().unwrap()
}

fn key(text: &str) -> CheckpointKey {
    let CheckpointId { execution, step, attempt } = id(text);
    CheckpointKey { execution, step, attempt: attempt.unwrap() }
}

fn document(key: &str) -> DocumentKey {
    DocumentKey::new(key).unwrap()
}

fn new<'a>(execution: &'a ExecutionId, step: u32, values: &'a Values) -> NewCheckpoint<'a> {
    NewCheckpoint::success(
        execution,
        StepIndex(step),
        "a step",
        Timestamp(1_700_000_000_120),
        values,
    )
}

fn is(text: &str) -> Values {
    Values { state: json!({ "is": text }), ..Values::default() }
}

fn save(states: &JsonStates, name: &str, step: u32, text: &str) -> Result<Record, StateError> {
    let saved = states.save(&new(&execution(name), step, &is(text)))?;
    Ok(saved.record)
}

fn move_to(states: &JsonStates, text: &str) {
    let key = key(text);
    let step = HeadMove {
        execution: &key.execution,
        branch: None,
        to: MoveTo::Checkpoint(&key),
        by: None,
    };
    states.move_head(&step).unwrap();
}

fn page(states: &JsonStates, name: &str, scope: ListScope<'_>) -> Page {
    let execution = &execution(name);
    states.list(&ListQuery { execution, scope, after: None, limit: None }).unwrap()
}

fn places(page: &Page) -> Vec<(u32, u32)> {
    page.records.iter().map(|record| (record.key.step.0, record.key.attempt.0.get())).collect()
}

fn text_of(states: &JsonStates, text: &str) -> Option<String> {
    let loaded = states.load(&id(text)).unwrap()?;
    Some(loaded.values.state["is"].as_str().unwrap().to_owned())
}

/// The files below a folder by name, without locks.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for folder in fs::read_dir(dir).into_iter().flatten() {
        let folder = folder.unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            let name = format!(
                "{}/{}",
                folder.file_name().into_string().unwrap(),
                file.file_name().into_string().unwrap()
            );
            if !name.ends_with(".lock") {
                all.insert(name, fs::read(file.path()).unwrap());
            }
        }
    }
    all
}

fn names(dir: &Path) -> Vec<String> {
    files(dir).into_keys().collect()
}

fn persistence(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("persistence")
}

#[test]
fn files_follow_the_layout() {
    let (dir, states) = states();
    let at = persistence(&dir);
    save(&states, "exec-001", 0, "zero").unwrap();
    let values = Values { metadata: json!({ "m": 1 }), ..is("one") };
    let exec = execution("exec-001");
    states
        .save(&NewCheckpoint {
            error: Some("why"),
            status: Status::Failed,
            point: Some(PointId(0xab)),
            ..new(&exec, 1, &values)
        })
        .unwrap();
    save(&states, "exec-001", 0, "zero again").unwrap();
    save(&states, "../x", 3, "three").unwrap();
    for category in Category::ALL {
        states.put_document(category, &document("a/b"), &json!({ "a": [1] })).unwrap();
    }
    assert_eq!(
        names(&at),
        [
            "checkpoint/ckpt-%2E.%2Fx-3.json",
            "checkpoint/ckpt-exec-001-0.a1.json",
            "checkpoint/ckpt-exec-001-0.json",
            "checkpoint/ckpt-exec-001-1.json",
            "config/a%2Fb.json",
            "conversation/a%2Fb.json",
            "execution/%2E.%2Fx.json",
            "execution/exec-001.json",
            "history/a%2Fb.json",
            "session/a%2Fb.json",
        ]
    );
    let files = files(&at);
    let text = String::from_utf8(files["checkpoint/ckpt-exec-001-1.json"].clone()).unwrap();
    assert!(text.starts_with("{\n  \"") && text.ends_with("\n}\n"), "{text}");
    let mut read: Value = serde_json::from_str(&text).unwrap();
    let checksum = read.as_object_mut().unwrap().remove("checksum").unwrap();
    assert_eq!(checksum.as_str().unwrap().len(), 64);
    assert_eq!(
        read,
        json!({
            "id": "ckpt-exec-001-1",
            "execution_id": "exec-001",
            "step_name": "a step",
            "step_index": 1,
            "timestamp": "2023-11-14T22:13:20.120+00:00",
            "state": { "is": "one" },
            "context": {},
            "variables": {},
            "status": "failed",
            "error": "why",
            "metadata": { "m": 1 },
            "attempt": 1,
            "parent": "ckpt-exec-001-0.a1",
            "branch": "main",
            "point": "00000000000000ab",
            "line": 1,
            "position": 2,
            "format": 1,
        })
    );
    // Documents contain what was given and nothing else.
    assert_eq!(files["config/a%2Fb.json"], b"{\n  \"a\": [\n    1\n  ]\n}\n");
    for entry in fs::read_dir(&at).unwrap() {
        let folder = entry.unwrap();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn the_short_name_is_the_newest_on_the_current_line() {
    let (dir, states) = states();
    let at = persistence(&dir);
    for step in 1..=3 {
        save(&states, "e", step, &step.to_string()).unwrap();
    }
    save(&states, "e", 2, "2 again").unwrap();
    move_to(&states, "ckpt-e-1.a1");
    let checkpoints = || -> Vec<String> {
        let names = names(&at).into_iter();
        names.filter_map(|name| Some(name.strip_prefix("checkpoint/ckpt-e-")?.to_owned())).collect()
    };
    assert_eq!(checkpoints(), ["1.json", "2.a1.json", "2.a2.json", "3.a1.json"]);
    save(&states, "e", 2, "2 elsewhere").unwrap();
    assert_eq!(checkpoints(), ["1.json", "2.a1.json", "2.a2.json", "2.json", "3.a1.json"]);
    move_to(&states, "ckpt-e-3.a1");
    // The line of step 3 branched off when step 2 had only its first attempt.
    assert_eq!(checkpoints(), ["1.json", "2.a2.json", "2.a3.json", "2.json", "3.json"]);
    assert_eq!(text_of(&states, "ckpt-e-2").as_deref(), Some("2"));
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
}

#[test]
fn nothing_is_created_before_the_first_save() {
    let (dir, states) = states();
    assert_eq!(states.load(&id("ckpt-e-1")).unwrap(), None);
    assert!(!states.delete(&key("ckpt-e-1.a1")).unwrap());
    assert!(!states.delete_execution(&execution("e")).unwrap());
    assert!(!states.withdraw_effect(&execution("e"), "mail").unwrap());
    assert!(states.executions().unwrap().executions.is_empty());
    assert_eq!(states.document(Category::Config, &document("a")).unwrap(), None);
    states.collect().unwrap();
    assert!(!persistence(&dir).exists());
}

#[test]
fn deleted_checkpoints_leave_no_file() {
    let (dir, states) = states();
    let at = persistence(&dir);
    for name in ["e", &"x".repeat(4096)] {
        for step in 1..=3 {
            save(&states, name, step, "it").unwrap();
            save(&states, name, step, "it again").unwrap();
        }
        fs::write(at.join("checkpoint/ckpt-e-3.json"), "damaged").unwrap();
        assert_eq!(
            page(&states, name, ListScope::Branch(None)).damaged.len(),
            usize::from(name == "e")
        );
        fs::write(at.join("checkpoint/ckpt-e-3.json.77.new"), "unfinished").unwrap();
        assert!(states.delete_execution(&execution(name)).unwrap());
        states.put_document(Category::History, &document(name), &json!(1)).unwrap();
        assert!(states.delete_document(Category::History, &document(name)).unwrap());
        if name != "e" {
            fs::remove_file(at.join("checkpoint/ckpt-e-3.json")).unwrap();
            states.collect().unwrap();
        }
    }
    let left: Vec<_> = fs::read_dir(&at)
        .unwrap()
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().file_name())
        .filter(|name| name != "ckpt-e-3.json.lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_lock_of_another_process_is_respected_and_reported() {
    let (dir, mut states) = states();
    assert_eq!(states.lock_timeout, Duration::from_secs(5));
    let at = persistence(&dir);
    save(&states, "e", 1, "one").unwrap();
    states.put_document(Category::Config, &document("settings"), &json!(1)).unwrap();
    states.lock_timeout = Duration::from_millis(80);
    for name in ["checkpoint/ckpt-e-1.json", "execution/e.json", "config/settings.json"] {
        let path = at.join(name);
        let lock =
            fs::OpenOptions::new().write(true).open(at.join(format!("{name}.lock"))).unwrap();
        lock.lock().unwrap();
        let began = Instant::now();
        let write = || match name {
            "config/settings.json" => {
                states.put_document(Category::Config, &document("settings"), &json!(2))
            }
            _ => save(&states, "e", 1, name).map(drop),
        };
        let error = write().unwrap_err();
        assert!(began.elapsed() >= states.lock_timeout);
        assert_eq!(error.to_string(), format!("Could not acquire lock for {}", path.display()));
        // Readers do not wait for locks.
        assert!(text_of(&states, "ckpt-e-1").is_some());
        assert_eq!(page(&states, "e", ListScope::All).damaged, []);
        assert!(states.document(Category::Config, &document("settings")).unwrap().is_some());
        drop(lock);
        write().unwrap();
    }
    assert_eq!(text_of(&states, "ckpt-e-1").as_deref(), Some("execution/e.json"));
}

/// Lock files are removed with their files: a process that waited for one must not continue with a
/// removed one.
#[test]
fn concurrent_saves_and_deletions_lose_nothing() {
    let (_dir, states) = states();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let states = &states;
            scope.spawn(move || {
                for number in 0..25 {
                    save(states, "e", number % 3, &format!("{writer} {number}")).unwrap();
                    if number % 5 == writer {
                        states.delete_execution(&execution("e")).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
    states.delete_execution(&execution("e")).unwrap();
    for step in 1..=3 {
        assert_eq!(save(&states, "e", step, "anew").unwrap().key.attempt.0.get(), 1);
    }
}

#[test]
fn concurrent_readers_miss_nothing() {
    let (dir, states) = states();
    // Many steps, so that there is time between listing the names and reading the last file.
    for step in 1..=400 {
        let at = persistence(&dir).join("checkpoint");
        foreign_files::write(&at, "e", step, "success", "2024-01-02T03:04:05.678901");
    }
    save(&states, "e", 900, "1").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 2..=60 {
                save(&states, "e", 900, &number.to_string()).unwrap();
                std::thread::sleep(Duration::from_millis(10));
                if number % 20 == 0 {
                    move_to(&states, "ckpt-e-900.a3");
                }
            }
        });
        let mut most = 0;
        while !writer.is_finished() {
            let page = page(&states, "e", ListScope::All);
            assert_eq!(page.damaged, []);
            let places = places(&page).split_off(400);
            let every: Vec<_> =
                (1..=u32::try_from(places.len()).unwrap()).map(|n| (900, n)).collect();
            assert_eq!(places, every);
            assert!(places.len() >= most, "{} after {most}", places.len());
            most = places.len();
            assert_eq!(text_of(&states, "ckpt-e-900.a1").as_deref(), Some("1"));
            assert!(text_of(&states, "ckpt-e-900").is_some());
            assert!(states.head(&execution("e"), None).unwrap().unwrap().record.is_some());
        }
    });
    assert_eq!(page(&states, "e", ListScope::All).records.len(), 460);
}

/// A checkpoint that is listed before it gets its numbered name and read after its short name was
/// reused.
#[test]
fn a_save_during_a_list_hides_nothing() {
    let (dir, states) = states();
    for step in 1..=600 {
        let at = persistence(&dir).join("checkpoint");
        foreign_files::write(&at, "e", step, "success", "2024-01-02T03:04:05.678901");
    }
    save(&states, "e", 900, "1").unwrap();
    std::thread::scope(|scope| {
        let (go, started) = std::sync::mpsc::channel();
        let (done, ended) = std::sync::mpsc::channel();
        let states = &states;
        scope.spawn(move || {
            disk::watch(Some(Box::new(move |point| {
                if point == disk::CrashPoint::Link {
                    go.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(10));
                }
            })));
            for number in 2..=10 {
                save(states, "e", 900, &number.to_string()).unwrap();
                ended.recv().unwrap();
            }
            disk::watch(None);
        });
        for number in 1..=9 {
            started.recv().unwrap();
            let places = places(&page(states, "e", ListScope::All)).split_off(600);
            let until = |last| (1..=last).map(|n| (900, n)).collect::<Vec<_>>();
            assert!(places == until(number) || places == until(number + 1), "{places:?}");
            done.send(()).unwrap();
        }
    });
}

#[test]
fn symlinks_do_not_lead_writes_outside() {
    let (dir, states) = states();
    let at = persistence(&dir);
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "theirs").unwrap();
    for folder in ["checkpoint", "execution", "config"] {
        fs::create_dir_all(&at).unwrap();
        symlink(&outside, at.join(folder)).unwrap();
        let put = states.put_document(Category::Config, &document("a"), &json!(1));
        let saved = save(&states, "e", 1, "one");
        let refused = if folder == "config" { put.err() } else { saved.err() };
        assert!(matches!(refused, Some(StateError::Io { .. })), "{folder}: {refused:?}");
        fs::remove_dir_all(&at).unwrap();
    }

    save(&states, "e", 1, "one").unwrap();
    let process = std::process::id();
    let checkpoint = at.join("checkpoint");
    for name in [
        "ckpt-e-2.json".to_owned(),
        format!("ckpt-e-2.json.{process}.new"),
        "ckpt-e-1.a1.json".to_owned(),
    ] {
        symlink(outside.join("file"), checkpoint.join(name)).unwrap();
    }
    save(&states, "e", 2, "two").unwrap();
    assert_eq!(text_of(&states, "ckpt-e-2").as_deref(), Some("two"));
    // A symlink with the name that an older attempt will get is not in the way.
    save(&states, "e", 1, "one again").unwrap();
    assert_eq!(text_of(&states, "ckpt-e-1.a1").as_deref(), Some("one"));
    assert_eq!(page(&states, "e", ListScope::All).damaged.len(), 2);
    // Even if the symlink leads to a valid checkpoint outside.
    let whole = outside.join("whole");
    fs::rename(checkpoint.join("ckpt-e-2.json"), &whole).unwrap();
    symlink(&whole, checkpoint.join("ckpt-e-2.json")).unwrap();
    let refused = states.load(&id("ckpt-e-2"));
    assert!(matches!(refused, Err(StateError::Damaged { .. })), "{refused:?}");
    fs::remove_file(whole).unwrap();
    // Locks too.
    symlink(outside.join("made"), checkpoint.join("ckpt-e-3.json.lock")).unwrap();
    let refused = save(&states, "e", 3, "three");
    assert!(matches!(refused, Err(StateError::Io { .. })), "{refused:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"theirs");
}

#[test]
fn values_that_could_not_be_read_again_are_not_written() {
    let (dir, states) = states();
    let deep = (0..121).fold(json!(1), |value, _| json!([value]));
    let values = Values { context: deep.clone(), ..Values::default() };
    let e = execution("e");
    let refused = states.save(&new(&e, 1, &values));
    let Err(StateError::Unserialisable { path, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(path, "context");
    let values = Values::default();
    let far = states.save(&NewCheckpoint { time: Timestamp(i64::MAX), ..new(&e, 1, &values) });
    assert!(matches!(far, Err(StateError::Unserialisable { .. })), "{far:?}");
    let refused = states.put_document(Category::Config, &document("a"), &deep);
    assert!(matches!(refused, Err(StateError::Unserialisable { .. })), "{refused:?}");
    let time = Timestamp(1);
    let refused = states.declare_effect(&NewEffect {
        execution: &e,
        key: "k",
        step: None,
        intent: &deep,
        time,
    });
    assert!(matches!(refused, Err(StateError::Unserialisable { .. })), "{refused:?}");
    assert_eq!(names(&persistence(&dir)), Vec::<String>::new());
}

#[test]
fn fifty_megabytes_are_saved() {
    let (_dir, states) = states();
    let values = Values { state: json!("x".repeat(50 << 20)), ..Values::default() };
    states.save(&new(&execution("e"), 1, &values)).unwrap();
    save(&states, "e", 2, "two").unwrap();
    assert!(states.load(&id("ckpt-e-1")).unwrap().unwrap().values == values);
}

#[test]
fn ten_thousand_steps_are_listed_by_pages() {
    let (dir, states) = states();
    save(&states, "e", 0, "0").unwrap();
    let at = persistence(&dir).join("checkpoint");
    for step in 1..10_000 {
        foreign_files::write(&at, "e", step, "success", "2024-01-02T03:04:05.678901");
    }
    let began = Instant::now();
    assert_eq!(page(&states, "e", ListScope::Branch(None)).records.len(), 10_000);
    let whole = began.elapsed();
    let e = execution("e");
    let began = Instant::now();
    let last = states.last_successful(&e, None, None).unwrap().unwrap();
    assert_eq!(last.key.step, StepIndex(9999));
    let after = Some((StepIndex(9_989), last.key.attempt));
    let query = ListQuery { execution: &e, scope: ListScope::All, after, limit: Some(5) };
    let page = states.list(&query).unwrap();
    assert_eq!((page.records.len(), page.more), (5, true));
    // Only the requested files are opened.
    assert!(began.elapsed() < whole.max(Duration::from_secs(1)), "{:?}", began.elapsed());
    assert!(whole < Duration::from_secs(20), "{whole:?}");
}
