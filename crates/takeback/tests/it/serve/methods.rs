//! Every method answers as its command does.

use std::fs;

use serde_json::{Value, json};

use super::wire::{Client, stdio, user_with_server};
use crate::notes::{git, project};
use crate::user::{User, column};

/// A session with two prompts, an edit after each.
fn story(user: &User, client: &mut Client) {
    for (message, text) in [("m1", "two\n"), ("m2", "three\n")] {
        client.record(
            &json!({ "event": "prompt", "session": "s1", "message": message, "text": text }),
        );
        client.edit("s1", message, "a.txt", || user.write("a.txt", text));
        client.record(&json!({ "event": "turn_end", "session": "s1" }));
    }
}

#[test]
fn read_only_methods_answer_as_their_commands() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    for (method, params, command) in [
        ("point:list", json!({ "limit": 1 }), vec!["log", "-n", "1"]),
        ("point:list", json!([null, "s1", true]), vec!["log", "--session", "s1", "-a"]),
        ("point:show", json!(["m1"]), vec!["show", "m1"]),
        ("checkpoint:diff", json!(["m1"]), vec!["diff", "m1"]),
        (
            "checkpoint:diff",
            json!(["m1", "m2", ["*.md"]]),
            vec!["diff", "m1", "m2", "--path", "*.md"],
        ),
        (
            "point:rewind",
            json!({ "point": "m1", "dryRun": true }),
            vec!["rewind", "m1", "--dry-run"],
        ),
        ("checkpoint:verify", json!([]), vec!["verify"]),
        (
            "checkpoint:diff",
            json!({ "from": "m1!", "by": "agent" }),
            vec!["diff", "m1!", "--by", "agent"],
        ),
        ("history:why", json!(["a.txt:1"]), vec!["why", "a.txt:1"]),
        ("history:path", json!(["a.txt", 1]), vec!["history", "a.txt", "-n", "1"]),
        ("history:cat", json!(["m2:a.txt"]), vec!["cat", "m2:a.txt"]),
        ("history:stats", json!({ "range": "m1.." }), vec!["stats", "m1.."]),
        (
            "point:list",
            json!({ "paths": ["a.txt"], "by": "agent", "grep": "TWO", "text": "two", "tool": "edit",
                "since": "1d", "until": "0s" }),
            vec![
                "log", "a.txt", "--by", "agent", "--grep", "TWO", "-S", "two", "--tool", "edit",
                "--since", "1d", "--until", "0s",
            ],
        ),
        ("point:list", json!({ "ops": true }), vec!["log", "--ops"]),
        ("session:list", json!({}), vec!["sessions"]),
        ("state:list", json!({}), vec!["state", "list"]),
    ] {
        assert_eq!(client.call(method, &params), user.json(&command), "{method} {params}");
    }
    let blame = client.call("history:blame", &json!(["a.txt", "1"]));
    let lines = user.json(&["blame", "a.txt", "-L", "1"]);
    assert_eq!(blame, json!({ "lines": lines, "problems": [] }));
    let test = ["grep", "-q", "one", "a.txt"];
    let found = client.call("history:bisect", &json!({ "command": test, "good": "m1" }));
    let args = ["bisect", "--json", "--good", "m1", "--"].into_iter().chain(test);
    let printed = user.succeeds(&args.collect::<Vec<_>>());
    let printed: Value = serde_json::from_str(&printed.out).expect("JSON");
    for key in ["call", "prompt", "command", "files", "candidates", "runs", "skipped"] {
        assert_eq!(found[key], printed[key], "{key}");
    }
    assert_eq!((&found["prompt"], &found["runs"]), (&json!("two"), &json!(3)));
    let mut preview = client.call("checkpoint:preview", &json!(["m1"]));
    let mark = preview.as_object_mut().and_then(|preview| preview.remove("mark"));
    assert!(mark.is_some_and(|mark| mark.is_string()));
    assert_eq!(preview, user.json(&["rewind", "m1", "--dry-run"]));
    let status = client.call("status", &json!({}));
    let newest = user.json(&["log"])[0].clone();
    assert_eq!(
        status,
        json!({
            "root": fs::canonicalize(user.work()).expect("it is there"), "recording": true, "seq": 3,
            "points": 2, "sessions": 1, "openTurns": 0, "openCalls": 0, "point": newest,
            "watch": null,
        })
    );
    let info = client.call("server:info", &json!([]));
    assert_eq!((&info["name"], &info["protocol"]), (&json!("takeback"), &json!(1)));
    assert_eq!(info["pid"], client.child.id());
}

