//! Questions about files over time, as a model asks them.

use serde_json::{Value, json};

use crate::client::{Client, User, text};

/// Points with the time and the ids replaced by what they are.
fn plain(user: &User, told: &str) -> String {
    let listed: Value = serde_json::from_str(&user.takeback(&["log", "--json"], "")).expect("JSON");
    let mut told = told.to_owned();
    for point in listed.as_array().expect("a list") {
        let name = point["label"].as_str().or_else(|| point["messageIds"][0].as_str());
        let id = point["id"].as_str().expect("an id");
        told = told.replace(id, &format!("<{}>", name.unwrap_or("op")));
        told = told.replace(point["createdAt"].as_str().expect("a time"), "<then>");
    }
    told
}

#[test]
fn blame_and_why_name_the_writer_of_each_line() {
    let user = User::with_work();
    user.write("a.txt", "zero\none\nTWO\n");
    let mut client = user.initialized(&json!({}));
    let blame = client.call("blame", &json!({"path": "a.txt"}));
    assert_eq!(
        plain(&user, text(&blame)),
        "a.txt:\n1 by the user\n  | zero\n2 by unknown: older than the log\n  | one\n\
         3 by session s1 with Write, point <m1> “Make it better”\n  | TWO\n"
    );
    let lines = blame["structuredContent"]["lines"].as_array().expect("lines").clone();
    let authors: Vec<&Value> = lines.iter().map(|line| &line["author"]).collect();
    assert_eq!(authors, ["you", "before", "agent"]);
    assert_eq!(lines[2]["tool"], "Write");
    let part = client.call("blame", &json!({"path": "a.txt", "lines": "2-3"}));
    assert_eq!(part["structuredContent"]["lines"], json!(lines[1..]));

    let why = client.call("why", &json!({"path": "a.txt", "line": 3}));
    let told = plain(&user, text(&why));
    assert!(
        told.starts_with("a.txt:3\n  | TWO\nWritten by session s1 with Write, point <m1>"),
        "{told}"
    );
    assert!(told.contains("Prompt: “Make it better”\nThe change:\ndiff --git"), "{told}");
    assert!(told.ends_with("-two\n+TWO\n"), "{told}");
    assert_eq!(why["structuredContent"]["wholePrompt"], "Make it better");
}

#[test]
fn history_stats_and_cat_answer_from_the_log() {
    let user = User::with_work();
    let mut client = user.initialized(&json!({}));
    let history = client.call("history", &json!({"path": "a.txt"}));
    let told = plain(&user, text(&history));
    let rows: Vec<&str> = told.lines().collect();
    assert_eq!(rows[0], "a.txt, newest first:");
    assert!(rows[1].starts_with("- after <m1> “Make it better”  "), "{told}");
    assert!(rows[1].ends_with("  changed  agent 1 file, +1 -1"), "{told}");
    assert_eq!(history["structuredContent"]["rows"][0]["byAuthor"]["agent"]["insertions"], 1);
    let one = client.call("history", &json!({"path": "a.txt", "limit": 1}));
    assert!(
        text(&one).ends_with("(There may be more; ask again with a larger `limit`.)\n"),
        "{one}"
    );

    let stats = client.call("stats", &json!({}));
    assert_eq!(
        plain(&user, text(&stats)),
        "agents: 2 files, +2 -1; 2 of them left\nthe user: 1 file, +1 -0; 1 of them left\n\
         By session:\n- s1: 2 files, +2 -1; 2 of them left\n\
         By prompt, newest first:\n- <m1> “Make it better”: 2 files, +2 -1; 2 of them left\n"
    );
    assert_eq!(stats["structuredContent"]["you"]["insertions"], 1);

    let cat = client.call("cat", &json!({"point": "first", "path": "a.txt"}));
    assert_eq!(text(&cat), "one\ntwo\n");
    assert_eq!(cat["structuredContent"], json!({"size": 8, "text": "one\ntwo\n"}));
    let line = client.call("cat", &json!({"point": "first", "path": "a.txt", "lines": "2"}));
    assert_eq!(line["structuredContent"], json!({"size": 8, "text": "two\n"}));
}

#[test]
fn points_are_filtered_and_operations_listed() {
    let user = User::with_work();
    user.takeback(&["rewind", "m1", "-y"], "");
    let mut client = user.initialized(&json!({}));
    let mut ids = |filter: Value| -> Vec<String> {
        let found = client.call("list_points", &filter);
        let points = found["structuredContent"]["points"].as_array().expect("points").clone();
        let name =
            |point: &Value| point["label"].as_str().or(point["kind"].as_str()).map(str::to_owned);
        points.iter().filter_map(name).collect()
    };
    assert_eq!(ids(json!({})), ["rewind", "prompt", "first"]);
    assert_eq!(ids(json!({"ops": true})), ["rewind"]);
    assert_eq!(ids(json!({"by": "agent"})), ["prompt"]);
    assert_eq!(ids(json!({"grep": "BETTER"})), ["prompt"]);
    assert_eq!(ids(json!({"text": "TWO"})), ["rewind", "prompt"]);
    assert_eq!(ids(json!({"tool": "write", "paths": ["b.txt"]})), ["prompt"]);
    assert_eq!(ids(json!({"since": "1d", "until": "1h"})), [""; 0]);
    let all = client.call("list_points", &json!({}));
    assert!(text(&all).contains("+2 -1; user 1 file, +1 -0  (taken back)\n"), "{all}");
    assert!(text(&all).contains("rewind “rewind to "), "{all}");
}

