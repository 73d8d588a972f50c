use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::checkpoint;
use crate::terminal_widths::{assert_fits, at_widths};
use crate::user::{User, column};

#[test]
fn executions_and_their_checkpoints_are_listed() {
    let user = User::new();
    user.succeeds(&["checkpoint"]);
    insta::assert_snapshot!(user.takeback(&["state", "list"]).out, @"No checkpoints found. `takeback state save` makes the first.");
    user.saved(2);
    assert_eq!(user.save(10, &json!({ "status": "failed", "error": "x" })).code, 0);
    assert_eq!(user.save(10, &json!({ "status": "pending", "step_name": "again" })).code, 0);
    let other = checkpoint(0, &json!({ "execution_id": "e-1" }));
    assert_eq!(user.feed(&["state", "save", "--no-files"], &other).code, 0);
    insta::assert_snapshot!(user.takeback(&["state", "list"]).out, @"
    e-1  main  1 checkpoint   0 step 0  success  just now
    e    main  4 checkpoints  10 again  pending  just now
    ");
    insta::assert_snapshot!(user.takeback(&["state", "list", "e"]).out, @"
    ckpt-e-1   step 1  success             ID  just now
    ckpt-e-2   step 2  success             ID  just now
    ckpt-e-10  again   pending  attempt 2  ID  just now
    ");
    insta::assert_snapshot!(user.takeback(&["state", "list", "e", "--all"]).out, @"
    ckpt-e-1      step 1   success             ID  just now
    ckpt-e-2      step 2   success             ID  just now
    ckpt-e-10.a1  step 10  failed              ID  just now
    ckpt-e-10     again    pending  attempt 2  ID  just now
    ");
    insta::assert_snapshot!(user.takeback(&["state", "list", "e-1"]).out, @"ckpt-e-1-0  step 0  success  -  just now");
    let executions = user.json(&["state", "list"]);
    assert_eq!(executions[0]["execution_id"], "e-1", "the one last saved to");
    assert_eq!(executions[1]["head"]["id"], "ckpt-e-10");
    assert_eq!(executions[1]["checkpoints"], 4);
}

#[test]
fn a_list_continues_after_a_page() {
    let user = User::new();
    user.saved(5);
    assert_eq!(user.save(2, &json!({ "state": 2 })).code, 0);
    let page = user.takeback(&["state", "list", "e", "-n", "2"]);
    insta::assert_snapshot!(page.out, @"
    ckpt-e-1  step 1  success             ID  just now
    ckpt-e-2  step 2  success  attempt 2  ID  just now
    More: --after ckpt-e-2.a2 continues.
    ");
    assert_eq!(user.ids(&["e", "-n", "2"]), ["ckpt-e-1", "ckpt-e-2"]);
    assert_eq!(user.ids(&["e", "--after", "ckpt-e-2.a2", "-n", "2"]), ["ckpt-e-3", "ckpt-e-4"]);
    assert_eq!(
        user.ids(&["e", "--after", "ckpt-e-2", "-n", "9"]),
        ["ckpt-e-3", "ckpt-e-4", "ckpt-e-5"]
    );
    assert_eq!(user.ids(&["e", "--all", "--after", "ckpt-e-2.a1", "-n", "1"]), ["ckpt-e-2"]);
    user.exits(2, &["state", "list", "e", "--after", "ckpt-f-1"]);
    user.exits(2, &["state", "list", "e", "--after", "2"]);
    user.exits(2, &["state", "list", "--after", "ckpt-e-1"]);
}

#[test]
fn a_checkpoint_is_shown_with_its_values() {
    let user = User::new();
    user.saved(1);
    let values = json!({
        "state": { "messages": ["hi", "\u{1b}[2J\u{202e}"] },
        "variables": { "x": 1 },
        "status": "failed",
        "error": "it\nbroke",
    });
    assert_eq!(user.save(2, &values).code, 0);
    let shown = user.takeback(&["state", "show", "ckpt-e-2"]).out;
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("saved")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    step 2
    id       ckpt-e-2
    status   failed
    error    it\nbroke
    branch   main, attempt 1
    after    ckpt-e-1.a1
    files    LONG-ID

    state
    {
      "messages": [
        "hi",
        "\u001b[2J\u{202e}"
      ]
    }

    variables
    {
      "x": 1
    }
    "#);
}

#[test]
fn what_differs_between_two_checkpoints() {
    let user = User::new();
    let long = "x".repeat(5000);
    let first = json!({ "state": { "messages": ["a", "b"], "gone": 1 }, "context": { "k": long } });
    let second = json!({ "state": { "messages": ["a", "b", "c"] }, "context": { "k": "y" }, "status": "failed" });
    assert_eq!(user.save(1, &first).code, 0);
    assert_eq!(user.save(2, &second).code, 0);
    insta::assert_snapshot!(user.takeback(&["state", "diff", "ckpt-e-1", "ckpt-e-2"]).out, @r#"
      changed  /context/k         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… → "y"
      removed  /state/gone        1
      added    /state/messages/2  "c"
      changed  /status            "success" → "failed"
    4 differences
    "#);
    assert_eq!(
        user.json(&["state", "diff", "ckpt-e-1", "e"]),
        json!([
            { "path": "/context/k", "before": long, "after": "y" },
            { "path": "/state/gone", "before": 1 },
            { "path": "/state/messages/2", "after": "c" },
            { "path": "/status", "before": "success", "after": "failed" },
        ])
    );
    insta::assert_snapshot!(user.takeback(&["state", "diff", "e", "e"]).out, @"No differences.");
}

#[test]
fn an_execution_is_written_as_one_document() {
    let user = User::new();
    user.saved(2);
    assert_eq!(user.save(2, &json!({ "state": "again" })).code, 0);
    assert_eq!(user.feed(&["state", "effect", "e", "k"], "1").code, 0);
    let document = user.json(&["state", "export", "e"]);
    assert_eq!(document["branches"], json!([{ "name": "main", "head": "ckpt-e-2.a2" }]));
    let states = column(&document["checkpoints"], "state");
    assert_eq!(states, [json!({ "step": 1 }), json!({ "step": 2 }), json!("again")]);
    assert_eq!(document["effects"][0]["key"], "k");
    let written = user.takeback(&["state", "export", "e", "out.json"]);
    insta::assert_snapshot!(written.out, @"Exported e  3 checkpoints in out.json");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&user.read("out.json")).expect("JSON"),
        document
    );
    let mode =
        fs::metadata(user.work().join("out.json")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    insta::assert_snapshot!(user.exits(2, &["state", "export", "e", "out.json"]).err, @"
    takeback: out.json already exists
      Choose another name.
    ");
    user.exits(1, &["state", "export", "f", "no.json"]);
    assert!(!user.exists("no.json"));
}

#[test]
fn a_checkpoint_or_an_execution_is_deleted() {
    let user = User::new();
    user.saved(2);
    insta::assert_snapshot!(user.takeback(&["state", "delete", "ckpt-e-1", "--dry-run"]).out, @"
    Delete checkpoint ckpt-e-1

      this attempt would be deleted; others and later steps stay
      files are not touched; this cannot be undone
    ");
    insta::assert_snapshot!(user.takeback(&["state", "delete", "e", "--dry-run"]).out, @"
    Delete execution e

      2 checkpoints would be deleted, with its branches and effects
      files are not touched; this cannot be undone
    ");
    insta::assert_snapshot!(user.exits(2, &["state", "delete", "e"]).err, @"
    takeback: this deletes checkpoints and needs confirmation
      Run it in a terminal, or pass -y; --dry-run shows what it would do.
    ");
    assert_eq!(user.ids(&["e"]), ["ckpt-e-1", "ckpt-e-2"]);
    assert_eq!(
        user.takeback(&["state", "delete", "ckpt-e-1", "-y"]).out,
        "Deleted ckpt-e-1.a1  1 checkpoint\n"
    );
    assert_eq!(user.ids(&["e"]), ["ckpt-e-2"]);
    user.exits(1, &["state", "delete", "ckpt-e-1", "-y"]);
    assert_eq!(user.takeback(&["state", "delete", "e", "-y"]).out, "Deleted e  1 checkpoint\n");
    assert_eq!(user.json(&["state", "list"]), json!([]));
    user.exits(1, &["state", "delete", "e", "-y"]);
    user.saved(1);
    let terminal = user.terminal(80, 24);
    let no = terminal.run(&["state", "delete", "e"], "[y/N]", "\r");
    assert!(no.shown().contains("Nothing was changed."), "{}", no.shown());
    assert_eq!(user.ids(&["e"]), ["ckpt-e-1"]);
    terminal.run(&["state", "delete", "e"], "[y/N]", "y\r");
    assert_eq!(user.json(&["state", "list"]), json!([]));
}

/// Names with control characters, or of great length.
fn with_hostile_names() -> (User, Vec<String>) {
    let user = User::with(&[("a.txt", "one\n")]);
    let names = [
        "two words".to_owned(),
        "it's \"quoted\"; `rm`".to_owned(),
        "st\u{1b}[2Jeers\u{202e}\n\u{7}".to_owned(),
        "日本語".repeat(20),
        "long-".repeat(800),
        "../x\0".to_owned(),
        "ckpt-two words-1".to_owned(),
        "-dash".to_owned(),
    ];
    for (at, name) in names.iter().enumerate() {
        for step in [1, 2] {
            let with =
                json!({ "execution_id": name, "step_name": format!("do {name}"), "error": name });
            let answer = user.save(step, &with);
            assert_eq!(answer.code, 0, "{at}: {answer:?}");
        }
    }
    (user, names.to_vec())
}

#[test]
fn lists_fit_with_any_name() {
    let (user, _) = with_hostile_names();
    insta::assert_snapshot!(at_widths(&user, &["state", "list"]), @r#"
    40 columns
    -dash            2 do -dash      success
    ckpt-two words…  2 do ckpt-two…  success
    ../x\u{0}        2 do ../x\u{0}  success
    long-long-long…  2 do long-lon…  success
    日本語日本語日…  2 do 日本語日…  success
    st\u{1b}[2Jeer…  2 do st\u{1b}…  success
    it's "quoted";…  2 do it's "qu…  success
    two words        2 do two words  success

    80 columns
    -dash                main  2 checkpoints  2 do -dash           success  just now
    ckpt-two words-1     main  2 checkpoints  2 do ckpt-two word…  success  just now
    ../x\u{0}            main  2 checkpoints  2 do ../x\u{0}       success  just now
    long-long-long-lon…  main  2 checkpoints  2 do long-long-lon…  success  just now
    日本語日本語日本語…  main  2 checkpoints  2 do 日本語日本語…   success  just now
    st\u{1b}[2Jeers\u{…  main  2 checkpoints  2 do st\u{1b}[2Jee…  success  just now
    it's "quoted"; `rm`  main  2 checkpoints  2 do it's "quoted"…  success  just now
    two words            main  2 checkpoints  2 do two words       success  just now

    200 columns
    -dash                                                                            main  2 checkpoints  2 do -dash                                                                       success  just now
    ckpt-two words-1                                                                 main  2 checkpoints  2 do ckpt-two words-1                                                            success  just now
    ../x\u{0}                                                                        main  2 checkpoints  2 do ../x\u{0}                                                                   success  just now
    long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-lon…  main  2 checkpoints  2 do long-long-long-long-long-long-long-long-long-long-long-long-long-long-lon…  success  just now
    日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語…  main  2 checkpoints  2 do 日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語…   success  just now
    st\u{1b}[2Jeers\u{202e}\n\u{7}                                                   main  2 checkpoints  2 do st\u{1b}[2Jeers\u{202e}\n\u{7}                                              success  just now
    it's "quoted"; `rm`                                                              main  2 checkpoints  2 do it's "quoted"; `rm`                                                         success  just now
    two words                                                                        main  2 checkpoints  2 do two words                                                                   success  just now
    "#);
    insta::assert_snapshot!(at_widths(&user, &["state", "list", "st\u{1b}[2Jeers\u{202e}\n\u{7}", "-n", "1"]), @r"
    40 columns
    …202e}\n\u{7}-1  do st\u{1b}[2…  success
    More: continue with --after and the last
    id that --json prints.

    80 columns
    …[2Jeers\u{202e}\n\u{7}-1  do st\u{1b}[2Jeers\u{20…  success  ID  just now
    More: continue with --after and the last id that --json prints.

    200 columns
    ckpt-st\u{1b}[2Jeers\u{202e}\n\u{7}-1  do st\u{1b}[2Jeers\u{202e}\n\u{7}  success  ID  just now
    More: continue with --after and the last id that --json prints.
    ");
}

#[test]
fn every_name_works_and_controls_no_terminal() {
    let (user, names) = with_hostile_names();
    for name in names.iter().filter(|name| !name.contains('\0')) {
        let (first, second) = (format!("ckpt-{name}-1"), format!("ckpt-{name}-2"));
        assert_eq!(user.json(&["state", "show", &first])["execution_id"], name.as_str());
        for args in [
            &["state", "list", "-n", "1", "--", name][..],
            &["state", "diff", &first, &second],
            &["state", "rollback", &first, "--state-only", "--dry-run"],
            &["state", "delete", &first, "--dry-run"],
            &["state", "show", &first],
            &["state", "resume", &first],
        ] {
            let ran = user.terminal(80, 200).run(args, "", "");
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.shown());
            assert_fits(&ran, args, 80);
        }
    }
    // An id has precedence over an execution with the same name.
    assert_eq!(user.json(&["state", "show", "ckpt-two words-1"])["execution_id"], "two words");
    assert_eq!(user.ids(&["ckpt-two words-1"]).len(), 2);
}

#[test]
fn a_damaged_checkpoint_is_named_and_others_still_work() {
    let user = User::new();
    user.saved(3);
    user.succeeds(&["verify"]);
    user.change_database("UPDATE step SET body = x'00' WHERE step = 2");
    let damaged = user.exits(1, &["state", "show", "ckpt-e-2"]);
    insta::assert_snapshot!(damaged.err, @"
    takeback: ckpt-e-2.a1 is damaged: it ends too early
      `takeback verify` shows what else is damaged.
    ");
    assert_eq!(user.ids(&["e"]), ["ckpt-e-1", "ckpt-e-2", "ckpt-e-3"]);
    assert_eq!(user.json(&["state", "show", "ckpt-e-3"])["state"], json!({ "step": 3 }));
    user.exits(1, &["verify"]).prints("damaged  ckpt-e-2.a1");
    let exported = user.takeback(&["state", "export", "e", "out.json"]);
    assert_eq!((exported.code, user.exists("out.json")), (1, false), "{exported:?}");
}

#[test]
fn an_expired_point_is_not_shown_as_restorable() {
    let user = User::with(&[("a.txt", "0\n")]);
    user.set(r#"{"pointsPerSession": 1}"#);
    for step in 1..=3 {
        user.write("a.txt", &format!("{step}\n"));
        assert_eq!(user.save(step, &json!({})).code, 0);
    }
    let points = |json: &serde_json::Value| -> Vec<bool> {
        let listed = json.as_array().expect("a list").iter();
        listed.map(|one| one["point"].is_string()).collect()
    };
    assert_eq!(points(&user.json(&["state", "list", "e"])), [true; 3]);
    user.succeeds(&["cleanup"]);
    insta::assert_snapshot!(user.takeback(&["state", "list", "e"]).out, @"
    ckpt-e-1  step 1  success  -         just now
    ckpt-e-2  step 2  success  -         just now
    ckpt-e-3  step 3  success  ID  just now
    ");
    assert_eq!(points(&user.json(&["state", "list", "e"])), [false, false, true]);
    assert_eq!(points(&user.json(&["state", "export", "e"])["checkpoints"]), [false, false, true]);
    for verb in ["show", "resume"] {
        for (id, files) in [("ckpt-e-1", "files    expired"), ("ckpt-e-3", "files    LONG-ID")] {
            let shown = user.takeback(&["state", verb, id]).out;
            assert!(shown.lines().any(|line| line == files), "{verb} {id}: {shown}");
            let is_kept = user.json(&["state", verb, id])["point"].is_string();
            assert_eq!(is_kept, id == "ckpt-e-3", "{verb} {id}");
        }
    }
    user.succeeds(&["state", "rollback", "ckpt-e-1", "--state-only", "-y"]);
    user.succeeds(&["undo", "-y"]);
    user.succeeds(&["state", "delete", "ckpt-e-3", "-y"]);
    assert_eq!(user.json(&["state", "list"])[0]["head"]["point"], json!(null));
    let none = checkpoint(4, &json!({}));
    assert_eq!(user.feed(&["state", "save", "--no-files"], &none).code, 0);
    let shown = user.takeback(&["state", "show", "ckpt-e-4"]).out;
    assert!(shown.lines().any(|line| line == "files    none"), "{shown}");
}
