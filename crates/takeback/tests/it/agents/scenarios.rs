//! What happens between an agent and a person, and what a rewind makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use takeback_testkit::Thing;

use super::setup::AgentSetup;
use super::terminal::Person;
use super::{AgentDriver, Conversation};

const FILES: &[(&str, &str)] = &[("named.txt", "1\ntwo\n3\n4\n5\n6\n"), ("mine.txt", "mine\n")];

/// Longer than the end of a call is uncertain.
pub(super) const A_MOMENT: Duration = Duration::from_millis(1200);

/// Longer than a formatter has time, and than a command in the background stays suspect.
const LATER: Duration = Duration::from_secs(6);

/// What the person wrote into `mine.txt`.
const MINE: (&str, Option<&str>) = ("mine.txt", Some("mine, and more\n"));

/// Rewinds to the first of this many prompts. Then the files have these texts (`None`: no file), and the
/// receipt has these paths.
#[track_caller]
fn rewinds(
    setup: &AgentSetup,
    prompts: usize,
    files: &[(&str, Option<&str>)],
    expected: &Value,
) -> Value {
    let user = &setup.user;
    let points = user.json(&["log"]);
    assert_eq!(points.as_array().map(Vec::len), Some(prompts), "{points}");
    let point = &points[prompts - 1];
    let receipt = user.json(&["rewind", point["id"].as_str().expect("an id"), "-y"]);
    user.succeeds(&["verify"]);
    for (path, text) in files {
        let found = user.exists(path).then(|| user.read(path));
        assert_eq!(found.as_deref(), *text, "{path}: {receipt}");
    }
    assert_eq!(outcome(&receipt), *expected, "{receipt}");
    receipt
}

/// A receipt's success and its paths, without empty lists.
fn outcome(receipt: &Value) -> Value {
    let mut outcome = Map::from_iter([("success".to_owned(), receipt["success"].clone())]);
    for (name, list) in [
        ("restored", "restoredFiles"),
        ("deleted", "deletedFiles"),
        ("merged", "mergedFiles"),
        ("kept", "keptFiles"),
        ("conflicts", "conflicts"),
        ("unclear", "ambiguous"),
        ("missing", "notCaptured"),
    ] {
        let notes = receipt[list].as_array().into_iter().flatten();
        let mut paths: Vec<&Value> =
            notes.map(|note| if note.is_string() { note } else { &note["filePath"] }).collect();
        paths.sort_by_key(|path| path.to_string());
        if !paths.is_empty() {
            outcome.insert(name.to_owned(), json!(paths));
        }
    }
    Value::Object(outcome)
}

/// How it is known that an agent changed a path.
fn evidence(receipt: &Value, path: &str) -> Value {
    let all = receipt["evidence"].as_array().into_iter().flatten();
    let of_path: Vec<&Value> = all.filter(|one| one["filePath"] == path).collect();
    let [one] = of_path[..] else { panic!("{path}: {receipt}") };
    one["evidence"].clone()
}

/// `pause`: how long after the refusal the person begins to edit.
pub(super) fn a_refused_command_wrote_nothing(driver: &'static AgentDriver, pause: Duration) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let mut person = Person::at(&setup);
    let write = setup.write("agents.txt", "the agent's\n");
    person.prompts("Refuse it", &[write, setup.run("touch refused.txt; rm mine.txt")]);
    person.allows("agents.txt");
    person.finds("agents.txt");
    person.refuses_command("refused.txt");
    person.waits(pause);
    setup.user.write("mine.txt", "mine, and more\n");
    setup.user.write("new.txt", "mine\n");
    setup.user.write("refused.txt", "mine\n");
    person.waits(A_MOMENT);

    let files = [MINE, ("new.txt", Some("mine\n")), ("refused.txt", Some("mine\n"))];
    let kept = ["mine.txt", "new.txt", "refused.txt"];
    let expected = json!({"success": true, "deleted": ["agents.txt"], "kept": kept});
    let receipt = rewinds(&setup, 1, &files, &expected);
    assert_eq!(evidence(&receipt, "agents.txt"), "named");
}

