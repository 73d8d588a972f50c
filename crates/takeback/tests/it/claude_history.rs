//! Import of Claude Code's own history, from recordings of two of its versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use takeback_testkit::model::ModelServer;

use crate::chat::claude::{environment, program};
use crate::user::{Answer, User, unwrapped};

const VERSIONS: [&str; 2] = ["2.1.197", "2.1.325"];

/// A user in whose folder Claude Code has worked.
struct ClaudeHistory {
    user: User,
    /// The message id of each prompt, in order; the fork's last.
    messages: Vec<String>,
}

impl ClaudeHistory {
    fn with(version: &str) -> Self {
        let user = User::new();
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../takeback-agents/tests/claude/recorded/history")
            .join(version);
        let work = user.work().canonicalize().expect("it is there");
        copy(&recorded.join("project"), &work, &work);
        let home = user.home().join(".claude");
        copy(&recorded.join("file-history"), &home.join("file-history"), &work);
        let slug: String = work.to_str().expect("text").chars().map(dashed).collect();
        let sessions = home.join("projects").join(slug);
        copy(&recorded.join("projects/-home-user-project"), &sessions, &work);
        let mut history = Self { user, messages: Vec::new() };
        let would = history.user.json(&["import", "--from", "claude", "--dry-run"]);
        for point in would["points"].as_array().expect("a list") {
            history.messages.push(point["messageIds"][0].as_str().expect("text").to_owned());
        }
        history
    }

    fn import(&self) -> Answer {
        let answer = self.user.takeback(&["import", "--from", "claude"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        answer
    }

    fn transcripts(&self) -> Vec<PathBuf> {
        let folders = self.user.home().join(".claude/projects");
        let folder = fs::read_dir(folders).expect("a folder").next().expect("one").expect("a name");
        let files = fs::read_dir(folder.path()).expect("files");
        files.map(|file| file.expect("a name").path()).collect()
    }
}

fn dashed(c: char) -> char {
    if c.is_ascii_alphanumeric() { c } else { '-' }
}

/// Copies a folder, and replaces `/home/user/project` in transcripts by `work`.
fn copy(from: &Path, to: &Path, work: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("it is recorded") {
        let entry = entry.expect("a name");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &to, work);
        } else if to.extension().is_some_and(|end| end == "jsonl") {
            let text = fs::read_to_string(entry.path()).expect("text");
            let work = work.to_str().expect("text");
            fs::write(to, text.replace("/home/user/project", work)).expect("a file");
        } else {
            fs::copy(entry.path(), to).expect("a file");
        }
    }
}

