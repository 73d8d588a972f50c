//! The events of a turn: text and calls, permission, interrupt, failure, and the end of the program.

use serde_json::json;
use takeback_agents::{
    AgentError, ChatAgent as _, ChatEvent, Decision, NativeFilesError, RestoreMode, TurnResult,
};
use takeback_core::rewind::RewindRequest;

use crate::lab::{LabOptions, lab, run, trusting};

/// Describes the events of calls, without their ids and positions in the log.
fn calls(events: &[ChatEvent]) -> Vec<String> {
    let mut lines = Vec::new();
    for event in events {
        match event {
            ChatEvent::Tool { title, .. } => lines.push(title.clone()),
            ChatEvent::ToolEnd { ok, line, changes, .. } => {
                let changed = changes.map_or(0, |(from, to)| to.0 - from.0);
                lines.push(format!("{} {line} ({changed})", if *ok { "ok" } else { "failed" }));
            }
            _ => {}
        }
    }
    lines
}

fn text(events: &[ChatEvent]) -> String {
    let pieces = events.iter().map(|event| match event {
        ChatEvent::Text(text) => text.as_str(),
        ChatEvent::TextEnd => "|",
        _ => "",
    });
    pieces.collect()
}

#[test]
fn write_and_shell_are_reported_and_rewound() {
    let Some(mut lab) = trusting() else { return };
    lab.sandbox.write("mine.txt", "mine\n");
    let before = lab.sandbox.tree();
    let script = json!([
        ["First.", lab.write("utils.ts", "add\n")[0]],
        run("echo shell > shell.txt; echo said; rm mine.txt"),
        run("echo no >&2; exit 3"),
        lab.edit("nowhere.ts", "a", "b"),
        "All done."
    ]);
    let (message, events) = lab.turn("one", &script);
    let expected = [
        "Write utils.ts",
        "ok created (1)",
        "$ echo shell > shell.txt; echo said; rm mine.txt",
        "ok said (2)",
        "$ echo no >&2; exit 3",
        "failed exit 3: no (0)",
        "Edit nowhere.ts",
    ];
    let calls = calls(&events);
    assert_eq!(calls[..7], expected, "{calls:#?}");
    assert!(calls[7].starts_with("failed File does not exist."), "{calls:#?}");
    assert_eq!(calls.len(), 8);
    assert_eq!(text(&events), "First.|All done.|");
    let prompted =
        events.iter().filter(|event| matches!(event, ChatEvent::PromptAccepted { .. })).count();
    assert_eq!(prompted, 1, "{events:#?}");
    let point = lab.point_of(&message);
    let told = events.iter().any(|event| {
        matches!(event, ChatEvent::PromptAccepted { message: m, session: Some(_), point: Some(p) }
            if *m == message && p.id == point)
    });
    assert!(told, "{events:#?}");
    assert!(matches!(events[0], ChatEvent::Ready { .. }), "{events:#?}");
    assert!(lab.sandbox.exists("shell.txt") && !lab.sandbox.exists("mine.txt"));

    let receipt = lab.rewind_to(&message);
    assert!(receipt.is_whole(), "{receipt:#?}");
    assert_eq!(lab.sandbox.tree(), before);
}

#[test]
fn each_prompt_has_a_point_and_turns_come_one_at_a_time() {
    let Some(mut lab) = trusting() else { return };
    let (first, _) = lab.turn("one", &json!([lab.write("a.txt", "1\n"), "ok"]));
    let second = lab.prompt("two", &json!([lab.edit("a.txt", "1", "2"), "ok"]));
    let busy = lab.claude.prompt("00000000-0000-4000-8000-000000000099", "three");
    assert!(matches!(busy, Err(AgentError::Busy)), "{busy:?}");
    let cut = lab.claude.cut(&first);
    assert!(matches!(cut, Err(AgentError::Busy)), "{cut:?}");
    lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(lab.sandbox.read("a.txt"), "2\n");
    lab.rewind_to(&second);
    assert_eq!(lab.sandbox.read("a.txt"), "1\n");
    lab.rewind_to(&first);
    assert!(!lab.sandbox.exists("a.txt"));
}

