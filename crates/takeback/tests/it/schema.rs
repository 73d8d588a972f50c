//! Every command's JSON answer matches `docs/schema.json`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use crate::reference::commands;
use crate::user::User;

/// A definition in the schema, and the arguments whose answer must match it. Run in this order, in one folder.
const ASKED: &[(&str, &[&str])] = &[
    ("checkpoint", &["checkpoint", "first"]),
    ("checkpoint", &["checkpoint"]),
    ("run", &["run", "--", "sh", "-c", CHANGES]),
    ("bisect", &["bisect", "--", "grep", "-q", "1", "a"]),
    ("log", &["log"]),
    ("log", &["log", "-a", "-n", "0"]),
    ("show", &["show"]),
    ("show", &["show", "first"]),
    ("show", &["show", "@~1"]),
    ("diff", &["diff", "first"]),
    ("diff", &["diff", "@", "first"]),
    ("diff", &["diff", "first!", "--by", "agent"]),
    ("log", &["log", "a", "-S", "2"]),
    ("log", &["log", "--ops"]),
    ("fork", &["fork", "first", "../forked"]),
    ("fork", &["fork", "now", "../forks", "--count", "2", "--all"]),
    ("compare", &["compare", "../forked", "../forks-1"]),
    ("compare", &["compare", "../forked", "--", "ls"]),
    ("adopt", &["adopt", "../forked", "--dry-run"]),
    ("history", &["history", "a"]),
    ("cat", &["cat", "@:a"]),
    ("stats", &["stats"]),
    ("blame", &["blame", "a"]),
    ("why", &["why", "a:1"]),
    ("bisect", &["bisect", "--", "test", "-e", "gone"]),
    ("status", &["status"]),
    ("status", &["status", "--line"]),
    ("rewind", &["rewind", "first", "--dry-run"]),
    ("rewind", &["rewind", "first", "--dry-run", "--diff"]),
    ("rewind", &["rewind", "first", "-y"]),
    ("log", &["log", "-a"]),
    ("undo", &["undo", "--dry-run"]),
    ("undo", &["undo", "-y"]),
    ("revert", &["revert", "@~1", "-y"]),
    ("resolve", &["resolve", "--list"]),
    ("resolve", &["resolve", "--take", "mine", "-y"]),
    ("undo", &["undo", "-y"]),
    ("redo", &["redo", "-y"]),
    ("undo", &["undo", "-y"]),
    ("undo", &["undo", "-y"]),
    ("revert", &["revert", "@~1", "--dry-run"]),
    ("revert", &["revert", "@~1", "-y"]),
    ("undo", &["undo", "-y"]),
    ("restore", &["restore", "a", "--from", "first", "--dry-run"]),
    ("restore", &["restore", "a", "--from", "first", "-y"]),
    ("resolve", &["resolve", "--list"]),
    ("undo", &["undo", "-y"]),
    ("recover", &["recover"]),
    ("recover", &["recover", "--dry-run"]),
    ("verify", &["verify"]),
    ("export", &["export", "../bundle"]),
    ("export", &["export", "--agent-trace", "../trace"]),
    ("export", &["export", "--patch", "../patches"]),
    ("import", &["import", "../bundle", "--dry-run"]),
    ("import", &["import", "../bundle"]),
    ("show", &["show", "first-2"]),
    ("label", &["label", "@", "second"]),
    ("pin", &["pin", "@"]),
    ("unpin", &["unpin", "@"]),
    ("sessions", &["sessions"]),
    ("session", &["session", "archive", "run-"]),
    ("session", &["session", "delete", "run-", "--dry-run"]),
    ("session", &["session", "delete", "run-", "-y"]),
    ("cleanup", &["cleanup", "--dry-run"]),
    ("cleanup", &["cleanup"]),
    ("du", &["du"]),
    ("config", &["config"]),
    ("config", &["config", "editTools"]),
    ("config-get", &["config", "get", "editTools"]),
    ("config-set", &["config", "set", "archiveDays", "9"]),
    ("config-unset", &["config", "unset", "archiveDays"]),
    ("config-path", &["config", "path", "--scope", "project"]),
    ("workspaces", &["workspaces"]),
    ("state-save", &["state", "save"]),
    ("state-save", &["state", "save", "--no-files", "--session", "s"]),
    ("state-effect", &["state", "effect", "e", "mail", "--step", "1"]),
    ("state-effect", &["state", "effect", "e", "mail"]),
    ("state-effect", &["state", "effect", "e", "post", "--step", "9"]),
    ("state-effect", &["state", "effect", "e", "post", "--receipt"]),
    ("state-list", &["state", "list"]),
    ("state-list", &["state", "list", "e"]),
    ("state-list", &["state", "list", "e", "--all", "-n", "1"]),
    ("state-show", &["state", "show", "e"]),
    ("state-diff", &["state", "diff", "ckpt-e-1.a1", "ckpt-e-1"]),
    ("state-resume", &["state", "resume", "e"]),
    ("state-resume", &["state", "resume", "ckpt-e-1.a1"]),
    ("state-rollback", &["state", "rollback", "ckpt-e-1.a1", "--dry-run"]),
    ("state-rollback", &["state", "rollback", "ckpt-e-1.a1", "--state-only", "-y"]),
    ("undo", &["undo", "-y"]),
    ("state-effect", &["state", "effect", "e", "mail", "--withdraw"]),
    ("state-fork", &["state", "fork", "ckpt-e-1.a1"]),
    ("state-export", &["state", "export", "e"]),
    ("state-export", &["state", "export", "e", "../state.json"]),
    ("state-delete", &["state", "delete", "ckpt-e-1.a1", "--dry-run"]),
    ("state-delete", &["state", "delete", "ckpt-e-1.a1", "-y"]),
    ("state-delete", &["state", "delete", "e", "-y"]),
    ("doctor", &["doctor"]),
    ("init", &["init", "--agent", "claude", "--dry-run"]),
    ("init", &["init", "--agent", "claude", "-y"]),
    ("doctor", &["doctor"]),
    ("uninstall", &["uninstall", "--agent", "claude", "-y"]),
    ("purge", &["purge", "a", "--dry-run"]),
    ("purge", &["purge", "a", "-y"]),
    ("forget", &["forget", "--dry-run"]),
    ("serve", &["serve", "--ensure", "--idle-exit", "1"]),
];

