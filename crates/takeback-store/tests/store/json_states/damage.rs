//! A damaged file is set aside and reported, and everything else still works.

use super::*;

/// One of everything, and the file of the second step.
fn sample() -> (TempDir, JsonStates, std::path::PathBuf) {
    let (dir, states) = states();
    for step in 1..=3 {
        save(&states, "e", step, &format!("state of step {step}")).unwrap();
    }
    let path = persistence(&dir).join("checkpoint/ckpt-e-2.json");
    (dir, states, path)
}

#[track_caller]
fn assert_named(states: &JsonStates, path: &Path, bytes: &[u8]) {
    for again in [false, true] {
        let listed = page(states, "e", ListScope::Branch(None));
        assert_eq!(places(&listed), [(1, 1), (3, 1)]);
        assert_eq!(listed.damaged.len(), 1, "{listed:?}");
        assert_eq!(listed.damaged[0].what, path.display().to_string());
        assert!(listed.damaged[0].why.contains("ckpt-e-2.json.damaged-1"), "{listed:?}");
        for id in [id("ckpt-e-2"), id("ckpt-e-2.a1")] {
            let Err(StateError::Damaged { what, .. }) = states.load(&id) else {
                panic!("{again}: {:?}", states.load(&id));
            };
            assert_eq!(what, path.display().to_string());
        }
    }
    assert!(!path.exists());
    let aside = path.with_file_name("ckpt-e-2.json.damaged-1");
    assert_eq!(fs::read(aside).unwrap(), bytes);
    let executions = states.executions().unwrap();
    assert_eq!(executions.executions.len(), 1);
    assert_eq!(executions.damaged[0].what, path.display().to_string());
    assert_eq!(states.check().unwrap().len(), 1);
    // The step can be saved again; the damaged attempt keeps its number.
    assert_eq!(save(states, "e", 2, "anew").unwrap().key, key("ckpt-e-2.a2"));
    assert_eq!(text_of(states, "ckpt-e-2").as_deref(), Some("anew"));
    let damaged = states.load(&id("ckpt-e-2.a1"));
    assert!(matches!(damaged, Err(StateError::Damaged { .. })), "{damaged:?}");
    assert_eq!(states.load(&id("ckpt-e-2.a3")).unwrap(), None);
}

#[test]
fn any_damaged_file_is_set_aside_and_reported() {
    let fields = |change: &dyn Fn(&mut Value)| {
        let (_dir, _states, path) = sample();
        let mut file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        change(&mut file);
        serde_json::to_vec(&file).unwrap()
    };
    let unsigned = |field: &str, value: Value| {
        fields(&|file| {
            let fields = file.as_object_mut().unwrap();
            for own in ["checksum", "format"] {
                fields.remove(own);
            }
            match value {
                Value::Null => drop(fields.remove(field)),
                _ => drop(fields.insert(field.to_owned(), value.clone())),
            }
        })
    };
    let cases = [
        Vec::new(),
        b"not JSON".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"\xff\xfe".to_vec(),
        fields(&|file| file["state"] = json!({ "is": "something else" })),
        fields(&|file| drop(file.as_object_mut().unwrap().remove("checksum"))),
        fields(&|file| file["extra"] = json!(1)),
        unsigned("state", Value::Null),
        unsigned("step_index", json!(3)),
        unsigned("step_index", json!("2")),
        unsigned("step_index", json!(-2)),
        unsigned("execution_id", json!("f")),
        unsigned("id", json!("ckpt-e-3")),
        unsigned("timestamp", json!("some day")),
        unsigned("status", json!("great")),
        unsigned("error", json!(7)),
        unsigned("attempt", json!(0)),
        unsigned("point", json!("xyz")),
        unsigned("parent", json!("ckpt-e-1")),
    ];
    for (number, bytes) in cases.iter().enumerate() {
        let (_dir, states, path) = sample();
        fs::write(&path, bytes).unwrap();
        println!("case {number}");
        assert_named(&states, &path, bytes);
    }
}