pub(super) fn a_refused_edit_wrote_nothing(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let mut person = Person::at(&setup);
    let write = setup.write("agents.txt", "the agent's\n");
    person.prompts("Refuse it", &[write, setup.replace("named.txt", "two", "the agent's")]);
    person.allows("agents.txt");
    person.finds("agents.txt");
    person.refuses_edit("named.txt");
    setup.user.write("named.txt", "1\nmine\n3\n4\n5\n6\n");
    setup.user.write("mine.txt", "mine, and more\n");
    person.waits(A_MOMENT);

    let files = [MINE, ("named.txt", Some("1\nmine\n3\n4\n5\n6\n"))];
    let kept = ["mine.txt", "named.txt"];
    let expected = json!({"success": true, "deleted": ["agents.txt"], "kept": kept});
    rewinds(&setup, 1, &files, &expected);
}

/// Allows a command that creates `made.txt`, and stops it before it creates `rest.txt`.
fn stops_a_command<'s>(setup: &'s AgentSetup) -> Person<'s> {
    let mut person = Person::at(setup);
    let command = "echo half > made.txt; sleep 30; echo rest > rest.txt";
    person.prompts("Stop it", &[setup.run(command)]);
    person.allows("made.txt");
    person.finds("made.txt");
    person.stops();
    person.waits(A_MOMENT);
    setup.user.write("mine.txt", "mine, and more\n");
    person
}

pub(super) fn a_stopped_command_is_taken_back(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let _person = stops_a_command(&setup);
    setup.user.write("new.txt", "mine\n");

    let files = [MINE, ("new.txt", Some("mine\n")), ("made.txt", None), ("rest.txt", None)];
    let kept = ["mine.txt", "new.txt"];
    let expected = json!({"success": true, "deleted": ["made.txt"], "kept": kept});
    let receipt = rewinds(&setup, 1, &files, &expected);
    assert_eq!(evidence(&receipt, "made.txt"), "window");
}

pub(super) fn a_stopped_command_is_unclear(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let _person = stops_a_command(&setup);

    let files = [MINE, ("made.txt", Some("half\n"))];
    let expected = json!({"success": false, "kept": ["mine.txt"], "unclear": ["made.txt"]});
    let receipt = rewinds(&setup, 1, &files, &expected);
    assert_eq!(evidence(&receipt, "made.txt"), "openWindow");
}

pub(super) fn after_a_stop_the_conversation_continues(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let mut person = stops_a_command(&setup);
    let user = &setup.user;
    user.write("new.txt", "mine\n");
    let run = setup.run("echo later > later.txt; rm new.txt");
    person.prompts("Go on", &[run, vec![json!("All is done.")]]);
    person.allows("later.txt");
    person.terminal.sees("All is done.");
    assert!(user.exists("later.txt") && !user.exists("new.txt"));

    let files = [MINE, ("new.txt", Some("mine\n")), ("made.txt", None), ("later.txt", None)];
    let expected = json!({
        "success": true, "deleted": ["later.txt", "made.txt"], "restored": ["new.txt"],
        "kept": ["mine.txt"],
    });
    let receipt = rewinds(&setup, 2, &files, &expected);
    assert_eq!(evidence(&receipt, "made.txt"), "window");
}

pub(super) fn while_a_command_waits_the_changes_are_yours(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let mut person = Person::at(&setup);
    let run = setup.run("echo made > made.txt");
    person.prompts("Wait for me", &[run, vec![json!("All is done.")]]);
    person.sees_question("made.txt");
    setup.user.write("notes.txt", "mine\n");
    setup.user.write("mine.txt", "mine, and more\n");
    person.waits(Duration::from_secs(2));
    person.allows("made.txt");
    person.terminal.sees("All is done.");

    let files = [MINE, ("notes.txt", Some("mine\n")), ("made.txt", None)];
    let kept = ["mine.txt", "notes.txt"];
    let expected = json!({"success": true, "deleted": ["made.txt"], "kept": kept});
    let receipt = rewinds(&setup, 1, &files, &expected);
    assert_eq!(evidence(&receipt, "made.txt"), "window");
}

