//! A process that ends at any moment leaves states that read as before or as after, and that can
//! still be used.

use takeback_store::RewindId;
use takeback_store::disk::stopped;

use super::*;

/// Everything that can be queried, as text.
fn dump(states: &JsonStates) -> String {
    let e = execution("e");
    let all = page(states, "e", ListScope::All);
    let mut texts = Vec::new();
    for record in &all.records {
        texts.push(states.load(&record.key.id()).unwrap());
    }
    let executions = states.executions().unwrap();
    let documents = states.documents(Category::Config).unwrap();
    let read: Vec<_> =
        documents.iter().map(|key| states.document(Category::Config, key).unwrap()).collect();
    format!(
        "{:#?}",
        (
            page(states, "e", ListScope::Branch(None)),
            texts,
            states.head(&e, None).unwrap(),
            states.last_successful(&e, None, None).unwrap(),
            (
                executions.executions.iter().map(|one| one.checkpoints).collect::<Vec<_>>(),
                executions.damaged
            ),
            states.effects(&e).unwrap(),
            (documents, read),
        )
    )
}

fn sample(dir: &Path) -> JsonStates {
    let states = JsonStates::at(dir.join("persistence"));
    for step in 1..=4 {
        save(&states, "e", step, &step.to_string()).unwrap();
    }
    save(&states, "e", 3, "3 again").unwrap();
    let key = key("ckpt-e-2.a1");
    let to = MoveTo::Checkpoint(&key);
    let e = execution("e");
    states.move_head(&HeadMove { execution: &e, branch: None, to, by: Some(RewindId(1)) }).unwrap();
    save(&states, "e", 3, "3 elsewhere").unwrap();
    let intent = json!("mail");
    let time = Timestamp(1);
    states
        .declare_effect(&NewEffect {
            execution: &e,
            key: "mail",
            step: None,
            intent: &intent,
            time,
        })
        .unwrap();
    states.put_document(Category::Config, &document("settings"), &json!(1)).unwrap();
    states
}

/// Stops `work` at every crash point. The states must read as before or as after, and as after from
/// the first point on where they do. Repeating `work` must always lead to the same end.
fn at_every_point(what: &str, least: u64, work: impl Fn(&JsonStates)) {
    let (before, after) = {
        let dir = tempfile::tempdir().unwrap();
        let states = sample(dir.path());
        let before = dump(&states);
        work(&states);
        (before, dump(&states))
    };
    let mut is_done = false;
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let states = sample(dir.path());
        let reached = stopped(n, || work(&states));
        let seen = dump(&states);
        assert!(seen == before || seen == after, "{what}, point {n}, {reached:?}: {seen}");
        let done = seen == after && before != after;
        assert!(done || !is_done, "{what}, point {n}: not done any more");
        is_done = done;
        assert_eq!(states.check().unwrap(), Vec::<String>::new(), "{what}, point {n}");
        assert_eq!(dump(&JsonStates::at(dir.path().join("persistence"))), seen);
        work(&states);
        assert_eq!(dump(&states), after, "{what}, point {n}, repeated");
        save(&states, "e", 9, "on").unwrap();
        states.collect().unwrap();
        assert_eq!(states.check().unwrap(), Vec::<String>::new(), "{what}, point {n}");
        let left = names(&dir.path().join("persistence"));
        assert!(left.iter().all(|name| name.ends_with(".json")), "{what}, point {n}: {left:?}");
        if reached.is_none() {
            assert!(n > least, "{what}: only {n} points");
            break;
        }
    }
    assert!(is_done || before == after, "{what}");
}

#[test]
fn an_interrupted_save_is_done_or_not_done() {
    let again = |step: u32, text: &'static str| {
        move |states: &JsonStates| drop(save(states, "e", step, text).unwrap())
    };
    at_every_point("a step", 8, again(4, "4 elsewhere"));
    at_every_point("another attempt", 10, again(3, "3 once more"));
    at_every_point("an attempt of an old step", 10, again(1, "1 again"));
    at_every_point("the same again", 0, again(3, "3 elsewhere"));
    at_every_point("another execution", 8, |states| drop(save(states, "f", 1, "1").unwrap()));
}