#[test]
fn no_bit_flips_and_no_end_goes_missing_unnoticed() {
    let (_dir, states, path) = sample();
    let whole = fs::read(&path).unwrap();
    let loaded = states.load(&id("ckpt-e-2")).unwrap();
    let mut noticed = 0;
    let mut look = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        match states.load(&id("ckpt-e-2")) {
            // One kind of white space became another.
            Ok(same) => assert_eq!(same, loaded),
            Err(StateError::Damaged { .. }) => noticed += 1,
            Err(StateError::Newer { .. }) if bytes.len() == whole.len() => noticed += 1,
            Err(error) => panic!("{error:?}"),
        }
        if let Ok(aside) = fs::metadata(path.with_file_name("ckpt-e-2.json.damaged-1")) {
            assert_eq!(aside.len(), bytes.len() as u64);
            fs::remove_file(path.with_file_name("ckpt-e-2.json.damaged-1")).unwrap();
        }
    };
    for (at, byte) in whole.iter().enumerate() {
        for bit in [at % 8, 5] {
            let mut flipped = whole.clone();
            flipped[at] = byte ^ (1 << bit);
            look(&flipped);
        }
    }
    // Any truncation except of the final newline.
    for length in 0..whole.len() - 1 {
        look(&whole[..length]);
    }
    assert!(noticed > whole.len() * 2, "{noticed} of {}", whole.len() * 3);
}

#[test]
fn several_can_be_set_aside_under_one_name() {
    let (_dir, states, path) = sample();
    for number in 1..=3 {
        fs::write(&path, format!("damaged {number}")).unwrap();
        assert!(states.load(&id("ckpt-e-2")).is_err());
        let aside = path.with_file_name(format!("ckpt-e-2.json.damaged-{number}"));
        assert_eq!(fs::read_to_string(aside).unwrap(), format!("damaged {number}"));
    }
    assert_eq!(page(&states, "e", ListScope::All).damaged.len(), 3);
}

#[test]
fn a_damaged_head_is_skipped_as_if_deleted() {
    type Look = fn(&JsonStates);
    // The first operation that reads it finds the damage and sets it aside.
    let first: [Look; 6] = [
        |_| {},
        |states| drop(states.head(&execution("e"), None).unwrap()),
        |states| assert_eq!(states.executions().unwrap().executions[0].checkpoints, 2),
        |states| drop(states.last_successful(&execution("e"), None, None).unwrap()),
        |states| drop(page(states, "e", ListScope::Branch(None))),
        |states| drop(states.load(&id("ckpt-e-3")).unwrap_err()),
    ];
    let e = execution("e");
    for (number, look) in first.into_iter().enumerate() {
        for wrong in ["", "{"] {
            let damaged_head = || {
                let (dir, states, path) = sample();
                let path = path.with_file_name("ckpt-e-3.json");
                fs::write(&path, wrong).unwrap();
                look(&states);
                (dir, states, path)
            };
            println!("case {number}, {wrong:?}");
            let (_dir, states, path) = damaged_head();
            for _ in 0..2 {
                let head = states.head(&e, None).unwrap().unwrap().record.unwrap();
                assert_eq!(head.key, key("ckpt-e-2.a1"));
                let last = states.last_successful(&e, None, None).unwrap().unwrap();
                assert_eq!(last.key, key("ckpt-e-2.a1"));
                let all = states.executions().unwrap();
                assert_eq!(all.executions[0].head, Some(head));
                assert_eq!(all.executions[0].checkpoints, 2);
                let named: Vec<_> = all.damaged.into_iter().map(|one| one.what).collect();
                assert_eq!(named, [path.display().to_string()]);
            }
            let listed = page(&states, "e", ListScope::Branch(None));
            assert_eq!((places(&listed), listed.damaged.len()), (vec![(1, 1), (2, 1)], 1));
            let damaged = states.load(&id("ckpt-e-3"));
            assert!(matches!(damaged, Err(StateError::Damaged { .. })), "{damaged:?}");
            let (values, parent) = (is("on"), id("ckpt-e-2"));
            let following = NewCheckpoint {
                expect: takeback_store::state::ExpectedHead::Newest(Some(&parent)),
                ..new(&e, 4, &values)
            };
            assert_eq!(states.save(&following).unwrap().record.key, key("ckpt-e-4.a1"));
            let head = states.head(&e, None).unwrap().unwrap().record.unwrap();
            assert_eq!(head.key, key("ckpt-e-4.a1"));

            let (_dir, states, _) = damaged_head();
            let saved = save(&states, "e", 3, "anew").unwrap();
            assert_eq!(saved.key, key("ckpt-e-3.a2"));
            assert_eq!(saved.parent, Some((StepIndex(2), Attempt::FIRST)));

            let (_dir, states, _) = damaged_head();
            assert!(states.delete(&key("ckpt-e-2.a1")).unwrap());
            let head = states.head(&e, None).unwrap().unwrap().record.unwrap();
            assert_eq!(head.key, key("ckpt-e-1.a1"));

            let (_dir, states, _) = damaged_head();
            move_to(&states, "ckpt-e-1.a1");
            assert_eq!(places(&page(&states, "e", ListScope::Branch(None))), [(1, 1)]);

            let (dir, states, _) = damaged_head();
            assert!(states.delete_execution(&e).unwrap());
            assert_eq!(states.head(&e, None).unwrap(), None);
            assert_eq!(names(&persistence(&dir)), [""; 0]);
        }
    }
}