#[test]
fn prompts_become_points_and_a_second_import_adds_nothing() {
    for version in VERSIONS {
        let history = ClaudeHistory::with(version);
        let user = &history.user;
        let before = user.tree();
        assert_eq!(user.takeback(&["log"]).code, 10, "a dry run makes no store");
        insta::allow_duplicates! {
            insta::assert_snapshot!(history.import().out, @"
            Imported 5 points and 2 sessions  14 changes, 7 new blobs
              ID  make it <<LABFILE /home/user/scripts/make-it.json FILE>>
              ID  change it <<LABFILE /home/user/scripts/change-it.json FILE>>
              ID  say hi
              ID  and once more <<LABFILE /home/user/scripts/and-once-more.json FILE>>
              ID  another way <<LABFILE /home/user/scripts/another-way.json FILE>>
            1 file outside the workspace left out. --include-ignored includes them.
            Your files were not changed. `takeback rewind ID` takes back what Claude did after a point; --exact restores every file of the point.
            ");
        }
        assert_eq!(user.tree(), before, "{version}");
        let again = user.takeback(&["import", "--from", "claude"]);
        assert_eq!(
            (again.code, again.out.as_str()),
            (5, "Nothing new.\n5 prompts skipped: already imported.\n"),
            "{version}"
        );
        let nothing = user.exits(5, &["--json", "import", "--from", "claude"]);
        let told: Value = serde_json::from_str(&nothing.out).expect("JSON");
        assert_eq!(told["passedOver"]["known"], 5);
        assert_eq!(user.json(&["log"]).as_array().expect("a list").len(), 5, "{version}");
        assert_eq!(user.takeback(&["verify"]).code, 0, "{version}");
    }
}

#[test]
fn a_point_has_the_files_of_its_prompt() {
    for version in VERSIONS {
        let history = ClaudeHistory::with(version);
        let user = &history.user;
        history.import();
        let [first, second] = [&history.messages[0], &history.messages[1]];
        insta::allow_duplicates! {
            insta::assert_snapshot!(user.takeback(&["diff", first, second]).out, @"
            diff --git a/a.txt b/a.txt
            --- a/a.txt
            +++ b/a.txt
            @@ -1,3 +1,4 @@
             one
            -two
            +TWO
             three
            +mine
            diff --git a/src/new.txt b/src/new.txt
            new file mode 100644
            --- /dev/null
            +++ b/src/new.txt
            @@ -0,0 +1 @@
            +new
            ");
        }
        let shown = user.json(&["show", second]);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let changes = shown["changes"].as_array().expect("a list").iter();
        let told: Vec<String> = changes
            .map(|change| {
                let author = &change["author"];
                format!(
                    "{} {} {}",
                    word(&change["filePath"]),
                    word(&author["kind"]),
                    word(&author["tool"])
                )
            })
            .collect();
        let expected = [
            "a.txt agent Edit",
            "crlf.txt agent Edit",
            "src/b.txt agent Edit",
            "src/new.txt ambiguous ",
        ];
        assert_eq!(told, expected, "{version}");
        let prompt_id =
            user.json(&["show", first])["messageIds"][1].as_str().expect("text").to_owned();
        assert_eq!(
            user.takeback(&["diff", &prompt_id, second]),
            user.takeback(&["diff", first, second])
        );
    }
}

#[test]
fn a_rewind_takes_back_claudes_work_and_keeps_the_users() {
    for version in VERSIONS {
        let history = ClaudeHistory::with(version);
        let user = &history.user;
        history.import();
        let first = &history.messages[0];
        // They were unknown at the first prompt, but since then only Claude wrote to them.
        let answer = user.takeback(&["rewind", first, "-y"]);
        assert_eq!(answer.code, 0, "{version} {answer:?}");
        assert_eq!(user.read("a.txt"), "one\ntwo\nthree\nmine\n", "{version}");
        assert_eq!(user.read("src/b.txt"), "b0\n", "{version}");
        assert_eq!(user.read("crlf.txt"), "c0\r\nd0\r\n", "{version}");
        assert!(user.exists("src/sh.txt"), "{version}: a command's work is not in its history");
        user.succeeds(&["undo", "-y"]);
        assert_eq!(user.read("a.txt"), "ONE\nTWO\nTHREE\nmine\n", "{version}");
        let exact = user.takeback(&["rewind", first, "--exact", "-y"]);
        assert_eq!(exact.code, 4, "{version} {exact:?}");
        assert_eq!(user.read("a.txt"), "one\ntwo\nthree\n", "{version}");
        let missing = "missing   src/b.txt";
        assert!(exact.out.contains(missing), "{version}: {}", exact.out);
    }
}

#[test]
fn the_receipt_says_how_to_cut_the_conversation() {
    let history = ClaudeHistory::with("2.1.325");
    let user = &history.user;
    history.import();
    let [first, second, .., fourth, fork] = history.messages.as_slice() else { panic!("too few") };
    let cut = |message: &str| {
        let receipt = user.json(&["rewind", message, "-y"]);
        assert_eq!(user.takeback(&["undo", "-y"]).code, 0, "{receipt}");
        receipt["conversation"].clone()
    };
    let told = cut(second);
    let session = told["session"].as_str().expect("a session").to_owned();
    let command = told["command"].as_str().expect("a command").to_owned();
    let text = fs::read_to_string(
        history
            .transcripts()
            .into_iter()
            .find(|file| file.ends_with(format!("{session}.jsonl")))
            .expect("a transcript"),
    );
    let text = text.expect("text");
    let prompt = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let prompt =
        prompt.into_iter().find(|line| line["uuid"] == second.as_str()).expect("the prompt");
    let before = prompt["parentUuid"].as_str().expect("something was said before");
    let expected = json!({
        "agent": "claude",
        "session": session,
        "messageId": second,
        "how": [
            format!(
                "`claude --resume {session}`, then Esc Esc, “change it <<LABFILE /home/user/scripts/…”, \
                 Restore conversation"
            ),
            format!("`{command} PROMPT` continues from there in a copy"),
        ],
        "command": format!("claude -p --resume {session} --resume-session-at {before} --fork-session"),
    });
    assert_eq!(told, expected);
    let begun = cut(first);
    assert_eq!(begun["command"], Value::Null, "nothing was said before it");
    assert_eq!(
        begun["how"][1],
        "the conversation began with that prompt: `claude` starts a new one"
    );
    assert_eq!(cut(fourth)["messageId"], fourth.as_str());
    assert_ne!(cut(fork)["session"], session.as_str());
    // After a rewind of some files only, the agent need not forget anything.
    let part = user.json(&["rewind", second, "--path", "a.txt", "-y"]);
    assert_eq!(part["conversation"], Value::Null);
    let said = user.takeback(&["rewind", second, "-y"]).out;
    let (_, ending) = said.split_once("Done and verified on disk.").expect("it is done");
    let ending = unwrapped(ending);
    let (_, ending) = ending.split_once("takes it back. ").expect("and can be undone");
    let begin =
        "Claude Code still remembers what came after. To remove that too: `claude --resume ";
    assert!(ending.starts_with(begin) && ending.ends_with("Restore conversation"), "{ending}");
    user.succeeds(&["undo", "-y"]);
    for file in history.transcripts() {
        fs::remove_file(file).expect("it goes");
    }
    assert_eq!(cut(first), Value::Null, "there is no conversation left to cut");
}

#[test]
fn skipped_files_are_reported() {
    let history = ClaudeHistory::with("2.1.325");
    let user = &history.user;
    let copies = user.home().join(".claude/file-history");
    for session in fs::read_dir(&copies).expect("copies") {
        for copy in fs::read_dir(session.expect("a name").path()).expect("copies") {
            let copy = copy.expect("a name").path();
            let text = fs::read_to_string(&copy).expect("text");
            if text.contains("c0") || text.contains("b1") {
                fs::remove_file(copy).expect("it goes");
            }
        }
    }
    for file in history.transcripts() {
        let text = fs::read_to_string(&file).expect("text");
        fs::write(file, format!("{text}half a li")).expect("a file");
    }
    let told = user.takeback(&["--json", "import", "--from", "claude"]);
    let told: Value = serde_json::from_str(&told.out).expect("JSON");
    let expected = json!({
        "known": 0,
        "withoutFiles": 0,
        "damagedLines": 2,
        "lost": [{ "filePath": "crlf.txt" }, { "filePath": "src/b.txt" }],
        "outside": ["/home/user/outside/o.txt"],
    });
    assert_eq!(told["passedOver"], expected);
    let second = &history.messages[1];
    let exact = user.takeback(&["rewind", second, "--exact", "--dry-run"]);
    assert!(exact.out.contains("missing   crlf.txt   it could not be read"), "{}", exact.out);
}

#[test]
fn files_outside_are_imported_on_request() {
    let history = ClaudeHistory::with("2.1.197");
    let user = &history.user;
    let told = user.json(&["import", "--from", "claude", "--include-ignored"]);
    assert_eq!(told["passedOver"]["outside"], json!([]));
    let changes = user.json(&["show", &history.messages[1]])["changes"].clone();
    let changes = changes.as_array().expect("a list");
    assert!(changes.iter().any(|change| change["filePath"] == "/home/user/outside/o.txt"));
}

#[test]
fn one_session_is_imported_by_its_name_or_its_file() {
    let history = ClaudeHistory::with("2.1.325");
    let user = &history.user;
    let [one, other] = history.transcripts().try_into().expect("two");
    let name = one.file_stem().expect("a name").to_str().expect("text").to_owned();
    let first = user.json(&["import", "--from", "claude", &name]);
    assert_eq!(first["sessions"][0]["was"], name.as_str());
    let second = user.json(&["import", "--from", "claude", other.to_str().expect("text")]);
    assert_eq!(user.json(&["log"]).as_array().expect("a list").len(), 5);
    assert_eq!(
        first["sessions"].as_array().expect("a list").len()
            + second["sessions"].as_array().expect("a list").len(),
        2
    );
    user.exits(1, &["import", "--from", "claude", "nobody"])
        .reports("Claude Code has no session \"nobody\"");
    let elsewhere = User::new();
    let none = elsewhere.takeback(&["import", "--from", "claude"]);
    assert_eq!(none.code, 5, "{none:?}");
    assert!(none.out.starts_with("Claude Code saved no files for "), "{none:?}");
    assert!(!elsewhere.home().join(".takeback").exists(), "no store is made for nothing");
}

#[test]
fn a_prompt_that_was_recorded_here_is_not_imported_again() {
    let history = ClaudeHistory::with("2.1.325");
    let user = &history.user;
    let line = json!({ "event": "prompt", "session": "s", "message": history.messages[0], "text": "make it" });
    user.record(&line.to_string());
    let told = user.json(&["import", "--from", "claude"]);
    assert_eq!(
        (&told["passedOver"]["known"], told["points"].as_array().map(Vec::len)),
        (&json!(1), Some(4))
    );
    assert_eq!(user.json(&["show", &history.messages[0]])["session"], "s");
}

#[test]
fn the_real_programs_work_is_imported() {
    let Some(program) = program() else { return };
    let user = User::with(&[("a.txt", "one\ntwo\n")]);
    let model = ModelServer::start();
    let at = |path: &str| user.work().canonicalize().expect("it is there").join(path);
    let prompt = |text: &str, script: &Value, session: Option<&str>| -> Value {
        let mut claude = Command::new(&program);
        claude.args(["-p", "--output-format", "json", "--permission-mode", "acceptEdits"]);
        claude.args(session.map(|session| ["--resume", session]).into_iter().flatten());
        claude.arg(format!("{text} <<LAB {script} LAB>>")).current_dir(user.work()).env_clear();
        claude.envs(environment(&user, &model.url()));
        claude.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
        let output = claude.stdin(Stdio::null()).output().expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let read = json!([{ "name": "Read", "input": { "file_path": at("a.txt") } }]);
    let edit = |old: &str, new: &str| {
        let input = json!({ "file_path": at("a.txt"), "old_string": old, "new_string": new });
        json!([{ "name": "Edit", "input": input }])
    };
    let write =
        json!([{ "name": "Write", "input": { "file_path": at("b.txt"), "content": "b\n" } }]);
    let first = prompt("make it", &json!([read, edit("one", "ONE"), write, "made"]), None);
    let session = first["session_id"].as_str().expect("a session").to_owned();
    user.write("a.txt", "ONE\ntwo\nmine\n");
    let again = json!([read, edit("two", "TWO"), "changed"]);
    assert_eq!(prompt("change it", &again, Some(&session))["result"], "changed");
    assert_eq!(user.read("a.txt"), "ONE\nTWO\nmine\n");

    let mut import = user.command(&["--json", "import", "--from", "claude"]);
    import.envs(
        environment(&user, &model.url())
            .into_iter()
            .filter(|(name, _)| *name == "CLAUDE_CONFIG_DIR"),
    );
    let answer = user.answer_of(import, "");
    assert_eq!(answer.code, 0, "{answer:?}");
    let points = user.json(&["log"]);
    let told: Vec<&str> = points
        .as_array()
        .expect("a list")
        .iter()
        .map(|point| {
            let text = point["description"].as_str().expect("text");
            text.split(" <<").next().unwrap_or(text)
        })
        .collect();
    assert_eq!(told, ["change it", "make it"]);
    let message = |at: usize| points[at]["messageIds"][0].as_str().expect("an id").to_owned();
    let diff = user.takeback(&["diff", &message(1), &message(0)]);
    insta::assert_snapshot!(diff.out, @"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,3 @@
    -one
    +ONE
     two
    +mine
    diff --git a/b.txt b/b.txt
    new file mode 100644
    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +b
    ");
    let shown = user.json(&["show", &message(0)]);
    assert_eq!(shown["changes"][0]["filePath"], "a.txt");
    assert_eq!(shown["changes"][0]["author"]["tool"], "Edit");
    user.succeeds(&["rewind", &message(1), "-y"]);
    assert_eq!(user.read("a.txt"), "one\ntwo\nmine\n");
    assert!(!user.exists("b.txt"));
}
