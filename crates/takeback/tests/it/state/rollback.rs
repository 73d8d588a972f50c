use serde_json::{Value, json};

use super::checkpoint;
use crate::record::{Agent, Recorder, before};
use crate::user::User;

/// A run that saves step 1 with `a.txt` as `one`, step 2 with `two` and `b.txt`, and then edits again.
pub(crate) fn after_a_run() -> User {
    let user = User::with(&[("a.txt", "zero\n"), ("mine.txt", "m\n")]);
    for step in [1, 2] {
        user.write(&format!("../home/{step}.json"), &checkpoint(step, &json!({})));
    }
    let program = env!("CARGO_BIN_EXE_takeback");
    let script = format!(
        "echo one > a.txt; {program} -q state save < $HOME/1.json; echo two > a.txt; echo b > b.txt; \
         {program} -q state save < $HOME/2.json; echo three > a.txt"
    );
    user.write("../home/agent.sh", &script);
    let mut run = user.command(&["-q", "run", "--", "sh"]);
    run.arg(user.home().join("agent.sh"));
    let answer = user.answer_of(run, "");
    assert_eq!(answer.code, 0, "{answer:?}");
    user
}

/// The execution's current step, and the agent's files.
fn head_and_files(user: &User) -> (String, String, bool) {
    let head = user.json(&["state", "show", "e"])["id"].as_str().expect("an id").to_owned();
    (head, user.read("a.txt"), user.exists("b.txt"))
}

fn expected(head: &str, text: &str, b: bool) -> (String, String, bool) {
    (head.to_owned(), text.to_owned(), b)
}

