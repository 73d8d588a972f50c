use serde_json::json;

use super::checkpoint;
use crate::user::User;

#[test]
fn an_execution_resumes_from_its_last_success() {
    let user = User::new();
    user.saved(2);
    assert_eq!(user.save(3, &json!({ "status": "failed", "error": "no" })).code, 0);
    let resumed = user.json(&["state", "resume", "e"]);
    assert_eq!((&resumed["id"], &resumed["state"]), (&json!("ckpt-e-2"), &json!({ "step": 2 })));
    assert_eq!(resumed["ambiguous_effects"], json!([]));
    assert_eq!(user.json(&["state", "resume", "ckpt-e-3"])["status"], "failed");
    let shown = user.takeback(&["state", "resume", "ckpt-e-1"]).out;
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("saved")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    step 1
    id       ckpt-e-1
    status   success
    branch   main, attempt 1
    files    LONG-ID

    state
    {
      "step": 1
    }

    The current branch is at ckpt-e-3. `takeback state rollback` moves it back here, `takeback state
    fork` starts a new branch here.
    "#);
    let execution = user.takeback(&["state", "resume", "e"]).out;
    assert!(!execution.contains("rollback"), "to try step 3 again needs nothing: {execution}");
}

#[test]
fn a_conversation_is_returned_in_part() {
    let user = User::new();
    let messages = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1" }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1" }] },
        { "role": "assistant", "content": "done" },
    ]);
    assert_eq!(user.save(1, &json!({ "context": { "messages": messages } })).code, 0);
    for (most, kept) in [("9", 4), ("3", 3), ("2", 1)] {
        let resumed = user.json(&["state", "resume", "e", "--last-messages", most]);
        let newest = json!(messages.as_array().unwrap()[4 - kept..]);
        assert_eq!(resumed["context"]["messages"], newest);
    }
    // The saved conversation stays complete.
    assert_eq!(user.json(&["state", "show", "e"])["context"]["messages"], messages);
}

#[test]
fn a_resume_that_fails_says_why() {
    let user = User::new();
    assert_eq!(user.save(1, &json!({ "status": "pending" })).code, 0);
    for (args, code, says) in [
        (&["state", "resume", "e"][..], 5, "No successful checkpoint found in execution e"),
        (
            &["state", "resume", "e", "--from-step", "1"],
            5,
            "No successful checkpoint found before step 1",
        ),
        (&["state", "resume", "f"], 5, "there is no execution f"),
        (&["state", "resume", "ckpt-e-9"], 1, "Checkpoint ckpt-e-9 not found"),
        (&["state", "resume", "e", "--branch", "b"], 1, "execution e has no branch b"),
        (
            &["state", "resume", "ckpt-e-1", "--from-step", "1"],
            2,
            "--from-step needs an execution, not a checkpoint",
        ),
        (&["state", "resume", ""], 2, "the name of an execution is empty"),
        (&["state", "show", "e-1"], 1, "there is no execution e-1"),
    ] {
        let answer = user.takeback(args);
        assert_eq!(answer.code, code, "{answer:?}");
        assert_eq!(answer.err.lines().next(), Some(format!("takeback: {says}").as_str()));
    }
}

