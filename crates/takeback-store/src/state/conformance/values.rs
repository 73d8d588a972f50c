//! Values, names and documents: any JSON and any name must read back.

use serde_json::{Map, Value, json};

use super::samples::{all, execution, id, key, listed, new, places, save, state, text_of};
use super::{Pair, good};
use crate::id::PointId;
use crate::state::{Category, DocumentKey, NewCheckpoint, States, Values};

/// One of every kind of JSON value.
fn every_value() -> Vec<Value> {
    let nested = |mut value: Value, wrap: fn(Value) -> Value| {
        for _ in 0..100 {
            value = wrap(value);
        }
        value
    };
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(i64::MAX),
        json!([0.1, 1e308, -1e-308, f64::MIN_POSITIVE, f64::EPSILON, 5e-324, 0.1 + 0.2]),
        // Numbers of 17 digits, which not every parser reads back exactly.
        json!([123_456_789.012_345_67, 2.225_073_858_507_201e-308, 9_007_199_254_740_993.0]),
        json!([1.0, 1, 1e21]),
        json!(""),
        json!("naïve \u{1f980} \u{202e}\u{feff} \0 \u{7f} \" \\ / \n\r\t </script>"),
        json!("\u{d7ff}\u{e000}\u{10ffff}"),
        json!([]),
        json!({}),
        json!([[], {}, [[]], [{}], { "": {} }, null]),
        json!({ "": "", "a": null, "\0": "\0", "a.b": 1, "$ref": 2, "checksum": 3, "id": 4 }),
        nested(json!("deep"), |value| json!([value])),
        nested(json!("deep"), |value| json!({ "in": value })),
    ]
}

pub(super) fn any_json_reads_back([store, other]: Pair<'_>) {
    let execution = execution("e");
    for (step, value) in (0..).zip(every_value()) {
        let values = Values {
            state: value.clone(),
            context: json!([value]),
            variables: json!({ "v": value }),
            metadata: value,
        };
        let made = NewCheckpoint { values: &values, ..new(&execution, step) };
        let saved = good(store.save(&made)).record;
        for store in [store, other] {
            let loaded = good(store.load(&saved.id())).expect("it was saved");
            assert_eq!(loaded.values, values);
        }
        assert!(!good(other.save(&made)).is_new, "{values:?}");
    }
    // Equal to 0.0, but a different number.
    let made = state(json!([-0.0]));
    good(store.save(&NewCheckpoint { values: &made, ..new(&execution, 1000) }));
    let loaded = good(other.load(&id("ckpt-e-1000"))).expect("it was saved");
    assert!(loaded.values.state[0].as_f64().expect("a float").is_sign_negative());
}

pub(super) fn large_values_read_back([store, other]: Pair<'_>) {
    let execution = execution("e");
    let noise: String = (0..1_u32 << 18)
        .map(|n| {
            char::from(b' ' + u8::try_from(n.wrapping_mul(2_654_435_761) >> 26).expect("6 bits"))
        })
        .collect();
    let list: Vec<_> = (0..5000).map(|n| json!({ "role": "user", "content": n })).collect();
    let map: Map<_, _> =
        (0..3000).map(|n| (format!("key {n}"), json!([n, "x".repeat(n)]))).collect();
    let large = [
        json!("x".repeat(1 << 20)),
        json!("\u{0}".repeat(100_000)),
        json!(noise.repeat(8)),
        json!({ "messages": list }),
        Value::Object(map),
        json!([noise, "y".repeat(300_000), [noise]]),
    ];
    for (step, value) in (0..).zip(&large) {
        let values = state(value.clone());
        good(store.save(&NewCheckpoint { values: &values, ..new(&execution, step) }));
    }
    // One that grows, and one that shrinks again.
    let mut grown = list;
    for step in 100..120 {
        grown.push(json!(step));
        if step == 115 {
            grown.truncate(17);
        }
        let values = state(json!({ "messages": grown }));
        let made = NewCheckpoint { values: &values, ..new(&execution, step) };
        let saved = good(store.save(&made)).record;
        assert_eq!(good(other.load(&saved.id())).expect("it was saved").values, values);
    }
    for (step, value) in large.iter().enumerate() {
        let loaded = good(other.load(&id(&format!("ckpt-e-{step}")))).expect("it was saved");
        assert!(loaded.values.state == *value, "step {step}");
    }
    good(store.put_document(Category::Conversation, &document("large"), &large[5]));
    let read = good(other.document(Category::Conversation, &document("large")));
    assert!(read.as_ref() == Some(&large[5]));
}