#[test]
fn state_and_files_of_a_run_are_rolled_back_and_restored_together() {
    let user = after_a_run();
    let session = user.json(&["state", "list"])[0]["session"].clone();
    assert!(session.as_str().is_some_and(|name| name.starts_with("run-")), "{session}");
    let before = expected("ckpt-e-2", "three\n", true);
    assert_eq!(head_and_files(&user), before);
    insta::assert_snapshot!(user.succeeds(&["state", "rollback", "ckpt-e-1", "--dry-run"]).out, @r"
    Roll back to ckpt-e-1 “step 1” (just now)
    Takes back: run-ID

      state     ckpt-e-1.a1  branch main would be at this checkpoint
      restore   a.txt
      delete    b.txt        did not exist then

    a.txt and b.txt changed while `sh FOLDER/home/agent.sh` ran; may include yours.

    state to restore, 1 to restore, 1 to delete
    ");
    assert_eq!(head_and_files(&user), before);
    user.exits(2, &["state", "rollback", "ckpt-e-1"]);
    insta::assert_snapshot!(user.succeeds(&["state", "rollback", "ckpt-e-1", "-y"]).out, @"
    Roll back to ckpt-e-1 “step 1” (just now)

      state     ckpt-e-1.a1  branch main is now at this checkpoint
      restored  a.txt
      deleted   b.txt        did not exist then

    a.txt and b.txt changed while `sh FOLDER/home/agent.sh` ran; may include yours.

    state restored, 1 restored, 1 deleted
    Done and verified on disk. `takeback undo` takes it back.
    ");
    let back = expected("ckpt-e-1", "one\n", false);
    assert_eq!(head_and_files(&user), back);
    user.exits(5, &["state", "rollback", "ckpt-e-1", "-y"]);
    for how in [&["--dry-run"][..], &["-y"], &["-y", "--diff"]] {
        let args = [&["state", "rollback", "e", "--json"], how].concat();
        let again = user.takeback(&args);
        assert_eq!((again.code, again.out.lines().count()), (5, 1), "{again:?}");
    }
    insta::assert_snapshot!(user.succeeds(&["undo", "--dry-run"]).out, @r"
    Undo the last operation

      state     e  branch main would return to where it was
      restore   a.txt
      restore   b.txt

    state to restore, 2 to restore
    ");
    insta::assert_snapshot!(user.succeeds(&["undo", "-y"]).out, @"
    Undo the last operation

      state     ckpt-e-2.a1  branch main is now at this checkpoint
      restored  a.txt
      restored  b.txt

    state restored, 2 restored
    Done and verified on disk. `takeback redo` takes it back.
    ");
    assert_eq!(head_and_files(&user), before);
    let redone = user.json(&["redo", "-y"]);
    assert_eq!(
        redone["state"],
        json!({ "execution": "e", "branch": "main", "checkpoint": "ckpt-e-1.a1", "moved": true, "stays": false, "error": null })
    );
    assert_eq!(head_and_files(&user), back);
    user.write("a.txt", "mine\n");
    let files = ["state", "rollback", "e", "--exact", "-y", "--diff", "--json"];
    let files = user.takeback(&files);
    assert_eq!((files.code, files.out.lines().count()), (0, 1), "{files:?}");
    assert_eq!(head_and_files(&user), back);
    assert_eq!(user.ids(&["e"]), ["ckpt-e-1"]);
    assert_eq!(user.ids(&["e", "--all"]), ["ckpt-e-1", "ckpt-e-2.a1"], "left behind, not deleted");
}

#[test]
fn a_conflict_stops_everything_unless_a_flag_says_how() {
    let user = after_a_run();
    user.write("a.txt", "mine\n");
    let before = expected("ckpt-e-2", "mine\n", true);
    insta::assert_snapshot!(user.exits(4, &["state", "rollback", "ckpt-e-1", "-y"]).out, @r"
    Roll back to ckpt-e-1 “step 1” (just now)

      stays     e      the state of branch main
      conflict  a.txt  both changed the same lines

    nothing changed · 1 conflict
    Nothing was changed: state and files are restored together or not at all.
    --partial skips those files, --exact overwrites them, --state-only restores no files.
    ");
    insta::assert_snapshot!(user.exits(4, &["state", "rollback", "ckpt-e-1", "--dry-run"]).out, @r"
    Roll back to ckpt-e-1 “step 1” (just now)
    Takes back: run-ID (your own edits stay)

      stays     e      the state of branch main
      conflict  a.txt  both changed the same lines

    nothing changed · 1 conflict
    Nothing would be changed: state and files are restored together or not at all.
    --partial skips those files, --exact overwrites them, --state-only restores no files.
    ");
    let receipt = user.exits(4, &["state", "rollback", "ckpt-e-1", "-y", "--json"]);
    let receipt: serde_json::Value = serde_json::from_str(&receipt.out).expect("JSON");
    assert_eq!((&receipt["success"], &receipt["state"]["moved"]), (&json!(false), &json!(false)));
    assert_eq!(receipt["deletedFiles"], json!([]), "none was");
    assert_eq!(receipt["conflicts"][0]["filePath"], "a.txt");
    let ran = user.terminal(80, 70).run(&["state", "rollback", "ckpt-e-1"], "", "");
    let shown = ran.shown();
    assert!(ran.code == 4 && !shown.contains("[y/N]"), "an empty rollback asks nothing: {shown}");
    assert!(shown.contains("Nothing was changed"), "{shown}");
    assert_eq!(head_and_files(&user), before);

    let keep = user.backup();
    insta::assert_snapshot!(user.exits(4, &["state", "rollback", "ckpt-e-1", "-y", "--partial"]).out, @r"
    Roll back to ckpt-e-1 “step 1” (just now)

      state     ckpt-e-1.a1  branch main is now at this checkpoint
      conflict  a.txt        both changed the same lines
                line 1
                now     mine
                before  one
      deleted   b.txt        did not exist then

    b.txt changed while `sh FOLDER/home/agent.sh` ran; may include yours.

    state restored, 1 deleted · 1 conflict
    Done as far as possible. `takeback undo` takes it back.
    ");
    assert_eq!(head_and_files(&user), expected("ckpt-e-1", "mine\n", false));
    keep();
    user.succeeds(&["state", "rollback", "ckpt-e-1", "-y", "--exact"]);
    assert_eq!(head_and_files(&user), expected("ckpt-e-1", "one\n", false));
    keep();
    let state = user.succeeds(&["state", "rollback", "ckpt-e-1", "-y", "--state-only"]);
    insta::assert_snapshot!(state.out, @"
    Roll back to ckpt-e-1 “step 1” (just now)

      state     ckpt-e-1.a1  branch main is now at this checkpoint

    state restored
    Done and verified on disk. `takeback undo` takes it back.
    ");
    assert_eq!(head_and_files(&user), expected("ckpt-e-1", "mine\n", true));
    user.succeeds(&["undo", "-y"]);
    assert_eq!(head_and_files(&user), before);
    user.exits(2, &["state", "rollback", "ckpt-e-1", "--exact", "--state-only"]);
}

/// After a crash an agent continues in another run, which is its work too.
#[test]
fn an_executions_work_in_several_runs_is_taken_back() {
    let user = User::with(&[("a.txt", "zero\n")]);
    let program = env!("CARGO_BIN_EXE_takeback");
    for (step, text) in [(1, "one"), (2, "two")] {
        user.write(&format!("../home/{step}.json"), &checkpoint(step, &json!({})));
        let script = format!(
            "echo {text} > a.txt; {program} -q state save < $HOME/{step}.json; echo {text} on > a.txt"
        );
        user.succeeds(&["-q", "run", "--", "sh", "-c", &script]);
    }
    user.succeeds(&["state", "rollback", "ckpt-e-1", "-y"]);
    assert_eq!(head_and_files(&user), expected("ckpt-e-1", "one\n", false));
}

/// Another author's change is no conflict for a rewind, but the file is not as it was.
#[test]
fn another_authors_change_blocks_it_too() {
    let user = after_a_run();
    user.write("mine.txt", "changed\n");
    user.takeback(&["status"]);
    insta::assert_snapshot!(user.exits(4, &["state", "rollback", "ckpt-e-1", "-y"]).out, @"
    Roll back to ckpt-e-1 “step 1” (just now)

      stays     e         the state of branch main
      kept      mine.txt  changed by you

    nothing changed · 1 kept
    Nothing was changed: state and files are restored together or not at all.
    --partial skips those files, --exact overwrites them, --state-only restores no files.
    ");
    assert_eq!(head_and_files(&user), expected("ckpt-e-2", "three\n", true));
    user.succeeds(&["state", "rollback", "ckpt-e-1", "-y", "--partial"]);
    assert_eq!(user.read("mine.txt"), "changed\n");
}

#[test]
fn a_rollback_asks_on_a_terminal() {
    let user = after_a_run();
    let terminal = user.terminal(80, 40);
    let no = terminal.run(&["state", "rollback", "ckpt-e-1"], "[y/N]", "n\r");
    assert_eq!(no.code, 5, "{}", no.shown());
    assert_eq!(head_and_files(&user), expected("ckpt-e-2", "three\n", true));
    let yes = terminal.run(&["state", "rollback", "ckpt-e-1"], "[y/N]", "y\r");
    assert_eq!(yes.code, 0, "{}", yes.shown());
    assert_eq!(head_and_files(&user), expected("ckpt-e-1", "one\n", false));
}

#[test]
fn an_undo_says_that_the_agent_has_continued() {
    let user = after_a_run();
    user.succeeds(&["-q", "state", "rollback", "ckpt-e-1", "-y"]);
    let saved = user.save(2, &json!({ "state": "another way" }));
    assert_eq!(saved.code, 0, "{saved:?}");
    insta::assert_snapshot!(user.succeeds(&["undo", "-y"]).out, @r"
    Undo the last operation

      stays     e  branch main: the agent has continued since
      restored  a.txt
      restored  b.txt

    2 restored
    Done and verified on disk. `takeback redo` takes it back.
    ");
    assert_eq!(user.json(&["state", "show", "e"])["state"], "another way");
}

/// Starts a session, with the agent's process if there is one, and sends its first prompt.
fn begin_session(user: &User, session: &str, agent: Option<&Agent>) -> Recorder {
    let mut recorder = Recorder::start(user, &[]);
    let pid = agent.map(Agent::pid);
    recorder.record(&json!({ "event": "session_start", "session": session, "pid": pid }));
    recorder.record(&json!({ "event": "prompt", "session": session, "text": "go" }));
    recorder
}

fn step(recorder: &mut Recorder, session: &str, step: u32) {
    let checkpoint: Value = serde_json::from_str(&checkpoint(step, &json!({}))).expect("JSON");
    recorder.record(&json!({ "event": "step", "session": session, "checkpoint": checkpoint }));
}

/// An agent is killed in the middle of a command, with everything it started, and its execution continues in
/// another session. Step 1 has `a.txt` as `one`.
fn killed_and_resumed(user: &User, with_pid: bool) {
    let agent = Agent::start();
    let mut first = begin_session(user, "s1", with_pid.then_some(&agent));
    first.shell("s1", "c1", || user.write("a.txt", "one\n"));
    step(&mut first, "s1", 1);
    first.record(&before("s1", "c2"));
    user.write("a.txt", "half\n");
    user.write("b.txt", "half\n");
    agent.kill();
    first.kill();
    assert_eq!(user.json(&["state", "resume", "e"])["id"], "ckpt-e-1");
    let agent = Agent::start();
    let mut second = begin_session(user, "s2", with_pid.then_some(&agent));
    second.shell("s2", "c1", || {
        user.write("a.txt", "two\n");
        user.write("c.txt", "two\n");
    });
    step(&mut second, "s2", 2);
    second.record(&json!({ "event": "turn_end", "session": "s2" }));
    assert_eq!(second.close(), 0);
}

/// If the agent's process is known, its death ends the call. If not, only sessions of the execution can have
/// written the files.
#[test]
fn an_execution_resumed_in_another_session_is_rolled_back() {
    for with_pid in [true, false] {
        let user = User::with(&[("a.txt", "zero\n"), ("mine.txt", "m\n")]);
        killed_and_resumed(&user, with_pid);
        assert_eq!(head_and_files(&user), expected("ckpt-e-2", "two\n", true));
        let back = user.takeback(&["state", "rollback", "ckpt-e-1", "-y"]);
        assert_eq!(back.code, 0, "with a process: {with_pid}: {back:?}");
        assert_eq!(head_and_files(&user), expected("ckpt-e-1", "one\n", false));
        assert!(!user.exists("c.txt"));
        assert_eq!(user.read("mine.txt"), "m\n");
        user.succeeds(&["undo", "-y"]);
        assert_eq!(head_and_files(&user), expected("ckpt-e-2", "two\n", true));
    }
}

#[test]
fn changes_after_the_agents_death_are_not_the_executions() {
    let user = User::with(&[("a.txt", "zero\n"), ("mine.txt", "m\n")]);
    killed_and_resumed(&user, true);
    user.write("mine.txt", "changed\n");
    let refused = user.json(&["state", "rollback", "ckpt-e-1", "-y"]);
    assert_eq!(
        refused["keptFiles"],
        json!([{ "filePath": "mine.txt", "reason": "changed by you" }])
    );
    assert_eq!(head_and_files(&user), expected("ckpt-e-2", "two\n", true));
}

#[test]
fn files_another_session_may_have_written_need_a_flag() {
    let user = User::with(&[("a.txt", "zero\n")]);
    let mut other = begin_session(&user, "other", None);
    let mut own = begin_session(&user, "s1", None);
    own.shell("s1", "c1", || user.write("a.txt", "one\n"));
    step(&mut own, "s1", 1);
    other.record(&before("other", "o1"));
    own.shell("s1", "c2", || user.write("a.txt", "two\n"));
    own.record(&json!({ "event": "turn_end", "session": "s1" }));
    assert_eq!((own.close(), other.close()), (0, 0));
    let before = ("ckpt-e-1".to_owned(), "two\n".to_owned(), false);
    for policy in [&[][..], &["--ambiguous", "leave"]] {
        let args = [&["state", "rollback", "ckpt-e-1", "-y"], policy].concat();
        let refused = user.takeback(&args);
        assert_eq!((refused.code, head_and_files(&user)), (4, before.clone()), "{refused:?}");
        assert!(refused.out.contains("--ambiguous take"), "{}", refused.out);
    }
    let args = ["state", "rollback", "ckpt-e-1", "-y", "--ambiguous", "take"];
    user.succeeds(&args);
    assert_eq!(head_and_files(&user), expected("ckpt-e-1", "one\n", false));
    for other in ["--exact", "--state-only"] {
        let args = ["state", "rollback", "ckpt-e-1", "--ambiguous", "take", other];
        assert_eq!(user.takeback(&args).code, 2, "{other}");
    }
}

#[test]
fn changes_of_a_killed_run_can_be_left() {
    let user = User::with(&[("a.txt", "zero\n")]);
    killed_and_resumed(&user, true);
    let args = ["state", "rollback", "ckpt-e-1", "-y", "--ambiguous", "leave"];
    user.exits(4, &args);
    assert_eq!(head_and_files(&user), expected("ckpt-e-2", "two\n", true));
}