/// A command's standard input: another checkpoint each time, or the same effect.
fn input(args: &[&str]) -> String {
    let files = if args.contains(&"--no-files") { "without" } else { "with" };
    let [Some(&"state"), Some(&"save")] = [args.first(), args.get(1)] else {
        return "{}".to_owned();
    };
    format!(
        r#"{{"execution_id":"e","step_name":"one","step_index":1,"state":{{"files":"{files}"}},
            "context":[1,2.5],"metadata":null}}"#
    )
}

/// Commands without a single JSON answer (`record` answers each line), or that need an editor or a moved folder.
/// `notes` is asked where there is a repository: `notes.rs`.
const NOT_ASKED: [&str; 10] = [
    "chat",
    "completions",
    "config-edit",
    "demo",
    "hook",
    "mcp",
    "notes-show",
    "notes-write",
    "record",
    "relocate",
];

/// New, changed, deleted, of every kind, with a name that is not UTF-8.
const CHANGES: &str = "echo 2 > a; rm gone; ln -s a link; mkdir folder; printf '\\0' > binary; \
    echo n > \"$(printf 'not-\\377-utf-8')\"; chmod +x a; echo 3 > mine";

fn folder() -> User {
    let user = User::with(&[
        ("a", "1\n"),
        ("gone", "g\n"),
        ("mine", "m\n"),
        (".gitignore", "out-*/\n"),
        ("package.json", "{}"),
    ]);
    for name in [&b"node_modules/x"[..], b"out-\xff/x", b"kept-\xfe"] {
        let path = user.work().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
        fs::write(path, "x\n").expect("a file");
    }
    fs::create_dir(user.work().join(".git")).expect("a folder that makes ignore files count");
    user
}