#[test]
fn a_mark_applies_only_to_the_previewed_plan() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    let mark = client.call("checkpoint:preview", &json!(["m1"]))["mark"].clone();
    let again = client.call("checkpoint:preview", &json!({ "point": "m1", "exact": false }));
    assert_eq!(again["mark"], mark);
    let rewind = |mark: &Value| json!({ "point": "m1", "mark": mark });
    assert_eq!(client.error("point:rewind", &rewind(&json!("other"))), (-32012, "changed".into()));
    // The same steps, but from other contents.
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m3", "text": "go" }));
    client.edit("s1", "m3", "a.txt", || user.write("a.txt", "four\n"));
    assert_eq!(client.error("point:rewind", &rewind(&mark)), (-32012, "changed".into()));
    assert_eq!(user.read("a.txt"), "four\n", "nothing was done");
    client.record(&json!({ "event": "turn_end", "session": "s1" }));
    let now = client.call("checkpoint:preview", &json!(["m1"]));
    assert_eq!(now["restoredFiles"], again["restoredFiles"]);
    // Files that the rewind keeps may change.
    user.write("mine.txt", "mine\n");
    let done = client.call("point:rewind", &rewind(&now["mark"]));
    assert_eq!((&done["success"], &done["restoredFiles"]), (&json!(true), &json!(["a.txt"])));
    assert_eq!(done["keptFiles"][0]["filePath"], "mine.txt");
    assert_eq!(user.read("a.txt"), "one\n");
}

#[test]
fn patches_are_included_up_to_the_limit() {
    let user = User::with(&[("a.txt", "one\n"), ("b.bin", "\0"), ("c.txt", "c\n")]);
    let mut client = stdio(&user);
    client.call("checkpoint:create", &json!({ "label": "start" }));
    for (name, text) in
        [("a.txt", "two\n".repeat(99)), ("b.bin", "\0\0".into()), ("c.txt", "C\n".into())]
    {
        user.write(name, &text);
    }
    let mut patches = |most: u64| -> Vec<Value> {
        let diffs = client.call("checkpoint:diff", &json!({ "from": "start", "patchBytes": most }));
        column(&diffs, "patch")
    };
    let last = "diff --git a/c.txt b/c.txt\n--- a/c.txt\n+++ b/c.txt\n@@ -1 +1 @@\n-c\n+C\n";
    assert_eq!(patches(200), [Value::Null, Value::Null, json!(last)], "what fits, and is text");
    assert_eq!(patches(0), [Value::Null, Value::Null, Value::Null]);
    assert!(patches(10_000)[0].as_str().is_some_and(|patch| patch.contains("+two\n")));
}