#[test]
fn a_damaged_head_is_skipped_while_another_process_writes() {
    let (dir, states, path) = sample();
    let path = path.with_file_name("ckpt-e-3.json");
    fs::write(&path, "{").unwrap();
    let lock = fs::File::open(persistence(&dir).join("execution/e.json.lock")).unwrap();
    lock.lock().unwrap();
    let head = states.head(&execution("e"), None).unwrap().unwrap().record.unwrap();
    assert_eq!(head.key, key("ckpt-e-2.a1"));
    let all = states.executions().unwrap();
    assert_eq!(all.executions[0].head, Some(head));
    assert_eq!(all.damaged.len(), 1, "{all:?}");
    assert_eq!(all.damaged[0].what, path.display().to_string());
    assert!(path.exists(), "only a writer renames it");
}

#[test]
fn a_damaged_head_falls_back_to_the_previous_attempt() {
    let (_dir, states, path) = sample();
    save(&states, "e", 3, "again").unwrap();
    fs::write(path.with_file_name("ckpt-e-3.json"), "{").unwrap();
    let head = states.head(&execution("e"), None).unwrap().unwrap().record.unwrap();
    assert_eq!(head.key, key("ckpt-e-3.a1"));
}

#[test]
fn an_execution_with_only_a_damaged_checkpoint_has_no_head_and_can_be_deleted() {
    let (dir, states) = states();
    let e = execution("e");
    save(&states, "e", 1, "one").unwrap();
    fs::write(persistence(&dir).join("checkpoint/ckpt-e-1.json"), "").unwrap();
    for _ in 0..2 {
        assert_eq!(states.head(&e, None).unwrap().unwrap().record, None);
        assert_eq!(states.last_successful(&e, None, None).unwrap(), None);
    }
    assert_eq!(save(&states, "e", 2, "two").unwrap().parent, None);
    assert!(states.delete_execution(&e).unwrap());
    assert_eq!(names(&persistence(&dir)), [""; 0]);
}

#[test]
fn an_older_attempt_that_is_damaged_leaves_the_newest() {
    let (_dir, states, path) = sample();
    save(&states, "e", 2, "again").unwrap();
    fs::write(path.with_file_name("ckpt-e-2.a1.json"), "{").unwrap();
    assert_eq!(page(&states, "e", ListScope::Branch(None)).damaged, []);
    let all = page(&states, "e", ListScope::All);
    assert_eq!((places(&all), all.damaged.len()), (vec![(1, 1), (2, 2), (3, 1)], 1));
    let damaged = states.load(&id("ckpt-e-2.a1"));
    assert!(matches!(damaged, Err(StateError::Damaged { .. })), "{damaged:?}");
    assert_eq!(text_of(&states, "ckpt-e-2").as_deref(), Some("again"));
    assert_eq!(save(&states, "e", 2, "more").unwrap().key, key("ckpt-e-2.a3"));
}