#[test]
fn an_interrupted_move_is_done_or_not_done() {
    let e = execution("e");
    for target in ["ckpt-e-1.a1", "ckpt-e-4.a1", "ckpt-e-3.a2", "ckpt-e-3.a3"] {
        let key = key(target);
        at_every_point(target, 8, |states| {
            let to = MoveTo::Checkpoint(&key);
            let by = Some(RewindId(7));
            states.move_head(&HeadMove { execution: &e, branch: None, to, by }).unwrap();
        });
    }
    at_every_point("the first line", 8, |states| {
        let to = MoveTo::Line(takeback_store::state::LineId(1));
        states
            .move_head(&HeadMove { execution: &e, branch: None, to, by: Some(RewindId(7)) })
            .unwrap();
    });
}

#[test]
fn an_interrupted_deletion_is_done_or_not_done() {
    for target in ["ckpt-e-3.a3", "ckpt-e-3.a1", "ckpt-e-2.a1"] {
        let key = key(target);
        at_every_point(target, 8, |states| {
            states.delete(&key).unwrap();
        });
    }
    let e = execution("e");
    at_every_point("all", 10, |states| {
        states.delete_execution(&e).unwrap();
    });
    let settings = document("settings");
    at_every_point("a document", 2, |states| {
        states.delete_document(Category::Config, &settings).unwrap();
    });
}

#[test]
fn an_interrupted_manifest_write_is_done_or_not_done() {
    let e = execution("e");
    let intent = json!({ "to": "x" });
    at_every_point("an intent", 3, |states| {
        let time = Timestamp(5);
        let step = Some(StepIndex(3));
        states
            .declare_effect(&NewEffect { execution: &e, key: "pay", step, intent: &intent, time })
            .unwrap();
    });
    at_every_point("a receipt", 3, |states| {
        states.confirm_effect(&e, "mail", &json!("sent"), Timestamp(6)).unwrap();
    });
    at_every_point("a document", 3, |states| {
        states.put_document(Category::Config, &document("settings"), &json!(2)).unwrap();
    });
}

/// A set-aside file with the name of a pending save must not count as that save.
#[test]
fn an_interrupted_save_over_a_damaged_file_is_done_or_not_done() {
    let e = execution("e");
    let mut heads = Vec::new();
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let states = sample(dir.path());
        fs::write(dir.path().join("persistence/checkpoint/ckpt-e-2.json"), "damaged").unwrap();
        assert_eq!(page(&states, "e", ListScope::Branch(None)).damaged.len(), 1);
        let reached = stopped(n, || drop(save(&states, "e", 2, "anew").unwrap()));
        let head = states.head(&e, None).unwrap().unwrap().record.unwrap();
        heads.push(head.key.id().to_string());
        save(&states, "e", 2, "anew").unwrap();
        assert_eq!(states.head(&e, None).unwrap().unwrap().record.unwrap().key, key("ckpt-e-2.a2"));
        if reached.is_none() {
            break;
        }
    }
    heads.dedup();
    assert_eq!(heads, ["ckpt-e-3.a3", "ckpt-e-2.a2"]);
}

/// An interrupted success leaves the retry count as it was.
#[test]
fn retries_are_counted_over_a_crash() {
    let e = execution("e");
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let states = sample(dir.path());
        for count in 1..=3 {
            assert_eq!(states.count_retry(&e, StepIndex(4), 3).unwrap(), count);
        }
        let reached = stopped(n, || drop(save(&states, "e", 4, "done").unwrap()));
        let is_saved = states.find(&id("ckpt-e-4")).unwrap().is_some();
        let retried = states.count_retry(&e, StepIndex(4), 3);
        match is_saved {
            true => assert_eq!(retried.unwrap(), 1, "point {n}"),
            false => assert!(matches!(retried, Err(StateError::RetriesExhausted { .. }))),
        }
        if reached.is_none() {
            assert!(is_saved && n > 8);
            break;
        }
    }
}

/// The manifest announces the save; the checkpoint's file proves it.
#[test]
fn a_save_reaches_the_disk_in_this_order() {
    use takeback_store::disk::CrashPoint::{Link, Overwrite, Replace, Sync, WriteBeside};
    let steps = |step: u32, text: &str| -> Vec<_> {
        let stop = |n| {
            let dir = tempfile::tempdir().unwrap();
            let states = sample(dir.path());
            stopped(n, || drop(save(&states, "e", step, text).unwrap()))
        };
        (1..).map_while(stop).collect()
    };
    let file = [WriteBeside, Sync, Replace, Sync];
    assert_eq!(steps(4, "4 elsewhere"), [&file[..], &file, &[Overwrite]].concat());
    assert_eq!(steps(3, "3 once more"), [&file[..], &[Link, Sync], &file, &[Overwrite]].concat());
    assert_eq!(steps(3, "3 elsewhere"), []);
}
