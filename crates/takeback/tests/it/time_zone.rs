//! Times are shown and parsed in the user's time zone.

use std::process::Command;

use crate::user::{Answer, User};

/// Eight hours ahead of UTC, all year.
const SHANGHAI: &str = "Asia/Shanghai";

fn in_zone(user: &User, zone: &str, args: &[&str]) -> Answer {
    let mut command = user.command(args);
    command.env("TZ", zone);
    user.answer_of(command, "")
}

/// The newest point's time, as `date` formats it in a zone such as `CST-8`.
fn newest_point(user: &User, zone: &str, format: &str) -> String {
    let log = user.json(&["log"]);
    let at = log[0]["createdAt"].as_str().expect("a time").to_owned();
    let output = Command::new("date").env("TZ", zone).args(["-d", &at, format]).output();
    String::from_utf8(output.expect("date runs").stdout).expect("text").trim_end().to_owned()
}

fn with_point() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint", "one"]);
    user
}

#[test]
fn a_named_zone_applies_to_every_time() {
    let user = with_point();
    let there = newest_point(&user, "CST-8", "+%H:%M:%S");
    let shown = in_zone(&user, SHANGHAI, &["show", "one"]);
    assert!(shown.out.contains(&format!("made     {there} (")), "{there}: {shown:?}");
    assert_eq!(shown.err, "");
    // The current minute there, which in UTC was 16 hours ago.
    let minute = newest_point(&user, "CST-8", "+%H:%M");
    for args in [["show", &minute], ["diff", &minute], ["unpin", &minute]] {
        let answer = in_zone(&user, SHANGHAI, &args);
        assert_eq!(answer.code, 0, "{args:?}: {answer:?}");
    }
    user.write("a.txt", "two\n");
    let back = in_zone(&user, SHANGHAI, &["rewind", &minute, "--exact", "-y"]);
    assert_eq!((back.code, user.read("a.txt").as_str()), (0, "one\n"), "{back:?}");
    let not_there = in_zone(&user, "UTC", &["show", &minute]);
    assert_eq!(not_there.code, 1, "{not_there:?}");
}

#[test]
fn a_point_without_a_description_is_named_by_local_time() {
    let user = with_point();
    let event =
        r#"{"event":"before_tool","session":"s","call":"1","tool":"Edit","paths":["a.txt"]}"#;
    user.record(event);
    let there = newest_point(&user, "CST-8", "+%H:%M:%S");
    for args in [&["log"][..], &["show", "@"]] {
        let told = in_zone(&user, SHANGHAI, args);
        assert!(told.out.contains(&format!("Checkpoint at {there}")), "{there}: {told:?}");
    }
}

#[test]
fn named_zones_work_without_zone_files() {
    let user = with_point();
    let there = newest_point(&user, "CST-8", "+%H:%M:%S");
    let mut command =
        user.failing("openat:error=ENOENT", Some("/usr/share/zoneinfo"), &["show", "one"]);
    command.env("TZ", SHANGHAI);
    let shown = user.answer_of(command, "");
    assert!(shown.out.contains(&format!("made     {there} (")), "{there}: {shown:?}");
    // The same where only some zones are installed.
    let mut command = user.command(&["show", "one"]);
    std::fs::create_dir_all(user.home().join("zones/Etc")).expect("a folder");
    std::fs::copy("/usr/share/zoneinfo/Etc/UTC", user.home().join("zones/Etc/UTC"))
        .expect("a zone");
    command.env("TZ", SHANGHAI).env("TZDIR", user.home().join("zones"));
    let shown = user.answer_of(command, "");
    assert!(shown.out.contains(&format!("made     {there} (")), "{there}: {shown:?}");
}

#[test]
fn an_unknown_zone_is_reported_and_times_are_in_utc() {
    let user = with_point();
    let there = newest_point(&user, "UTC", "+%H:%M:%S");
    for zone in ["Mars/Olympus", ":Mars/Olympus"] {
        let shown = in_zone(&user, zone, &["show", "one"]);
        assert!(shown.out.contains(&format!("made     {there} UTC (")), "{there}: {shown:?}");
        assert_eq!(
            shown.err,
            format!("takeback: TZ={zone} is not a known time zone; times are in UTC\n")
        );
        let minute = newest_point(&user, "UTC", "+%H:%M");
        user.write("a.txt", zone);
        let back = in_zone(&user, zone, &["rewind", &minute, "--exact", "--dry-run"]);
        assert_eq!(back.code, 0, "{back:?}");
        assert!(back.err.contains("times are in UTC"), "{back:?}");
    }
    for zone in ["UTC", "", "Etc/UTC"] {
        let shown = in_zone(&user, zone, &["show", "one"]);
        assert!(shown.out.contains(&format!("made     {there} (")), "{there}: {shown:?}");
        assert_eq!(shown.err, "");
    }
}

#[test]
fn a_command_without_times_reads_no_zone_files() {
    let user = with_point();
    let trace = user.home().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=file", "-o"]);
    command.arg(&trace).arg(env!("CARGO_BIN_EXE_takeback")).args(["checkpoint", "two"]);
    command.current_dir(user.work()).env("HOME", user.home()).env("TZ", SHANGHAI);
    assert_eq!(user.answer_of(command, "").code, 0);
    let calls = std::fs::read_to_string(trace).expect("a trace");
    assert!(calls.contains("timeline.db"), "{calls}");
    assert_eq!(calls.lines().find(|line| line.contains("zoneinfo")), None);
}
