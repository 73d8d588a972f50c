//! A rewind needs the user's permission, and does only what they were asked about.

use std::fs;

use serde_json::{Value, json};

use crate::client::{Client, User, text};

fn can_ask() -> Value {
    json!({"elicitation": {}})
}

fn worked() -> Vec<(String, String)> {
    files(&[("a.txt", "one\nTWO\n"), ("b.txt", "new\n"), ("c.txt", "mine\n")])
}

fn rewound() -> Vec<(String, String)> {
    files(&[("a.txt", "one\ntwo\n"), ("c.txt", "mine\n")])
}

fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_client_without_forms_is_told_what_the_user_can_do() {
    let user = User::with_work();
    let mut client = user.initialized(&json!({"sampling": {}}));
    let refused = client.call("rewind", &json!({"point": "first"}));
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("`takeback rewind "), "{refused}");
    assert!(text(&refused).contains("allowAgentRewind"), "{refused}");
    let mut stateless = user.connect();
    stateless.stateless(&json!({"elicitation": {"url": {}}}));
    let refused = stateless.call("rewind", &json!({"point": "first"}));
    assert_eq!(refused["isError"], true);
    assert_eq!(user.files(), worked());
}

#[test]
fn an_accepted_question_is_carried_out_and_can_be_undone() {
    let user = User::with_work();
    let mut client = user.initialized(&can_ask());
    let (question, id) = client.call_and_be_asked("rewind", &json!({"point": "first"}));
    assert!(question.ends_with("\n\nThe point is called:\n“first”"), "{question}");
    assert!(question.contains("Would restore (1):\n- a.txt\n"), "{question}");
    assert!(question.contains("Would keep (1):\n- c.txt: changed by you\n"), "{question}");
    assert_eq!(user.files(), worked(), "not before the answer");
    client.answer(&id, "accept");
    let done = client.hear()["result"].clone();
    assert_eq!(done["structuredContent"]["outcome"], "done", "{done}");
    assert_eq!(done["structuredContent"]["receipt"]["success"], true);
    assert_eq!(done["structuredContent"]["receipt"]["deletedFiles"], json!(["b.txt"]));
    assert!(text(&done).contains("Done and verified on disk."), "{done}");
    assert_eq!(user.files(), rewound());

    let nothing = client.call("rewind", &json!({"point": "first"}));
    assert_eq!(
        nothing["structuredContent"]["outcome"], "nothingToDo",
        "no question is needed for that"
    );
    user.takeback(&["undo", "-y"], "");
    assert_eq!(user.files(), worked());
}

#[test]
fn declined_and_cancelled_do_nothing() {
    let user = User::with_work();
    let mut client = user.initialized(&can_ask());
    for (action, outcome, said) in [
        ("decline", "declined", "The user declined. Nothing was changed."),
        ("cancel", "cancelled", "The question was not answered. Nothing was changed."),
    ] {
        let (_, id) = client.call_and_be_asked("rewind", &json!({"point": "first"}));
        client.answer(&id, action);
        let done = client.hear()["result"].clone();
        assert_eq!(done["structuredContent"]["outcome"], outcome);
        assert!(text(&done).starts_with(said), "{done}");
    }
    let (_, id) = client.call_and_be_asked("rewind", &json!({"point": "first"}));
    let error = json!({"code": -32603, "message": "no window"});
    client.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    let done = client.hear()["result"].clone();
    assert_eq!(done["isError"], true);
    assert!(text(&done).ends_with("Nothing was changed."), "{done}");
    assert_eq!(user.files(), worked());
}

#[test]
fn another_plan_is_another_question() {
    let user = User::with_work();
    let mut client = user.initialized(&can_ask());
    let (_, id) = client.call_and_be_asked("rewind", &json!({"point": "first"}));
    user.write("b.txt", "new, and by the user\n");
    client.answer(&id, "accept");
    let (again, id) = client.asked();
    assert!(again.starts_with("Something changed in the meantime."), "{again}");
    assert_ne!(user.files(), rewound(), "the first answer was to another question");
    client.answer(&id, "accept");
    let done = client.hear()["result"].clone();
    assert_eq!(done["structuredContent"]["outcome"], "done", "{done}");
    let left = [("a.txt", "one\ntwo\n"), ("b.txt", "new, and by the user\n"), ("c.txt", "mine\n")];
    assert_eq!(user.files(), files(&left));
}