#[test]
fn answers_match_the_schema() {
    let schema = Schema::read();
    let user = folder();
    let mut seen = BTreeSet::new();
    for (name, args) in ASKED.iter().copied() {
        fs::write(user.home().join("input"), input(args)).expect("input");
        let mut command = user.command(&[&["--json"], args].concat());
        command.stdin(fs::File::open(user.home().join("input")).expect("input"));
        let output = command.output().expect("it runs");
        let bytes = if name == "run" { output.stderr } else { output.stdout };
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            panic!("{args:?}: {error}: {}", String::from_utf8_lossy(&bytes))
        });
        schema.check(name, &answer, args);
        let lossy = paths_are_exact(&answer);
        if lossy {
            seen.insert(args[0]);
        }
        if args[0] == "run" {
            for name in [&b"mine"[..], b"kept-\xfe"] {
                let path = user.work().join(OsStr::from_bytes(name));
                fs::write(path, "mine\n").expect("a person writes");
            }
        }
    }
    fs::remove_dir_all(user.store()).expect("a store goes");
    for (name, args) in
        [("checkpoint", ["checkpoint"]), ("status", ["status"]), ("doctor", ["doctor"])]
    {
        let answer = user.json(&args);
        schema.check(name, &answer, &args);
        assert!(name != "status" || answer["historyGone"].is_object(), "{answer}");
    }
    let moved = user.home().join("moved");
    fs::rename(user.work(), &moved).expect("a folder moves");
    let old = user.work().to_str().expect("text").to_owned();
    let mut relocate = user.command(&["relocate", &old, "--json"]);
    let output = relocate.current_dir(&moved).output().expect("it runs");
    let answer = serde_json::from_slice(&output.stdout).expect("JSON");
    schema.check("relocate", &answer, &["relocate"]);
    let told: Vec<&str> = seen.into_iter().collect();
    assert_eq!(
        told,
        ["bisect", "diff", "du", "revert", "rewind", "run", "show", "status"],
        "these met a name that is not UTF-8"
    );
}

#[test]
fn errors_and_recorded_lines_match_the_schema() {
    let schema = Schema::read();
    let user = folder();
    let refused = user.command(&["--json", "log"]).output().expect("it runs");
    schema.check("error", &serde_json::from_slice(&refused.stderr).expect("JSON"), &["log"]);
    let lines = [
        r#"{"event":"prompt","session":"s","text":"go"}"#,
        r#"{"event":"before_tool","session":"s","call":"c","tool":"Bash"}"#,
        r#"{"event":"after_tool","session":"s","call":"c"}"#,
        r#"{"event":"step","session":"s","checkpoint":{"execution_id":"e","step_name":"n","step_index":0,"state":1,"context":2}}"#,
        r#"{"event":"step","session":"s","checkpoint":{}}"#,
        "no event",
    ];
    let input = user.home().join("events");
    fs::write(&input, lines.join("\n")).expect("events");
    let input = fs::File::open(input).expect("events");
    let answer = user.command(&["record"]).stdin(input).output().expect("it runs");
    let answer = String::from_utf8(answer.stdout).expect("answers are text");
    assert_eq!(answer.lines().count(), lines.len());
    for line in answer.lines() {
        schema.check("record", &serde_json::from_str(line).expect("JSON"), &["record"]);
    }
    assert_eq!(user.takeback(&["demo", "--json"]).code, 2, "the demo says that it has none");
}

#[test]
fn every_command_is_tested() {
    let name = |command: Vec<String>| match command[0].as_str() {
        "session" => command[0].clone(),
        _ => command.join("-"),
    };
    let mut all: BTreeSet<String> = commands().into_iter().map(name).collect();
    assert!(all.remove("state") && all.remove("notes"), "they only have subcommands");
    let asked = ASKED.iter().map(|(name, _)| *name).chain(NOT_ASKED).map(str::to_owned);
    let asked: BTreeSet<String> = asked.collect();
    assert_eq!(asked, all, "a line in ASKED and an entry in docs/schema.json for each command");
}