/// `formats`: has the agent run a command after each edit.
pub(super) fn a_formatters_work_is_taken_back(
    driver: &'static AgentDriver,
    formats: fn(&AgentSetup, &str),
) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    edits_and_formats(&setup, formats).waits(A_MOMENT);

    let files = [("named.txt", Some("1\ntwo\n3\n4\n5\n6\n"))];
    let expected = json!({"success": true, "restored": ["named.txt"]});
    let receipt = rewinds(&setup, 1, &files, &expected);
    assert_eq!(evidence(&receipt, "named.txt"), "afterEdit");
}

pub(super) fn later_than_a_formatter_the_changes_are_yours(
    driver: &'static AgentDriver,
    formats: fn(&AgentSetup, &str),
) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    edits_and_formats(&setup, formats).waits(LATER);
    setup.user.write("named.txt", "1\nTHE AGENT'S\n3\n4\n5\nmine\n");

    let files = [("named.txt", Some("1\ntwo\n3\n4\n5\nmine\n"))];
    rewinds(&setup, 1, &files, &json!({"success": true, "merged": ["named.txt"]}));
}

/// The agent edits a file, a formatter rewrites it, and the turn ends.
fn edits_and_formats<'s>(setup: &'s AgentSetup, formats: fn(&AgentSetup, &str)) -> Person<'s> {
    // Takeback's own hook has read the file by then.
    formats(setup, "sleep 0.3; sed -i s/agent/AGENT/ named.txt; sed -i y/thes/THES/ named.txt");
    let mut person = Person::at(setup);
    let edit = setup.replace("named.txt", "two", "the agent's");
    person.prompts("Format it", &[edit, vec![json!("All is done.")]]);
    person.allows("named.txt");
    person.terminal.sees("All is done.");
    assert_eq!(setup.user.read("named.txt"), "1\nTHE AGENT'S\n3\n4\n5\n6\n");
    person
}

/// The agent shows the person what Takeback's hook reports.
pub(super) fn a_deleted_store_is_shown(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let mut person = Person::at(&setup);
    let edit = setup.replace("named.txt", "two", "the agent's");
    person.prompts("Edit it", &[edit, vec![json!("That is done.")]]);
    person.allows("named.txt");
    person.terminal.sees("That is done.");
    person.waits(A_MOMENT);
    let stores = setup.user.home().join(".takeback/workspaces");
    std::fs::remove_dir_all(stores).expect("it goes");
    let edit = setup.replace("named.txt", "3", "the agent's, too");
    person.prompts("Once more", &[edit, vec![json!("All is done.")]]);
    person.allows("named.txt");
    person.terminal.sees("All is done.").sees("Takeback: the history of");
}

/// `serve`: the model's message that runs a command in the background.
pub(super) fn while_a_server_runs_the_changes_are_yours(
    driver: &'static AgentDriver,
    serve: fn(&str) -> Vec<Value>,
) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let mut person = Person::at(&setup);
    // The log is written after the call has returned.
    let serve = serve("sleep 2; echo started > server.log; exec sleep 50");
    let edit = setup.replace("named.txt", "two", "the agent's");
    person.prompts("Serve it", &[serve, edit, vec![json!("All is done.")]]);
    person.allows("server.log");
    person.allows("named.txt");
    person.terminal.sees("All is done.");
    person.finds("server.log");
    person.waits(LATER);
    setup.user.write("named.txt", "1\nthe agent's\n3\n4\n5\nmine\n");
    setup.user.write("mine.txt", "mine, and more\n");
    setup.user.write("new.txt", "mine\n");

    let named = ("named.txt", Some("1\ntwo\n3\n4\n5\nmine\n"));
    let files = [MINE, ("new.txt", Some("mine\n")), named];
    // The command was running in the background, so the author of the log is not known.
    let expected = json!({
        "success": false, "merged": ["named.txt"], "kept": ["mine.txt", "new.txt"],
        "unclear": ["server.log"],
    });
    rewinds(&setup, 1, &files, &expected);
}

