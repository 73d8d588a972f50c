//! The evidence for an author: ends learned later, waiting for permission, formatters, returns,
//! background tasks, and calls that name the path.

mod sessions;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use takeback_core::rewind::Exactness;
use takeback_core::rewind::{AmbiguousPolicy, RewindRequest, RewindScope, Target};
use takeback_core::{AgentEvent, CallEndSource, CallReport, EndKind, LearnedEnd, Outcome};
use takeback_store::{Call, PointId, Session, SessionId, Timestamp};
use takeback_testkit::Sandbox;

use crate::text::{authors, report};

/// Answers with the prepared ends of the requested calls.
#[derive(Clone, Default)]
struct Transcript(Arc<Mutex<Vec<LearnedEnd>>>);

impl Transcript {
    fn says(&self, session: &str, call: &str, how: EndKind, at: Option<Timestamp>) {
        let (session, call) = (session.into(), call.into());
        self.0.lock().unwrap().push(LearnedEnd { session, call, how, at, took: None });
    }
}

impl CallEndSource for Transcript {
    fn ends_of(&self, session: &Session, calls: &[Call]) -> Vec<LearnedEnd> {
        let ends = self.0.lock().unwrap();
        let is_asked =
            |end: &&LearnedEnd| end.session == session.id && calls.iter().any(|c| c.id == end.call);
        ends.iter().filter(is_asked).cloned().collect()
    }
}

/// A sandbox whose files have dates, a file in it, and a transcript.
fn dated() -> (Sandbox, Transcript) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "before\n");
    sandbox.date_files();
    let transcript = Transcript::default();
    sandbox.workspace.call_end_source = Some(Box::new(transcript.clone()));
    (sandbox, transcript)
}

fn now(sandbox: &Sandbox) -> Timestamp {
    (sandbox.workspace.ambient.now)()
}

fn take(point: PointId) -> RewindRequest {
    RewindRequest::new(Target::Point(point))
}

// --- denied and interrupted calls ---------------------------------------------------------------

#[test]
fn edits_after_a_refused_call_are_the_users() {
    for by_hook in [false, true] {
        let (mut sandbox, transcript) = dated();
        let point = sandbox.prompt("s", "go");
        let shell = sandbox.before_shell("s", "rm -rf /");
        let edit = sandbox.before_edit("s", &["a.txt"]);
        if by_hook {
            sandbox.after_as("s", &shell, Outcome::Rejected);
            sandbox.after_as("s", &edit, Outcome::Rejected);
        } else {
            transcript.says("s", &shell, EndKind::Rejected, Some(now(&sandbox)));
            transcript.says("s", &edit, EndKind::Rejected, Some(now(&sandbox)));
        }
        sandbox.write("a.txt", "mine\n");
        sandbox.write("notes.txt", "mine\n");
        assert!(sandbox.rewind_to(point).success);
        assert_eq!(authors(&sandbox, "a.txt"), ["human"], "by hook: {by_hook}");
        assert_eq!(sandbox.read("a.txt"), "mine\n");
        assert_eq!(sandbox.read("notes.txt"), "mine\n");
        assert_eq!(sandbox.workspace.store.live_calls().unwrap(), []);
    }
}

#[test]
fn an_interrupted_commands_work_is_taken_back_and_later_edits_stay() {
    for next in ["a rewind", "a prompt"] {
        let (mut sandbox, transcript) = dated();
        let point = sandbox.prompt("s", "go");
        let shell = sandbox.before_shell("s", "make");
        sandbox.write("a.txt", "half\n");
        sandbox.write("made.txt", "half\n");
        transcript.says("s", &shell, EndKind::Interrupted, Some(now(&sandbox)));
        sandbox.milliseconds_pass(60_000);
        sandbox.write("mine.txt", "mine\n");
        if next == "a prompt" {
            sandbox.prompt("s", "go on");
        }
        let receipt = sandbox.rewind_to(point);
        assert_eq!(authors(&sandbox, "made.txt")[0], format!("s {shell} Bash window"), "{next}");
        assert_eq!(
            report(&receipt),
            ["success", "restored a.txt", "deleted made.txt", "kept mine.txt: changed by you"],
            "{next}"
        );
        assert_eq!(sandbox.read("a.txt"), "before\n");
        assert_eq!(sandbox.read("mine.txt"), "mine\n");
    }
}