#[test]
fn only_the_user_can_allow_agents_to_rewind() {
    let user = User::new();
    let mut client = stdio(&user);
    user.write(".takeback/settings.json", r#"{"allowAgentRewind": true}"#);
    assert_eq!(client.call("server:info", &json!({}))["allowAgentRewind"], false);
    user.set(r#"{"allowAgentRewind": true}"#);
    assert_eq!(client.call("server:info", &json!({}))["allowAgentRewind"], true);
    user.set(r#"{"allowAgentRewind": "#);
    assert_eq!(client.call("server:info", &json!({}))["allowAgentRewind"], false);
}

#[test]
fn a_rewind_is_done_undone_and_done_again() {
    let user = User::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    let mut client = stdio(&user);
    let made = client.call("checkpoint:create", &json!({ "label": "start" }));
    assert_eq!(made["label"], "start");
    assert_eq!(
        client.error("checkpoint:create", &json!(["start"])),
        (-32602, "invalidParams".into())
    );
    story(&user, &mut client);
    user.write("b.txt", "mine\n");
    let done = client.call("point:rewind", &json!({ "point": "m1", "paths": ["*.md"] }));
    assert_eq!(done["restoredFiles"], json!([]), "{done}");
    let done = client.call("point:rewind", &json!({ "point": "m1" }));
    assert_eq!((&done["success"], &done["restoredFiles"]), (&json!(true), &json!(["a.txt"])));
    assert_eq!((user.read("a.txt"), user.read("b.txt")), ("one\n".into(), "mine\n".into()));
    client.call("checkpoint:undo", &json!({}));
    assert_eq!(user.read("a.txt"), "three\n");
    client.call("checkpoint:redo", &json!({}));
    assert_eq!(user.read("a.txt"), "one\n");
    assert_eq!(client.error("checkpoint:redo", &json!({})), (-32006, "nothingToDo".into()));
    let exact = json!({ "point": "start", "exact": true, "sessions": ["s1"] });
    assert_eq!(client.error("point:rewind", &exact), (-32602, "invalidParams".into()));
    client.call("point:rewind", &json!({ "point": "start", "exact": true }));
    assert_eq!(user.read("b.txt"), "b\n", "also what a person did");
}

#[test]
fn a_conflict_is_data() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    user.write("a.txt", "mine\n");
    let done = client.call("checkpoint:rewind", &json!(["s1", "m1"]));
    assert_eq!((&done["success"], &done["restoredFiles"]), (&json!(false), &json!([])));
    assert_eq!(done["conflicts"][0]["filePath"], "a.txt");
    assert_eq!(user.read("a.txt"), "mine\n");
}

#[test]
fn sessions_are_archived_and_deleted_by_their_whole_id() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    for method in ["session:archive", "session:delete"] {
        assert_eq!(client.error(method, &json!(["s"])), (-32007, "unknownSession".into()));
    }
    let archived = client.call("session:archive", &json!(["s1"]));
    assert_eq!((&archived["session"], &archived["keptDays"]), (&json!("s1"), &json!(7)));
    let deleted = client.call("session:delete", &json!({ "sessionId": "s1" }));
    assert_eq!((&deleted["sessions"], &deleted["points"]), (&json!(["s1"]), &json!(2)));
    assert_eq!(client.call("session:list", &json!({})), json!([]));
    assert_eq!(user.read("a.txt"), "three\n", "files are not touched");
}

#[test]
fn states_are_saved_shown_and_taken_back() {
    let (user, mut client) = user_with_server();
    let save = |step: u32, state: Value| {
        json!({ "checkpoint": {
            "execution_id": "e", "step_name": "n", "step_index": step, "state": state, "context": {},
        } })
    };
    let saved = client.call("state:save", &save(1, json!({ "x": 0.1 })));
    assert_eq!((&saved["id"], &saved["is_new"]), (&json!("ckpt-e-1"), &json!(true)));
    client.edit("e", "c", "a.txt", || user.write("a.txt", "two\n"));
    let mut first = save(2, json!({ "x": 2 }));
    first["checkpoint"]["expect"] = json!("newest");
    first["checkpoint"]["parent"] = json!(null);
    assert_eq!(client.error("state:save", &first), (-32009, "conflict".to_owned()));
    client.call("state:save", &save(2, json!({ "x": 2 })));
    for (method, params, command) in [
        ("state:list", json!({}), vec!["state", "list"]),
        ("state:list", json!(["e"]), vec!["state", "list", "e"]),
        ("state:show", json!(["ckpt-e-1"]), vec!["state", "show", "ckpt-e-1"]),
        ("state:resume", json!({ "id": "e" }), vec!["state", "resume", "e"]),
        (
            "state:rollback",
            json!({ "id": "ckpt-e-1", "dryRun": true }),
            vec!["state", "rollback", "ckpt-e-1", "--dry-run"],
        ),
        (
            "state:delete",
            json!({ "id": "e", "dryRun": true }),
            vec!["state", "delete", "e", "--dry-run"],
        ),
    ] {
        assert_eq!(client.call(method, &params), user.json(&command), "{method} {params}");
    }
    for (params, fault) in [
        (json!({ "id": "ckpt-e-1", "ambiguous": "ask" }), "invalidParams"),
        (json!({ "id": "ckpt-e-1", "ambiguous": "take", "exact": true }), "invalidParams"),
    ] {
        assert_eq!(client.error("state:rollback", &params), (-32602, fault.into()), "{params}");
    }
    let take = json!({ "id": "ckpt-e-1", "ambiguous": "take", "dryRun": true });
    assert_eq!(client.call("state:rollback", &take)["restoredFiles"], json!(["a.txt"]));
    let done = client.call("state:rollback", &json!(["ckpt-e-1"]));
    assert_eq!((&done["success"], &done["state"]["moved"]), (&json!(true), &json!(true)));
    assert_eq!(user.read("a.txt"), "one\n");
    let forked = client.call("state:fork", &json!({ "id": "ckpt-e-1", "branch": "other" }));
    assert_eq!(forked, json!({ "execution_id": "e", "branch": "other", "from": "ckpt-e-1.a1" }));
    let rounded = r#"{"jsonrpc":"2.0","id":"r","method":"state:save","params":{"checkpoint":{"execution_id":"e","step_name":"n","step_index":3,"state":99999999999999999999,"context":0}}}"#;
    client.send(rounded.as_bytes());
    let refused = client.message();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("r"), &json!(-32602)));
    assert_eq!(client.error("state:show", &json!(["ckpt-e-9"])), (-32008, "unknownState".into()));
    assert_eq!(client.error("state:resume", &json!(["f"])), (-32008, "unknownState".into()));
    assert_eq!(client.call("state:delete", &json!(["e"]))["deleted"], true);
}

