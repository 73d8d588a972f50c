//! The user's changes during a run stay and are reported; if they cannot stay, nothing is restored.

use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use takeback_agents::{RunError, RunEvent, Step, StepAgent, StepError};
use takeback_core::CallTargets;
use takeback_core::execution::{RollbackFiles, rollback_to};
use takeback_core::rewind::Files;
use takeback_store::state::Status;
use takeback_testkit::Sandbox;

use crate::{Places, agent, describe, execution, five_steps, head, initial, nothing};

/// Step 1 writes a file of five lines; step 2 changes the first one, writes another file, and fails once.
fn editing<'a>(sandbox: &Sandbox) -> Vec<Step<'a>> {
    let (path, again, extra) =
        (sandbox.at("text.txt"), sandbox.at("text.txt"), sandbox.at("extra.txt"));
    let mut tries = 0;
    vec![
        Step::new("write", move |_, _| Ok(fs::write(&path, "one\ntwo\nthree\nfour\nfive\n")?)),
        Step::new("edit", move |_, _| {
            let text = fs::read_to_string(&again)?;
            fs::write(&again, text.replace("one", "ONE"))?;
            tries += 1;
            fs::write(&extra, format!("try {tries}\n"))?;
            if tries == 1 { Err(StepError::failed("once")) } else { Ok(()) }
        }),
    ]
}

/// Runs, with an `edit` by the user right after the failure; describes what happened then.
fn with_an_edit(sandbox: &mut Sandbox, edit: impl Fn()) -> (Result<(), RunError>, Vec<String>) {
    let happenings = RefCell::new(Vec::new());
    let mut agent = StepAgent::new(execution(), editing(sandbox));
    agent.on_event = Box::new(|event| {
        if matches!(event, RunEvent::Saved(record) if record.status == Status::Failed) {
            edit();
        }
        happenings.borrow_mut().push(describe(event));
    });
    let ended = agent.run(&mut sandbox.workspace, &initial()).map(drop);
    drop(agent);
    (ended, happenings.take())
}

#[test]
fn a_users_file_stays_and_is_reported() {
    let mut sandbox = Sandbox::new();
    let mine = sandbox.at("mine.txt");
    sandbox.write("mine.txt", "mine\n");
    let (ended, happenings) = with_an_edit(&mut sandbox, || fs::write(&mine, "edited\n").unwrap());
    ended.unwrap();
    assert_eq!(sandbox.read("mine.txt"), "edited\n");
    assert_eq!(sandbox.read("text.txt"), "ONE\ntwo\nthree\nfour\nfive\n");
    assert!(happenings.contains(&"taken back, kept [\"mine.txt\"]".to_owned()), "{happenings:?}");
}

#[test]
fn a_users_edit_of_a_steps_file_stays() {
    let mut sandbox = Sandbox::new();
    let text = sandbox.at("text.txt");
    let (ended, _) = with_an_edit(&mut sandbox, || {
        fs::write(&text, "ONE\ntwo\nthree\nfour\nfive, mine\n").unwrap();
    });
    ended.unwrap();
    assert_eq!(sandbox.read("text.txt"), "ONE\ntwo\nthree\nfour\nfive, mine\n");
}

#[test]
fn a_conflicting_edit_ends_the_run_and_restores_nothing() {
    let mut sandbox = Sandbox::new();
    let text = sandbox.at("text.txt");
    let edited = "ONE, mine\ntwo\nthree\nfour\nfive\n";
    let (ended, _) = with_an_edit(&mut sandbox, || fs::write(&text, edited).unwrap());
    let error = ended.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot take back the changes since ckpt-exec-1-1.a1 without losing the work of others"
    );
    let RunError::WouldLoseWork { receipt, .. } = error else { panic!("{error:?}") };
    assert_eq!(receipt.conflicts[0].path.display(), "text.txt");
    assert!(!receipt.success && receipt.restored_files.is_empty());
    assert_eq!(sandbox.read("text.txt"), edited);
    assert_eq!(sandbox.read("extra.txt"), "try 1\n", "nor is what could have been restored");
    assert_eq!(head(&sandbox.workspace).status, Status::Failed);
    let most =
        sandbox.workspace.states.count_retry(&execution(), head(&sandbox.workspace).key.step, 3);
    assert_eq!(most.unwrap(), 1, "no retry was counted");
}

