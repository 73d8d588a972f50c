//! `takeback mcp` starts the MCP server, if that is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::user::{Answer, User};

/// Copies the program into its own folder, like an installation.
fn installed(user: &User) -> PathBuf {
    let folder = user.home().join("bin");
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join("takeback");
    let built = env!("CARGO_BIN_EXE_takeback");
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).expect("a copy");
    }
    fs::canonicalize(program).expect("it is there")
}

fn run(user: &User, program: &Path, args: &[&str]) -> Answer {
    let mut command = Command::new(program);
    command.args(args).current_dir(user.work()).env_clear().env("HOME", user.home());
    user.answer_of(command, "")
}

#[test]
fn the_server_gets_its_arguments() {
    let user = User::new();
    let program = installed(&user);
    let server = program.with_file_name("takeback-mcp");
    let script =
        "#!/bin/sh\necho \"$@\" \"$TAKEBACK_ALLOW_AGENT_REWIND\"\necho \"$TAKEBACK_PROGRAM\"\n";
    fs::write(&server, script).expect("a script");
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("it may run");
    let own = "FOLDER/home/bin/takeback";
    let answer = run(&user, &program, &["mcp"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert_eq!(answer.out, format!("\n{own}\n"));
    let all = ["-C", "x", "mcp", "--home", "y", "-v", "--allow-rewind", "--allow-bisect"];
    let told = format!("-C x --home y -v --allow-bisect true\n{own}\n");
    assert_eq!(run(&user, &program, &all).out, told);
}

#[test]
fn a_missing_mcp_server_is_an_error() {
    let user = User::new();
    let program = installed(&user);
    let answer = run(&user, &program, &["mcp"]);
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    insta::assert_snapshot!(answer.err, @"
    takeback: cannot start takeback-mcp: it does not exist
      Install it: `cargo install --path crates/takeback-mcp` in Takeback's source, or put it next to this program.
    ");
}