#[test]
fn other_workspaces_are_named_and_settings_followed_at_once() {
    let user = User::with(&[("a.txt", "one\n")]);
    let other = user.home().join("other");
    fs::create_dir(&other).expect("a folder");
    let mut client = stdio(&user);
    let there = json!({ "workspace": other });
    assert_eq!(client.error("status", &there), (-32000, "noStore".into()));
    client.call("checkpoint:create", &json!({ "label": "there", "workspace": other }));
    assert_eq!(client.call("status", &there)["points"], 1);
    assert_eq!(client.error("status", &json!([])), (-32000, "noStore".into()));
    client.call("checkpoint:create", &json!([]));
    user.set(r#"{"enableFileCheckpointing": false}"#);
    assert_eq!(client.error("checkpoint:create", &json!([])), (-32004, "notEnabled".into()));
    let event = json!({ "event": "prompt", "session": "s", "text": "x" });
    let refused = client.call("event:record", &event);
    assert_eq!(refused, json!({ "ok": false, "error": "Checkpoint feature not enabled" }));
    assert_eq!(client.call("status", &json!([]))["recording"], false);
    user.set("{}");
    client.record(&event);
    user.succeeds(&["forget", "-y"]);
    assert_eq!(client.error("status", &json!([])), (-32000, "noStore".into()), "it is gone");
    client.record(&event);
    assert_eq!(user.json(&["log"]).as_array().map(Vec::len), Some(1), "and was made anew");
    let nowhere = json!({ "workspace": "/nowhere/at/all" });
    assert_eq!(client.error("status", &nowhere), (-32602, "invalidParams".into()));
    let third = json!([{ "event": "turn_end", "session": "s" }, null, 1]);
    assert_eq!(client.error("event:record", &third), (-32602, "invalidParams".into()));
    assert_eq!(
        client.error("event:hook", &json!({ "agent": "x", "payload": {} })),
        (-32010, "unknownAgent".into())
    );
}

#[test]
fn ambiguous_names_list_their_candidates() {
    let (_user, mut client) = user_with_server();
    for session in ["one", "other"] {
        client
            .record(&json!({ "event": "prompt", "session": session, "message": "m", "text": "x" }));
    }
    let answer = client.response("point:show", &json!(["m"]));
    assert_eq!(answer["error"]["code"], -32003, "{answer}");
    assert_eq!(answer["error"]["data"]["candidates"].as_array().map(Vec::len), Some(2));
    let answer = client.response("point:list", &json!({ "session": "o" }));
    assert_eq!(answer["error"]["data"]["candidates"], json!(["one", "other"]));
    assert_eq!(client.call("point:show", &json!(["one:m"]))["session"], "one");
    assert_eq!(client.error("point:show", &json!(["nope"])), (-32002, "unknownPoint".into()));
}

#[test]
fn a_locked_or_damaged_store_has_a_code() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    let lock = fs::File::open(user.store().join("lock")).expect("a lock");
    lock.lock().expect("no other process has it");
    assert_eq!(client.error("checkpoint:create", &json!([])), (-32001, "locked".into()));
    drop(lock);
    for pack in fs::read_dir(user.store().join("packs")).expect("packs") {
        fs::write(pack.expect("it has a name").path(), "nothing").expect("it is damaged");
    }
    assert_eq!(client.error("checkpoint:list", &json!(["s1"])), (-32005, "storeDamaged".into()));
    assert_eq!(client.call("checkpoint:verify", &json!([]))["ok"], false);
}

