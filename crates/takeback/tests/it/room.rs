//! What a user sees of the limits on disk.

use serde_json::Value;

use crate::home::User;

/// 50,000 bytes that do not compress, as text.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + (state >> 24) as u8 % 95)
    });
    letters.take(50_000).collect()
}

fn points(user: &User, from: u64, count: u64) {
    for number in from..from + count {
        user.write("a.txt", &noise(number));
        assert_eq!(user.takeback(&["checkpoint"]).code, 0);
    }
}

fn listed(user: &User) -> usize {
    user.json(&["log", "-n", "1000"]).as_array().expect("a list").len()
}

#[test]
fn a_store_is_cleaned_up_to_its_limit() {
    let user = User::with(&[("a.txt", "first\n")]);
    points(&user, 0, 20);
    user.set(r#"{"maxStoreBytes": 700000}"#);
    let status = user.json(&["status"]);
    assert_eq!(status["maxStoreBytes"], 700_000);
    assert!(status["over"]["presentBytes"].as_u64().expect("a number") > 40_000, "{status}");
    let would = user.json(&["cleanup", "--dry-run"])["points"].as_array().map(Vec::len);
    let done = user.json(&["cleanup"]);
    assert_eq!(done["points"].as_u64(), would.map(|count| count as u64));
    assert_eq!(done.get("over"), None, "{done}");
    let du = user.json(&["du"]);
    assert!(du["storeBytes"].as_u64().expect("a number") <= 700_000, "{du}");
    assert_eq!((&du["over"], &du["maxHomeBytes"]), (&Value::Null, &Value::from(20_u64 << 30)));
    assert!((3..20).contains(&listed(&user)));
    assert_eq!(user.takeback(&["verify"]).code, 0);
}

#[test]
fn what_is_pinned_is_said_to_be_in_the_way() {
    let user = User::with(&[("a.txt", "first\n")]);
    points(&user, 0, 3);
    user.takeback(&["pin", "@~1"]);
    points(&user, 3, 2);
    user.set(r#"{"maxStoreBytes": 100000}"#);
    let answer = user.takeback(&["cleanup"]);
    assert_eq!(answer.code, 0);
    let said = answer.out.lines().nth(1).expect("a second line");
    assert!(said.starts_with("Over maxStoreBytes (100.0 KB) by "), "{said}");
    assert!(said.contains(", points with a pin or a label 4"), "{said}");
    assert_eq!(listed(&user), 2, "the pinned and the newest");
    for command in ["status", "du", "doctor"] {
        let answer = user.takeback(&[command]);
        assert_eq!(answer.code, 0);
        let told = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("over maxStoreBytes (100.0 KB) by "), "{command}: {told}");
        assert!(told.contains("recording goes on"), "{command}: {told}");
    }
    points(&user, 5, 1);
    assert_eq!(listed(&user), 3, "it does");
}

#[test]
fn too_large_a_store_is_cleaned_up_when_something_is_begun() {
    let user = User::with(&[("a.txt", "first\n")]);
    points(&user, 0, 20);
    user.set(r#"{"maxStoreBytes": 700000}"#);
    points(&user, 20, 1);
    assert_eq!(listed(&user), 21, "it was done within the hour");
    let database = rusqlite::Connection::open(user.store().join("timeline.db")).expect("it opens");
    let earlier = "UPDATE meta SET last_cleanup = last_cleanup - 4000000";
    database.execute(earlier, []).expect("it is done");
    drop(database);
    let begun = user.takeback(&["run", "--", "true"]);
    assert!(begun.err.starts_with("takeback: Removed "), "{begun:?}");
    assert!(listed(&user) < 20);
}

#[test]
fn the_store_used_longest_ago_gives_way_for_the_home() {
    let user = User::new();
    let folder = |name: &str| {
        let folder = user.work().join(name);
        std::fs::create_dir_all(folder.join(".git")).expect("a folder");
        folder.to_str().expect("utf-8").to_owned()
    };
    let (old, new, gone) = (folder("old"), folder("new"), folder("gone"));
    for (at, seed) in [(&gone, 0), (&old, 100), (&new, 200)] {
        for number in 0..8 {
            user.write(&format!("{at}/a.txt"), &noise(seed + number));
            assert_eq!(user.takeback(&["-C", at, "checkpoint"]).code, 0);
        }
    }
    std::fs::remove_dir_all(&gone).expect("it goes");
    let count = |at: &str| user.json(&["-C", at, "log"]).as_array().expect("a list").len();
    let stores = || {
        let du = user.json(&["-C", &new, "du"]);
        du["homeBytes"].as_u64().expect("a number")
    };
    let all = stores();
    user.set(&format!(r#"{{"maxHomeBytes": {}}}"#, all - 50_000));
    let done = user.json(&["-C", &new, "cleanup"]);
    let told = done["home"]["workspaces"].as_array().expect("a list");
    assert_eq!(told.len(), 1, "{done}");
    assert!(told[0]["root"].as_str().expect("a path").ends_with("/old"), "{done}");
    assert!(count(&old) < 8 && count(&new) == 8, "{done}");
    assert!(stores() < all - 50_000);

    user.set(r#"{"maxHomeBytes": 1000}"#);
    let answer = user.takeback(&["-C", &new, "cleanup"]);
    assert_eq!(answer.code, 0);
    assert!(answer.out.contains("are of folders that are not there any more"), "{answer:?}");
    assert_eq!((count(&old), count(&new)), (1, 1));
    let workspaces = user.takeback(&["workspaces"]).out;
    assert!(workspaces.contains("over maxHomeBytes (1.0 KB) by"), "{workspaces}");
    assert_eq!(user.json(&["workspaces"])[0]["points"], 8, "nobody knows whether it moved");
}