#[test]
fn a_refused_or_killed_call_is_unclear_only_until_its_end() {
    let (mut sandbox, transcript) = dated();
    let point = sandbox.prompt("s", "go");
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "whose?\n");
    transcript.says("s", &shell, EndKind::Unknown, Some(now(&sandbox)));
    sandbox.milliseconds_pass(60_000);
    sandbox.write("mine.txt", "mine\n");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(authors(&sandbox, "made.txt"), [format!("s {shell} Bash open window")]);
    assert_eq!(authors(&sandbox, "mine.txt"), ["human"]);
    assert!(!receipt.success);
    assert_eq!(sandbox.read("made.txt"), "whose?\n");
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
    assert_eq!(sandbox.workspace.store.live_calls().unwrap(), []);
}

#[test]
fn a_reported_interrupt_ends_the_window() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "half\n");
    sandbox.after_as("s", &shell, Outcome::Interrupted);
    sandbox.milliseconds_pass(60_000);
    sandbox.write("mine.txt", "mine\n");
    assert!(sandbox.rewind_to(point).success);
    assert!(!sandbox.exists("made.txt"));
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
}

#[test]
fn an_end_learned_after_another_sessions_scan_counts() {
    let (mut sandbox, transcript) = dated();
    let point = sandbox.prompt("s", "go");
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "half\n");
    let end = now(&sandbox);
    sandbox.milliseconds_pass(60_000);
    sandbox.write("mine.txt", "mine\n");
    sandbox.prompt("another", "go");
    assert_eq!(authors(&sandbox, "made.txt"), [format!("s {shell} Bash open window")]);
    assert_eq!(authors(&sandbox, "mine.txt"), [format!("s {shell} Bash open window")]);
    transcript.says("s", &shell, EndKind::Interrupted, Some(end));
    let receipt = sandbox.rewind_to(point);
    assert_eq!(authors(&sandbox, "made.txt")[0], format!("s {shell} Bash window"));
    assert_eq!(authors(&sandbox, "mine.txt"), ["human"]);
    assert_eq!(report(&receipt), ["success", "deleted made.txt", "kept mine.txt: changed by you"]);
}

#[test]
fn without_a_known_end_the_window_is_open() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "whose?\n");
    sandbox.remove("a.txt");
    sandbox.write("b.txt", "whose?\n");
    sandbox.prompt("s", "go on");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all",
            "restored a.txt",
            "ambiguous b.txt: it is not certain who wrote it; --ambiguous take takes it back"
        ]
    );
    let request = RewindRequest { ambiguous: AmbiguousPolicy::Take, ..take(point) };
    assert_eq!(report(&sandbox.rewind(&request).unwrap()), ["success", "deleted b.txt"]);
}

// --- waiting for permission ---------------------------------------------------------------------

#[test]
fn edits_while_a_call_waits_for_permission_are_the_users() {
    let (mut sandbox, _) = dated();
    sandbox.write("b.txt", "before\n");
    let point = sandbox.prompt("s", "go");
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "mine\n");
    sandbox.milliseconds_pass(30_000);
    sandbox.write("b.txt", "made\n");
    sandbox.write("made.txt", "made\n");
    let ending = CallReport { ran_for: Some(Duration::from_secs(2)), ..CallReport::default() };
    sandbox.after_with("s", &shell, Outcome::Done, ending);
    assert_eq!(authors(&sandbox, "a.txt"), ["human"]);
    assert_eq!(authors(&sandbox, "b.txt"), [format!("s {shell} Bash window")]);
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        report(&receipt),
        ["success", "restored b.txt", "deleted made.txt", "kept a.txt: changed by you"]
    );
}

