//! A process that cannot start threads, as under a process limit, works without them.

use crate::user::{Answer, User};

/// `takeback ARGS`, where neither threads nor processes can be started.
fn without_threads(user: &User, args: &[&str]) -> Answer {
    user.with_failing("clone,clone3,vfork,fork:error=EAGAIN", None, args)
}

/// Enough files for a scan, a rewind and a clean-up to use several threads.
fn many_files(user: &User, text: &str) {
    for n in 0..120 {
        user.write(&format!("folder-{}/file-{n}.txt", n % 7), &format!("{text} {n}\n"));
    }
}

#[test]
fn files_are_recorded_and_taken_back_without_threads() {
    let user = User::new();
    many_files(&user, "before");
    assert_eq!(without_threads(&user, &["checkpoint", "first"]).code, 0);
    let before = user.tree();
    assert_eq!(
        user.takeback(&[
            "run",
            "--",
            "sh",
            "-c",
            "rm -r folder-1; for f in folder-2/*; do echo x >> $f; done; touch new"
        ])
        .code,
        0
    );
    let after = user.tree();
    assert_ne!(before, after);
    for args in
        [&["status"][..], &["log"], &["show", "first"], &["diff", "first"], &["verify"], &["du"]]
    {
        let answer = without_threads(&user, args);
        assert_eq!(answer.code, 0, "{args:?}: {answer:?}");
        assert_eq!(answer.err, "", "{args:?}");
    }
    let rewound = without_threads(&user, &["rewind", "first", "-y"]);
    assert_eq!(rewound.code, 0, "{rewound:?}");
    assert_eq!(user.tree(), before);
    let undone = without_threads(&user, &["undo", "-y"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(user.tree(), after);
    let cleaned = without_threads(&user, &["cleanup"]);
    assert_eq!(cleaned.code, 0, "{cleaned:?}");
    user.succeeds(&["verify"]);
}

#[test]
fn a_hook_records_without_threads() {
    let user = User::new();
    many_files(&user, "before");
    let given = |event: &str, rest: &str| {
        let work = user.work();
        format!(
            r#"{{"session_id": "s", "cwd": "{}", "hook_event_name": "{event}"{rest}}}"#,
            work.display()
        )
    };
    let tool = r#", "tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "make"}"#;
    let events = [
        given("UserPromptSubmit", r#", "prompt": "go""#),
        given("PreToolUse", tool),
        given("PostToolUse", tool),
    ];
    for event in events {
        if event.contains("PostToolUse") {
            user.write("made.txt", "made\n");
        }
        let answer = user.with_failing_and_input(
            "clone,clone3,vfork,fork:error=EAGAIN",
            &["hook", "--agent", "claude"],
            &event,
        );
        assert_eq!((answer.code, answer.out.as_str(), answer.err.as_str()), (0, "", ""));
    }
    let rewound = user.json(&["rewind", "@", "-y"]);
    assert_eq!(rewound["deletedFiles"], serde_json::json!(["made.txt"]), "{rewound}");
}

#[test]
fn commands_that_need_a_process_report_the_failure() {
    let user = User::new();
    many_files(&user, "before");
    let ran = without_threads(&user, &["run", "--", "touch", "made"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.err.contains("touch") && !ran.err.contains("panicked"), "{ran:?}");
    for args in
        [&["doctor"][..], &["serve", "--ensure"], &["serve", "--stdio"], &["chat"], &["demo"]]
    {
        let answer = without_threads(&user, args);
        assert!(!answer.err.contains("panicked"), "{args:?}: {answer:?}");
    }
}