#[test]
fn a_part_of_a_file_is_read() {
    let user = User::with(&[("a.txt", "one\nzwölf\nthree\n"), ("b.bin", "")]);
    fs::write(user.work().join("b.bin"), [0xff, 0, 1]).expect("a file");
    let mut client = stdio(&user);
    client.call("checkpoint:create", &json!({ "label": "start" }));
    let mut cat = |more: Value| {
        let mut params = json!({ "file": "start:a.txt" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.call("history:cat", &params)
    };
    let text = |text: &str| json!({ "size": 17, "text": text, "base64": null });
    assert_eq!(cat(json!({})), text("one\nzwölf\nthree\n"));
    assert_eq!(cat(json!({ "lines": "2-9", "maxBytes": 99 })), text("zwölf\nthree\n"));
    let cut = |text: &str| json!({ "size": 17, "text": text, "base64": null, "cut": true });
    assert_eq!(cat(json!({ "maxBytes": 7 })), cut("one\nzw"), "a character is not cut");
    assert_eq!(cat(json!({ "lines": "2", "maxBytes": 1 })), cut("z"));
    let bytes = client.call("history:cat", &json!({ "file": "start:b.bin", "maxBytes": 2 }));
    assert_eq!(bytes, json!({ "size": 3, "text": null, "base64": "/wA=", "cut": true }));
    for (params, code, kind) in [
        (json!({ "file": "start:b.bin", "lines": "1" }), -32014, "notText"),
        (json!({ "file": "start:a.txt", "lines": "4" }), -32013, "unknownPath"),
        (json!({ "file": "start:a.txt", "lines": "0" }), -32602, "invalidParams"),
        (json!({ "file": "start:none" }), -32013, "unknownPath"),
        (json!({ "file": "none:a.txt" }), -32002, "unknownPoint"),
        (json!({ "file": "a.txt" }), -32602, "invalidParams"),
    ] {
        assert_eq!(client.error("history:cat", &params), (code, kind.to_owned()), "{params}");
    }
}

#[test]
fn a_question_about_nothing_has_a_kind() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    user.write("nul", "a\0b");
    client.call("checkpoint:create", &json!({ "label": "start" }));
    for (method, params, kind) in [
        ("history:blame", json!({ "path": "none" }), "unknownPath"),
        ("history:blame", json!({ "path": "nul" }), "notText"),
        ("history:blame", json!({ "path": "a.txt", "lines": "9" }), "unknownPath"),
        ("history:blame", json!({ "path": "a.txt", "lines": "2-1" }), "invalidParams"),
        ("history:why", json!({ "line": "a.txt" }), "invalidParams"),
        ("history:why", json!({ "line": "a.txt:7" }), "unknownPath"),
        ("history:path", json!({ "path": "none" }), "unknownPath"),
        ("history:stats", json!({ "range": "m1" }), "invalidParams"),
        ("history:stats", json!({ "range": "none.." }), "unknownPoint"),
        ("history:stats", json!({ "since": "once" }), "invalidParams"),
        ("history:bisect", json!({ "command": [] }), "invalidParams"),
        ("history:bisect", json!({ "command": ["true"], "good": "none" }), "unknownPoint"),
        ("checkpoint:diff", json!({ "from": "m1!", "to": "m2" }), "invalidParams"),
        ("checkpoint:diff", json!({ "from": "m1", "by": "none" }), "unknownSession"),
        ("point:list", json!({ "by": "none" }), "unknownSession"),
        ("point:list", json!({ "since": "once" }), "invalidParams"),
        ("point:list", json!({ "paths": ["["] }), "invalidParams"),
        ("point:list", json!({ "ops": true, "by": "you" }), "invalidParams"),
        ("point:show", json!({ "point": "none" }), "unknownPoint"),
    ] {
        assert_eq!(client.error(method, &params).1, kind, "{method} {params}");
    }
}

/// Every method refuses a parameter that it does not have, and a value of the wrong type.
#[test]
fn every_method_refuses_a_wrong_parameter() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    let methods = client.call("server:info", &json!({}))["methods"].clone();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/protocol.md");
    let document = fs::read_to_string(schema).expect("the document");
    for method in methods.as_array().expect("a list").iter().filter_map(Value::as_str) {
        if method == "event:record" {
            // Its parameters are an event with any fields; a wrong one is answered, not refused.
            continue;
        }
        let refused = client.error(method, &json!({ "nonsense": 1 }));
        assert_eq!(refused, (-32602, "invalidParams".to_owned()), "{method}");
        let row = document.lines().find(|line| line.starts_with(&format!("| `{method}` |")));
        let params = row.and_then(|row| row.split('|').nth(2)).unwrap_or_default();
        let Some(first) = params.split('`').nth(1) else { continue };
        let wrong = json!({ first.trim_end_matches('?'): { "an": "object" } });
        let refused = client.error(method, &wrong);
        // The payload of a hook and a step are objects.
        if !matches!(method, "state:save") {
            assert_eq!(refused, (-32602, "invalidParams".to_owned()), "{method} {wrong}");
        }
    }
}