#[test]
fn retries_of_a_step_are_limited_across_restarts() {
    let user = User::new();
    user.saved(1);
    assert_eq!(user.save(2, &json!({ "status": "failed" })).code, 0);
    let again = ["state", "resume", "e", "--from-step", "2"];
    for _ in 0..3 {
        assert_eq!(user.json(&again)["id"], "ckpt-e-1");
    }
    insta::assert_snapshot!(user.exits(1, &again).err, @"
    takeback: step 2 of execution e was retried 3 times, which is the limit
      Raise --max-retries to try again; a success of the step resets the count.
    ");
    let more = [&again[..], &["--max-retries", "4"]].concat();
    user.succeeds(&more);
    assert_eq!(user.save(2, &json!({ "status": "success" })).code, 0);
    assert_eq!(user.takeback(&again).code, 0, "a success ends the count");
    user.exits(2, &["state", "resume", "e", "--max-retries", "4"]);
}

#[test]
fn effects_without_a_receipt_are_named() {
    let user = User::new();
    let effect = ["state", "effect", "e", "mail/1"];
    let intend = user.feed(&[&effect[..], &["--step", "1"]].concat(), r#"{"to":"you"}"#);
    assert_eq!(intend.out, "Intended mail/1\n", "before anything was saved");
    user.saved(1);
    let again = user.feed(&effect, r#"{"to":"others"}"#);
    insta::assert_snapshot!(again.out, @r#"
    Intended before mail/1  just now
    It may or may not have happened. Intended effect: {"to":"you"}
    "#);
    let resumed = user.takeback(&["state", "resume", "e"]).out;
    let (_, named) = resumed.split_once("\n\n").expect("a head, then effects");
    insta::assert_snapshot!(named, @r#"
    These may or may not have happened:
      mail/1  step 1  {"to":"you"}
    Check, then run `takeback state effect e KEY --receipt` if it did, or with --withdraw if not.

    state
    {
      "step": 1
    }
    "#);
    let received = user.feed(&[&effect[..], &["--receipt"]].concat(), r#"{"sent":true}"#);
    assert_eq!(received.out, "Received mail/1\n");
    let again = user.feed(&[&effect[..], &["--receipt"]].concat(), r#"{"sent":false}"#);
    insta::assert_snapshot!(again.out, @r#"
    Happened before mail/1  just now
    Do not repeat it. Its result: {"sent":true}
    "#);
    let resumed = user.json(&["state", "resume", "e"]);
    assert_eq!(
        (&resumed["ambiguous_effects"], &resumed["happened_effects"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(user.feed(&["state", "effect", "e", "later", "--step", "5"], "1").code, 0);
    assert_eq!(user.feed(&["state", "effect", "e", "later", "--receipt"], "null").code, 0);
    let happened = &user.json(&["state", "resume", "e"])["happened_effects"][0];
    assert_eq!((&happened["key"], &happened["receipt"]), (&json!("later"), &json!(null)));
    assert!(happened["received_at"].is_string());
}

#[test]
fn an_intention_is_withdrawn_but_not_what_happened() {
    let user = User::new();
    user.saved(1);
    let effect =
        |more: &[&str], input| user.feed(&[&["state", "effect", "e", "k"], more].concat(), input);
    let none = effect(&["--receipt"], "1");
    assert_eq!(
        (none.code, none.err.as_str()),
        (1, "takeback: execution e never declared the effect \"k\"\n")
    );
    assert_eq!(effect(&["--withdraw"], "").code, 1);
    assert_eq!(effect(&[], "1").code, 0);
    assert_eq!(effect(&["--withdraw"], "").out, "Withdrawn k\n");
    assert_eq!(effect(&[], "2").out, "Intended k\n", "anew");
    assert_eq!(effect(&["--receipt"], "3").code, 0);
    let happened = effect(&["--withdraw"], "");
    assert_eq!(happened.code, 1);
    insta::assert_snapshot!(happened.err, @r#"
    takeback: the effect "k" has happened
      An effect with a receipt cannot be withdrawn.
    "#);
    assert_eq!(effect(&[], "").code, 2, "an intention is JSON");
    assert_eq!(effect(&["--receipt", "--withdraw"], "").code, 2);
}

#[test]
fn branches_continue_independently() {
    let user = User::new();
    user.saved(3);
    let forked = user.takeback(&["state", "fork", "ckpt-e-1"]);
    insta::assert_snapshot!(forked.out, @"Forked fork-1  from ckpt-e-1.a1; it is now the current branch; files are not touched");
    assert_eq!(user.json(&["state", "fork", "ckpt-e-1"])["branch"], "fork-2");
    assert_eq!(user.save(2, &json!({ "state": "other" })).code, 0);
    assert_eq!(user.json(&["state", "show", "ckpt-e-2"])["state"], "other");
    assert_eq!(user.json(&["state", "show", "e"])["branch"], "fork-2");
    assert_eq!(user.ids(&["e"]), ["ckpt-e-1", "ckpt-e-2"]);
    assert_eq!(user.ids(&["e", "--branch", "main"]), ["ckpt-e-1", "ckpt-e-2.a1", "ckpt-e-3.a1"]);
    let resumed = user.json(&["state", "resume", "e", "--branch", "main"]);
    assert_eq!((&resumed["id"], &resumed["state"]), (&json!("ckpt-e-3"), &json!({ "step": 3 })));
    user.exits(2, &["state", "fork", "e", "fork-1"]);
    let late = user.feed(&["state", "save"], &checkpoint(4, &json!({ "branch": "none" })));
    assert_eq!(late.code, 1, "{late:?}");
}