#[test]
fn calls_that_need_permission_are_asked_for() {
    let Some(lab) = lab(&LabOptions::default()) else { return };
    lab.prompt("one", &json!([lab.write("a.txt", "1\n"), run("touch b.txt; exit 0"), "ok"]));
    let (asked, _) = lab.asked();
    assert_eq!((asked.title.as_str(), asked.detail.as_str()), ("Write a.txt", "1\n"));
    assert!(!lab.sandbox.exists("a.txt"));
    lab.claude.decide(&asked.request, Decision::Allow).unwrap();
    let (shell, events) = lab.asked();
    assert_eq!(calls(&events), ["ok created (1)", "$ touch b.txt; exit 0"]);
    assert_eq!(shell.title, "$ touch b.txt; exit 0");
    lab.claude.decide(&shell.request, Decision::Deny("not that".to_owned())).unwrap();
    let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(calls(&events), ["failed not allowed (0)"]);
    assert!(lab.sandbox.exists("a.txt") && !lab.sandbox.exists("b.txt"));
    let again = lab.claude.decide(&shell.request, Decision::Allow);
    assert!(matches!(again, Err(AgentError::Refused(_))), "{again:?}");
    let request = &lab.model.asked().last().unwrap()["messages"].to_string();
    assert!(request.contains("not that"), "the model hears why");
}

#[test]
fn always_allowed_calls_are_not_asked_again_inside_the_folder() {
    let Some(lab) = lab(&LabOptions::default()) else { return };
    std::os::unix::fs::symlink(lab.sandbox.outside(), lab.sandbox.at("link")).unwrap();
    let writes = [lab.write("a.txt", "1\n"), lab.write("b.txt", "2\n")];
    lab.prompt("one", &json!([writes[0], writes[1], lab.write("link/c.txt", "3\n"), "ok"]));
    let (asked, _) = lab.asked();
    lab.claude.decide(&asked.request, Decision::AllowAlways).unwrap();
    let (asked, _) = lab.asked();
    assert_eq!((asked.title.as_str(), asked.detail.as_str()), ("Write link/c.txt", "3\n"));
    assert_eq!(lab.sandbox.read("b.txt"), "2\n");
    lab.claude.decide(&asked.request, Decision::Deny("no".to_owned())).unwrap();
    lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert!(!lab.sandbox.outside().join("c.txt").exists());
}

#[test]
fn a_users_edit_during_a_permission_question_stays() {
    let Some(mut lab) = lab(&LabOptions::default()) else { return };
    let message = lab.prompt("one", &json!([run("echo agent > agent.txt; exit 0"), "ok"]));
    let (asked, _) = lab.asked();
    lab.sandbox.write("person.txt", "person\n");
    lab.claude.decide(&asked.request, Decision::Allow).unwrap();
    lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert!(lab.sandbox.exists("agent.txt"));
    let receipt = lab.rewind_to(&message);
    assert!(!lab.sandbox.exists("agent.txt"), "{receipt:#?}");
    assert_eq!(lab.sandbox.read("person.txt"), "person\n");
}

#[test]
fn an_interrupted_turn_ends_and_the_next_one_runs() {
    let Some(mut lab) = trusting() else { return };
    lab.claude.interrupt().unwrap();
    let script = json!([run("echo 1 > one.txt; sleep 300; echo 2 > two.txt"), "never"]);
    let message = lab.prompt("one", &script);
    lab.until(|event| matches!(event, ChatEvent::Tool { .. }));
    while !lab.sandbox.exists("one.txt") {
        std::thread::yield_now();
    }
    lab.claude.interrupt().unwrap();
    let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(events.last(), Some(&ChatEvent::TurnEnd(TurnResult::Interrupted)));
    let ChatEvent::ToolEnd { ok: false, changes: Some((from, to)), .. } = &events[0] else {
        panic!("{events:#?}")
    };
    assert_eq!(to.0 - from.0, 1, "one.txt");
    lab.turn("two", &json!(["fine"]));
    lab.rewind_to(&message);
    assert!(!lab.sandbox.exists("one.txt") && !lab.sandbox.exists("two.txt"));
}

