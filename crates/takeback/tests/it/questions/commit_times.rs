//! Commits are dated in seconds, and files exactly: whose a line is when both have the same second, and when a
//! command commits what it wrote.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use takeback::core::Outcome;
use takeback::core::history::{AuthoredLine, LineAuthor};

use super::library;
use crate::user::User;

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later")
}

/// Runs git as this person.
#[track_caller]
fn git(folder: &Path, person: &str, line: &str) {
    let mut command = Command::new("git");
    command.args(["-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main"]);
    command.args(line.split(' ')).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), person);
        command.env(format!("GIT_{role}_EMAIL"), format!("{person}@example.com"));
    }
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository with one commit of two lines, a minute ago.
fn project() -> User {
    let user = User::with(&[("a.txt", "one\ntwo\n")]);
    git(&user.work(), "you", "init -q");
    git(&user.work(), "you", "add a.txt");
    git(&user.work(), "you", "commit -qm first");
    library(&user).checkpoint(Some("start")).expect("a point");
    user
}

/// Does something within one second, so that what it writes and commits has the same date.
fn within_a_second(mut does: impl FnMut(u32)) {
    for attempt in 0..20 {
        let into = now().subsec_millis();
        std::thread::sleep(Duration::from_millis(u64::from(1000 - into)));
        let second = now().as_secs();
        does(attempt);
        if now().as_secs() == second {
            return;
        }
    }
    panic!("this machine takes too long");
}

#[track_caller]
fn last_line(user: &User) -> AuthoredLine {
    let mut lines = library(user).blame("a.txt").expect("it is text").lines;
    lines.pop().expect("it has lines")
}

fn committer(line: &AuthoredLine) -> Option<&str> {
    line.writer.commit.as_ref().map(|commit| commit.name.as_str())
}

#[test]
fn what_a_pull_brings_in_the_second_of_its_commit_is_not_yours() {
    let user = project();
    let others = tempfile::tempdir().expect("a folder");
    let (origin, bobs) = (others.path().join("origin"), others.path().join("bob"));
    git(&user.work(), "you", &format!("clone -q --bare . {}", origin.display()));
    git(&user.work(), "you", &format!("remote add origin {}", origin.display()));
    git(others.path(), "bob", &format!("clone -q {} bob", origin.display()));
    within_a_second(|attempt| {
        let text = fs::read_to_string(bobs.join("a.txt")).expect("it is there");
        fs::write(bobs.join("a.txt"), format!("{text}bob {attempt}\n")).expect("written");
        git(&bobs, "bob", "commit -qam more");
        git(&bobs, "bob", "push -q");
        git(&user.work(), "you", "pull -q origin main");
    });
    let line = last_line(&user);
    assert_eq!((line.writer.author, committer(&line)), (LineAuthor::Other, Some("bob")));
}

#[test]
fn what_you_commit_in_the_second_in_which_you_write_it_is_yours() {
    let user = project();
    within_a_second(|attempt| {
        user.write("a.txt", &format!("one\ntwo\nmine {attempt}\n"));
        git(&user.work(), "you", "commit -qam mine");
    });
    assert_eq!(last_line(&user).writer.author, LineAuthor::You);
}

/// A command writes and commits a line; later in the same command, git writes the file once more.
fn commits_and_merges(user: &User, number: u32, pause: Duration) {
    let (work, library) = (user.work(), library(user));
    let turn = library.prompt("s", "add it and merge").expect("recorded");
    let call = turn.begin(&format!("call-{number}"), takeback::Tool::shell("./add-and-merge"));
    git(&work, "you", &format!("checkout -qb topic-{number}"));
    let text = user.read("a.txt");
    user.write("a.txt", &format!("{text}by the agent {number}\n"));
    git(&work, "you", "commit -qam topic");
    git(&work, "you", "checkout -q main");
    std::thread::sleep(pause);
    git(&work, "you", &format!("merge -q topic-{number}"));
    call.end(Outcome::Done);
    turn.end();
}

#[test]
fn what_a_command_commits_and_merges_is_its_own() {
    let user = project();
    commits_and_merges(&user, 100, Duration::from_millis(2100));
    let line = last_line(&user);
    assert_eq!((line.writer.author, committer(&line)), (LineAuthor::Agent, None), "seconds later");
    within_a_second(|attempt| commits_and_merges(&user, attempt, Duration::ZERO));
    let line = last_line(&user);
    assert_eq!((line.writer.author, committer(&line)), (LineAuthor::Agent, None), "at once");
}
