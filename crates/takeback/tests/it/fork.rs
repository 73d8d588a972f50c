//! `fork` and `compare`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::user::{User, until};

/// A project with a prompt `add retries`, after which the agent changed `a.txt`.
fn project() -> User {
    let user = User::with(&[
        ("a.txt", "a\n"),
        (".env", "KEY=1\n"),
        (".gitignore", ".env\n/node_modules\n"),
        ("package.json", "{}\n"),
        ("node_modules/dep/index.js", "dep\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
    ]);
    std::thread::sleep(std::time::Duration::from_millis(30));
    user.agent_turn("m-1", "add retries", ("Write", &["a.txt"]), || user.write("a.txt", "a\nb\n"));
    user
}

fn beside(user: &User, name: &str) -> PathBuf {
    user.work().with_file_name(name)
}

/// The JSON answer in another folder.
fn json_in(user: &User, folder: &Path, args: &[&str]) -> Value {
    let mut command = user.command(&[args, &["--json"]].concat());
    let output = user.output_of({
        command.current_dir(folder);
        command
    });
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
}

fn shown(user: &User, text: &str) -> String {
    user.normalize(text)
}

#[test]
fn a_fork_says_what_it_has_and_what_it_leaves_out() {
    let user = project();
    let forked = user.succeeds(&["fork", "@", "../try"]);
    assert_snapshot!(shown(&user, &forked.out), @r"
    Forked ID  add retries
      ../try
      4 files, 30 B
      not copied: .git, node_modules (--all copies them as they are now)
      an agent begins a new conversation there

    takeback compare ../try  what changed there
    ");
    assert_eq!(fs::read_to_string(beside(&user, "try/a.txt")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(beside(&user, "try/.env")).unwrap(), "KEY=1\n");
    assert!(!beside(&user, "try/.git").exists());
    user.succeeds(&["fork", "now", "../all", "--all"]);
    assert_eq!(fs::read_to_string(beside(&user, "all/a.txt")).unwrap(), "a\nb\n");
    assert!(beside(&user, "all/.git/HEAD").exists());
    assert!(beside(&user, "all/node_modules/dep/index.js").exists());
    let log = user.json(&["log"]);
    assert_eq!(log[1]["pinned"], json!(true), "{log}");
}

#[test]
fn a_fork_is_a_workspace_that_knows_its_origin() {
    let user = project();
    let answer = user.json(&["fork", "@", "../try"]);
    let point = answer["point"].as_str().unwrap();
    let root = user.work().canonicalize().unwrap();
    let status = json_in(&user, &beside(&user, "try"), &["status"]);
    assert_eq!(status["origin"]["root"], json!(root));
    assert_eq!(status["origin"]["point"], json!(point));
    assert_eq!(user.json(&["status"])["origin"], json!(null));
    let log = user.takeback_in(&beside(&user, "try"), &["log"]);
    assert_snapshot!(shown(&user, &log.out), @r"
    No points yet. `takeback checkpoint` makes one.
    Forked from FOLDER/work at ID “add retries”, just now
    ");
    let listed = user.json(&["workspaces"]);
    let roots: Vec<bool> =
        listed.as_array().unwrap().iter().map(|one| one["origin"].is_object()).collect();
    assert_eq!(roots, [true, false], "{listed}");
    // What happens in one is not seen in the other.
    fs::write(beside(&user, "try/new"), "new\n").unwrap();
    user.takeback_in(&beside(&user, "try"), &["checkpoint", "there"]).exited(0, &[]);
    assert_eq!(user.json(&["log"]).as_array().unwrap().len(), 1);
}

/// A thread of two turns as Codex recorded it.
const THREAD: &str = "01a1e143-f71b-7033-9b5a-1d57bbee37d5";

/// A user in whose home the thread is, and in whose project its second turn has begun.
fn with_codex_thread(turn: &str) -> User {
    let user = User::with(&[("a.txt", "a\n")]);
    let recorded = "../takeback-agents/tests/it/recorded/codex";
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join(recorded);
    let copied =
        Command::new("cp").arg("-r").arg(recorded).arg(user.home().join(".codex")).status();
    assert!(copied.expect("cp runs").success());
    let start = json!({"event": "session_start", "session": THREAD, "agent": "codex"});
    let prompt = json!({"event": "prompt", "session": THREAD, "message": turn, "text": "go on"});
    user.record(&format!("{start}\n{prompt}"));
    user
}

#[test]
fn the_command_that_continues_the_conversation_is_shown() {
    let user = with_codex_thread("01a1e143-fa8e-7d93-bdf2-e5a91542f605");
    let forked = user.succeeds(&["fork", "@", "../try it", "--count", "2"]);
    assert_snapshot!(shown(&user, &forked.out), @r"
    Forked ID  go on
      '../try it-1'
      '../try it-2'
      1 file in each, 2 B
      to continue Codex's conversation in a copy, from before that prompt:
        cd '../try it-1' && codex fork -C . ID-f71b-7033-9b5a-1d57bbee37d5
      then Esc while nothing is typed, back to “go on”, Enter

    takeback compare '../try it-1' '../try it-2'  what changed there
    ");
    let whole = user.succeeds(&["fork", "now", "../now", "-v"]);
    let (_, after_size) = whole.out.split_once(" 2 B\n").expect("the size");
    assert_snapshot!(shown(&user, after_size), @r"
      to continue Codex's conversation in a copy:
        cd ../now && codex fork -C . ID-f71b-7033-9b5a-1d57bbee37d5
      or without its screen:
        cd ../now && codex exec fork --skip-git-repo-check ID-f71b-7033-9b5a-1d57bbee37d5 PROMPT

    takeback compare ../now  what changed there
    ");
    let answer = user.json(&["fork", "@~1", "../again", "--count", "2"]);
    let root = user.work().canonicalize().unwrap();
    let in_each = |command: &str| -> Vec<String> {
        let folder = |at| root.with_file_name(format!("again-{at}"));
        [1, 2].map(|at| format!("cd {} && {command}", folder(at).display())).into()
    };
    let expected = json!({
        "agent": "codex",
        "session": THREAD,
        "commands": in_each(&format!("codex fork -C . {THREAD}")),
        "keys": "Esc while nothing is typed, back to “go on”, Enter",
        "headless": [],
    });
    assert_eq!(answer["conversation"], expected);
}

#[test]
fn a_conversation_that_cannot_be_continued_is_not_promised() {
    // The conversation began with the prompt; it went on after the point; the agent is another one.
    let user = with_codex_thread("01a1e143-f734-7d72-a5c0-e35cb73cc426");
    let begins = "an agent begins a new conversation there";
    user.succeeds(&["fork", "@", "../first"]).prints(begins);
    user.succeeds(&["checkpoint", "by hand"]);
    user.agent_turn("m", "later", ("Write", &["a.txt"]), || user.write("a.txt", "later\n"));
    let answer = user.json(&["fork", "by hand", "../by-hand"]);
    assert_eq!(answer.get("conversation"), None, "{answer}");
    user.succeeds(&["fork", "@", "../other"]).prints(begins);
    assert_eq!(user.json(&["fork", "now", "../now"]).get("conversation"), None);
}

#[test]
fn forks_are_compared_by_files_lines_sessions_and_a_command() {
    let user = project();
    user.succeeds(&["fork", "@", "../try", "--count", "2"]);
    let at = |name: &str| beside(&user, name);
    fs::write(at("try-1/a.txt"), "a\none\n").unwrap();
    fs::write(at("try-1/new.txt"), "1\n2\n").unwrap();
    fs::write(at("try-2/a.txt"), "two\n").unwrap();
    fs::write(at("try-2/.env"), "KEY=1\n").unwrap();
    let prompt = r#"{"event":"prompt","session":"s-2","text":"again"}"#;
    let mut record = user.command(&["record"]);
    record.current_dir(at("try-2"));
    user.answer_of(record, prompt).exited(0, &["record"]);
    let compared = user.succeeds(&["compare", "../try-1", "../try-2"]);
    assert_snapshot!(shown(&user, &compared.out), @r"
    Forked from FOLDER/work at ID “add retries”, just now
    ../try-1  2 files  +3 -0
    ../try-2  1 file   +1 -1  s-2 (1 prompt)

    Changed in several:
      a.txt  ../try-1, ../try-2
    ");
    let answer = user.json(&[
        "--json",
        "compare",
        "../try-2",
        "../try-1",
        "--",
        "sh",
        "-c",
        "echo x; test -e new.txt",
    ]);
    let of = |number: usize| {
        let fork = &answer["forks"][number];
        let command = &fork["command"];
        json!([
            fork["files"],
            fork["insertions"],
            fork["deletions"],
            command["exitCode"],
            command["lastLine"]
        ])
    };
    assert_eq!(of(0), json!([1, 1, 1, 1, "x"]));
    assert_eq!(of(1), json!([2, 3, 0, 0, "x"]));
    assert_eq!(answer["forks"][0]["sessions"], json!([{"id": "s-2", "agent": null, "prompts": 1}]));
    assert_eq!(answer["shared"].as_array().unwrap().len(), 1);
    assert_eq!(answer["shared"][0]["filePath"], json!("a.txt"));
    assert_eq!(answer["shared"][0]["same"], json!(false));
    // Without the original workspace's history, earlier contents are not at hand.
    user.succeeds(&["forget", "-y"]);
    let answer = user.json(&["compare", "../try-1"]);
    assert_eq!(answer["forks"][0]["files"], json!(2));
}

#[test]
fn commands_run_one_after_the_other_unless_asked() {
    let user = project();
    user.succeeds(&["fork", "@", "../try", "--count", "3"]);
    let folders = ["../try-1", "../try-2", "../try-3"];
    // Each fails if another one is running.
    let alone = "mkdir ../busy || exit 9; sleep 0.1; rmdir ../busy";
    let args = [&["--json", "compare"], &folders[..], &["--", "sh", "-c", alone]].concat();
    let codes = |answer: &Value| -> Vec<Value> {
        let forks = answer["forks"].as_array().unwrap();
        forks.iter().map(|fork| fork["command"]["exitCode"].clone()).collect()
    };
    assert_eq!(codes(&user.json(&args)), [json!(0), json!(0), json!(0)]);
    // Each waits for all others.
    let together = "touch ../in-$$; i=0; until [ $(ls .. | grep -c in-) = 3 ]; do \
                    i=$((i+1)); [ $i -lt 600 ] || exit 8; sleep 0.05; done";
    let args = [&["--json", "compare"], &folders[..], &["--jobs", "3", "--", "sh", "-c", together]]
        .concat();
    assert_eq!(codes(&user.json(&args)), [json!(0), json!(0), json!(0)]);
    let missing = user.exits(1, &["compare", "../try-1", "--", "no-such-program"]);
    assert_snapshot!(shown(&user, &missing.err), @r"
    running in FOLDER/try-1
    takeback: no-such-program could not run in FOLDER/try-1: No such file or directory (os error 2)
      Use `sh -c '…'` for shell syntax.
    ");
}

#[test]
fn what_cannot_be_forked_or_compared_is_explained() {
    let user = project();
    let refusals: Vec<String> = [
        &["fork", "@", "sub"][..],
        &["fork", "@", "."],
        &["fork", "@", "../none/try"],
        &["fork", "nothing", "../try"],
        &["compare", "."],
        &["compare", "../none"],
    ]
    .iter()
    .map(|args| format!("{}: {}", args.join(" "), user.takeback(args).err))
    .collect();
    assert_snapshot!(shown(&user, &refusals.concat()), @r#"
    fork @ sub: takeback: cannot fork into FOLDER/work/sub: it is inside the workspace; choose a folder beside it
      Name a new or an empty folder.
    fork @ .: takeback: cannot fork into FOLDER/work/.: it is the workspace itself
      Name a new or an empty folder.
    fork @ ../none/try: takeback: cannot fork into FOLDER/work/../none/try: the folder that it would be in does not exist
      Name a new or an empty folder.
    fork nothing ../try: takeback: no point is called "nothing"
      `takeback log` lists the points.
    compare .: takeback: FOLDER/work is not a fork
      `takeback fork POINT DIR` makes one; `takeback workspaces` lists them.
    compare ../none: takeback: cannot open FOLDER/work/../none: No such file or directory (os error 2)
      Name a folder that exists.
    "#);
    assert!(!user.exists("sub"));
    user.succeeds(&["fork", "@", "../try"]);
    let again = user.exits(2, &["fork", "@", "../try"]);
    assert_snapshot!(shown(&user, &again.err), @r"
    takeback: FOLDER/try is not empty
      Name a new or an empty folder.
    ");
    fs::remove_dir_all(beside(&user, "try")).unwrap();
    let gone = user.exits(2, &["fork", "@", "../try"]);
    assert_snapshot!(shown(&user, &gone.err), @r"
    takeback: FOLDER/try has the history of an earlier folder
      `takeback forget FOLDER/try` deletes its history, or choose another folder.
    ");
    user.succeeds(&["forget", "../try", "-y"]);
    user.succeeds(&["fork", "@", "../try"]);
}

#[test]
fn missing_contents_are_listed_and_the_exit_code_says_so() {
    let user = project();
    user.succeeds(&["purge", "package.json", "-y"]);
    let forked = user.exits(4, &["fork", "@", "../try"]);
    forked.prints("missing");
    let answer = user.json(&["fork", "@", "../again"]);
    assert_eq!(answer["missing"][0]["reason"], json!("purged from the store"));
}

#[test]
fn a_fork_of_a_fork_has_that_fork_as_its_origin() {
    let user = project();
    user.succeeds(&["fork", "@", "../try"]);
    let first = beside(&user, "try");
    fs::write(first.join("a.txt"), "in the fork\n").unwrap();
    user.takeback_in(&first, &["fork", "now", "../second"]).exited(0, &[]);
    let second = beside(&user, "second");
    assert_eq!(fs::read_to_string(second.join("a.txt")).unwrap(), "in the fork\n");
    fs::write(second.join("b.txt"), "b\n").unwrap();
    let answer = user.json(&["compare", "../try", "../second"]);
    let origins: Vec<&Value> = (0..2).map(|at| &answer["forks"][at]["origin"]["root"]).collect();
    let roots = [user.work(), first].map(|root| json!(root.canonicalize().unwrap()));
    assert_eq!(origins, [&roots[0], &roots[1]]);
    assert_eq!(answer["forks"][1]["files"], json!(1));
}

#[test]
fn a_killed_fork_is_completed_by_the_same_command() {
    let user = project();
    for number in 0..300 {
        user.write(&format!("src/{}/{number}.txt", number % 7), "text\n");
    }
    user.succeeds(&["checkpoint", "many"]);
    let mut fork = user.command(&["fork", "many", "../try"]);
    let mut fork = fork.spawn().unwrap();
    let marker = beside(&user, "try/.takeback/unfinished-fork");
    until("it has begun", || marker.exists() || fork.try_wait().unwrap().is_some());
    fork.kill().unwrap();
    fork.wait().unwrap();
    if marker.exists() {
        let compared = user.exits(1, &["compare", "../try"]);
        assert!(compared.err.contains("fork"), "{compared:?}");
        user.succeeds(&["fork", "many", "../try"]);
    }
    assert!(!marker.exists());
    assert_eq!(fs::read_dir(beside(&user, "try/src/0")).unwrap().count(), 43);
    assert_eq!(user.json(&["compare", "../try"])["forks"][0]["files"], json!(0));
}

#[test]
fn the_agents_state_at_the_point_goes_along() {
    let user = project();
    let save = |step: u32, state: &str| {
        let text = format!(
            r#"{{"execution_id":"e","step_name":"s{step}","step_index":{step},"state":{{"at":"{state}"}},"context":{{}}}}"#
        );
        user.feed(&["state", "save"], &text).exited(0, &["state", "save"]);
    };
    save(1, "one");
    user.write("a.txt", "step two\n");
    save(2, "two");
    let effect = ["state", "effect", "e", "mail", "--step", "1"];
    user.feed(&effect, "{}").exited(0, &effect);
    user.write("a.txt", "step three\n");
    save(3, "three");
    let log = user.json(&["log"]);
    let point = log[1]["id"].as_str().unwrap().to_owned();
    let answer = user.json(&["fork", &point, "../try"]);
    assert_eq!(answer["executions"], json!(["e"]));
    let there = beside(&user, "try");
    let resumed = json_in(&user, &there, &["state", "resume", "e"]);
    assert!(resumed.to_string().contains("\"two\""), "{resumed}");
    let listed = json_in(&user, &there, &["state", "list", "e"]);
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[test]
fn a_program_forks_and_compares() {
    let user = project();
    let folder = user.home().join("library");
    fs::create_dir(&folder).unwrap();
    let takeback = takeback::Takeback::open_with_home(user.work(), &folder).unwrap();
    let turn = takeback.prompt("s", "go").unwrap();
    let forks = [beside(&user, "one"), beside(&user, "two")];
    let report = takeback.fork(turn.point(), &forks, takeback::ForkExtent::Covered).unwrap();
    assert_eq!(report.files, 4, "{report:?}");
    fs::write(forks[1].join("a.txt"), "a\nb\nc\n").unwrap();
    let compared = takeback.compare(&forks).unwrap();
    assert_eq!(compared[0].files.len(), 0);
    let lines = compared[1].files[0].lines.unwrap();
    assert_eq!((lines.insertions, lines.deletions), (1, 0));
    assert_eq!(compared[1].origin.point, turn.point());
}