#[test]
fn a_damaged_manifest_is_rebuilt_and_its_effects_are_unknown() {
    let (dir, states, _) = sample();
    let e = execution("e");
    save(&states, "e", 2, "again").unwrap();
    move_to(&states, "ckpt-e-1.a1");
    save(&states, "e", 2, "elsewhere").unwrap();
    let intent = json!("mail");
    let (key_of, time) = ("mail", Timestamp(1));
    let effect = NewEffect { execution: &e, key: key_of, step: None, intent: &intent, time };
    states.declare_effect(&effect).unwrap();
    let pages =
        || (page(&states, "e", ListScope::Branch(None)), page(&states, "e", ListScope::All));
    let head = || states.head(&e, None).map(|head| head.unwrap().record);
    let before = (pages(), head().unwrap());
    let book = persistence(&dir).join("execution/e.json");
    let mut bytes = fs::read(&book).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&book, &bytes).unwrap();
    let refused = save(&states, "e", 3, "not saved");
    let Err(StateError::Damaged { what, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(what, book.display().to_string());
    let aside = book.with_file_name("e.json.damaged-1");
    assert_eq!(fs::read(&aside).unwrap(), bytes);

    assert_eq!((pages(), head().unwrap()), before);
    assert_eq!(states.executions().unwrap().damaged.len(), 1);
    assert_eq!(save(&states, "e", 2, "on").unwrap().key, key("ckpt-e-2.a4"));
    assert_eq!(places(&page(&states, "e", ListScope::Branch(None))), [(1, 1), (2, 4)]);
    move_to(&states, "ckpt-e-3.a1");
    assert_eq!(places(&page(&states, "e", ListScope::Branch(None))), [(1, 1), (2, 1), (3, 1)]);
    // Whether mail was sent is unknown, until the user removes the file that was set aside.
    for refused in [states.effects(&e).map(drop), states.declare_effect(&effect).map(drop)] {
        assert!(matches!(refused, Err(StateError::Damaged { .. })), "{refused:?}");
    }
    fs::remove_file(aside).unwrap();
    assert_eq!(states.effects(&e).unwrap(), []);
    states.declare_effect(&effect).unwrap();
}

#[test]
fn a_newer_format_is_reported_and_left_alone() {
    let (dir, states, path) = sample();
    let book = persistence(&dir).join("execution/e.json");
    let newer = |path: &Path| {
        let mut file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        file["format"] = json!(9);
        fs::write(path, serde_json::to_vec(&file).unwrap()).unwrap();
        fs::read(path).unwrap()
    };
    let bytes = newer(&path);
    let assert_newer = |error: StateError, path: &Path| {
        let StateError::Newer { what, found, known } = error else { panic!("{error:?}") };
        assert_eq!((what, found, known), (path.display().to_string(), 9, 1));
    };
    assert_newer(states.load(&id("ckpt-e-2")).unwrap_err(), &path);
    assert_newer(save(&states, "e", 2, "other").unwrap_err(), &path);
    assert_newer(states.points().unwrap_err(), &path);
    let listed = page(&states, "e", ListScope::Branch(None));
    assert_eq!((places(&listed), listed.damaged.len()), (vec![(1, 1), (3, 1)], 1));
    assert!(listed.damaged[0].why.contains("format 9"), "{listed:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let bytes = newer(&book);
    assert_newer(save(&states, "e", 4, "four").unwrap_err(), &book);
    assert_newer(states.load(&id("ckpt-e-1")).unwrap_err(), &book);
    assert_eq!(fs::read(&book).unwrap(), bytes);
}

#[test]
fn a_damaged_document_is_set_aside_and_can_be_put_anew() {
    let (dir, states) = states();
    let config = persistence(&dir).join("config");
    let long = "x".repeat(300);
    for name in ["settings", &long] {
        let key = document(name);
        states.put_document(Category::Config, &key, &json!({ "a": 1 })).unwrap();
        let file = fs::read_dir(&config).unwrap().map(|file| file.unwrap().path());
        let path = file.into_iter().find(|path| path.extension().unwrap() == "json").unwrap();
        fs::write(&path, "{").unwrap();
        for _ in 0..2 {
            let damaged = states.document(Category::Config, &key);
            assert!(matches!(damaged, Err(StateError::Damaged { .. })), "{damaged:?}");
        }
        assert!(!path.exists());
        states.put_document(Category::Config, &key, &json!(2)).unwrap();
        assert_eq!(states.document(Category::Config, &key).unwrap(), Some(json!(2)));
        assert_eq!(states.documents(Category::Config).unwrap(), [key]);
        fs::remove_dir_all(&config).unwrap();
    }
}