#[test]
fn work_of_a_command_with_an_unknown_start_is_unclear() {
    for outcome in [Outcome::Done, Outcome::Failed, Outcome::Interrupted] {
        let (mut sandbox, _) = dated();
        sandbox.write("b.txt", "before\n");
        let point = sandbox.prompt("s", "go");
        let shell = sandbox.before_shell("s", "make");
        sandbox.write("mine.txt", "mine\n");
        sandbox.milliseconds_pass(30_000);
        sandbox.write("made.txt", "made\n");
        std::fs::remove_file(sandbox.at("b.txt")).unwrap();
        let ending = CallReport { waited: true, ..CallReport::default() };
        sandbox.after_with("s", &shell, outcome, ending);
        assert_eq!(authors(&sandbox, "mine.txt"), [format!("s {shell} Bash open window")]);
        assert_eq!(authors(&sandbox, "made.txt"), [format!("s {shell} Bash open window")]);
        // What happens after its end is the person's.
        sandbox.milliseconds_pass(2_000);
        sandbox.write("later.txt", "mine\n");
        sandbox.turn_end("s");
        let receipt = sandbox.rewind_to(point);
        assert!(sandbox.exists("mine.txt") && sandbox.exists("b.txt"), "{receipt:#?}");
        let unclear = |path| {
            format!(
                "ambiguous {path}: it is not certain who wrote it; --ambiguous take takes it back"
            )
        };
        assert_eq!(
            report(&receipt),
            [
                "not all".to_owned(),
                "restored b.txt".to_owned(),
                "kept later.txt: changed by you".to_owned(),
                unclear("made.txt"),
                unclear("mine.txt"),
            ]
        );
    }
}

#[test]
fn the_temporary_file_of_a_save_is_the_calls() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    let edit = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt.tmp.12.ab", "after\n");
    sandbox.write("a.txt.mine", "mine\n");
    // Another call of the session begins, and looks at the tree.
    let shell = sandbox.before_shell("s", "true");
    std::fs::rename(sandbox.at("a.txt.tmp.12.ab"), sandbox.at("a.txt")).unwrap();
    sandbox.after("s", &edit);
    sandbox.after("s", &shell);
    assert_eq!(authors(&sandbox, "a.txt.tmp.12.ab")[0], format!("s {edit} Edit window"));
    assert_eq!(authors(&sandbox, "a.txt.mine"), ["human"]);
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert!(!sandbox.exists("a.txt.tmp.12.ab"), "{receipt:#?}");
    assert_eq!(sandbox.read("a.txt"), "before\n");
}

#[test]
fn an_edit_that_waited_wrote_what_it_named() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    let edit = sandbox.before_edit("s", &["a.txt"]);
    sandbox.milliseconds_pass(3_000);
    sandbox.write("a.txt", "after\n");
    let ending = CallReport { waited: true, ..CallReport::default() };
    sandbox.after_with("s", &edit, Outcome::Done, ending);
    assert_eq!(authors(&sandbox, "a.txt"), [format!("s {edit} Edit named")]);
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
}

#[test]
fn a_moved_folder_is_the_calls_although_its_files_are_older() {
    let (mut sandbox, _) = dated();
    sandbox.write("old/one.txt", "one\n");
    sandbox.milliseconds_pass(600_000);
    let point = sandbox.prompt("s", "go");
    sandbox.milliseconds_pass(30_000);
    let shell = sandbox.before_shell("s", "mv old new");
    std::fs::rename(sandbox.at("old"), sandbox.at("new")).unwrap();
    let ending = CallReport { ran_for: Some(Duration::from_millis(10)), ..CallReport::default() };
    sandbox.after_with("s", &shell, Outcome::Done, ending);
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert!(sandbox.exists("old/one.txt") && !sandbox.exists("new"));
}

#[test]
fn an_edit_that_succeeded_wrote_what_it_named_however_late_its_hook_came() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    let edit = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "after\n");
    sandbox.milliseconds_pass(3_000);
    let ending = CallReport { ran_for: Some(Duration::from_millis(5)), ..CallReport::default() };
    sandbox.after_with("s", &edit, Outcome::Done, ending);
    assert_eq!(authors(&sandbox, "a.txt"), [format!("s {edit} Edit named")]);
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.read("a.txt"), "before\n");
}

// --- formatters ---------------------------------------------------------------------------------

const FORMATTER: CallReport = CallReport { ran_for: None, waited: false, formatter: true };

