//! What happens between an agent and the person before its terminal, and what a rewind makes of it.

use std::time::Duration;

use serde_json::{Value, json};

use super::described;
use super::desk::Desk;
use super::terminal::{Person, Seated, outcome};

const FILES: &[(&str, &str)] = &[("named.txt", "1\ntwo\n3\n4\n5\n6\n"), ("mine.txt", "mine\n")];

/// Longer than the end of a call is uncertain.
pub(super) const A_MOMENT: Duration = Duration::from_millis(1200);

/// Longer than a formatter has time, and than a command in the background stays suspect.
const LATER: Duration = Duration::from_secs(6);

/// Goes back to the first of so many prompts.
fn rewinds(desk: &Desk, prompts: usize) -> Value {
    let points = desk.user.json(&["log"]);
    assert_eq!(points.as_array().map(Vec::len), Some(prompts), "{points}");
    let point = &points[prompts - 1];
    let receipt = desk.user.json(&["rewind", point["id"].as_str().expect("an id"), "-y"]);
    assert_eq!(desk.user.takeback(&["verify"]).code, 0);
    receipt
}

/// How it is known that an agent changed a path.
fn evidence(receipt: &Value, path: &str) -> Value {
    let all = receipt["evidence"].as_array().into_iter().flatten();
    let of_path: Vec<&Value> = all.filter(|one| one["filePath"] == path).collect();
    let [one] = of_path[..] else { panic!("{path}: {receipt}") };
    one["evidence"].clone()
}

/// `pause`: how long after the refusal the person begins to edit.
pub(super) fn a_refused_command_wrote_nothing<A: Seated>(pause: Duration) {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    let says =
        [A::write(&desk, "agents.txt", "the agent's\n"), A::run("touch refused.txt; rm mine.txt")];
    person.asks("Refuse it", &says.concat());
    person.allows::<A>("agents.txt");
    person.finds("agents.txt");
    person.refuses_command::<A>("refused.txt");
    person.waits(pause);
    let user = &desk.user;
    user.write("mine.txt", "mine, and more\n");
    user.write("new.txt", "mine\n");
    user.write("refused.txt", "mine\n");
    person.waits(A_MOMENT);

    let receipt = rewinds(&desk, 1);
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    assert_eq!(user.read("new.txt"), "mine\n", "{receipt}");
    assert_eq!(user.read("refused.txt"), "mine\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": ["agents.txt"], "restored": [], "merged": [],
        "kept": ["mine.txt", "new.txt", "refused.txt"], "conflicts": [], "unclear": [],
        "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
    assert_eq!(evidence(&receipt, "agents.txt"), "named");
}

pub(super) fn a_refused_edit_wrote_nothing<A: Seated>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    let says = [
        A::write(&desk, "agents.txt", "the agent's\n"),
        A::replace(&desk, "named.txt", "two", "the agent's"),
    ];
    person.asks("Refuse it", &says.concat());
    person.allows::<A>("agents.txt");
    person.finds("agents.txt");
    person.refuses_edit::<A>("named.txt");
    let user = &desk.user;
    user.write("named.txt", "1\nmine\n3\n4\n5\n6\n");
    user.write("mine.txt", "mine, and more\n");
    person.waits(A_MOMENT);

    let receipt = rewinds(&desk, 1);
    assert_eq!(user.read("named.txt"), "1\nmine\n3\n4\n5\n6\n", "{receipt}");
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": ["agents.txt"], "restored": [], "merged": [],
        "kept": ["mine.txt", "named.txt"], "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
}

pub(super) fn a_stopped_command_is_taken_back<A: Seated>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    let command = "echo half > made.txt; sleep 30; echo rest > rest.txt";
    person.asks("Stop it", &A::run(command));
    person.allows::<A>("made.txt");
    person.finds("made.txt");
    person.stops::<A>();
    person.waits(A_MOMENT);
    let user = &desk.user;
    user.write("mine.txt", "mine, and more\n");
    user.write("new.txt", "mine\n");

    let receipt = rewinds(&desk, 1);
    assert!(!user.exists("made.txt") && !user.exists("rest.txt"), "{receipt}");
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    assert_eq!(user.read("new.txt"), "mine\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": ["made.txt"], "restored": [], "merged": [],
        "kept": ["mine.txt", "new.txt"], "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
    assert_eq!(evidence(&receipt, "made.txt"), "window");
}