/// Whether a path was lossy; if so, its exact bytes must be given too.
fn paths_are_exact(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().filter(|item| paths_are_exact(item)).count() > 0,
        Value::Object(map) => {
            let lossy = map
                .get("filePath")
                .and_then(Value::as_str)
                .is_some_and(|path| path.contains('\u{fffd}'));
            assert_eq!(map.contains_key("filePathBase64"), lossy, "{value}");
            map.values().filter(|value| paths_are_exact(value)).count() > 0 || lossy
        }
        _ => false,
    }
}

/// The part of JSON Schema that `docs/schema.json` uses; an unknown keyword is refused.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn read() -> Self {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema.json");
        let text = fs::read_to_string(file).expect("the schema is there");
        Self(serde_json::from_str(&text).expect("the schema is JSON"))
    }

    pub(crate) fn check(&self, name: &str, value: &Value, args: &[&str]) {
        let schema = json!({ "$ref": format!("#/$defs/{name}") });
        if let Err(why) = self.holds(&schema, value, name) {
            panic!("{args:?}: {why}\n{value:#}");
        }
    }

    fn holds(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        // `true` allows anything.
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        let options = |list: &Value| -> Vec<_> {
            items(list).map(|schema| self.holds(schema, value, at)).collect()
        };
        for (keyword, says) in keywords {
            let ok = match keyword.as_str() {
                "$ref" => {
                    let pointer = says.as_str().and_then(|says| says.strip_prefix('#'));
                    let target = pointer.and_then(|pointer| self.0.pointer(pointer));
                    self.holds(target.expect("what is referred to is there"), value, at)?;
                    true
                }
                "oneOf" => options(says).iter().filter(|option| option.is_ok()).count() == 1,
                "anyOf" => options(says).iter().any(Result::is_ok),
                "type" if says.is_array() => items(says).any(|says| is(says, value)),
                "type" => is(says, value),
                "const" => says == value,
                "enum" => items(says).any(|says| says == value),
                "minimum" => value.is_null() || value.as_f64() >= says.as_f64(),
                "maximum" => value.is_null() || value.as_f64() <= says.as_f64(),
                "minLength" => length(value).is_none_or(|length| Some(length) >= says.as_u64()),
                "maxLength" => length(value).is_none_or(|length| Some(length) <= says.as_u64()),
                "items" => {
                    for (n, item) in items(value).enumerate() {
                        self.holds(says, item, &format!("{at}[{n}]"))?;
                    }
                    true
                }
                "required" => {
                    items(says).all(|key| value.get(key.as_str().unwrap_or("")).is_some())
                }
                "properties" => {
                    for (key, schema) in says.as_object().expect("properties") {
                        if let Some(value) = value.get(key) {
                            self.holds(schema, value, &format!("{at}.{key}"))?;
                        }
                    }
                    true
                }
                "additionalProperties" => {
                    let known = keywords.get("properties").and_then(Value::as_object);
                    let is_known = |key: &str| known.is_some_and(|known| known.contains_key(key));
                    let others = value.as_object().into_iter().flatten();
                    for (key, value) in others.filter(|(key, _)| !is_known(key)) {
                        if says == false {
                            return Err(format!("{at}: {key} is not in the schema"));
                        }
                        self.holds(says, value, &format!("{at}.{key}"))?;
                    }
                    true
                }
                "description" | "format" => true,
                _ => panic!("{keyword:?} is not known to this test"),
            };
            if !ok {
                return Err(format!("{at}: {keyword} {says} does not hold for {value}"));
            }
        }
        Ok(())
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count() as u64)
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("a type's name") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other:?} is not known to this test"),
    }
}