#[test]
fn a_formatters_change_right_after_an_edit_is_part_of_the_edit() {
    for formatter in [true, false] {
        let (mut sandbox, _) = dated();
        let point = sandbox.prompt("s", "go");
        let edit = sandbox.before_edit("s", &["a.txt"]);
        sandbox.write("a.txt", "x=1\n");
        let ending = CallReport { formatter, ..FORMATTER };
        sandbox.after_with("s", &edit, Outcome::Done, ending);
        sandbox.milliseconds_pass(800);
        sandbox.write("a.txt", "x = 1\n");
        sandbox.turn_end("s");
        let edited = format!("s {edit} Edit named");
        if formatter {
            assert_eq!(authors(&sandbox, "a.txt"), [edited, format!("s {edit} Edit after edit")]);
            assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
            assert_eq!(sandbox.read("a.txt"), "before\n");
        } else {
            assert_eq!(authors(&sandbox, "a.txt"), [edited, "human".to_owned()]);
        }
        assert_eq!(sandbox.workspace.store.live_calls().unwrap(), []);
    }
}

#[test]
fn a_later_edit_of_the_same_file_in_the_turn_is_the_users() {
    let (mut sandbox, _) = dated();
    sandbox.write("a.txt", "1\n2\n3\n4\n5\n");
    let point = sandbox.prompt("s", "go");
    let edit = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "one\n2\n3\n4\n5\n");
    sandbox.after_with("s", &edit, Outcome::Done, FORMATTER);
    sandbox.milliseconds_pass(20_000);
    sandbox.write("a.txt", "one\n2\n3\n4\nmine\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), [format!("s {edit} Edit named"), "human".to_owned()]);
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "1\n2\n3\n4\nmine\n");
}

#[test]
fn a_formatter_has_time_until_the_sessions_next_event() {
    let (mut sandbox, _) = dated();
    sandbox.prompt("s", "go");
    let edit = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "x=1\n");
    sandbox.after_with("s", &edit, Outcome::Done, FORMATTER);
    sandbox.before_edit("s", &["b.txt"]);
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), [format!("s {edit} Edit named"), "human".to_owned()]);
}

// --- returns ------------------------------------------------------------------------------------

const ONE: &str = "1\n2\n3\n";
const TWO: &str = "one\n2\n3\n";
const THREE: &str = "one!\n2\n3\n";

#[test]
fn the_agents_own_restore_is_a_return_and_not_an_edit() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", ONE);
    let first = sandbox.prompt("s", "first");
    sandbox.agent_writes("s", "a.txt", TWO);
    sandbox.turn_end("s");
    sandbox.prompt("s", "second");
    sandbox.agent_writes("s", "a.txt", THREE);
    sandbox.turn_end("s");
    // "Restore code" to the second prompt.
    sandbox.write("a.txt", TWO);
    sandbox.prompt("s", "third");
    assert_eq!(report(&sandbox.rewind_to(first)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ONE);
}

#[test]
fn a_stash_and_pop_is_no_edit() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", ONE);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", TWO);
    sandbox.agent_writes("s", "made.txt", "made\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", ONE);
    sandbox.remove("made.txt");
    sandbox.prompt("t", "while it is stashed");
    sandbox.turn_end("t");
    sandbox.write("a.txt", TWO);
    sandbox.write("made.txt", "made\n");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        ["success", "restored a.txt", "deleted made.txt"]
    );
}

#[test]
fn stashed_work_needs_no_rewind() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", ONE);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", TWO);
    sandbox.turn_end("s");
    sandbox.write("a.txt", ONE);
    sandbox.prompt("t", "go");
    sandbox.turn_end("t");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success"]);
    assert_eq!(sandbox.read("a.txt"), ONE);
}

#[test]
fn an_agents_checkout_that_destroys_an_edit_is_taken_back() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", ONE);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", TWO);
    sandbox.write("a.txt", "one\n2\n3\nmine\n");
    sandbox.agent_runs("s", "git checkout a.txt", |sandbox| sandbox.write("a.txt", ONE));
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.read("a.txt"), "1\n2\n3\nmine\n");
}
