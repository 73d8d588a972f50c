//! Files of the program that the layout comes from: without Takeback's own fields, without
//! manifest, with local times without an offset.

use super::*;

/// Written like `json.dump(data, f, ensure_ascii=False, indent=2)`.
pub(super) fn write(checkpoints: &Path, execution: &str, step: u32, status: &str, time: &str) {
    fs::create_dir_all(checkpoints).unwrap();
    let text = format!(
        r#"{{
  "id": "ckpt-{execution}-{step}",
  "execution_id": "{execution}",
  "step_name": "step{step}",
  "step_index": {step},
  "timestamp": "{time}",
  "state": {{
    "is": "seed's {step}"
  }},
  "context": {{
    "messages": []
  }},
  "variables": {{}},
  "status": "{status}",
  "error": null,
  "metadata": {{}}
}}"#
    );
    fs::write(checkpoints.join(format!("ckpt-{execution}-{step}.json")), text).unwrap();
}

const TIME: &str = "2024-01-02T03:04:05.678901";

#[test]
fn they_are_read_listed_and_continued() {
    let (dir, states) = states();
    let at = persistence(&dir).join("checkpoint");
    for (step, status) in [(10, "failed"), (2, "success"), (1, "success"), (9, "pending")] {
        write(&at, "exec-1", step, status, TIME);
    }
    write(&at, "exec-10", 1, "success", "2024-01-02T03:04:05");
    let before = files(&persistence(&dir));

    let listed = page(&states, "exec-1", ListScope::Branch(None));
    assert_eq!(places(&listed), [(1, 1), (2, 1), (9, 1), (10, 1)]);
    assert_eq!(page(&states, "exec-1", ListScope::All), listed);
    let record = &listed.records[1];
    assert_eq!(record.time, Timestamp(1_704_164_645_678));
    assert_eq!((record.step_name.as_str(), record.status), ("step2", Status::Success));
    let e = execution("exec-1");
    let last = states.last_successful(&e, None, None).unwrap();
    assert_eq!(last.as_ref(), Some(record));
    let head = states.head(&e, None).unwrap().unwrap();
    assert_eq!(head.record.as_ref(), listed.records.last());
    assert_eq!(text_of(&states, "ckpt-exec-1-2").as_deref(), Some("seed's 2"));
    assert_eq!(text_of(&states, "ckpt-exec-1-2.a1").as_deref(), Some("seed's 2"));
    assert_eq!(states.load(&id("ckpt-exec-1-2.a2")).unwrap(), None);
    let mut executions = states.executions().unwrap();
    executions.executions.sort_by(|a, b| a.id.cmp(&b.id));
    let counts: Vec<_> = executions.executions.iter().map(|one| one.checkpoints).collect();
    assert_eq!((counts, executions.damaged), (vec![4, 1], vec![]));
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
    // Reading changes nothing.
    assert_eq!(files(&persistence(&dir)), before);

    // The same content is the same checkpoint; other content is a new attempt, and theirs stays.
    let values = Values {
        context: json!({ "messages": [] }),
        state: json!({ "is": "seed's 2" }),
        ..Values::default()
    };
    let same = NewCheckpoint { step_name: "step2", ..new(&e, 2, &values) };
    assert!(!states.save(&same).unwrap().is_new);
    let theirs = id("ckpt-exec-1-10");
    let values = is("ours");
    let ours = NewCheckpoint {
        expect: takeback_store::state::ExpectedHead::Newest(Some(&theirs)),
        ..new(&e, 10, &values)
    };
    let saved = states.save(&ours).unwrap().record;
    assert_eq!(
        (saved.key, saved.parent),
        (key("ckpt-exec-1-10.a2"), Some((StepIndex(10), key("ckpt-x-1.a1").attempt)))
    );
    assert_eq!(text_of(&states, "ckpt-exec-1-10.a1").as_deref(), Some("seed's 10"));
    assert_eq!(
        files(&persistence(&dir))["checkpoint/ckpt-exec-1-10.a1.json"],
        before["checkpoint/ckpt-exec-1-10.json"]
    );

    // Back to one of their steps, and continue from there.
    move_to(&states, "ckpt-exec-1-2.a1");
    assert_eq!(places(&page(&states, "exec-1", ListScope::Branch(None))), [(1, 1), (2, 1)]);
    assert_eq!(page(&states, "exec-1", ListScope::All).records.len(), 5);
    assert_eq!(save(&states, "exec-1", 9, "ours").unwrap().key, key("ckpt-exec-1-9.a2"));
    assert!(states.delete_execution(&e).unwrap());
    assert_eq!(names(&persistence(&dir)), ["checkpoint/ckpt-exec-10-1.json"]);
}