#[test]
fn contents_that_change_under_the_same_plan_are_another_question_too() {
    let user = User::with_work();
    let mut client = user.initialized(&can_ask());
    let (first, id) = client.call_and_be_asked("rewind", &json!({"point": "first"}));
    user.edit(&["b.txt"], || user.write("b.txt", "and more of the agent's\n"));
    client.answer(&id, "accept");
    let (again, id) = client.asked();
    assert!(again.ends_with(&first), "the same plan");
    client.answer(&id, "decline");
    assert_eq!(client.hear()["result"]["structuredContent"]["outcome"], "declined");
}

#[test]
fn files_that_change_each_time_are_left_alone() {
    let user = User::with_work();
    let mut client = user.initialized(&can_ask());
    let (_, mut id) = client.call_and_be_asked("rewind", &json!({"point": "first"}));
    for round in 1..=3 {
        user.write("b.txt", &format!("{round}\n"));
        client.answer(&id, "accept");
        if round < 3 {
            (_, id) = client.asked();
        }
    }
    let done = client.hear()["result"].clone();
    assert_eq!(done["isError"], true);
    assert!(text(&done).contains("changed each time"), "{done}");
    assert_eq!(fs::read_to_string(user.work().join("a.txt")).expect("text"), "one\nTWO\n");
}

#[test]
fn exact_takes_everything_back_and_the_question_says_so() {
    let user = User::with_work();
    let mut client = user.initialized(&can_ask());
    let exact = json!({"point": "first", "exact": true});
    let (question, id) = client.call_and_be_asked("rewind", &exact);
    assert!(question.contains("also what you and others changed"), "{question}");
    client.answer(&id, "accept");
    assert_eq!(client.hear()["result"]["structuredContent"]["outcome"], "done");
    assert_eq!(user.files(), files(&[("a.txt", "one\ntwo\n")]));
}

/// A call of the stateless era, with an answer to what was asked before.
fn again(client: &mut Client, asked: &Value, action: &str) -> Value {
    let params = json!({"name": "rewind", "arguments": {"point": "first"},
        "requestState": asked["requestState"],
        "inputResponses": {"rewind": {"action": action, "content": {}}}});
    client.request("tools/call", params)["result"].clone()
}

