//! A store that is damaged, newer, foreign, or not writable.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::after_an_agent;
use crate::user::{User, path_text};

fn first_pack(user: &User) -> PathBuf {
    let packs = fs::read_dir(user.store().join("packs")).expect("packs");
    packs.map(|pack| pack.expect("named").path()).next().expect("one")
}

/// Overwrites a part of a file.
fn overwrite(file: &Path, at: std::ops::Range<usize>) {
    let mut bytes = fs::read(file).expect("it can be read");
    bytes[at].fill(0x5a);
    fs::write(file, bytes).expect("damaged");
}

#[test]
fn a_store_from_the_future_or_of_another_program() {
    let user = User::with(&[("a", "1")]);
    user.takeback(&["checkpoint"]);
    let database = user.store().join("timeline.db");
    let mut bytes = std::fs::read(&database).expect("it can be read");
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&database, bytes).expect("a newer format");
    insta::assert_snapshot!(user.exits(1, &["log"]).err, @r"
    takeback: the store at FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db has format 999; this Takeback knows formats up to 1
      Update Takeback; nothing was changed.
    ");
    std::fs::write(&database, "something else entirely").expect("foreign");
    insta::assert_snapshot!(user.exits(1, &["log"]).err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db is not a Takeback store
      Move it aside, or choose another folder with --home or TAKEBACK_HOME.
    ");
}

#[test]
fn a_store_whose_database_is_damaged() {
    let user = after_an_agent();
    let before = user.tree();
    let database = user.store().join("timeline.db");
    let size = usize::try_from(fs::metadata(&database).expect("it is there").len()).expect("small");
    overwrite(&database, 4096..size);
    for args in [&["log"][..], &["status"], &["verify"], &["checkpoint"], &["rewind", "m", "-y"]] {
        let answer = user.takeback(args);
        assert_eq!(answer.code, 1, "{args:?}: {answer:?}");
        assert!(answer.err.contains("is damaged"), "{args:?}: {answer:?}");
    }
    insta::assert_snapshot!(user.takeback(&["log"]).err, @"
    takeback: the database FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db is damaged: database disk image is malformed
      Restore the store's folder from a backup, or move it away to start over. Your files were not changed.
    ");
    insta::assert_snapshot!(user.takeback(&["rewind", "m", "-y"]).err, @"
    takeback: the database FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db is damaged: database disk image is malformed
      Restore the store's folder from a backup, or move it away to start over. Your files were not changed.
    ");
    let answer = user.feed(&["record"], r#"{"event":"turn_end","session":"s"}"#);
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.err, @"
    takeback: the database FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db is damaged: database disk image is malformed
      Restore the store's folder from a backup, or move it away to start over. Your files were not changed.
    ");
    assert_eq!(user.tree(), before);
    // Do what the hint says.
    fs::rename(user.store(), user.home().join("aside")).expect("it is moved aside");
    user.succeeds(&["checkpoint"]);
}

/// Page by page: any damage results in an error message, and nothing else.
#[test]
fn a_database_with_garbage_in_the_middle() {
    let user = after_an_agent();
    let restore = user.backup();
    let before = user.tree();
    let database = user.store().join("timeline.db");
    let pages = fs::metadata(&database).expect("it is there").len() / 4096;
    let mut found = 0;
    for page in 1..usize::try_from(pages).expect("small") {
        restore();
        overwrite(&database, page * 4096..(page + 1) * 4096);
        let verified = user.takeback(&["verify"]);
        found += usize::from(verified.code == 1);
        assert!([0, 1].contains(&verified.code), "page {page}: {verified:?}");
        let rewound = user.takeback(&["rewind", "m", "-y"]);
        match rewound.code {
            0 => assert_eq!(user.read("a.txt"), "one\n", "page {page}"),
            1 => {
                assert!(rewound.err.starts_with("takeback: "), "page {page}: {rewound:?}");
                assert_eq!(user.tree(), before, "page {page}: {rewound:?}");
            }
            _ => panic!("page {page}: {rewound:?}"),
        }
    }
    assert!(found > 5, "only {found} of {pages} pages mattered");
}

#[test]
fn damaged_contents() {
    let user = after_an_agent();
    let before = user.tree();
    let pack = first_pack(&user);
    let size = usize::try_from(fs::metadata(&pack).expect("it is there").len()).expect("small");
    overwrite(&pack, 20..size);
    let listed = user.takeback(&["log"]);
    assert_eq!((listed.code, listed.out.lines().count()), (0, 1), "points are listed: {listed:?}");
    insta::assert_snapshot!(user.exits(4, &["rewind", "m", "-y"]).out, @"
    Rewind to ID “go” (just now)

      restored  lib
      missing   a.txt      damaged in the store
      missing   lib/b.txt  damaged in the store
      missing   new        its current contents are damaged in the store; --discard PATH discards them

    lib changed while `Bash` ran; may include yours.

    1 restored · 3 missing
    Done as far as possible. `takeback undo` takes it back.
    `takeback verify` shows what is damaged.
    ");
    assert_eq!((user.read("a.txt").as_str(), user.read("new").as_str()), ("two\n", "new\n"));
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
    let answer = user.exits(4, &["diff", "m"]);
    insta::assert_snapshot!(answer.out, @"
    # a.txt: changed, damaged in the store
    # lib: folder deleted
    # lib/b.txt: deleted, damaged in the store
    # new: new, damaged in the store
    ");
    insta::assert_snapshot!(answer.err, @"
    takeback: 3 files are damaged in the store and not in the patch
    ");
    insta::assert_snapshot!(user.exits(4, &["diff", "m", "--stat"]).out, @"
      a.txt      changed, damaged in the store
      lib        folder deleted
      lib/b.txt  deleted, damaged in the store
      new        new, damaged in the store
    3 files, +0 -0
    ");
    user.exits(4, &["diff", "m", "--json"]).prints("\"damaged\":true");
    let shown = user.takeback(&["show", "m"]);
    assert_eq!((shown.code, shown.out.contains("a.txt")), (0, true), "{shown:?}");
    insta::assert_snapshot!(user.exits(4, &["export", "../bundle"]).out, @"
    Exported 1 point and 5 changes  560 B in ../bundle
    missing  a.txt  damaged in the store
    missing  lib/b.txt  damaged in the store
    missing  new  damaged in the store
    `takeback verify` shows what is damaged.
    ");
    user.exits(1, &["verify"]).prints("of a.txt (change 1) are damaged in segment");
}

#[test]
fn missing_contents() {
    let user = after_an_agent();
    fs::remove_dir_all(user.store().join("packs")).expect("they go");
    for args in [&["rewind", "m", "--dry-run"][..], &["rewind", "m", "-y"]] {
        user.exits(4, args).prints("missing   a.txt      damaged in the store");
    }
    let answer = user.exits(4, &["rewind", "m", "-y", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&answer.out).expect("JSON");
    let missing = serde_json::json!([{ "filePath": "a.txt", "reason": "damaged in the store" }]);
    let listed = told["notCaptured"].as_array().expect("a list");
    assert!(listed.contains(&missing[0]), "{told}");
    // The present file could not be restored later either, so it stays.
    let kept = "its current contents are damaged in the store; --discard PATH discards them";
    assert!(listed.contains(&serde_json::json!({ "filePath": "new", "reason": kept })), "{told}");
    assert_eq!((user.read("a.txt").as_str(), user.read("new").as_str()), ("two\n", "new\n"));
    let given_up = user.takeback(&["rewind", "m", "-y", "--discard", "new"]);
    assert_eq!((given_up.code, user.exists("new")), (4, false), "{given_up:?}");
}

/// Sets the modes of folders and files below a folder.
fn set_modes(folder: &Path, folders: u32, files: u32) {
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("named").path();
        if path.is_dir() {
            set_modes(&path, folders, files);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(files)).expect("a mode");
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(folders)).expect("a mode");
}

#[test]
fn a_store_that_may_not_be_written() {
    let user = after_an_agent();
    let before = user.tree();
    user.drop_privileges();
    let store = user.store();
    set_modes(&store, 0o500, 0o400);
    let looked = user.unprivileged(&["log"]);
    assert_eq!((looked.code, looked.err.as_str()), (0, ""), "what is there can be looked at");
    for args in [&["checkpoint"][..], &["rewind", "m", "-y"], &["forget", "-y"]] {
        let answer = user.unprivileged(args);
        assert_eq!(answer.code, 1, "{args:?}: {answer:?}");
        assert!(answer.err.contains("writable"), "{args:?}: {answer:?}");
    }
    insta::assert_snapshot!(user.unprivileged(&["checkpoint"]).err, @"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/lock cannot be used (locking the workspace): Permission denied (os error 13)
      Make the store readable and writable, or choose another home with --home or TAKEBACK_HOME. Your files were not changed.
    ");
    insta::assert_snapshot!(user.unprivileged(&["forget", "-y"]).err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/lock cannot be used (locking the workspace): Permission denied (os error 13)
      Make the store readable and writable, or choose another home with --home or TAKEBACK_HOME. Your files were not changed.
    ");
    assert_eq!(user.tree(), before);
    set_modes(&store, 0o000, 0o000);
    insta::assert_snapshot!(user.unprivileged(&["log"]).err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db cannot be used (looking for it): Permission denied (os error 13)
      Make the store readable and writable, or choose another home with --home or TAKEBACK_HOME. Your files were not changed.
    ");
    let listed = user.unprivileged(&["workspaces"]);
    assert_eq!((listed.code, listed.out.contains("not known")), (0, true), "{listed:?}");
    for folder in [&store, &store.join("packs")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("a mode");
    }
    set_modes(&store, 0o700, 0o600);
    let answer = user.unprivileged(&["rewind", "m", "-y"]);
    assert_eq!((answer.code, user.read("a.txt").as_str()), (0, "one\n"), "{answer:?}");
}

#[test]
fn a_home_that_may_not_be_written() {
    let user = User::with(&[("a", "1")]);
    user.drop_privileges();
    fs::set_permissions(user.home(), fs::Permissions::from_mode(0o500)).expect("a mode");
    insta::assert_snapshot!(user.unprivileged_exits(1, &["checkpoint"]).err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID cannot be used (creating it): Permission denied (os error 13)
      Make the store readable and writable, or choose another home with --home or TAKEBACK_HOME. Your files were not changed.
    ");
}

#[test]
fn a_store_on_a_read_only_file_system() {
    let user = after_an_agent();
    let database =
        path_text(&user.store().join("timeline.db").canonicalize().expect("it is there"));
    for args in [&["checkpoint"][..], &["rewind", "m", "-y"]] {
        let answer = user.with_failing("openat:error=EROFS:when=1+", Some(&database), args);
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.err.contains("writable"), "{answer:?}");
    }
    let answer = user.with_failing("openat:error=EROFS:when=1+", Some(&database), &["log"]);
    insta::assert_snapshot!(answer.err, @"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db cannot be used (opening it): unable to open database file: FOLDER/home/.takeback/workspaces/work-LONG-ID/timeline.db
      Make the store readable and writable, or choose another home with --home or TAKEBACK_HOME. Your files were not changed.
    ");
    assert_eq!(user.read("a.txt"), "two\n");
}

#[test]
fn a_store_that_names_another_folder_is_reported_and_mended() {
    let user = after_an_agent();
    let root = user.store().join("root");
    let right = fs::read(&root).expect("a root");
    for wrong in ["/nowhere/else", ""] {
        fs::write(&root, wrong).expect("it is written");
        user.exits(1, &["verify"]).prints("`takeback recover` fixes it");
        let (status, doctor) = (user.takeback(&["status"]), user.takeback(&["doctor"]));
        assert!(status.out.contains("instead of"), "{status:?}");
        assert!(doctor.out.contains("instead of") && doctor.code == 1, "{doctor:?}");
        let mended = user.takeback(&["recover"]);
        assert_eq!(
            (mended.code, mended.out.as_str()),
            (0, "Restored the folder's path in the store.\n")
        );
        assert_eq!(fs::read(&root).expect("a root"), right);
        user.succeeds(&["verify"]);
    }
}

#[test]
fn an_event_that_was_damaged_while_it_waited_is_reported() {
    let user = after_an_agent();
    let event = r#"{"time":1,"event":"prompt","session":"s","message":null,"text":"go"}"#;
    let inbox = user.store().join("inbox");
    fs::create_dir_all(&inbox).expect("an inbox");
    fs::write(inbox.join("0000000000000001"), event.replace("\"go", "xgo")).expect("an event");
    for _ in 0..2 {
        let found = user.exits(1, &["verify"]);
        let told = "1 event in the inbox cannot be read";
        assert!(found.out.contains(told), "{found:?}");
        let (status, doctor) = (user.takeback(&["status"]), user.takeback(&["doctor"]));
        assert!(status.out.contains(told), "{status:?}");
        assert!(doctor.out.contains(told) && doctor.code == 1, "{doctor:?}");
        user.succeeds(&["checkpoint"]);
    }
}