/// Changes during a step that may write anything count as the step's; a step that names its paths leaves
/// others to the user.
#[test]
fn a_step_with_named_paths_leaves_other_files_to_the_user() {
    for (touches, expected) in [
        (CallTargets::Paths(vec!["agents.txt".into()]), "meanwhile\n"),
        (CallTargets::anything(None), "before\n"),
    ] {
        let mut sandbox = Sandbox::new();
        sandbox.write("mine.txt", "before\n");
        let (theirs, mine) = (sandbox.at("agents.txt"), sandbox.at("mine.txt"));
        let step = Step::new("edit", |_, _| {
            fs::write(&theirs, "half\n")?;
            fs::write(&mine, "meanwhile\n")?;
            Err(StepError::failed("always"))
        });
        let step = Step { touches, ..step };
        let mut agent = StepAgent::new(execution(), vec![step]);
        agent.most_retries = 0;
        agent.run(&mut sandbox.workspace, &initial()).unwrap_err();
        drop(agent);
        assert_eq!(sandbox.read("mine.txt"), expected);
        assert!(!sandbox.exists("agents.txt"));
    }
}

#[test]
fn uncertain_files_are_restored_only_on_request() {
    let mut sandbox = Sandbox::new();
    let places = Places::of(&sandbox);
    let cut_off = |place: &str, step: u32| {
        if (place, step) == ("middle", 3) {
            std::panic::resume_unwind(Box::new("cut off"));
        }
    };
    catch_unwind(AssertUnwindSafe(|| {
        agent(five_steps(&places, 0, cut_off)).run(&mut sandbox.workspace, &initial())
    }))
    .unwrap_err();
    sandbox.reopen();
    sandbox.write("since.txt", "mine, or the step's\n");
    let before = sandbox.tree();

    let careful = StepAgent::new(execution(), five_steps(&places, 0, nothing))
        .run(&mut sandbox.workspace, &initial());
    let Err(RunError::WouldLoseWork { receipt, .. }) = careful else { panic!("{careful:?}") };
    let uncertain: Vec<_> = receipt.ambiguous.iter().map(|note| note.path.display()).collect();
    assert_eq!(uncertain, ["all.txt", "half-3.txt", "since.txt"]);
    assert_eq!(sandbox.tree(), before);
    assert_eq!(places.count("begin 3"), 1);

    agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    assert!(!sandbox.exists("since.txt"));
    assert_eq!(sandbox.read("all.txt"), "step 1\nstep 2\nstep 3\nstep 4\nstep 5\n");
    assert_eq!(places.count("begin 2"), 1);
}

#[test]
fn a_run_continues_after_a_rollback() {
    let mut sandbox = Sandbox::new();
    let places = Places::of(&sandbox);
    agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    let tree = sandbox.tree();
    let second = sandbox.workspace.states.find(&"ckpt-exec-1-2".parse().unwrap()).unwrap().unwrap();
    rollback_to(&mut sandbox.workspace, &second.key, RollbackFiles::All).unwrap();
    assert_eq!(sandbox.read("all.txt"), "step 1\nstep 2\n");
    agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    assert_eq!(sandbox.tree(), tree);
    assert_eq!((places.count("begin 2"), places.count("begin 3")), (1, 2));
}

#[test]
fn after_a_rollback_of_the_state_alone_the_files_can_stay() {
    for (files_at_start, twice) in [(Files::Stay, true), (Files::Too, false)] {
        let mut sandbox = Sandbox::new();
        let places = Places::of(&sandbox);
        let steps = || {
            let writing = |name: &str| {
                let places = places.clone();
                let line = name.to_owned();
                Step::new(name, move |_, _| {
                    Places::append(&places.root.join("all.txt"), &line);
                    Ok(())
                })
            };
            vec![writing("first"), writing("second")]
        };
        StepAgent::new(execution(), steps()).run(&mut sandbox.workspace, &initial()).unwrap();
        let first = sandbox.workspace.states.find(&"ckpt-exec-1-1".parse().unwrap()).unwrap();
        rollback_to(&mut sandbox.workspace, &first.unwrap().key, RollbackFiles::Stay).unwrap();
        let mut agent = StepAgent { files_at_start, ..StepAgent::new(execution(), steps()) };
        agent.run(&mut sandbox.workspace, &initial()).unwrap();
        let expected = if twice { "first\nsecond\nsecond\n" } else { "first\nsecond\n" };
        assert_eq!(sandbox.read("all.txt"), expected);
    }
}