pub(super) fn while_a_command_waits_the_changes_are_yours<A: Seated>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    let says = [A::run("echo made > made.txt"), vec![json!("All is done.")]];
    person.asks("Wait for me", &says.concat());
    person.is_asked::<A>("made.txt");
    let user = &desk.user;
    user.write("notes.txt", "mine\n");
    user.write("mine.txt", "mine, and more\n");
    person.waits(Duration::from_secs(2));
    person.allows::<A>("made.txt");
    person.seat.sees("All is done.");

    let receipt = rewinds(&desk, 1);
    assert!(!user.exists("made.txt"), "{receipt}");
    assert_eq!(user.read("notes.txt"), "mine\n", "{receipt}");
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": ["made.txt"], "restored": [], "merged": [],
        "kept": ["mine.txt", "notes.txt"], "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
    assert_eq!(evidence(&receipt, "made.txt"), "window");
}

pub(super) fn a_stopped_command_is_unclear<A: Seated>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    person.asks("Stop it", &A::run("echo half > made.txt; sleep 30; echo rest > rest.txt"));
    person.allows::<A>("made.txt");
    person.finds("made.txt");
    person.stops::<A>();
    person.waits(A_MOMENT);
    let user = &desk.user;
    user.write("mine.txt", "mine, and more\n");

    let receipt = rewinds(&desk, 1);
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    assert_eq!(user.read("made.txt"), "half\n", "{receipt}");
    let expected = json!({
        "success": false, "deleted": [], "restored": [], "merged": [], "kept": ["mine.txt"],
        "conflicts": [], "unclear": ["made.txt"], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
    assert_eq!(evidence(&receipt, "made.txt"), "openWindow");
}

pub(super) fn after_a_stop_the_conversation_goes_on<A: Seated>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    person.asks("Stop it", &A::run("echo half > made.txt; sleep 30; echo rest > rest.txt"));
    person.allows::<A>("made.txt");
    person.finds("made.txt");
    person.stops::<A>();
    person.waits(A_MOMENT);
    let user = &desk.user;
    user.write("mine.txt", "mine, and more\n");
    user.write("new.txt", "mine\n");
    let says = [A::run("echo later > later.txt; rm new.txt"), vec![json!("All is done.")]];
    person.asks("Go on", &says.concat());
    person.allows::<A>("later.txt");
    person.seat.sees("All is done.");
    assert!(user.exists("later.txt") && !user.exists("new.txt"));

    let receipt = rewinds(&desk, 2);
    assert!(!user.exists("made.txt") && !user.exists("later.txt"), "{receipt}");
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    assert_eq!(user.read("new.txt"), "mine\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": ["later.txt", "made.txt"], "restored": ["new.txt"],
        "merged": [], "kept": ["mine.txt"], "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
    assert_eq!(evidence(&receipt, "made.txt"), "window");
}

/// `formats`: has the agent run a command after each edit.
pub(super) fn a_formatters_work_is_taken_back<A: Seated>(formats: impl Fn(&Desk, &str)) {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = edits_and_formats::<A>(&desk, formats);
    person.waits(A_MOMENT);

    let receipt = rewinds(&desk, 1);
    assert_eq!(desk.user.read("named.txt"), "1\ntwo\n3\n4\n5\n6\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": [], "restored": ["named.txt"], "merged": [], "kept": [],
        "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
    assert_eq!(evidence(&receipt, "named.txt"), "afterEdit");
}

pub(super) fn later_than_a_formatter_the_changes_are_yours<A: Seated>(
    formats: impl Fn(&Desk, &str),
) {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = edits_and_formats::<A>(&desk, formats);
    person.waits(LATER);
    desk.user.write("named.txt", "1\nTHE AGENT'S\n3\n4\n5\nmine\n");

    let receipt = rewinds(&desk, 1);
    assert_eq!(desk.user.read("named.txt"), "1\ntwo\n3\n4\n5\nmine\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": [], "restored": [], "merged": ["named.txt"], "kept": [],
        "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
}

/// The agent edits a file, a formatter rewrites it, and the turn ends.
fn edits_and_formats<'d, A: Seated>(desk: &'d Desk, formats: impl Fn(&Desk, &str)) -> Person<'d> {
    // Takeback's own hook has seen the file by then.
    formats(desk, "sleep 0.3; sed -i s/agent/AGENT/ named.txt; sed -i y/thes/THES/ named.txt");
    let mut person = Person::before::<A>(desk);
    let edit = A::replace(desk, "named.txt", "two", "the agent's");
    person.asks("Format it", &[edit, vec![json!("All is done.")]].concat());
    person.allows::<A>("named.txt");
    person.seat.sees("All is done.");
    assert_eq!(desk.user.read("named.txt"), "1\nTHE AGENT'S\n3\n4\n5\n6\n");
    person
}

/// The agent shows the person what Takeback's hook reports.
pub(super) fn a_deleted_store_is_shown<A: Seated>() {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    let edit = A::replace(&desk, "named.txt", "two", "the agent's");
    person.asks("Edit it", &[edit, vec![json!("That is done.")]].concat());
    person.allows::<A>("named.txt");
    person.seat.sees("That is done.");
    person.waits(A_MOMENT);
    let stores = desk.user.home().join(".takeback/workspaces");
    std::fs::remove_dir_all(stores).expect("it goes");
    let edit = A::replace(&desk, "named.txt", "3", "the agent's, too");
    person.asks("Once more", &[edit, vec![json!("All is done.")]].concat());
    person.allows::<A>("named.txt");
    person.seat.sees("All is done.").sees("Takeback: the history of");
}

/// `serve`: what the model says to run a command in the background.
pub(super) fn beside_a_server_the_changes_are_yours<A: Seated>(serve: fn(&str) -> Vec<Value>) {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let mut person = Person::before::<A>(&desk);
    let says = [
        // Its log is written when the call has answered.
        serve("sleep 2; echo started > server.log; exec sleep 50"),
        A::replace(&desk, "named.txt", "two", "the agent's"),
        vec![json!("All is done.")],
    ];
    person.asks("Serve it", &says.concat());
    person.allows::<A>("server.log");
    person.allows::<A>("named.txt");
    person.seat.sees("All is done.");
    person.finds("server.log");
    person.waits(LATER);
    let user = &desk.user;
    user.write("named.txt", "1\nthe agent's\n3\n4\n5\nmine\n");
    user.write("mine.txt", "mine, and more\n");
    user.write("new.txt", "mine\n");

    let receipt = rewinds(&desk, 1);
    assert_eq!(user.read("named.txt"), "1\ntwo\n3\n4\n5\nmine\n", "{receipt}");
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "{receipt}");
    assert_eq!(user.read("new.txt"), "mine\n", "{receipt}");
    let done = outcome(&receipt);
    assert_eq!(done["merged"], json!(["named.txt"]), "{receipt}");
    assert_eq!(done["kept"], json!(["mine.txt", "new.txt"]), "{receipt}");
    // Nothing tells who made it: the command was running in the background.
    assert_eq!(done["unclear"], json!(["server.log"]), "{receipt}");
}

