//! What each tool answers, in both eras.

use std::fs;

use serde_json::{Value, json};

use crate::client::{Client, User, text};

#[test]
fn tools_are_announced_with_what_they_do() {
    let user = User::new();
    let mut client = user.connect();
    let about = client.initialize(&json!({}));
    assert_eq!(about["protocolVersion"], "2025-11-25");
    assert_eq!(about["serverInfo"]["name"], "takeback");
    assert_eq!(about["capabilities"], json!({"tools": {}}));
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list").clone();
    let hints = |tool: &Value| {
        let hints = &tool["annotations"];
        (
            tool["name"].as_str().expect("a name").to_owned(),
            hints["readOnlyHint"] == true,
            hints["destructiveHint"] == true,
        )
    };
    let expected = [
        ("list_points", true, false),
        ("show_point", true, false),
        ("diff", true, false),
        ("blame", true, false),
        ("why", true, false),
        ("history", true, false),
        ("stats", true, false),
        ("cat", true, false),
        ("preview_rewind", true, false),
        ("preview_revert", true, false),
        ("checkpoint", false, false),
        ("rewind", false, true),
        ("revert", false, true),
        ("restore", false, true),
    ];
    let expected = expected.map(|(name, looks, destroys)| (name.to_owned(), looks, destroys));
    assert_eq!(tools.iter().map(hints).collect::<Vec<_>>(), expected);
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
        assert!(tool["inputSchema"]["properties"].get("workspace").is_none(), "it is where it is");
    }
}

#[test]
fn commands_are_run_only_by_a_server_that_was_allowed_to() {
    let user = User::with_work();
    let test = json!({"command": ["sh", "-c", "echo ran >> ../ran; ! grep -q TWO a.txt"]});
    let mut client = user.initialized(&json!({"elicitation": {}}));
    let refused = client.request("tools/call", json!({"name": "bisect", "arguments": test}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let why = refused["error"]["message"].as_str().expect("a message");
    assert!(why.contains("`takeback mcp --allow-bisect`"), "{why}");

    let mut client = user.initialized_with(&["--allow-bisect"]);
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("a list");
    let tool = tools.last().expect("a tool");
    assert_eq!(tool["name"], "bisect");
    let hints = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false,
        "openWorldHint": true});
    assert_eq!(tool["annotations"], hints);
    let is_closed = |tool: &Value| tool["annotations"]["openWorldHint"] == false;
    assert!(tools[..tools.len() - 1].iter().all(is_closed), "{listed}");

    let before = user.files();
    let found = client.call("bisect", &test);
    let point = found["structuredContent"]["turn"].as_str().expect("a point");
    assert_eq!(
        text(&found),
        format!(
            "The first failure came with this step (3 runs, 0 skipped):\nBy session s1 with Write\n\
             Prompt: point {point} “Make it better”\nFiles:\n- a.txt\n- b.txt\n\
             `diff` from \"{point}!\" shows what the prompt changed.\n"
        )
    );
    assert_eq!(found["structuredContent"]["prompt"], "Make it better");
    assert_eq!(found["structuredContent"]["evidence"], "named");
    assert_eq!(user.files(), before);
    let nothing = failing(&mut client, "bisect", &json!({"command": ["false"]}));
    assert!(nothing.starts_with("`false` does not succeed"), "{nothing}");
    let nothing = failing(&mut client, "bisect", &json!({"command": []}));
    assert!(nothing.contains("command is empty"), "{nothing}");
}

#[test]
fn both_eras_are_known_on_one_program() {
    let user = User::with_work();
    let mut client = user.connect();
    client.stateless(&json!({}));
    let found = client.request("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().expect("versions").clone();
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{found}");
    }
    let points = client.call("list_points", &json!({}));
    assert_eq!(points["resultType"], "complete");
    assert_eq!(points["structuredContent"]["points"][0]["description"], "Make it better");
    let mut old = user.initialized(&json!({}));
    let same = old.call("list_points", &json!({}));
    assert_eq!(same.get("resultType"), None);
    assert_eq!(same["structuredContent"], points["structuredContent"]);
}

#[test]
fn a_workspace_without_points_has_none_and_says_what_to_do() {
    let user = User::new();
    let mut client = user.initialized(&json!({}));
    let none = client.call("list_points", &json!({}));
    assert_eq!(
        (&none["isError"], &none["structuredContent"]["points"]),
        (&json!(false), &json!([]))
    );
    assert!(text(&none).contains("`checkpoint` makes the first point"), "{none}");
    let lacking = client.call("show_point", &json!({"point": "@"}));
    assert_eq!(lacking["isError"], true);
    assert!(text(&lacking).contains("`checkpoint` makes the first point"), "{lacking}");
    assert!(!user.beside("home/.takeback").exists(), "looking makes no store");

    user.write("a", "1");
    let made = client.call("checkpoint", &json!({"label": "first"}));
    let id = made["structuredContent"]["id"].as_str().expect("an id");
    assert_eq!(text(&made), format!("Made point {id}."));
    let points = client.call("list_points", &json!({"limit": 1}));
    assert_eq!(points["structuredContent"]["points"][0]["id"], id);
    assert_eq!(points["structuredContent"]["points"][0]["label"], "first");
}

