//! Limits on disk usage, as a user sees them.

use serde_json::Value;

use crate::user::User;

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

fn make_points(user: &User, from: u64, count: u64) {
    for number in from..from + count {
        user.write("a.txt", &noise(number));
        user.succeeds(&["checkpoint"]);
    }
}

fn count_points(user: &User) -> usize {
    user.json(&["log", "-n", "1000"]).as_array().expect("a list").len()
}

#[test]
fn a_store_is_cleaned_up_to_its_limit() {
    let user = User::with(&[("a.txt", "first\n")]);
    make_points(&user, 0, 20);
    user.set(r#"{"maxStoreBytes": 708192}"#);
    let status = user.json(&["status"]);
    assert_eq!(status["maxStoreBytes"], 708_192);
    assert!(status["over"]["presentBytes"].as_u64().expect("a number") > 40_000, "{status}");
    let would = user.json(&["cleanup", "--dry-run"])["points"].as_array().map(Vec::len);
    let done = user.json(&["cleanup"]);
    assert_eq!(done["points"].as_u64(), would.map(|count| count as u64));
    assert_eq!(done.get("over"), None, "{done}");
    let du = user.json(&["du"]);
    assert!(du["storeBytes"].as_u64().expect("a number") <= 708_192, "{du}");
    assert_eq!((&du["over"], &du["maxHomeBytes"]), (&Value::Null, &Value::from(20_u64 << 30)));
    assert!((3..20).contains(&count_points(&user)));
    user.succeeds(&["verify"]);
}

#[test]
fn pinned_points_are_named_if_they_exceed_the_limit() {
    let user = User::with(&[("a.txt", "first\n")]);
    make_points(&user, 0, 3);
    user.takeback(&["pin", "@~1"]);
    make_points(&user, 3, 2);
    user.set(r#"{"maxStoreBytes": 100000}"#);
    let answer = user.succeeds(&["cleanup"]);
    let said = answer.out.lines().nth(1).expect("a second line");
    assert!(said.starts_with("Over maxStoreBytes (100.0 KB) by "), "{said}");
    assert!(said.contains(", pinned and labelled points 4"), "{said}");
    assert_eq!(count_points(&user), 2, "the pinned and the newest");
    for command in ["status", "du", "doctor"] {
        let answer = user.succeeds(&[command]);
        let told = answer.unwrapped();
        assert!(told.contains("over maxStoreBytes (100.0 KB) by "), "{command}: {told}");
        assert!(told.contains("recording continues"), "{command}: {told}");
    }
    make_points(&user, 5, 1);
    assert_eq!(count_points(&user), 3, "it does");
}

#[test]
fn a_store_over_its_limit_is_cleaned_up_by_the_next_recording() {
    let user = User::with(&[("a.txt", "first\n")]);
    make_points(&user, 0, 20);
    user.set(r#"{"maxStoreBytes": 700000}"#);
    make_points(&user, 20, 1);
    assert_eq!(count_points(&user), 21, "it was done within the hour");
    user.change_database("UPDATE meta SET last_cleanup = last_cleanup - 4000000");
    let begun = user.takeback(&["run", "--", "true"]);
    assert!(begun.err.starts_with("takeback: Removed "), "{begun:?}");
    assert!(count_points(&user) < 20);
}

#[test]
fn the_least_recently_used_store_is_cleaned_up_first() {
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
            user.succeeds(&["-C", at, "checkpoint"]);
        }
        // So that nothing is left in the inbox.
        user.succeeds(&["-C", at, "cleanup"]);
    }
    // So that SQLite's own unused space does not count.
    for at in [&gone, &old, &new] {
        user.succeeds(&["-C", at, "cleanup"]);
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
    user.succeeds(&["-C", &new, "cleanup"]).prints("are of folders that no longer exist");
    assert_eq!((count(&old), count(&new)), (1, 1));
    let workspaces = user.takeback(&["workspaces"]).out;
    assert!(workspaces.contains("over maxHomeBytes (1.0 KB) by"), "{workspaces}");
    assert_eq!(user.json(&["workspaces"])[0]["points"], 8, "it may have moved");
}

/// Runs a script with a home on a disk of 24 MB. `None` if this system does not let users mount one.
#[expect(clippy::print_stderr, reason = "a skipped test must show in the output")]
fn on_a_small_disk(user: &User, script: &str) -> Option<std::process::Output> {
    let alone = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-Urm", "sh", "-ec", script]).current_dir(user.work()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", user.home()).env("TAKEBACK", env!("CARGO_BIN_EXE_takeback"));
        command.output()
    };
    let mount = r#"mkdir -p "$HOME/.takeback" && mount -t tmpfs -o size=24m t "$HOME/.takeback""#;
    if !alone(mount).is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: no file system can be mounted here");
        return None;
    }
    Some(alone(&format!("{mount}\nchmod 700 \"$HOME/.takeback\"\n{script}")).expect("it runs"))
}