/// `hire`: what the model says to have a subagent work in the background on a prompt.
pub(super) fn a_subagent_that_outlives_the_turn_is_taken_back<A: Seated>(
    hire: fn(&str) -> Vec<Value>,
) {
    let Some(desk) = Desk::of::<A>(FILES) else { return };
    let script = desk.user.home().join("subagent.json");
    let says = A::write(&desk, "subagents.txt", "the subagent's\n");
    std::fs::write(&script, Value::Array(says).to_string()).expect("a script");
    let mut person = Person::before::<A>(&desk);
    let says = [
        hire(&format!("Do it. <<LABFILE {} FILE>>", script.display())),
        vec![json!("The turn is over.")],
    ];
    person.asks("Hire one", &says.concat());
    person.seat.sees("The turn is over.");
    person.waits(A_MOMENT);
    person.allows::<A>("subagents.txt");
    person.finds("subagents.txt");
    person.waits(Duration::from_secs(4));
    desk.user.write("mine.txt", "mine, and more\n");

    let points = desk.user.json(&["log"]);
    let told: Vec<&str> = points.as_array().into_iter().flatten().filter_map(described).collect();
    assert_eq!(told, ["Hire one"], "{points}");
    let receipt = rewinds(&desk, 1);
    assert!(!desk.user.exists("subagents.txt"), "{receipt}");
    assert_eq!(desk.user.read("mine.txt"), "mine, and more\n", "{receipt}");
    let expected = json!({
        "success": true, "deleted": ["subagents.txt"], "restored": [], "merged": [],
        "kept": ["mine.txt"], "conflicts": [], "unclear": [], "missing": [],
    });
    assert_eq!(outcome(&receipt), expected, "{receipt}");
}