#[test]
fn what_blame_could_not_ask_is_in_its_answer() {
    let user = project();
    user.write("a.txt", "one\ntwo\nmine\n");
    git(&user, "notes --ref=ai add -f -m unreadable HEAD~1");
    let mut client = stdio(&user);
    let problem = "cannot be read";
    let blame = client.call("history:blame", &json!({ "path": "a.txt" }));
    assert_eq!(blame["lines"], user.json(&["blame", "a.txt"]), "{blame}");
    let problems = blame["problems"].as_array().expect("a list");
    assert_eq!(problems.len(), 1, "{blame}");
    let problem = problems[0].as_str().filter(|text| text.contains(problem)).expect("a problem");
    let why = client.call("history:why", &json!({ "line": "a.txt:1" }));
    assert_eq!(why["problems"], json!([problem]), "{why}");
    assert_eq!(why, user.json(&["why", "a.txt:1"]));
    user.succeeds(&["blame", "a.txt", "--json"]).reports(problem);
}

#[test]
fn actions_do_what_their_preview_shows() {
    let (user, mut client) = user_with_server();
    user.write("a.txt", "1\n2\n3\n4\n5\n");
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m1", "text": "ends" }));
    client.edit("s1", "c1", "a.txt", || user.write("a.txt", "first\n2\n3\n4\nlast\n"));
    client.record(&json!({ "event": "turn_end", "session": "s1" }));
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m2", "text": "later" }));
    client.record(&json!({ "event": "turn_end", "session": "s1" }));
    user.write("a.txt", "first\n2\n3\n4\nmine\n");

    let mut shown = client.call("checkpoint:revert", &json!({ "what": "m1", "dryRun": true }));
    let mark = shown.as_object_mut().and_then(|shown| shown.remove("mark")).expect("a mark");
    assert_eq!(shown, user.json(&["revert", "m1", "--dry-run"]));
    assert_eq!(shown["conflicts"][0]["lines"][0]["mine"], "mine\n");
    user.write("a.txt", "first\n2\n3\n4\nmine too\n");
    let by_mark = json!({ "what": "m1", "mark": mark });
    assert_eq!(client.error("checkpoint:revert", &by_mark), (-32012, "changed".into()));
    user.write("a.txt", "first\n2\n3\n4\nmine\n");
    let reverted = client.call("checkpoint:revert", &by_mark);
    assert_eq!(user.read("a.txt"), "1\n2\n3\n4\nmine\n");

    let open = client.call("checkpoint:conflicts", &json!({}));
    assert_eq!(open, user.json(&["resolve", "--list"]));
    assert_eq!(
        (&open[0]["operation"], &open[0]["lines"][0]["line"]),
        (&reverted["rewind"], &json!(5))
    );
    for (params, why) in [
        (json!({}), "neither"),
        (json!({ "take": "mine", "choices": [] }), "both"),
        (json!({ "take": "theirs" }), "an unknown side"),
        (json!({ "choices": [{ "filePath": "b.txt", "places": [] }] }), "another file"),
        (json!({ "choices": [{ "filePath": "a.txt", "places": [] }] }), "too few"),
    ] {
        assert_eq!(client.error("checkpoint:resolve", &params).0, -32602, "{why}");
    }
    let text = json!({ "choices": [{ "filePath": "a.txt", "places": [{ "text": "both\n" }] }] });
    let settled = client.call("checkpoint:resolve", &text);
    assert_eq!(
        (&settled["success"], user.read("a.txt").as_str()),
        (&json!(true), "1\n2\n3\n4\nboth\n")
    );
    assert_eq!(client.call("checkpoint:conflicts", &json!({})), json!([]));
    let none = client.error("checkpoint:resolve", &json!({ "take": "mine" }));
    assert_eq!(none, (-32006, "nothingToDo".into()));

    let undone = client.call("checkpoint:undo", &json!({ "operation": settled["rewind"] }));
    assert_eq!(
        (&undone["success"], user.read("a.txt").as_str()),
        (&json!(true), "1\n2\n3\n4\nmine\n")
    );
    let from = json!({ "paths": ["a.txt"], "from": "m1" });
    assert_eq!(client.call("checkpoint:restore", &from)["restoredFiles"], json!(["a.txt"]));
    assert_eq!(user.read("a.txt"), "1\n2\n3\n4\n5\n");
    let nothing = client.error("checkpoint:restore", &json!({ "paths": [] }));
    assert_eq!(nothing, (-32602, "invalidParams".into()));
}

#[test]
fn a_rewind_can_take_back_conflicting_lines() {
    let (user, mut client) = user_with_server();
    story(&user, &mut client);
    user.write("a.txt", "mine\n");
    let stay = json!({ "sessionId": "s1", "messageId": "m1" });
    assert_eq!(client.call("checkpoint:rewind", &stay)["conflicts"][0]["filePath"], "a.txt");
    let mut take = json!({ "point": "m1", "conflicts": "take" });
    let shown = client.call("checkpoint:preview", &take);
    assert_eq!(shown["restoredFiles"], json!(["a.txt"]), "{shown}");
    take["mark"] = shown["mark"].clone();
    client.call("point:rewind", &take);
    assert_eq!(user.read("a.txt"), "one\n");
    let other = json!({ "point": "m1", "conflicts": "mine" });
    assert_eq!(client.error("point:rewind", &other), (-32602, "invalidParams".into()));
}