#[test]
fn a_clean_up_works_on_a_full_disk() {
    let user = User::with(&[("a.txt", "first\n")]);
    for number in 0..1500 {
        user.write(&format!("many/file-{number}"), &format!("{number}\n"));
    }
    let script = r#"
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
            head -c 1200000 /dev/urandom > big
            "$TAKEBACK" -q checkpoint
        done
        before=$(du -sk "$HOME/.takeback/workspaces" | cut -f1)
        dd if=/dev/zero of="$HOME/.takeback/fill" bs=4k 2>/dev/null || true
        dd if=/dev/zero of="$HOME/.takeback/fill2" bs=1 count=1 2>/dev/null && exit 70
        rm "$HOME/.takeback/fill2"
        TAKEBACK_POINTS_PER_SESSION=3 "$TAKEBACK" cleanup
        after=$(du -sk "$HOME/.takeback/workspaces" | cut -f1)
        echo "$before $after"
        "$TAKEBACK" verify
        "$TAKEBACK" -q checkpoint
        "$TAKEBACK" rewind @~3 --exact -y
    "#;
    let Some(output) = on_a_small_disk(&user, script) else { return };
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let sizes = out.lines().find_map(|line| {
        let (before, after) = line.split_once(' ')?;
        Some((before.parse::<u64>().ok()?, after.parse::<u64>().ok()?))
    });
    let (before, after) = sizes.expect("both sizes");
    assert!(after < before / 2, "{before} KB to {after} KB");
}

/// One process records turn by turn while another keeps cleaning up.
#[test]
fn a_recorder_loses_nothing_during_a_clean_up() {
    const TURNS: u64 = 25;
    let user = User::with(&[("a.txt", "first\n")]);
    let prompt = |n: u64| {
        format!(r#"{{"event":"prompt","session":"s","message":"m{n}","text":"turn {n}"}}"#)
    };
    user.record(&prompt(0));
    let done = std::sync::atomic::AtomicBool::new(false);
    let went = std::thread::scope(|scope| {
        let cleaner = scope.spawn(|| {
            let mut went = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let mut command = user.command(&["cleanup", "--json"]);
                command.env("TAKEBACK_MAX_STORE_BYTES", "500000");
                let answer = user.answer_of(command, "");
                assert_eq!(answer.code, 0, "{answer:?}");
                let told: Value = serde_json::from_str(&answer.out).expect("JSON");
                went += told["points"].as_u64().expect("a number");
            }
            went
        });
        for n in 1..=TURNS {
            let mut command = user.command(&["record"]);
            command.env("TAKEBACK_HOOK_DEADLINE_MS", "60000");
            let call = |event: &str| {
                format!(r#"{{"event":"{event}","session":"s","call":"c{n}","tool":"Bash"}}"#)
            };
            let answer = user.answer_of(command, &[prompt(n), call("before_tool")].join("\n"));
            assert_eq!(answer.code, 0, "{answer:?}");
            // One new text, and one from an earlier turn that may be collected right now.
            user.write("new.txt", &noise(n));
            user.write("old.txt", &noise(n % 3));
            let mut command = user.command(&["record"]);
            command.env("TAKEBACK_HOOK_DEADLINE_MS", "60000");
            let end = r#"{"event":"turn_end","session":"s"}"#.to_owned();
            let answer = user.answer_of(command, &[call("after_tool"), end].join("\n"));
            assert_eq!(answer.code, 0, "{answer:?}");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        cleaner.join().expect("it cleaned up")
    });
    assert!(went > 5, "{went}");
    user.succeeds(&["verify"]);
    let log = user.json(&["log", "-n", "100"]);
    assert_eq!(log[0]["description"], format!("turn {TURNS}"));
    let kept = log.as_array().expect("a list");
    assert!(kept.iter().all(|point| point["notCaptured"] == 0), "{log}");
    for point in kept {
        let id = point["id"].as_str().expect("an id");
        assert_eq!(user.takeback(&["rewind", id, "--exact", "-y"]).code, 0, "{point}");
        let text = point["description"].as_str().expect("a text");
        let turn: u64 = text.trim_start_matches("turn ").parse().expect("a number");
        assert!(user.read("new.txt") == noise(turn - 1), "{text}");
        assert!(user.read("old.txt") == noise((turn - 1) % 3), "{text}");
    }
}
