//! A process is killed at any point of a run, and another one continues.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;
use takeback_agents::{EffectDecision, RunError, RunEvent, Step, StepAgent};
use takeback_store::state::Status;
use takeback_testkit::tree;

use crate::real_workspace::open;
use crate::{Places, agent, five_steps, head, initial, nothing, undisturbed};

const FOLDER: &str = "TAKEBACK_TEST_FOLDER";
const STOP: &str = "TAKEBACK_TEST_STOP";
/// How often the third step fails, across both processes.
const FAILURES: usize = 2;

fn places(folder: &Path) -> Places {
    Places { root: folder.join("work"), log: folder.join("log") }
}

fn new_folder() -> tempfile::TempDir {
    // With dozens of runs, waiting for the disk would take most of the time.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    std::fs::write(folder.path().join("work/mine.txt"), "mine\n").unwrap();
    folder
}

fn child(folder: &Path, stop: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_kills::child_process", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(STOP, stop)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs in a process that is killed at `stop`.
#[track_caller]
fn kill_at(folder: &Path, stop: &str) {
    let status = child(folder, stop).wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{stop}: {status}");
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn child_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let stop = std::env::var(STOP).unwrap();
    let die_at = |place: &str| {
        if stop == place {
            kill_process(getpid(), Signal::KILL).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        if stop == format!("wait at {place}") {
            println!("waiting");
            std::thread::sleep(Duration::from_secs(60));
        }
    };
    let mut workspace = open(folder);
    let places = places(folder);
    if stop == "effect" {
        let mut agent = mailing(&places, |_| die_at("effect"), EffectDecision::Stop);
        agent.run(&mut workspace, &initial()).unwrap();
        return;
    }
    let passing = |place: &str, step: u32| {
        let failed = if place == "middle" && step == 3 { places.count("fail 3") } else { 0 };
        match failed {
            0 => die_at(&format!("{place} {step}")),
            failures => die_at(&format!("{place} {step} after {failures}")),
        }
    };
    let mut agent = agent(five_steps(&places, FAILURES, passing));
    agent.on_event = Box::new(|event| match event {
        RunEvent::Saved(record) if record.status == Status::Failed => {
            die_at(&format!("failed {}", record.key.attempt));
        }
        RunEvent::Saved(record) => die_at(&format!("saved {}", record.key.step)),
        RunEvent::TakenBack(_) => die_at(&format!("taken back {}", places.count("fail 3"))),
        _ => {}
    });
    agent.run(&mut workspace, &initial()).unwrap();
}

#[test]
fn a_killed_run_resumes_without_repeating_steps() {
    let (values, tree_at_end) = undisturbed();
    // Where it is killed, and how many steps are finished then.
    let mut stops: Vec<(String, u32)> = vec![
        ("saved 0".to_owned(), 0),
        ("middle 3 after 1".to_owned(), 2),
        ("middle 3 after 2".to_owned(), 2),
        ("failed 1".to_owned(), 2),
        ("failed 2".to_owned(), 2),
        ("taken back 1".to_owned(), 2),
        ("taken back 2".to_owned(), 2),
    ];
    for step in 1..=5 {
        for place in ["begin", "middle", "end"] {
            stops.push((format!("{place} {step}"), step - 1));
        }
        stops.push((format!("saved {step}"), step));
    }
    for (stop, finished) in stops {
        let folder = new_folder();
        let places = places(folder.path());
        kill_at(folder.path(), &stop);
        let before = places.noted();
        let mut workspace = open(folder.path());
        let found = agent(five_steps(&places, FAILURES, nothing))
            .run(&mut workspace, &initial())
            .unwrap_or_else(|error| panic!("{stop}: {error:?}"));
        assert_eq!(found, values);
        assert_eq!(tree(&places.root), tree_at_end, "{stop}");
        let since = places.noted().split_off(before.len());
        let begun: Vec<String> = (finished + 1..=5).map(|step| format!("begin {step}")).collect();
        let mut tries: Vec<String> =
            since.iter().filter(|line| line.starts_with("begin")).cloned().collect();
        tries.dedup();
        assert_eq!(tries, begun, "{stop}: every unfinished step in its order, and no other");
        let ends = |step: u32| places.count(&format!("end {step}"));
        for step in 1..=5 {
            let cut_at_its_end = stop == format!("end {step}");
            assert_eq!(ends(step), 1 + usize::from(cut_at_its_end), "{stop}: step {step}");
        }
        assert_eq!(places.count("fail 3"), FAILURES, "{stop}");
        assert_eq!(workspace.states.check().unwrap(), Vec::<String>::new());
    }
}

/// Each process is killed in the middle of the next step, or of the same one again.
#[test]
fn a_run_can_be_killed_again_and_again() {
    let (values, tree_at_end) = undisturbed();
    let folder = new_folder();
    let places = places(folder.path());
    for stop in
        ["middle 1", "middle 1", "saved 1", "middle 2", "failed 1", "middle 3 after 1", "middle 4"]
    {
        kill_at(folder.path(), stop);
    }
    let mut workspace = open(folder.path());
    let found =
        agent(five_steps(&places, FAILURES, nothing)).run(&mut workspace, &initial()).unwrap();
    assert_eq!(found, values);
    assert_eq!(tree(&places.root), tree_at_end);
    assert_eq!((1..=5).map(|k| places.count(&format!("end {k}"))).collect::<Vec<_>>(), [1; 5]);
}

/// A retry counts no matter which process counted it.
#[test]
fn retries_are_counted_over_processes() {
    let folder = new_folder();
    kill_at(folder.path(), "failed 2");
    let places = places(folder.path());
    let error = agent(five_steps(&places, usize::MAX, nothing))
        .run(&mut open(folder.path()), &initial())
        .unwrap_err();
    assert!(matches!(error, RunError::RetriesExhausted { retries: 3, .. }), "{error:?}");
    assert_eq!(places.count("begin 3"), 4, "two in the first process, two in this one");
    assert_eq!(head(&open(folder.path())).status, Status::Failed);
}

#[test]
fn a_second_run_is_refused_while_the_first_is_running() {
    let folder = new_folder();
    let places = places(folder.path());
    let mut first = child(folder.path(), "wait at middle 2");
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("waiting")));
    let before = tree(&places.root);
    let error = agent(five_steps(&places, 0, nothing))
        .run(&mut open(folder.path()), &initial())
        .unwrap_err();
    let message = format!("process {} is already running execution exec-1", first.id());
    assert_eq!(error.to_string(), message);
    assert_eq!(tree(&places.root), before);
    first.kill().unwrap();
    first.wait().unwrap();

    agent(five_steps(&places, 0, nothing)).run(&mut open(folder.path()), &initial()).unwrap();
    assert_eq!((places.count("end 1"), places.count("end 2")), (1, 1));
    assert_eq!(tree(&places.root), undisturbed().1);
}