#[test]
fn without_a_connection_the_answer_comes_with_the_call() {
    let user = User::with_work();
    let mut client = user.connect();
    client.stateless(&can_ask());
    let asked = client.call("rewind", &json!({"point": "first"}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["rewind"];
    assert_eq!(question["method"], "elicitation/create");
    let message = question["params"]["message"].as_str().expect("a question");
    assert!(message.contains("Would restore (1):\n- a.txt\n"), "{message}");

    let declined = again(&mut client, &asked, "decline");
    assert_eq!(declined["structuredContent"]["outcome"], "declined");

    let asked = again(&mut client, &asked, "accept");
    assert_eq!(asked["resultType"], "input_required", "it was answered: {asked}");
    user.write("b.txt", "new, and by the user\n");
    let anew = again(&mut client, &asked, "accept");
    assert_eq!(anew["resultType"], "input_required", "{anew}");
    let message =
        anew["inputRequests"]["rewind"]["params"]["message"].as_str().expect("a question");
    assert!(message.starts_with("Something changed in the meantime."), "{message}");
    assert_ne!(anew["requestState"], asked["requestState"]);

    let mut forged = anew.clone();
    forged["requestState"] = json!("yes");
    assert_eq!(again(&mut client, &forged, "accept")["resultType"], "input_required");
    assert_ne!(user.files(), rewound());

    let mut other = user.connect();
    other.stateless(&can_ask());
    let unknown = again(&mut other, &anew, "accept");
    assert_eq!(unknown["resultType"], "input_required", "another process asked: {unknown}");
    let done = again(&mut client, &anew, "accept");
    assert_eq!(done["structuredContent"]["outcome"], "done", "{done}");
    let left = [("a.txt", "one\ntwo\n"), ("b.txt", "new, and by the user\n"), ("c.txt", "mine\n")];
    assert_eq!(user.files(), files(&left));

    // The same files, the same plan, the same answer.
    user.takeback(&["undo", "-y"], "");
    let replayed = again(&mut client, &anew, "accept");
    assert_eq!(replayed["resultType"], "input_required", "{replayed}");
    assert_ne!(user.files(), files(&left));
}

#[test]
fn only_the_users_own_settings_can_allow_it_for_good() {
    let user = User::with_work();
    user.write(".takeback/settings.json", r#"{"allowAgentRewind": true}"#);
    let mut client = user.initialized(&json!({}));
    let refused = client.call("rewind", &json!({"point": "first"}));
    assert_eq!(refused["isError"], true, "a project cannot say it");
    assert_eq!(user.files(), worked());
    user.set(r#"{"allowAgentRewind": true}"#);
    let done = client.call("rewind", &json!({"point": "first"}));
    assert_eq!(done["structuredContent"]["outcome"], "done", "{done}");
    assert_eq!(user.files(), rewound());
}

#[test]
fn files_outside_the_workspace_stay_as_they_are() {
    let user = User::with_work();
    let outside = user.beside("outside.txt");
    fs::write(&outside, "before\n").expect("a file");
    user.edit(&["a.txt", outside.to_str().expect("text")], || {
        user.write("a.txt", "again\n");
        fs::write(&outside, "after\n").expect("a file");
    });
    user.set(r#"{"allowAgentRewind": true}"#);
    let mut client = user.initialized(&json!({}));
    for exact in [false, true] {
        let done = client.call("rewind", &json!({"point": "@", "exact": exact}));
        assert_eq!(done["isError"], false, "{done}");
        assert_eq!(fs::read_to_string(&outside).expect("text"), "after\n");
    }
    assert_eq!(fs::read_to_string(user.work().join("a.txt")).expect("text"), "one\ntwo\n");
}

#[test]
fn one_turn_is_reverted_with_consent_and_later_work_stays() {
    let user = User::with_work();
    let events = |events: Value| {
        let lines = events.as_array().expect("events").iter().map(|event| format!("{event}\n"));
        user.takeback(&["record"], &lines.collect::<String>());
    };
    events(json!([
        {"event": "prompt", "session": "s1", "message": "m2", "text": "Add d"},
        {"event": "before_tool", "session": "s1", "call": "c2", "tool": "Write", "paths": ["d.txt"]},
    ]));
    user.write("d.txt", "later\n");
    events(json!([
        {"event": "after_tool", "session": "s1", "call": "c2"},
        {"event": "turn_end", "session": "s1"},
    ]));
    let mut client = user.initialized(&can_ask());
    let asked = json!({"what": "m1", "paths": ["a.txt"]});
    let shown = client.call("preview_revert", &asked)["structuredContent"].clone();
    assert_eq!(shown["restoredFiles"], json!(["a.txt"]), "{shown}");
    let (question, id) = client.call_and_be_asked("revert", &asked);
    assert!(question.starts_with("The agent asks to take back the turn of point "), "{question}");
    assert!(question.contains("Would restore (1):\n- a.txt\n"), "{question}");
    assert!(question.ends_with("The agent asks for these paths only:\n- “a.txt”"), "{question}");
    assert_eq!(fs::read_to_string(user.work().join("a.txt")).expect("text"), "one\nTWO\n");
    client.answer(&id, "accept");
    let done = client.hear()["result"]["structuredContent"].clone();
    assert_eq!((&done["outcome"], &done["receipt"]["success"]), (&json!("done"), &json!(true)));
    let left =
        [("a.txt", "one\ntwo\n"), ("b.txt", "new\n"), ("c.txt", "mine\n"), ("d.txt", "later\n")];
    assert_eq!(user.files(), files(&left));
    let again = client.call("revert", &asked);
    assert_eq!(again["structuredContent"]["outcome"], "nothingToDo", "{again}");
    for what in ["nope", "m1..nope", "m1.9"] {
        let refused = client.call("revert", &json!({"what": what}));
        assert_eq!(refused["isError"], true, "{refused}");
    }
}

#[test]
fn files_are_restored_with_consent() {
    let user = User::with_work();
    let asked = json!({"paths": ["c.txt", "a.txt"], "from": "first"});
    let mut client = user.initialized(&json!({}));
    let refused = client.call("restore", &asked);
    assert!(text(&refused).contains("`takeback restore PATH --from "), "{refused}");
    let mut client = user.initialized(&can_ask());
    let (question, id) = client.call_and_be_asked("restore", &asked);
    assert!(question.contains("whoever changed them since."), "{question}");
    assert!(question.contains("Would delete (not there"), "{question}");
    client.answer(&id, "accept");
    assert_eq!(client.hear()["result"]["structuredContent"]["outcome"], "done");
    assert_eq!(user.files(), files(&[("a.txt", "one\ntwo\n"), ("b.txt", "new\n")]));
    user.takeback(&["undo", "-y"], "");
    assert_eq!(user.files(), worked());
}