#[test]
fn a_turn_can_be_interrupted_before_it_starts_and_while_it_asks() {
    let Some(lab) = lab(&LabOptions::default()) else { return };
    for number in 0..2 {
        lab.prompt("one", &json!([lab.write("a.txt", "1\n"), "never"]));
        if number == 1 {
            lab.asked();
        }
        lab.claude.interrupt().unwrap();
        let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
        assert_eq!(
            events.last(),
            Some(&ChatEvent::TurnEnd(TurnResult::Interrupted)),
            "{events:#?}"
        );
    }
    lab.turn("two", &json!(["fine"]));
    assert!(!lab.sandbox.exists("a.txt"));
}

#[test]
fn a_model_that_refuses_fails_the_turn_and_not_the_session() {
    let Some(lab) = trusting() else { return };
    // The model answers a script that it cannot read with an error of its API.
    lab.claude.prompt("00000000-0000-4000-8000-000000000099", "<<LAB [ LAB>>").unwrap();
    let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert!(
        matches!(events.last(), Some(ChatEvent::TurnEnd(TurnResult::Failed(_)))),
        "{events:#?}"
    );
    lab.turn("two", &json!(["fine"]));
}

#[test]
fn a_killed_program_ends_and_its_changes_can_be_rewound() {
    let Some(mut lab) = trusting() else { return };
    lab.turn("zero", &json!(["hello"]));
    let subagent = json!([run("echo $$ > one.txt; exec sleep 60"), "never"]);
    let task = json!([lab.task("a job", &subagent)]);
    let script = json!([lab.write("a.txt", "1\n"), task, "never"]);
    let message = lab.prompt("one", &script);
    while !lab.sandbox.exists("one.txt") || lab.sandbox.read("one.txt").is_empty() {
        std::thread::yield_now();
    }
    assert!(lab.claude.is_live());
    let pid = rustix::process::Pid::from_raw(lab.pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let events = lab.until(|event| matches!(event, ChatEvent::Ended(_)));
    let [.., ChatEvent::TurnEnd(TurnResult::Failed(_)), ChatEvent::Ended(why)] = events.as_slice()
    else {
        panic!("{events:#?}")
    };
    assert!(!why.is_empty());
    assert!(!lab.claude.is_live());
    let shell = format!("/proc/{}/environ", lab.sandbox.read("one.txt").trim());
    assert_eq!(std::fs::read(shell).unwrap_or_default(), b"", "its command has ended with it");
    let rewound = lab.claude.rewind_files(&message, RestoreMode::Apply);
    assert!(matches!(rewound, Err(NativeFilesError::Agent(AgentError::Ended(_)))), "{rewound:?}");
    let prompt = lab.claude.prompt("00000000-0000-4000-8000-000000000099", "x");
    assert!(matches!(prompt, Err(AgentError::Ended(_))), "{prompt:?}");
    let sessions = lab.sandbox.workspace.store.sessions().unwrap();
    assert_eq!(sessions.len(), 2, "{sessions:#?}");
    assert!(sessions.iter().all(|session| session.open_turn.is_none()), "{sessions:#?}");
    assert!(lab.sandbox.workspace.store.live_calls().unwrap().is_empty());

    let receipt = lab.rewind_to(&message);
    assert!(receipt.is_whole(), "{receipt:#?}");
    assert!(!lab.sandbox.exists("a.txt") && !lab.sandbox.exists("one.txt"));
    lab.claude.cut(&message).unwrap();
    assert!(lab.claude.is_live());
    lab.turn("again", &json!([lab.write("b.txt", "2\n"), "ok"]));
    assert_eq!(lab.sandbox.read("b.txt"), "2\n");
}

#[test]
fn a_background_command_is_the_agents_until_it_ends() {
    let Some(mut lab) = trusting() else { return };
    let input = json!({ "command": "until [ -e go ]; do sleep 0.1; done; echo x > late.txt",
        "run_in_background": true });
    let (message, events) =
        lab.turn("one", &json!([[{ "name": "Bash", "input": input }], "later"]));
    assert!(calls(&events)[1].starts_with("ok runs in the background"), "{events:#?}");
    lab.sandbox.write("go", "");
    let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert!(events.contains(&ChatEvent::TurnBegin), "{events:#?}");
    assert!(lab.sandbox.exists("late.txt"));
    let point = lab.point_of(&message);
    lab.sandbox.reopen();
    let request = RewindRequest {
        ambiguous: takeback_core::rewind::AmbiguousPolicy::Take,
        ..RewindRequest::new(takeback_core::rewind::Target::Point(point))
    };
    lab.sandbox.rewind(&request).unwrap();
    assert!(!lab.sandbox.exists("late.txt"));
    lab.sandbox.write("after.txt", "a person's\n");
    takeback_core::look_around(&mut lab.sandbox.workspace).unwrap();
    let changes = lab.sandbox.workspace.store.changes_after(takeback_store::Seq(0)).unwrap();
    let mine = changes.iter().find(|change| change.path == takeback_testkit::path("after.txt"));
    assert_eq!(mine.unwrap().author, takeback_store::Author::Human);
}

#[test]
fn closing_in_the_middle_of_a_turn_ends_the_program_and_the_session() {
    let Some(mut lab) = trusting() else { return };
    let subagent = json!([run("echo 1 > one.txt; exec sleep 60"), "never"]);
    let message = lab.prompt("one", &json!([[lab.task("a job", &subagent)], "never"]));
    while !lab.sandbox.exists("one.txt") {
        std::thread::yield_now();
    }
    lab.claude.close();
    assert!(!lab.claude.is_live());
    let sessions = lab.sandbox.workspace.store.sessions().unwrap();
    assert_eq!(sessions.len(), 2);
    let is_over = |session: &takeback_store::Session| {
        session.open_turn.is_none() && session.ended_at.is_some()
    };
    assert!(sessions.iter().all(is_over), "{sessions:#?}");
    let late = lab.claude.prompt("00000000-0000-4000-8000-000000000099", "x");
    assert!(matches!(late, Err(AgentError::Ended(_))), "{late:?}");
    lab.rewind_to(&message);
    assert!(!lab.sandbox.exists("one.txt"));
}

#[test]
fn a_background_subagent_runs_until_it_is_interrupted() {
    let Some(lab) = trusting() else { return };
    let command = "echo 1 > one.txt; until [ -e go ]; do sleep 0.1; done; echo 2 > two.txt";
    let mut task = lab.task("a job", &json!([run(command), "never"]));
    task["input"]["run_in_background"] = json!(true);
    let (_, events) = lab.turn("one", &json!([[task], "later"]));
    assert!(!calls(&events).contains(&"failed interrupted (0)".to_owned()), "{events:#?}");
    while !lab.sandbox.exists("one.txt") {
        std::thread::yield_now();
    }
    lab.claude.interrupt().unwrap();
    let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(events.last(), Some(&ChatEvent::TurnEnd(TurnResult::Interrupted)));
    let ended = |event: &&ChatEvent| matches!(event, ChatEvent::ToolEnd { ok: false, .. });
    assert_eq!(events.iter().filter(ended).count(), 1, "{events:#?}");
    assert!(lab.claude.is_live(), "it was not killed for that");
    assert!(lab.sandbox.workspace.store.live_calls().unwrap().is_empty());
    lab.sandbox.write("go", "");
    lab.claude.interrupt().unwrap();
    let events = lab.until(|event| matches!(event, ChatEvent::TurnEnd(_)));
    assert_eq!(
        events.last(),
        Some(&ChatEvent::TurnEnd(TurnResult::Interrupted)),
        "also without a turn"
    );
    lab.claude.close();
    assert!(!lab.sandbox.exists("two.txt"));
}