/// One step that sends a mail, and calls `passing` while it sends.
fn mailing<'a>(
    places: &'a Places,
    passing: impl Fn(u32) + 'a,
    policy: EffectDecision,
) -> StepAgent<'a> {
    let step = Step::new("mail", move |values, effects| {
        values.state["receipt"] = effects.once("mail", &json!({ "to": "you" }), || {
            places.note("sent");
            passing(1);
            Ok::<_, std::io::Error>(json!("accepted"))
        })?;
        Ok(())
    });
    let on_ambiguous = Box::new(move |_: &_| policy);
    StepAgent { on_ambiguous, ..agent(vec![step]) }
}

#[test]
fn the_author_decides_about_an_interrupted_effect() {
    for (policy, sent, receipt) in [
        (EffectDecision::Repeat, 2, json!("accepted")),
        (EffectDecision::Skip, 1, json!(null)),
        (EffectDecision::Stop, 1, json!(null)),
    ] {
        let folder = new_folder();
        let places = places(folder.path());
        kill_at(folder.path(), "effect");
        let reported = Cell::new(0);
        let mut agent = mailing(&places, |_| {}, policy);
        agent.on_event = Box::new(|event| {
            if let RunEvent::Resumed(resumed) = event {
                reported.set(resumed.ambiguous.len());
            }
        });
        let ended = agent.run(&mut open(folder.path()), &initial());
        drop(agent);
        assert_eq!(reported.get(), 1);
        match (policy, ended) {
            (EffectDecision::Stop, Err(RunError::AmbiguousEffect { effect })) => {
                assert_eq!(effect.key, "mail");
            }
            (_, ended) => assert_eq!(ended.unwrap().state["receipt"], receipt),
        }
        assert_eq!(places.count("sent"), sent, "{policy:?}");
    }
}
