//! `init` and `uninstall`: other programs' settings, changed with care.

mod damage;
mod files;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::user::{Answer, User};

/// A user with agents: programs that only print their version.
pub(crate) fn with_agents(agents: &[(&str, &str)]) -> User {
    let user = User::new();
    bin(&user);
    for (agent, version) in agents {
        program(&user, agent, &format!("#!/bin/sh\necho '{version}'\n"));
    }
    user
}

pub(crate) fn bin(user: &User) -> PathBuf {
    let bin = user.home().join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    bin
}

pub(crate) fn program(user: &User, name: &str, text: &str) {
    let path = bin(user).join(name);
    fs::write(&path, text).expect("a program");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// With only the user's own programs and the system's on PATH.
pub(crate) fn takeback(user: &User, args: &[&str]) -> Answer {
    let mut command = user.command(args);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin(user).display()));
    user.answer_of(command, "")
}

/// As [`takeback`]; it must exit with this code.
#[track_caller]
pub(crate) fn exits(user: &User, code: i32, args: &[&str]) -> Answer {
    takeback(user, args).exited(code, args)
}

pub(crate) fn json(user: &User, args: &[&str]) -> Value {
    let answer = takeback(user, &[args, &["--json"]].concat());
    serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

fn settings(user: &User) -> PathBuf {
    user.home().join(".claude/settings.json")
}

fn write_settings(user: &User, text: &str) {
    fs::create_dir_all(user.home().join(".claude")).expect("a folder");
    fs::write(settings(user), text).expect("settings");
}

/// Everything in the user's home except Takeback's files.
fn home(user: &User) -> Vec<(String, String)> {
    let things = takeback_testkit::tree(&user.home()).into_iter();
    let others = things.filter(|(path, _)| !path.starts_with(".takeback"));
    others.map(|(path, thing)| (path.display().to_string(), format!("{thing:?}"))).collect()
}