/// `start`: the model's message that starts a subagent in the background with a prompt.
pub(super) fn a_subagent_that_outlives_the_turn_is_taken_back(
    driver: &'static AgentDriver,
    start: fn(&str) -> Vec<Value>,
) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    let script = setup.user.home().join("subagent.json");
    let write = setup.write("subagents.txt", "the subagent's\n");
    std::fs::write(&script, Value::Array(write).to_string()).expect("a script");
    let mut person = Person::at(&setup);
    let subagent = start(&format!("Do it. <<LABFILE {} FILE>>", script.display()));
    person.prompts("Hire one", &[subagent, vec![json!("The turn is over.")]]);
    person.terminal.sees("The turn is over.");
    person.waits(A_MOMENT);
    person.allows("subagents.txt");
    person.finds("subagents.txt");
    person.waits(Duration::from_secs(4));
    setup.user.write("mine.txt", "mine, and more\n");

    assert_eq!(prompts(&setup.user.json(&["log"])), ["Hire one"]);
    let expected = json!({"success": true, "deleted": ["subagents.txt"], "kept": ["mine.txt"]});
    rewinds(&setup, 1, &[MINE, ("subagents.txt", None)], &expected);
}

/// The changes after the first prompt and before the second, each with its author.
const AFTER_FIRST: &[(&str, &str)] = &[
    ("notes.txt", "agent"),
    ("made", "agent"),
    ("made/new.txt", "agent"),
    ("shared.txt", "agent"),
    ("gone.txt", "agent"),
    ("shell.txt", "agent"),
    ("empty", "agent"),
    ("mine.txt", "human"),
    ("shared.txt", "human"),
    ("human", "human"),
    ("human/made.txt", "human"),
];

const AFTER_SECOND: &[(&str, &str)] = &[
    ("notes.txt", "agent"),
    ("shared.txt", "agent"),
    ("made/later.txt", "agent"),
    ("shell.txt", "agent"),
    ("made/new.txt", "agent"),
];

/// Two prompts with edits and commands and the user's own work in between, then a rewind to the first.
pub(super) fn a_session_is_taken_back_and_yours_stays(driver: &'static AgentDriver) {
    let files = [
        ("notes.txt", "one\n"),
        ("gone.txt", "here\n"),
        ("mine.txt", "mine\n"),
        ("shared.txt", "top\n1\n2\n3\n4\nbottom\n"),
    ];
    let Some(setup) = AgentSetup::new(driver, &files) else { return };
    let user = &setup.user;
    let before = user.tree();
    let answers = [
        setup.replace("notes.txt", "one", "two"),
        setup.write("made/new.txt", "new\n"),
        setup.replace("shared.txt", "top", "top, the agent's"),
        setup.run("rm gone.txt; echo shell > shell.txt; mkdir empty"),
    ];
    setup.prompt(Conversation::New, "First", &answers);
    assert_eq!(user.read("notes.txt"), "two\n");
    assert!(user.exists("shell.txt") && user.exists("empty") && !user.exists("gone.txt"));

    user.write("mine.txt", "mine, and more\n");
    user.write("shared.txt", "top, the agent's\n1\n2\n3\n4\nbottom, mine\n");
    user.write("human/made.txt", "mine\n");
    let expected = with_yours(before, &user.tree());

    let answers = [
        setup.replace("notes.txt", "two", "three"),
        setup.replace("shared.txt", "top, the agent's", "top, the agent's again"),
        setup.write("made/later.txt", "later\n"),
        setup.run("echo more >> shell.txt; echo more >> made/new.txt"),
    ];
    setup.prompt(Conversation::Continued, "Second", &answers);
    assert_eq!(user.read("notes.txt"), "three\n");
    assert_eq!(user.read("made/new.txt"), "new\nmore\n");

    let session = setup.session();
    let points = user.json(&["log"]);
    assert_eq!(prompts(&points), ["Second", "First"], "{points}");
    assert_eq!(authors(&user.json(&["show", "@~1"]), &session), owned(AFTER_FIRST));
    assert_eq!(authors(&user.json(&["show", "@"]), &session), owned(AFTER_SECOND));

    let first = points[1]["id"].as_str().expect("it has an id");
    let answer = user.succeeds(&["rewind", first, "-y"]);
    assert_eq!(user.tree(), expected, "{answer:?}");
    user.succeeds(&["verify"]);
}