#[test]
fn a_diff_shows_one_prompt_or_one_author() {
    let user = User::with_work();
    let mut client = user.initialized(&json!({}));
    let mut paths = |what: Value| -> Vec<String> {
        let diff = client.call("diff", &what);
        let files = diff["structuredContent"]["files"].as_array().expect("files").clone();
        files.iter().map(|file| file["filePath"].as_str().expect("a path").to_owned()).collect()
    };
    assert_eq!(paths(json!({"from": "first"})), ["a.txt", "b.txt", "c.txt"]);
    assert_eq!(paths(json!({"from": "first", "by": "you"})), ["c.txt"]);
    assert_eq!(paths(json!({"from": "m1!"})), ["a.txt", "b.txt"]);
}

#[test]
fn what_is_long_is_cut_and_what_is_not_text_is_named() {
    let user = User::new();
    let long: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    user.write("long.txt", &long);
    user.write("nul", "a\0b");
    user.takeback(&["checkpoint", "first"], "");
    let mut client = user.initialized(&json!({}));
    let blame = client.call("blame", &json!({"path": "long.txt"}));
    let note = "Lines from 201 on are left out. Ask again with `lines`, as in \"201-400\".";
    assert_eq!(blame["structuredContent"]["note"], note);
    assert_eq!(blame["structuredContent"]["leftOut"], json!({"lines": 4_800}));
    let cat = client.call("cat", &json!({"point": "@", "path": "long.txt"}));
    let told = cat["structuredContent"]["text"].as_str().expect("text");
    assert!(told.len() <= 30_000 && long.starts_with(told), "{}", told.len());
    assert!(text(&cat).contains("Ask again with `lines`"), "{cat}");
    let part = client.call("cat", &json!({"point": "@", "path": "long.txt", "lines": "4999-6000"}));
    assert_eq!(text(&part), "line 4999\nline 5000\n");
}

fn failing(client: &mut Client, name: &str, arguments: &Value) -> String {
    let result = client.call(name, arguments);
    assert_eq!(result["isError"], true, "{name} {arguments}: {result}");
    text(&result).to_owned()
}

#[test]
fn a_question_that_means_nothing_is_refused_with_what_to_do() {
    let user = User::with_work();
    let mut client = user.initialized(&json!({}));
    let paths = "paths are relative to the workspace.";
    for (name, arguments, begins, ends) in [
        ("blame", json!({"path": "none"}), "none was never recorded.", paths),
        (
            "blame",
            json!({"path": "a.txt", "lines": "9"}),
            "a.txt has 2 lines, and no line 9.",
            paths,
        ),
        (
            "blame",
            json!({"path": "a.txt", "lines": "x"}),
            "x is not a range of lines.",
            "12 or 10-20.",
        ),
        ("blame", json!({}), "The arguments do not fit: missing field `path`.", "`path`."),
        ("why", json!({"path": "a.txt", "line": 0}), "0 is not a range of lines.", "12 or 10-20."),
        (
            "why",
            json!({"path": "a.txt", "line": -1}),
            "The arguments do not fit: invalid value",
            "u64.",
        ),
        ("history", json!({"path": "none"}), "none was never recorded.", paths),
        ("stats", json!({"range": "first"}), "first is not a range.", "@~5.."),
        ("stats", json!({"since": "once"}), "once is not a time.", "2026-11-19)."),
        ("cat", json!({"point": "first", "path": "b.txt"}), "b.txt did not exist at point", paths),
        ("cat", json!({"point": "none", "path": "a.txt"}), "No point is called", "with their ids."),
        (
            "list_points",
            json!({"by": "none"}),
            "There is no agent and no session none.",
            "none. `list_points` names the sessions.",
        ),
        (
            "list_points",
            json!({"ops": true, "by": "you"}),
            "operations have no session or tool",
            "tool.",
        ),
        (
            "diff",
            json!({"from": "m1!", "to": "@"}),
            "POINT! is compared with the next point.",
            "point.",
        ),
    ] {
        let told = failing(&mut client, name, &arguments);
        assert!(told.starts_with(begins), "{name} {arguments}: {told}");
        assert!(told.ends_with(ends), "{name} {arguments}: {told}");
    }
}
