//! A process that gets no threads, as under a limit on processes, works on without.

use crate::user::{Answer, User};

/// `takeback ARGS`, where the system starts neither threads nor processes.
fn alone(user: &User, args: &[&str]) -> Answer {
    user.with_failing("clone,clone3,vfork,fork:error=EAGAIN", None, args)
}

/// Enough files that a scan, a rewind and a clean-up share them out.
fn many(user: &User, text: &str) {
    for n in 0..120 {
        user.write(&format!("folder-{}/file-{n}.txt", n % 7), &format!("{text} {n}\n"));
    }
}

#[test]
fn files_are_recorded_and_taken_back_without_threads() {
    let user = User::new();
    many(&user, "before");
    assert_eq!(alone(&user, &["checkpoint", "first"]).code, 0);
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
        let answer = alone(&user, args);
        assert_eq!(answer.code, 0, "{args:?}: {answer:?}");
        assert_eq!(answer.err, "", "{args:?}");
    }
    let rewound = alone(&user, &["rewind", "first", "-y"]);
    assert_eq!(rewound.code, 0, "{rewound:?}");
    assert_eq!(user.tree(), before);
    let undone = alone(&user, &["undo", "-y"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(user.tree(), after);
    let cleaned = alone(&user, &["cleanup"]);
    assert_eq!(cleaned.code, 0, "{cleaned:?}");
    user.succeeds(&["verify"]);
}

#[test]
fn a_hook_records_without_threads() {
    let user = User::new();
    many(&user, "before");
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
fn what_needs_a_process_says_that_there_is_none() {
    let user = User::new();
    many(&user, "before");
    let ran = alone(&user, &["run", "--", "touch", "made"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.err.contains("touch") && !ran.err.contains("panicked"), "{ran:?}");
    for args in
        [&["doctor"][..], &["serve", "--ensure"], &["serve", "--stdio"], &["chat"], &["demo"]]
    {
        let answer = alone(&user, args);
        assert!(!answer.err.contains("panicked"), "{args:?}: {answer:?}");
    }
}
