//! Missing permissions in the workspace.

use super::after_an_agent;
use crate::user::User;

#[test]
fn a_file_that_may_not_be_read_is_named_and_left_alone() {
    let user = User::with(&[("a.txt", "one\n"), ("secret", "s\n")]);
    user.drop_privileges();
    user.set_mode("secret", 0o000);
    let answer = user.unprivileged(&["checkpoint", "first"]);
    assert_eq!((answer.code, answer.err.as_str()), (3, ""));
    insta::assert_snapshot!(answer.out, @r"
    Point ID “first”  2 files in FOLDER/work
      not captured: secret  it could not be read
    ");
    user.unprivileged_exits(0, &["run", "--", "/bin/rm", "-f", "secret"]);
    insta::assert_snapshot!(user.unprivileged_exits(4, &["rewind", "first", "--exact", "-y"]).out, @r"
    Rewind to ID “first” (just now)

      missing   secret  it could not be read

    nothing to change · 1 missing
    ");
}

#[test]
fn a_workspace_that_may_not_be_written() {
    let user = after_an_agent();
    user.drop_privileges();
    user.set_mode(".", 0o555);
    let before = user.tree();
    insta::assert_snapshot!(user.unprivileged_exits(1, &["rewind", "m", "-y"]).err, @r"
    takeback: cannot stage .takeback: Permission denied (os error 13)
      Nothing was changed.
      Make the folder writable and try again.
    ");
    assert_eq!(user.tree(), before);
    assert_eq!(user.unprivileged(&["checkpoint"]).code, 0, "it can still be recorded");
    user.set_mode(".", 0o755);
}

#[test]
fn a_folder_of_yours_that_is_read_only_is_opened_for_the_moment() {
    let user = User::with(&[("a.txt", "one\n"), ("lib/b.txt", "b\n")]);
    user.succeeds(&["-q", "run", "--", "sh", "-c", "echo 2 > a.txt; echo 2 > lib/b.txt"]);
    user.drop_privileges();
    user.set_mode("lib", 0o555);
    user.unprivileged_exits(0, &["rewind", "@", "-y"]);
    assert_eq!((user.read("a.txt").as_str(), user.read("lib/b.txt").as_str()), ("one\n", "b\n"));
    assert_eq!(user.mode("lib"), 0o555);
    user.set_mode("lib", 0o755);
}

#[test]
fn a_read_only_file_system_says_so() {
    let user = after_an_agent();
    let answer = user.with_failing("mkdirat:error=EROFS:when=1+", None, &["rewind", "m", "-y"]);
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.err, @r"
    takeback: cannot stage .takeback: Read-only file system (os error 30)
      Nothing was changed.
      Make the folder writable and try again.
    ");
}