/// Names that could leave a folder, end a string, collide with another name, or be too long for a
/// file.
fn hostile() -> Vec<String> {
    let long = "x".repeat(4 << 10);
    let mut names: Vec<_> = [
        "..",
        ".",
        "../x",
        "../../etc/passwd",
        "/",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a\0b",
        "\0",
        "%2e",
        "%2E%2E",
        "%",
        "%00",
        ".hidden",
        "..a",
        "a.",
        "a..",
        "a\nb",
        "\n",
        " ",
        " a ",
        "-",
        "--",
        "a-1",
        "a-1.a1",
        "ä",
        "a\u{308}",
        "名前",
        "\u{1f980}",
        "Case",
        "case",
        "CASE",
        "~",
        "$HOME",
        "*",
        "?",
        "a'b",
        "a\"b",
        "'; DROP TABLE step; --",
        "a.json",
        "a.json.lock",
        "a",
        "a.lock",
        "CON",
        "execution",
        "checkpoint",
        "\u{feff}",
        "\u{202e}x",
    ]
    .into_iter()
    .map(ToOwned::to_owned)
    .collect();
    names.extend([format!("{long}a"), format!("{long}b"), "é".repeat(2000), "x".repeat(16 << 10)]);
    // Lengths around the limit of a file name.
    let lengths = [199, 200, 201, 206, 209, 220, 239, 240, 245, 250, 251, 255, 256];
    names.extend(lengths.map(|length| "y".repeat(length)));
    names
}

pub(super) fn hostile_names_are_kept_apart([store, other]: Pair<'_>) {
    let names = hostile();
    for name in &names {
        save(store, &execution(name), 1, name);
        save(store, &execution(name), 1, &format!("{name} again"));
    }
    for store in [store, other] {
        for name in &names {
            let execution = execution(name);
            assert_eq!(places(&listed(store, &execution)), [(1, 2)], "{name:?}");
            assert_eq!(places(&all(store, &execution)), [(1, 1), (1, 2)], "{name:?}");
            assert_eq!(text_of(store, &format!("ckpt-{name}-1")), Some(format!("{name} again")));
            assert_eq!(text_of(store, &format!("ckpt-{name}-1.a1")).as_ref(), Some(name));
        }
        let executions = good(store.executions());
        assert_eq!(executions.damaged, []);
        let mut known: Vec<_> =
            executions.executions.iter().map(|execution| execution.id.to_string()).collect();
        let mut names = names.clone();
        known.sort();
        names.sort();
        assert_eq!(known, names);
    }
    let (gone, kept) = names.split_at(names.len() / 2);
    for name in gone {
        assert!(good(other.delete(&key(&execution(name), 1, 2))), "{name:?}");
        assert!(good(other.delete_execution(&execution(name))), "{name:?}");
    }
    for (names, count) in [(gone, 0), (kept, 2)] {
        for name in names {
            assert_eq!(all(store, &execution(name)).len(), count, "{name:?}");
        }
    }
}

fn document(key: &str) -> DocumentKey {
    DocumentKey::new(key).expect("a plain key")
}

pub(super) fn documents_are_kept_by_category_and_key([store, other]: Pair<'_>) {
    let mut names = hostile();
    names.sort();
    let value = |category: Category, key: &str| json!({ "of": category.name(), "key": key });
    let keys = |store: &dyn States, category| -> Vec<String> {
        good(store.documents(category)).into_iter().map(String::from).collect()
    };
    for category in Category::ALL {
        assert_eq!(good(store.document(category, &document("a"))), None);
        assert!(!good(store.delete_document(category, &document("a"))));
        for name in names.iter().rev() {
            let value = value(category, name);
            good(store.put_document(category, &document(name), &json!("replaced")));
            good(other.put_document(category, &document(name), &value));
        }
    }
    for category in Category::ALL {
        assert_eq!(keys(store, category), names);
        for name in &names {
            let read = good(store.document(category, &document(name)));
            assert_eq!(read, Some(value(category, name)));
        }
    }
    let (gone, kept) = names.split_at(names.len() / 2);
    for name in gone {
        assert!(good(store.delete_document(Category::History, &document(name))));
        assert!(!good(other.delete_document(Category::History, &document(name))));
        assert_eq!(good(other.document(Category::History, &document(name))), None);
    }
    assert_eq!(keys(other, Category::History), kept);
    assert_eq!(keys(other, Category::Config), names);

    // Any JSON is a document, even one that looks like a file of ours.
    let odd = document("odd");
    for value in every_value() {
        good(store.put_document(Category::Config, &odd, &value));
        assert_eq!(good(other.document(Category::Config, &odd)), Some(value));
    }
    assert_eq!(good(store.executions()).executions, []);
}

pub(super) fn points_are_those_of_the_checkpoints([store, other]: Pair<'_>) {
    let (here, there) = (execution("e"), execution("f"));
    let values = state(json!("again"));
    for (execution, step, point) in [(&here, 1, 11), (&here, 2, u64::MAX), (&there, 1, 0)] {
        let point = Some(PointId(point));
        good(store.save(&NewCheckpoint { point, ..new(execution, step) }));
    }
    good(store.save(&NewCheckpoint { values: &values, ..new(&here, 1) }));
    let point = Some(PointId(11));
    good(store.save(&NewCheckpoint { point, ..new(&here, 3) }));
    assert_eq!(good(other.points()), [0, 11, u64::MAX].map(PointId).into());
    assert!(good(other.delete(&key(&here, 1, 1))));
    assert_eq!(good(store.points()), [0, 11, u64::MAX].map(PointId).into());
    assert!(good(other.delete(&key(&here, 3, 1))));
    assert!(good(other.delete_execution(&there)));
    assert_eq!(good(store.points()), [PointId(u64::MAX)].into());
}
