//! `export --git` and `export --patch`, with the real git.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hook::Session;
use crate::user::{Answer, User, path_text};

/// Runs git as a user whose settings are `home`'s.
fn git_in(folder: &Path, home: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder).env_clear().env("HOME", home);
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("git runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), text + &String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn git(user: &User, args: &[&str]) -> String {
    let (code, text) = git_in(&user.work(), &user.home(), args);
    assert_eq!(code, 0, "git {args:?}: {text}");
    text.trim_end().to_owned()
}

/// A repository with one commit, and an uncommitted change of the user's.
fn repository() -> User {
    let user = User::with(&[
        ("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
        ("old name.txt", "a\nb\nc\nd\ne\nf\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("folder/inner.txt", "inner\n"),
        ("crlf.txt", "one\r\ntwo\r\n"),
        (".gitignore", "ignored.txt\n"),
    ]);
    git(&user, &["init", "-q", "-b", "main"]);
    git(&user, &["config", "user.name", "Jane Doe"]);
    git(&user, &["config", "user.email", "jane@example.com"]);
    git(&user, &["add", "-A"]);
    git(&user, &["commit", "-q", "-m", "first"]);
    user
}

const SCRIPT: &str = r#"mv "old name.txt" "new name.txt"; chmod +x run.sh; ln -s a.txt link
    printf 'a\0b' > binary; printf 'odd' > "$(printf 'tab\there "q" \303\244')"; printf 'x\n' > "$(printf 'line\nbreak')"
    rm -r folder; echo now a file > folder; printf 'one\r\n2\r\n' > crlf.txt; echo k > ignored.txt"#;

/// Two prompts with the agent's and the user's changes. Returns the session.
fn work(user: &User) -> Session<'_> {
    let mut session = Session::of(user, "s");
    session.prompt("Number the lines\n\nFrom: nobody\n--- not a patch\ndiff --git a/x b/x");
    session.write("c1", "a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    session.stop();
    user.write("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\nnine, by me\n");
    session.prompt("Do everything else");
    session.bash("c2", SCRIPT);
    session.stop();
    session
}

/// Everything below `.git`, with the bytes of each file, except objects and the reference `made`.
fn git_files(user: &User, made: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![user.work().join(".git")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("objects") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with(Path::new("heads").join(made)) {
                files.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn summary(answer: &Answer) -> String {
    answer.out.clone() + &answer.err
}

#[test]
fn turns_become_commits_and_nothing_else_is_touched() {
    let user = repository();
    work(&user);
    let hook = user.work().join(".git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ntouch \"$HOME/hook-ran\"\n").unwrap();
    Command::new("chmod").arg("+x").arg(&hook).status().unwrap();
    let (files, tree) = (git_files(&user, "review"), user.tree());
    let index_time = fs::metadata(user.work().join(".git/index")).unwrap().mtime_nsec();
    let exported = user.succeeds(&["export", "--git", "review"]);
    insta::assert_snapshot!(summary(&exported), @r##"
    Exported 3 commits on branch review  `git log -p review` shows them
    1 path left out: ignored, outside the workspace, or in a repository of their own.
    "##);
    assert_eq!(git_files(&user, "review"), files);
    assert_eq!(user.tree(), tree);
    let index = fs::metadata(user.work().join(".git/index")).unwrap();
    assert_eq!(index.mtime_nsec(), index_time);
    assert!(!user.home().join("hook-ran").exists());

    insta::assert_snapshot!(git(&user, &["log", "--format=%an <%ae>: %s", "review"]), @r##"
    Claude Code <claude@localhost>: Do everything else
    Jane Doe <jane@example.com>: My changes after: Number the lines
    Claude Code <claude@localhost>: Number the lines
    Jane Doe <jane@example.com>: first
    "##);
    assert_eq!(git(&user, &["rev-parse", "review~3"]), git(&user, &["rev-parse", "main"]));
    insta::assert_snapshot!(git(&user, &["show", "--format=", "review~2"]), @r##"
    diff --git a/a.txt b/a.txt
    index 0719398..2963b58 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1,4 +1,4 @@
    -1
    +one
     2
     3
     4
    "##);
    insta::assert_snapshot!(git(&user, &["show", "--format=", "-M", "--summary", "--raw", "--abbrev=10", "review"]), @r#"
    :000000 100644 0000000000 20b5be9188 A	binary
    :100644 100644 4e349b596c 796f13624f M	crlf.txt
    :000000 100644 0000000000 3f899ea7ab A	folder
    :100644 000000 f05648e753 0000000000 D	folder/inner.txt
    :000000 100644 0000000000 587be6b4c3 A	"line\nbreak"
    :000000 120000 0000000000 8d14cbf983 A	link
    :100644 100644 0fdf397db0 0fdf397db0 R100	old name.txt	new name.txt
    :100644 100755 1a2485251c 1a2485251c M	run.sh
    :000000 100644 0000000000 dc48465477 A	"tab\there \"q\" \303\244"
     create mode 100644 binary
     create mode 100644 folder
     delete mode 100644 folder/inner.txt
     create mode 100644 "line\nbreak"
     create mode 120000 link
     rename old name.txt => new name.txt (100%)
     mode change 100644 => 100755 run.sh
     create mode 100644 "tab\there \"q\" \303\244"
    "#);
    // The last commit has the files as they are now.
    git(&user, &["fsck", "--strict"]);
    let clone = user.home().join("clone");
    git(&user, &["clone", "-q", "-b", "review", ".", &path_text(&clone)]);
    same_files(&user, &clone);

    user.exits(2, &["export", "--git", "review"]).reports("there is a branch review already");
    user.exits(2, &["export", "--git", "main"]).reports("there is a branch main already");
    user.exits(2, &["export", "--git", "-x..y"]);
    user.exits(2, &["export", "--git", "a..b"]).reports("is not a name for a branch");
    user.exits(1, &["export", "--git", "review/sub"]);
    assert_eq!(git_files(&user, "review"), files);
}

/// The work tree and a checkout have the same files, except ignored ones.
#[track_caller]
fn same_files(user: &User, checkout: &Path) {
    let list = |folder: &Path| -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(below) = folders.pop() {
            for entry in fs::read_dir(below).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(folder).unwrap().to_owned();
                let meta = path.symlink_metadata().unwrap();
                if name.starts_with(".git") && !name.ends_with(".gitignore") {
                    continue;
                }
                if name.ends_with("ignored.txt") {
                    continue;
                }
                if meta.is_dir() {
                    folders.push(path);
                } else if meta.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    found.insert(name, (0, path_text(&target).into_bytes()));
                } else {
                    found.insert(name, (meta.mode() & 0o111, fs::read(&path).unwrap()));
                }
            }
        }
        found
    };
    assert_eq!(list(checkout), list(&user.work()));
}

#[test]
fn patches_give_the_same_files_in_a_clone() {
    let user = repository();
    work(&user);
    let file = path_text(&user.home().join("turns.mbox"));
    let exported = user.succeeds(&["export", "--patch", &file]);
    insta::assert_snapshot!(summary(&exported).replace("FOLDER/home/turns.mbox", "FILE"), @r##"
    Exported 3 patches in FILE  `git am --keep-cr FILE` applies them
    1 path left out: ignored, outside the workspace, or in a repository of their own.
    "##);
    user.exits(2, &["export", "--patch", &file]).reports("--force");
    let clone = user.home().join("clone");
    git(&user, &["clone", "-q", ".", &path_text(&clone)]);
    for (name, value) in [("user.name", "Other"), ("user.email", "other@example.com")] {
        git_in(&clone, &user.home(), &["config", name, value]);
    }
    let (code, text) = git_in(&clone, &user.home(), &["am", "--keep-cr", &file]);
    assert_eq!(code, 0, "{text}");
    same_files(&user, &clone);
    let (_, log) = git_in(&clone, &user.home(), &["log", "--format=%an: %B", "main~3..main"]);
    let log: Vec<&str> = log.lines().filter(|line| !line.starts_with("Takeback-point")).collect();
    insta::assert_snapshot!(log.join("\n"), @r##"
    Claude Code: Do everything else


    Jane Doe: My changes after: Number the lines


    Claude Code: Number the lines

    Number the lines

     From: nobody
     --- not a patch
     diff --git a/x b/x
    "##);

    // The same on standard output, and one turn alone.
    let printed = user.succeeds(&["export", "--patch", "-", "@"]);
    assert_eq!(printed.out.matches("\nSubject: ").count(), 1, "{}", printed.out);
    assert!(printed.err.contains("1 patch"), "{}", printed.err);
}

#[test]
fn without_a_repository_there_are_patches_and_no_branch() {
    let user = User::with(&[("a.txt", "1\n")]);
    let mut session = Session::of(&user, "s");
    session.prompt("one");
    session.write("c1", "a.txt", "2\n");
    session.stop();
    user.exits(1, &["export", "--git", "review"]).reports("the workspace is in no git repository");
    let printed = user.succeeds(&["export", "--patch", "-"]);
    assert!(printed.out.contains("\n-1\n+2\n"), "{}", printed.out);
    let answer = user.json(&["export", "--patch", "../patches"]);
    assert_eq!(answer["commits"], 1);
    for args in [["export", "--patch", "../new"], ["export", "--git", "new"]] {
        git_in(&user.work(), &user.home(), &["init", "-q"]);
        let mut command = user.command(&args);
        command.env("PATH", "/nonexistent");
        let answer = user.answer_of(command, "");
        assert_eq!(answer.code, 1, "{answer:?}");
        assert!(answer.err.contains("git is not installed"), "{answer:?}");
    }
}

#[test]
fn a_workspace_below_the_top_of_a_repository_keeps_what_is_beside_it() {
    let user = User::with(&[("beside.txt", "beside\n"), ("app/a.txt", "1\n")]);
    git(&user, &["init", "-q", "-b", "main"]);
    git(&user, &["add", "-A"]);
    git(&user, &["-c", "user.name=J", "-c", "user.email=j@x", "commit", "-q", "-m", "first"]);
    let app = user.work().join("app");
    fs::create_dir(app.join(".takeback")).unwrap();
    assert_eq!(user.takeback_in(&app, &["checkpoint", "start"]).code, 0);
    user.write("app/a.txt", "2\n");
    assert_eq!(user.takeback_in(&app, &["export", "--git", "review"]).code, 0);
    insta::assert_snapshot!(git(&user, &["log", "-1", "--format=%an: %s", "--name-status", "review"]), @r##"
    You: My changes after: start

    M	app/a.txt
    "##);
    assert_eq!(git(&user, &["show", "review:beside.txt"]), "beside");
}

#[test]
fn what_was_not_captured_is_listed() {
    let user = User::with(&[("a.txt", "1\n"), ("large.bin", "")]);
    git(&user, &["init", "-q", "-b", "main"]);
    let mut session = Session::of(&user, "s");
    session.prompt("one");
    session.write("c1", "a.txt", "2\n");
    session.stop();
    user.succeeds(&["purge", "large.bin", "-y"]);
    let exported = user.exits(4, &["export", "--git", "review"]);
    insta::assert_snapshot!(summary(&exported), @r##"
    Exported 2 commits on branch review  `git log -p review` shows them
    not captured  purged-LONG-ID  purged from the store
    "##);
    insta::assert_snapshot!(git(&user, &["log", "--format=%an: %s", "--name-status", "review"]), @r##"
    Several authors: Other changes after: one

    A	large.bin
    Claude Code: one

    M	a.txt
    Several authors: Files before: one

    A	a.txt
    "##);
    assert_eq!(git(&user, &["show", "review:a.txt"]), "2");
    // A branch that is checked out and has no commit yet is one, too.
    user.exits(2, &["export", "--git", "main"]).reports("there is a branch main already");
}

#[test]
fn a_turn_that_was_rewound_at_once_makes_no_commit_and_a_later_rewind_does() {
    let user = repository();
    let mut first = Session::of(&user, "s");
    first.prompt("one");
    first.write("c1", "run.sh", "#!/bin/bash\n");
    first.write("c2", "new/file.txt", "new\n");
    first.stop();
    user.succeeds(&["rewind", "@", "-y"]);
    let mut other = Session::of(&user, "other");
    other.prompt("two");
    // A file becomes a folder.
    other.bash("c3", "rm run.sh; mkdir run.sh; echo inner > run.sh/inner; mkdir empty");
    other.stop();
    other.prompt("three");
    user.succeeds(&["rewind", "@~1", "-y"]);
    user.succeeds(&["export", "--git", "all"]);
    let log = ["log", "--format=%an: %s", "--name-status", "all", "^main"];
    insta::assert_snapshot!(git(&user, &log), @r##"
    Takeback: Rewind after: three

    A	run.sh
    D	run.sh/inner
    Claude Code: two

    D	run.sh
    A	run.sh/inner
    "##);
    user.succeeds(&["export", "--git", "one", "@~1"]);
    insta::assert_snapshot!(git(&user, &["log", "--format=%an: %s", "one", "^main"]), @"Claude Code: two");
    user.exits(2, &["export", "--git", "x", "--patch"]);
    user.exits(2, &["export", "--git", "x", "@", "--session", "s"]);
}

#[test]
fn a_repository_inside_yours_is_left_out() {
    let user = repository();
    git(&user, &["init", "-q", "inner"]);
    user.write("inner/theirs.txt", "theirs\n");
    user.succeeds(&["checkpoint", "start"]);
    user.write("inner/theirs.txt", "changed\n");
    user.write("a.txt", "mine\n");
    user.succeeds(&["export", "--git", "review"]).prints("1 path left out");
    assert_eq!(git(&user, &["diff", "--name-only", "main", "review"]), "a.txt");
}