#[test]
fn they_may_come_between_ours() {
    let (dir, states) = states();
    let at = persistence(&dir).join("checkpoint");
    save(&states, "e", 1, "ours 1").unwrap();
    save(&states, "e", 1, "ours 1 again").unwrap();
    save(&states, "e", 2, "ours 2").unwrap();
    write(&at, "e", 3, "success", TIME);
    // The other program overwrites the short name. Numbered attempts, which it does not know, stay.
    write(&at, "e", 1, "failed", TIME);
    assert_eq!(places(&page(&states, "e", ListScope::Branch(None))), [(1, 2), (2, 1), (3, 1)]);
    assert_eq!(places(&page(&states, "e", ListScope::All)), [(1, 1), (1, 2), (2, 1), (3, 1)]);
    assert_eq!(text_of(&states, "ckpt-e-1").as_deref(), Some("seed's 1"));
    assert_eq!(text_of(&states, "ckpt-e-1.a1").as_deref(), Some("ours 1"));
    let last = states.last_successful(&execution("e"), None, None).unwrap().unwrap();
    assert_eq!(last.key.step, StepIndex(3));
    assert_eq!(save(&states, "e", 1, "ours 1 at last").unwrap().key, key("ckpt-e-1.a3"));
    assert_eq!(text_of(&states, "ckpt-e-1.a2").as_deref(), Some("seed's 1"));
    // Under the name of an attempt on an old line.
    move_to(&states, "ckpt-e-1.a1");
    write(&at, "e", 2, "success", TIME);
    assert_eq!(places(&page(&states, "e", ListScope::All)).len(), 6);
    assert_eq!(text_of(&states, "ckpt-e-2.a2").as_deref(), Some("seed's 2"));
    assert_eq!(save(&states, "e", 2, "more").unwrap().key, key("ckpt-e-2.a3"));
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
}

#[test]
fn names_that_it_did_not_encode_are_found() {
    let (dir, states) = states();
    let at = persistence(&dir).join("checkpoint");
    for name in ["my run", "名前", ".x"] {
        write(&at, name, 1, "success", TIME);
        write(&at, name, 2, "success", TIME);
        assert_eq!(
            places(&page(&states, name, ListScope::Branch(None))),
            [(1, 1), (2, 1)],
            "{name}"
        );
        assert_eq!(text_of(&states, &format!("ckpt-{name}-1")).as_deref(), Some("seed's 1"));
        save(&states, name, 1, "ours").unwrap();
        assert_eq!(places(&page(&states, name, ListScope::All)), [(1, 1), (1, 2), (2, 1)]);
        assert_eq!(text_of(&states, &format!("ckpt-{name}-1")).as_deref(), Some("ours"));
        assert_eq!(text_of(&states, &format!("ckpt-{name}-1.a1")).as_deref(), Some("seed's 1"));
        move_to(&states, &format!("ckpt-{name}-1.a1"));
        assert_eq!(places(&page(&states, name, ListScope::Branch(None))), [(1, 1)], "{name}");
        assert!(states.delete_execution(&execution(name)).unwrap());
    }
    assert_eq!(names(&persistence(&dir)), Vec::<String>::new());
    let config = persistence(&dir).join("config");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("my settings.json"), "{\"a\": 1}").unwrap();
    assert_eq!(states.documents(Category::Config).unwrap(), [document("my settings")]);
    let read = || states.document(Category::Config, &document("my settings")).unwrap();
    assert_eq!(read(), Some(json!({ "a": 1 })));
    states.put_document(Category::Config, &document("my settings"), &json!(2)).unwrap();
    assert_eq!(read(), Some(json!(2)));
    assert_eq!(states.documents(Category::Config).unwrap().len(), 1);
}