#[test]
fn points_diffs_and_previews_are_returned() {
    let user = User::with_work();
    let mut client = user.initialized(&json!({}));
    let of_session = client.call("list_points", &json!({"session_id": "s1"}));
    let points = of_session["structuredContent"]["points"].as_array().expect("points");
    assert_eq!(points.len(), 1);
    assert!(text(&of_session).contains("prompt “Make it better”  (session s1)"), "{of_session}");

    let shown = client.call("show_point", &json!({"point": "m1"}));
    assert!(text(&shown).contains("- changed a.txt by session s1 with Write\n"), "{shown}");
    assert!(text(&shown).contains("- created b.txt by session s1 with Write\n"), "{shown}");
    assert_eq!(shown["structuredContent"]["changes"][1]["change"], "created");

    let diff = client.call("diff", &json!({"from": "first"}));
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";
    assert!(text(&diff).contains(patch), "{diff}");
    assert_eq!(diff["structuredContent"].get("note"), None);
    let file = &diff["structuredContent"]["files"][0];
    assert_eq!((&file["filePath"], &file["insertions"]), (&json!("a.txt"), &json!(1)));
    assert!(file["patch"].as_str().is_some_and(|told| told.ends_with(patch)), "{file}");
    assert_eq!(file.get("before"), None);
    let stat = client.call("diff", &json!({"from": "first", "paths": ["b.txt"], "stat": true}));
    assert_eq!(text(&stat), "1 file differs:\n- b.txt  +1 -0\n");

    let preview = client.call("preview_rewind", &json!({"point": "first"}));
    assert_eq!(
        text(&preview),
        "Takes back what all agents did; the user changed something since, which stays.\n\
         Would restore (1):\n- a.txt\nWould delete (not there at the point) (1):\n- b.txt\n\
         Would keep (1):\n- c.txt: changed by you\n(“You” in a reason is the user.)\n"
    );
    assert_eq!(preview["structuredContent"]["restoredFiles"], json!(["a.txt"]));
    assert_eq!(preview["structuredContent"]["note"], "“You” in a reason is the user.");
    let one = client.call("preview_rewind", &json!({"point": "first", "paths": ["b.txt"]}));
    assert_eq!(one["structuredContent"]["restoredFiles"], json!([]));
    assert_eq!(one["structuredContent"]["deletedFiles"], json!(["b.txt"]));
    assert_eq!(fs::read_to_string(user.work().join("a.txt")).expect("text"), "one\nTWO\n");
}

#[test]
fn a_long_diff_is_cut_with_a_word_how_to_ask_for_less() {
    let user = User::with_work();
    user.write("long.txt", &"a line that is new\n".repeat(4000));
    let mut client = user.initialized(&json!({}));
    let diff = client.call("diff", &json!({"from": "first"}));
    let note =
        "The patch is too long: that of 1 file is left out. Ask again with `paths`, or read them.";
    assert_eq!(diff["structuredContent"]["note"], note);
    assert!(text(&diff).ends_with(&format!("{note}\n")), "{}", text(&diff));
    assert!(text(&diff).contains("+TWO"), "the others are there");
}

fn failing(client: &mut Client, name: &str, arguments: &Value) -> String {
    let result = client.call(name, arguments);
    assert_eq!(result["isError"], true, "{result}");
    text(&result).to_owned()
}

#[test]
fn errors_are_reported_to_the_model() {
    let user = User::with_work();
    let mut client = user.initialized(&json!({}));
    let unknown = failing(&mut client, "show_point", &json!({"point": "nonsense"}));
    assert!(unknown.starts_with("No point is called \"nonsense\"."), "{unknown}");
    assert!(unknown.ends_with("`list_points` shows the points with their ids."), "{unknown}");
    let missing = failing(&mut client, "show_point", &json!({}));
    assert_eq!(missing, "The arguments do not fit: missing field `point`.");
    for more in [json!({"workspace": "/"}), json!({"outside": true}), json!({"discard": ["a"]})] {
        let mut arguments = json!({"point": "first"});
        arguments
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("one").clone());
        let refused = failing(&mut client, "rewind", &arguments);
        assert!(refused.starts_with("The arguments do not fit: unknown field"), "{refused}");
    }
    let none = client.request("tools/call", json!({"name": "undo", "arguments": {}}));
    assert_eq!(none["error"]["code"], -32602);
    assert_eq!(none["error"]["message"], "there is no tool undo");
}
