//! `help`, and what wrong commands are answered.

use crate::user::User;

#[test]
fn help_lists_every_command_in_a_group_and_fits_80_columns() {
    let user = User::new();
    let help = user.succeeds(&["help"]).out;
    assert_eq!(user.succeeds(&["--help"]).out, help);
    let groups = help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' '));
    assert_eq!(
        groups.collect::<Vec<_>>(),
        ["Everyday:", "Agents:", "History:", "Upkeep:", "Programs:", "Options:"]
    );
    let shown = user.terminal(80, 100).run(&["help"], "", "").shown();
    assert!(shown.contains("Everyday:") && shown.contains("takeback demo"), "{shown}");
    let name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    assert!(shown.lines().filter(name).count() > 40, "{shown}");
}

#[test]
fn help_for_a_word_that_is_no_command_names_what_was_probably_meant() {
    let user = User::new();
    insta::assert_snapshot!(user.exits(2, &["help", "annotate"]).err, @"
    takeback: unrecognized subcommand 'annotate'
      tip: did you mean `takeback blame PATH`?
      Usage: takeback [OPTIONS] <COMMAND>
    ");
    insta::assert_snapshot!(user.exits(2, &["annotate", "a"]).err, @"
    error: unrecognized subcommand 'annotate'

      tip: did you mean `takeback blame PATH`?

    Usage: takeback [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(user.exits(2, &["help", "rewid"]).err, @"
    takeback: unrecognized subcommand 'rewid'
      tip: some similar subcommands exist: 'record', 'rewind'
      Usage: takeback [OPTIONS] <COMMAND>
    ");
    insta::assert_snapshot!(user.exits(2, &["stash", "--json"]).err, @r#"{"error":"unrecognized subcommand 'stash'","hints":["tip: did you mean `takeback checkpoint LABEL`?","Usage: takeback [OPTIONS] <COMMAND>"],"code":2}"#);
    insta::assert_snapshot!(user.exits(2, &["help", "state", "ls"]).err, @"
    takeback: unrecognized subcommand 'ls'
      tip: did you mean `takeback state list`?
      Usage: takeback state [OPTIONS] <COMMAND>
    ");
}

#[test]
fn a_wrong_option_or_word_names_what_was_probably_meant() {
    let user = User::with(&[("a", "1")]);
    insta::assert_snapshot!(user.exits(2, &["diff", "--author", "me"]).err, @"
    error: unexpected argument '--author' found

      tip: did you mean `takeback diff --by you`?

    Usage: takeback diff [OPTIONS] [FROM] [TO]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(user.exits(2, &["bisect", "./check", "--json"]).err, @r#"{"error":"unexpected argument './check' found","hints":["tip: write the command after two dashes: `takeback bisect -- COMMAND`","Usage: takeback bisect [OPTIONS] -- <COMMAND>..."],"code":2}"#);
    insta::assert_snapshot!(user.exits(2, &["log", "--oneline"]).err, @"
    error: unexpected argument '--oneline' found

      tip: `takeback log` has one line for each point already

    Usage: takeback log [OPTIONS] [PATH]...

    For more information, try '--help'.
    ");
    user.succeeds(&["checkpoint", "start"]);
    insta::assert_snapshot!(user.exits(1, &["show", "HEAD"]).err, @r#"
    takeback: no point is called "HEAD"
      A commit of git is not a point. `takeback log` lists the points.
    "#);
    for name in ["HEAD~2", "origin/main", &"9501f4e".repeat(6)[..40]] {
        user.exits(1, &["diff", name]).reports("A commit of git is not a point.");
    }
    assert!(!user.exits(1, &["show", "HEADER"]).err.contains("git"));
}

#[test]
fn an_example_ends_the_help_of_a_command() {
    let user = User::new();
    let help = user.succeeds(&["help", "blame"]).out;
    assert_eq!(user.succeeds(&["blame", "--help"]).out, help);
    let (_, examples) = help.split_once("\nExamples:\n").expect("examples");
    insta::assert_snapshot!(examples, @"
    takeback blame src/cart.rs           Who wrote each line
    takeback blame src/cart.rs -L 10-20  Only some lines
    ");
}
