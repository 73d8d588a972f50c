//! `workspaces`, `forget` and `relocate`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::user::User;

/// A user whose agent has changed `a.txt` and deleted `lib`.
fn after_an_agent() -> User {
    let user = User::with(&[("a.txt", "one\n"), ("lib/b.txt", "b\n")]);
    user.succeeds(&["-q", "run", "--", "sh", "-c", "echo two > a.txt; rm -r lib"]);
    user
}

/// Moves the user's folder, and returns its new path.
fn move_away(user: &User, name: &str) -> PathBuf {
    let new = user.work().with_file_name(name);
    fs::rename(user.work(), &new).expect("it moves");
    // Commands start here.
    fs::create_dir(user.work()).expect("a folder");
    new
}

fn in_folder<'a>(folder: &'a Path, args: &[&'a str]) -> Vec<&'a str> {
    [&["-C", folder.to_str().expect("utf-8")], args].concat()
}

fn stores(user: &User) -> Vec<String> {
    let stores = fs::read_dir(user.home().join(".takeback/workspaces")).expect("stores");
    let name = |store: fs::DirEntry| store.file_name().into_string().expect("utf-8");
    stores.map(|store| name(store.expect("named"))).collect()
}

/// Sizes depend on the file system.
fn without_sizes(text: &str) -> String {
    let words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
    let is_unit = |next: &&str| next.trim_end().trim_end_matches('.') == "KB";
    let word = |at: usize| if words.get(at + 1).is_some_and(is_unit) { "N " } else { words[at] };
    (0..words.len()).map(word).collect()
}

#[test]
fn the_protected_folders_are_listed() {
    let user = User::new();
    insta::assert_snapshot!(user.takeback(&["workspaces"]).out, @"No folder is protected.");
    let user = after_an_agent();
    let other = user.work().with_file_name("other");
    fs::create_dir(&other).expect("a folder");
    user.takeback(&in_folder(&other, &["checkpoint"]));
    user.takeback(&in_folder(&other, &["checkpoint"]));
    fs::remove_dir(&other).expect("it goes");
    insta::assert_snapshot!(without_sizes(&user.takeback(&["workspaces"]).out), @"
    FOLDER/other  2 points  N KB  just now  no longer exists
    FOLDER/work   1 point   N KB  just now
    ");
    let told = user.json(&["workspaces"]);
    let told = told.as_array().expect("a list");
    assert_eq!((&told[0]["exists"], &told[0]["points"]), (&false.into(), &2.into()));
    assert_eq!((&told[1]["exists"], &told[1]["points"]), (&true.into(), &1.into()));
    assert_eq!(told[1]["store"].as_str(), user.json(&["status"])["store"].as_str());
    assert!(told[1]["bytes"].as_u64() > Some(10_000), "{told:?}");
    assert!(told[1]["lastActivity"].as_str().is_some_and(|time| time.ends_with('Z')), "{told:?}");
    let damaged = PathBuf::from(told[0]["store"].as_str().expect("a path")).join("timeline.db");
    fs::write(damaged, "not a database").expect("damaged");
    let answer = user.takeback(&["workspaces"]);
    assert_eq!((answer.code, answer.out.contains("unreadable")), (0, true), "{answer:?}");
}

#[test]
fn a_folder_is_forgotten_and_its_files_stay() {
    let user = after_an_agent();
    insta::assert_snapshot!(user.exits(2, &["forget"]).err, @r"
    takeback: this deletes what was recorded and needs confirmation
      Run it in a terminal, or pass -y; --dry-run shows what it would do.
    ");
    let answer = user.succeeds(&["forget", "--dry-run"]);
    insta::assert_snapshot!(without_sizes(&answer.out), @r"
    Delete the history of FOLDER/work: 1 point, N KB.
    Your files are not touched; earlier changes can no longer be taken back.
    ");
    assert_eq!(user.takeback(&["log"]).code, 0, "it is all there");
    let answer = user.succeeds(&["forget", "-y"]);
    insta::assert_snapshot!(without_sizes(&answer.out), @"Deleted the history of FOLDER/work  1 point, N KB");
    user.exits(10, &["log"]);
    assert_eq!((user.read("a.txt").as_str(), stores(&user).len()), ("two\n", 0));
    insta::assert_snapshot!(user.exits(10, &["forget", "-y"]).err, @r"
    takeback: FOLDER/work is not protected
      `takeback workspaces` lists the folders that are.
    ");
}

#[test]
fn forgetting_asks_on_a_terminal() {
    let user = after_an_agent();
    let ran = user.terminal(80, 70).run(&["forget"], "[y/N]", "\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    user.succeeds(&["log"]);
    let ran = user.terminal(80, 70).run(&["forget"], "[y/N]", "y\r");
    assert_eq!(ran.code, 0, "{}", ran.shown());
    user.exits(10, &["log"]);
}

#[test]
fn only_the_named_folder_is_forgotten_even_if_it_no_longer_exists() {
    let user = after_an_agent();
    fs::create_dir(user.work().join("sub")).expect("a folder");
    assert_eq!(user.takeback(&["forget", "sub", "-y"]).code, 10, "not the one around it");
    let old = user.work();
    move_away(&user, "elsewhere");
    fs::remove_dir(&old).expect("it goes");
    fs::create_dir(old.with_file_name("here")).expect("a folder");
    let here = old.with_file_name("here");
    let answer = user.takeback_in(&here, &["forget", old.to_str().expect("utf-8"), "-y"]);
    assert_eq!((answer.code, stores(&user).len()), (0, 0), "{answer:?}");
}

#[test]
fn what_an_interrupted_forget_left_is_cleared() {
    let user = after_an_agent();
    let store = user.store();
    let left = store.with_file_name(".forgotten-00000000000000ff");
    fs::rename(store, &left).expect("it was renamed");
    assert_eq!(user.takeback(&["log"]).code, 10, "it is forgotten");
    assert_eq!(user.takeback(&["workspaces"]).out, "No folder is protected.\n");
    assert!(!left.exists());
}

#[test]
fn a_store_in_use_is_not_forgotten_and_does_not_move() {
    let user = after_an_agent();
    let lock = fs::File::open(user.store().join("lock")).expect("a lock");
    lock.lock_shared().expect("another process records");
    insta::assert_snapshot!(user.exits(11, &["forget", "-y"]).err, @r"
    takeback: another command has the workspace locked
      Wait until it is done, then try again.
    ");
    let (old, new) = (user.work(), move_away(&user, "moved"));
    fs::remove_dir(&old).expect("it goes");
    assert_eq!(user.takeback_in(&new, &["relocate", old.to_str().expect("utf-8")]).code, 11);
}

#[test]
fn a_rewind_that_is_not_finished_is_not_forgotten() {
    let user = after_an_agent();
    user.write(".takeback/stage-00000000000000ff/new-0", "a user's bytes");
    insta::assert_snapshot!(user.exits(1, &["forget", "-y"]).err, @r"
    takeback: a rewind in FOLDER/work is not finished
      `takeback recover` finishes it; keep or remove what is then left in FOLDER/work/.takeback.
    ");
    user.succeeds(&["log"]);
}

#[test]
fn a_folder_that_moved_keeps_its_history() {
    let user = after_an_agent();
    let old = user.work();
    let new = move_away(&user, "moved");
    fs::remove_dir(&old).expect("it goes");
    let there = |args: &[&str]| user.takeback_in(&new, args);
    let old = old.to_str().expect("utf-8");
    let answer = there(&["relocate", old, "--dry-run"]);
    insta::assert_snapshot!(answer.out, @"Would reconnect the store to FOLDER/moved  before: FOLDER/work");
    assert_eq!(there(&["log"]).code, 10);
    let answer = there(&["relocate", old]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    insta::assert_snapshot!(answer.out, @"Reconnected the store to FOLDER/moved  before: FOLDER/work");
    insta::assert_snapshot!(there(&["log"]).out, @"ID  just now  run-ID  sh -c echo two > a.txt; rm -r lib  2 files +1 -2");
    assert_eq!(there(&["rewind", "@", "-y"]).code, 0);
    let read = |path: &str| fs::read_to_string(new.join(path)).expect("it is there");
    assert_eq!((read("a.txt"), read("lib/b.txt")), ("one\n".into(), "b\n".into()));
    assert_eq!(there(&["undo", "-y"]).code, 0);
    assert_eq!(read("a.txt"), "two\n");
    assert_eq!(there(&["verify"]).code, 0);
    assert_eq!(stores(&user).len(), 1);
    assert_eq!(there(&["workspaces"]).code, 0);
    assert_eq!(there(&["relocate", old]).code, 10, "it no longer exists");
}

/// If it is interrupted between its two steps, the same command finishes it.
#[test]
fn an_interrupted_relocate_is_finished_by_the_next() {
    let user = after_an_agent();
    let (old, store) = (user.work(), user.store());
    let new = move_away(&user, "moved");
    fs::remove_dir(&old).expect("it goes");
    fs::write(store.join("root"), fs::canonicalize(&new).expect("there").to_str().expect("utf-8"))
        .expect("the first step");
    assert_eq!(user.takeback_in(&new, &["relocate", old.to_str().expect("utf-8")]).code, 0);
    assert_eq!(user.takeback_in(&new, &["log"]).code, 0);
}

#[test]
fn invalid_moves_are_refused() {
    let user = after_an_agent();
    let new = user.work().with_file_name("new");
    fs::create_dir(&new).expect("a folder");
    let old = user.work().to_str().expect("utf-8").to_owned();
    insta::assert_snapshot!(user.exits(2, &in_folder(&new, &["relocate", &old])).err, @r"
    takeback: FOLDER/work is still there and protected
      Only the store of a moved folder can be relocated.
    ");
    insta::assert_snapshot!(user.exits(10, &in_folder(&new, &["relocate", "nowhere"])).err, @r"
    takeback: FOLDER/new/nowhere is not protected
      `takeback workspaces` lists the folders that are.
    ");
    user.takeback(&in_folder(&new, &["checkpoint"]));
    let gone = user.work().with_file_name("gone");
    fs::rename(user.work(), &gone).expect("it moves");
    let run = |args: &[&str]| user.takeback_in(&new, args);
    let answer = run(&["relocate", &old]);
    assert_eq!(answer.code, 2);
    insta::assert_snapshot!(answer.err, @r"
    takeback: FOLDER/new has a store of its own
      If you do not need what is in it, `takeback forget` removes it.
    ");
    for refused in ["/", user.home().to_str().expect("utf-8")] {
        assert_eq!(run(&["relocate", &old, refused]).code, 2, "{refused}");
    }
    assert_eq!(run(&["relocate", &old, "no-such-folder"]).code, 1);
    assert_eq!(run(&["relocate", &old, gone.to_str().expect("utf-8")]).code, 0);
}

#[test]
fn a_command_in_a_folder_that_moved_says_what_to_do() {
    let user = after_an_agent();
    let moved = |to: &str| {
        let new = user.work().with_file_name(to);
        fs::create_dir_all(new.parent().expect("a folder")).expect("folders");
        fs::rename(user.work(), &new).expect("it moves");
        let answer = user.takeback_in(&new, &["log"]);
        fs::rename(&new, user.work()).expect("it moves back");
        assert_eq!(answer.code, 10);
        answer.err
    };
    insta::assert_snapshot!(moved("elsewhere/work"), @r"
    takeback: FOLDER/elsewhere/work is not protected
      `takeback run -- CMD` or `takeback checkpoint` protects this folder.
      If FOLDER/work has moved here: `takeback relocate FOLDER/work`.
    ");
    insta::assert_snapshot!(moved("a new name"), @r"
    takeback: FOLDER/a new name is not protected
      `takeback run -- CMD` or `takeback checkpoint` protects this folder.
    ");
    user.write("lib/again", "now two names are known\n");
    user.takeback(&["checkpoint"]);
    insta::assert_snapshot!(moved("a new name"), @r"
    takeback: FOLDER/a new name is not protected
      `takeback run -- CMD` or `takeback checkpoint` protects this folder.
      If FOLDER/work has moved here: `takeback relocate FOLDER/work`.
    ");
    let other = user.work().with_file_name("other");
    fs::create_dir(&other).expect("a folder");
    fs::rename(user.work(), user.work().with_file_name("gone")).expect("it moves");
    let answer = user.takeback_in(&other, &["log"]);
    assert!(!answer.err.contains("relocate"), "another folder altogether: {answer:?}");
}

#[test]
fn a_repository_that_moved_is_known_by_its_commit() {
    let user = User::with(&[("a.txt", "one\n"), (".git/HEAD", &"ab".repeat(20))]);
    user.takeback(&["checkpoint"]);
    let new = user.work().with_file_name("renamed");
    fs::rename(user.work(), &new).expect("it moves");
    fs::create_dir(new.join("sub")).expect("a folder");
    let answer = user.takeback_in(&new.join("sub"), &["log"]);
    assert_eq!(answer.code, 10);
    insta::assert_snapshot!(answer.err, @r"
    takeback: FOLDER/renamed is not protected
      `takeback run -- CMD` or `takeback checkpoint` protects this folder.
      If FOLDER/work has moved here: `takeback relocate FOLDER/work FOLDER/renamed`.
    ");
}
