//! The seed's own story, with a scenario instead of a model.

use serde_json::json;

use super::*;

const ADD: &str = "export function add(a: number, b: number) { return a + b; }\n";
const MULTIPLY: &str = "export function multiply(a: number, b: number) { return a * b; }\n";

fn utils() -> BuiltinOptions {
    let script = json!({"turns": [
        {"steps": [
            {"say": "I create it."},
            {"tool": "write_file", "input": {"path": "utils.ts", "content": ADD}},
            {"tool": "shell", "input": {"command": "echo made > log.txt"}},
            {"say": "There it is."},
        ]},
        {"steps": [
            {"tool": "edit_file", "input": {
                "path": "utils.ts", "old_string": ADD, "new_string": format!("{ADD}{MULTIPLY}"),
            }},
            {"tool": "shell", "input": {"command": "rm log.txt; echo gone"}},
            {"say": "More of it."},
        ]},
    ]});
    scenario(&script.to_string())
}

#[test]
fn create_utils_add_rewind_and_add_again() {
    let mut sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, utils());

    let first = talk.turn("Create a file utils.ts");
    assert_eq!(text(&first), "I create it.\nThere it is.\n");
    assert_eq!(
        tools(&first),
        [
            called("Write utils.ts", true, "created, 1 line"),
            called("$ echo made > log.txt", true, "done, no output"),
        ]
    );
    assert_eq!(ending(&first), &TurnResult::Done);
    assert!(is_between_turns(&sandbox));
    let memory = talk.agent.memory();

    for round in 1..=2 {
        let second = talk.turn("Add multiply");
        assert_eq!(
            tools(&second),
            [
                called("Edit utils.ts", true, "1 replacement"),
                called("$ rm log.txt; echo gone", true, "gone"),
            ],
            "round {round}"
        );
        assert_eq!(sandbox.read("utils.ts"), format!("{ADD}{MULTIPLY}"));
        assert!(!sandbox.exists("log.txt"));

        let receipt = go_to(&mut sandbox, point(&second));
        assert!(receipt.success);
        talk.agent.cut(&message(talk.prompts)).unwrap();
        assert_eq!(sandbox.read("utils.ts"), ADD);
        assert_eq!(sandbox.read("log.txt"), "made\n");
        assert_eq!(talk.agent.memory(), memory);
        assert_eq!(step_names(&sandbox).last().unwrap(), "model");
        assert_eq!(
            state_at(&sandbox, steps(&sandbox).last().unwrap())["messages"],
            memory["messages"]
        );
    }
}

#[test]
fn every_step_is_saved_and_a_turn_has_files_where_it_begins_and_ends() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, utils());
    let events = talk.turn("Create a file utils.ts");
    let names = ["start", "prompt", "model", "tool write_file", "tool shell", "model"];
    assert_eq!(step_names(&sandbox), names);

    let lengths: Vec<usize> = steps(&sandbox)
        .iter()
        .map(|step| state_at(&sandbox, step)["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [0, 1, 2, 3, 3, 4]);
    let points: Vec<_> = steps(&sandbox).iter().map(|step| step.point).collect();
    assert_eq!(points[1], Some(point(&events)));
    let carried: Vec<bool> = points.iter().map(Option::is_some).collect();
    assert_eq!(carried, [false, true, false, false, false, true]);
    assert_ne!(points[1], points[5], "the calls changed something");

    let last = steps(&sandbox).pop().unwrap();
    let saved = sandbox.workspace.states.load(&last.key.id()).unwrap().unwrap().values;
    assert_eq!(saved.context, json!({"agent": "builtin", "model": "scripted"}));
    let call = |at: usize| saved.state["messages"][1]["content"][at]["id"].clone();
    assert_eq!(
        saved.state,
        json!({"messages": [
            {"role": "user", "id": message(1), "content": [
                {"type": "text", "text": "Create a file utils.ts"},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I create it."},
                {"type": "tool_use", "id": call(1), "name": "write_file",
                 "input": {"path": "utils.ts", "content": ADD}},
                {"type": "tool_use", "id": call(2), "name": "shell",
                 "input": {"command": "echo made > log.txt"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call(1),
                 "content": "utils.ts was created.", "is_error": false},
                {"type": "tool_result", "tool_use_id": call(2),
                 "content": "[no output]", "is_error": false},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "There it is."}]},
        ]})
    );
    assert_ne!(call(1), call(2));
}

#[test]
fn each_call_reports_its_changes() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, utils());
    let events = talk.turn("go");
    let changes: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ChatEvent::ToolEnd { changes, .. } => Some(changes.expect("it changed something")),
            _ => None,
        })
        .collect();
    let changed = |(after, to): (takeback_store::Seq, takeback_store::Seq)| -> Vec<String> {
        let all = sandbox.workspace.store.changes_after(after).unwrap().into_iter();
        let these = all.filter(|change| change.seq <= to);
        these.map(|change| String::from_utf8_lossy(change.path.as_bytes()).into_owned()).collect()
    };
    assert_eq!(changed(changes[0]), ["utils.ts"]);
    assert_eq!(changed(changes[1]), ["log.txt"]);
}

#[test]
fn after_the_last_turn_the_scenario_is_over() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, scenario(r#"{"turns":[]}"#));
    let events = talk.turn("anything");
    assert!(text(&events).starts_with("The scenario is over"), "{events:?}");
    assert_eq!(ending(&events), &TurnResult::Done);
    assert_eq!(ending(&talk.turn("more")), &TurnResult::Done);
}