type Tree = BTreeMap<PathBuf, Thing>;

/// The tree before the first prompt, with what the user has done since.
fn with_yours(mut before: Tree, now: &Tree) -> Tree {
    for path in ["mine.txt", "human", "human/made.txt"].map(PathBuf::from) {
        let yours = now[&path].clone();
        before.insert(path, yours);
    }
    let Some(Thing::File { bytes, .. }) = before.get_mut(Path::new("shared.txt")) else {
        panic!("it is a file");
    };
    *bytes = b"top\n1\n2\n3\n4\nbottom, mine\n".to_vec();
    before
}

/// The prompts of points, without the script that each carries.
fn prompts(points: &Value) -> Vec<&str> {
    let points = points.as_array().into_iter().flatten();
    points.filter_map(|point| point["description"].as_str()?.split('.').next()).collect()
}

/// The paths that changed after a point, each with its author: `agent` is this session.
pub(super) fn authors(shown: &Value, session: &str) -> BTreeSet<(String, String)> {
    let changes = shown["changes"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let author = |change: &Value| {
        let author = &change["author"];
        let kind = author["kind"].as_str().unwrap_or_else(|| panic!("{change}"));
        assert!(kind != "agent" || author["session"] == session, "{change}");
        (change["filePath"].as_str().unwrap_or_default().to_owned(), kind.to_owned())
    };
    changes.iter().map(author).collect()
}

pub(super) fn owned(expected: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    expected.iter().map(|(path, author)| ((*path).to_owned(), (*author).to_owned())).collect()
}

/// With the prompt after a rewind the model reads what was taken back, and only then.
pub(super) fn the_model_is_told_what_was_taken_back(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    // The line quotes the ends of the prompt: the beginning of the script must not be among them.
    let text = "Make a file of your own and say when it is done";
    setup.prompt(Conversation::New, text, &[setup.write("agents.txt", "the agent's\n")]);
    setup.user.write("mine.txt", "mine, and more\n");
    setup.user.succeeds(&["rewind", "@", "-y"]);
    let before = setup.model.asked().len();
    setup.prompt(Conversation::Continued, "Go on", &[]);
    let asked: Vec<String> =
        setup.model.asked()[before..].iter().map(ToString::to_string).collect();
    let line = "Takeback: your changes to agents.txt (prompt ";
    assert!(asked.iter().any(|body| body.contains(line)), "{asked:?}");
    setup.prompt(Conversation::Continued, "And on", &[]);
    let last = setup.model.asked().pop().expect("the model was asked").to_string();
    assert_eq!(last.matches(line).count(), 1, "it is told once: {last}");
}

/// With `warnOnOverwrite` the model reads who changed the file that it is about to edit.
pub(super) fn the_model_is_warned_before_it_overwrites(driver: &'static AgentDriver) {
    let Some(setup) = AgentSetup::new(driver, FILES) else { return };
    setup.user.set(r#"{"hookDeadlineMs": 60000, "scanBudgetMs": 60000, "warnOnOverwrite": true}"#);
    let replaces = |line, with| setup.replace("named.txt", line, with);
    setup.prompt(Conversation::New, "Change it", &[replaces("two", "the agent's")]);
    setup.user.write("named.txt", "1\nthe agent's\n3\n4\n5\nmine\n");
    setup.prompt(Conversation::Continued, "Change it again", &[replaces("3", "three")]);
    let line = "Takeback: named.txt was changed by the user since you last changed or read it.";
    let asked: Vec<String> = setup.model.asked().iter().map(ToString::to_string).collect();
    assert!(asked.iter().any(|body| body.contains(line)), "{asked:?}");
    assert_eq!(setup.user.read("named.txt"), "1\nthe agent's\nthree\n4\n5\nmine\n");
}
