//! Lists fit the terminal, whatever the names contain.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::pty::TerminalOutput;
use crate::user::User;

/// Names whose width differs from their number of characters, or that contain control characters.
const NAMES: [&[u8]; 8] = [
    b"plain.txt",
    "日本語のフォルダ/とても長いファイル名の例です.txt".as_bytes(),
    "emoji-🦀👍🏽❤️.md".as_bytes(),
    b"steers-\x1b[31m-\n-\x07.txt",
    "gpj\u{202e}exe.\u{200b}".as_bytes(),
    b"not-\xff\xfe-utf-8",
    "e\u{301}ete\u{301}.txt".as_bytes(),
    b"a/very/long/path/that/goes/down/many/folders/until/it/does/not/fit/any/more/main.rs",
];

/// A session with such names everywhere, which changes all files and creates one.
fn with_hostile_names() -> User {
    let user = User::new();
    let write = |text: &str| {
        for name in NAMES {
            let path = user.work().join(OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
            fs::write(path, text).expect("a file");
        }
    };
    write("one\ntwo\n");
    user.takeback(&[
        "checkpoint",
        "label \u{202e}with \u{200f}tricks, 日本語 and more words than fit",
    ]);
    let session = r"se\u001b[31mssion\u202e-with-a-long-name";
    let before = [
        format!(r#"{{"event":"session_start","session":"{session}","agent":"a\u0007gent"}}"#),
        format!(
            r#"{{"event":"prompt","session":"{session}","message":"m\u001b1","text":"日本語で全部 \u202eto\u001b[2Jdo, and then some more words, so that it is long"}}"#
        ),
        format!(
            r#"{{"event":"before_tool","session":"{session}","call":"c","tool":"Ba\u001b[5msh\u202e","shell":"sed \u001b[1m\u202e -i 's/two/2/' every-file-in-the-tree and-all-the-others.txt"}}"#
        ),
    ];
    user.record(&before.join("\n"));
    write("one\n2\nthree\n");
    user.write("new-and-not-there-before.txt", "n\n");
    let after = format!(
        r#"{{"event":"after_tool","session":"{session}","call":"c"}}
{{"event":"turn_end","session":"{session}"}}"#
    );
    user.record(&after);
    user
}

/// What `takeback ARGS` shows at 40, 80 and 200 columns.
pub(crate) fn at_widths(user: &User, args: &[&str]) -> String {
    let mut all = String::new();
    for columns in [40, 80, 200] {
        let ran = user.terminal(columns, 200).run(args, "", "");
        assert_fits(&ran, args, columns);
        all.push_str(&format!("{columns} columns\n{}\n\n", user.normalize(&ran.shown())));
    }
    all
}

/// Asserts that nothing is wider than the terminal, and that only our own colours reach it.
pub(crate) fn assert_fits(ran: &TerminalOutput, args: &[&str], columns: u16) {
    assert_eq!(ran.wrapped(), [""; 0], "{args:?} at {columns}:\n{}", ran.shown());
    let mut rest = ran.written.as_str();
    while let Some((_, after)) = rest.split_once('\x1b') {
        let end = after.find(|c: char| c.is_ascii_alphabetic()).expect("a sequence has an end");
        assert_eq!(&after[end..=end], "m", "{args:?}: {:?}", ran.written);
        rest = &after[end + 1..];
    }
    for hostile in ["\x1b[5m", "\x1b[2J", "\x07", "\u{202e}", "\u{200b}", "\u{200f}", "\u{fffd}"] {
        assert!(!ran.written.contains(hostile), "{hostile:?} in {args:?}: {:?}", ran.written);
    }
}

#[test]
fn the_log() {
    insta::assert_snapshot!(at_widths(&with_hostile_names(), &["log"]), @r"
    40 columns
    ID  just now  日本語で全部 \u{202…
    ID  just now  [label \u{202e}with…

    80 columns
    ID  just now  se\u{1b}[31mssi…  日本語で全部 \u{202e}to\u…  9 files +17 -8
    ID  just now  by hand           [label \u{202e}with \u{20…  –

    200 columns
    ID  just now  se\u{1b}[31mssi…  日本語で全部 \u{202e}to\u{1b}[2Jdo, and then some more words, so that it is long  9 files +17 -8
    ID  just now  by hand           [label \u{202e}with \u{200f}tricks, 日本語 and more words than fit]               –
    ");
}

#[test]
fn a_point() {
    let user = with_hostile_names();
    let shown = at_widths(&user, &["show"]);
    let times = |line: &&str| !line.starts_with("made");
    insta::assert_snapshot!(shown.lines().filter(times).collect::<Vec<_>>().join("\n"), @r"
    40 columns
    日本語で全部 \u{202e}to\u{1b}[2Jdo, and
    then some more words, so that it is long
    point    LONG-ID
    session  se\u{1b}[31mssion\u{202e}-with-
             a-long-name
    message  m\u{1b}1

      .1  Ba\u{1b}[5m…  sed \u{1b}[1m\u{202…

      …/more/main.rs  changed  se\u{1b}[31m…
      …i-🦀👍🏽❤️.md  changed  se\u{1b}[31m…
      éeté.txt        changed  se\u{1b}[31m…
      …}exe.\u{200b}  changed  se\u{1b}[31m…
      …re-before.txt  new      se\u{1b}[31m…
      …xff\xfe-utf-8  changed  se\u{1b}[31m…
      plain.txt       changed  se\u{1b}[31m…
      …-\n-\u{7}.txt  changed  se\u{1b}[31m…
      …の例です.txt   changed  se\u{1b}[31m…

    80 columns
    日本語で全部 \u{202e}to\u{1b}[2Jdo, and then some more words, so that it is long
    point    LONG-ID
    session  se\u{1b}[31mssion\u{202e}-with-a-long-name
    message  m\u{1b}1

      .1  Ba\u{1b}[5msh\u{202e}  sed \u{1b}[1m\u{202e} -i 's/two/2/' every-file-in-…

      …/it/does/not/fit/any/more/main.rs  changed  se\u{1b}[31mssion\u{202e}-with-a…
      emoji-🦀👍🏽❤️.md                   changed  se\u{1b}[31mssion\u{202e}-with-a…
      éeté.txt                            changed  se\u{1b}[31mssion\u{202e}-with-a…
      gpj\u{202e}exe.\u{200b}             changed  se\u{1b}[31mssion\u{202e}-with-a…
      new-and-not-there-before.txt        new      se\u{1b}[31mssion\u{202e}-with-a…
      not-\xff\xfe-utf-8                  changed  se\u{1b}[31mssion\u{202e}-with-a…
      plain.txt                           changed  se\u{1b}[31mssion\u{202e}-with-a…
      steers-\u{1b}[31m-\n-\u{7}.txt      changed  se\u{1b}[31mssion\u{202e}-with-a…
      …/とても長いファイル名の例です.txt  changed  se\u{1b}[31mssion\u{202e}-with-a…

    200 columns
    日本語で全部 \u{202e}to\u{1b}[2Jdo, and then some more words, so that it is long
    point    LONG-ID
    session  se\u{1b}[31mssion\u{202e}-with-a-long-name
    message  m\u{1b}1

      .1  Ba\u{1b}[5msh\u{202e}  sed \u{1b}[1m\u{202e} -i 's/two/2/' every-file-in-the-tree and-all-the-others.txt

      a/very/long/path/that/goes/down/many/folders/until/it/does/not/fit/any/more/main.rs  changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      emoji-🦀👍🏽❤️.md                                                                    changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      éeté.txt                                                                             changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      gpj\u{202e}exe.\u{200b}                                                              changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      new-and-not-there-before.txt                                                         new      se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +1
      not-\xff\xfe-utf-8                                                                   changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      plain.txt                                                                            changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      steers-\u{1b}[31m-\n-\u{7}.txt                                                       changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
      日本語のフォルダ/とても長いファイル名の例です.txt                                    changed  se\u{1b}[31mssion\u{202e}-with-a-long-name while Ba\u{1b}[5msh\u{202e} ran +2 -1
    ");
}

#[test]
fn counted_changes() {
    insta::assert_snapshot!(at_widths(&with_hostile_names(), &["diff", "--stat"]), @r"
    40 columns
      …/not/fit/any/more/main.rs  +2 -1
      emoji-🦀👍🏽❤️.md           +2 -1
      éeté.txt                    +2 -1
      gpj\u{202e}exe.\u{200b}     +2 -1
      …-and-not-there-before.txt  +1 -0  new
      not-\xff\xfe-utf-8          +2 -1
      plain.txt                   +2 -1
      …s-\u{1b}[31m-\n-\u{7}.txt  +2 -1
      …いファイル名の例です.txt   +2 -1
    9 files, +17 -8

    80 columns
      …hat/goes/down/many/folders/until/it/does/not/fit/any/more/main.rs  +2 -1
      emoji-🦀👍🏽❤️.md                                                   +2 -1
      éeté.txt                                                            +2 -1
      gpj\u{202e}exe.\u{200b}                                             +2 -1
      new-and-not-there-before.txt                                        +1 -0  new
      not-\xff\xfe-utf-8                                                  +2 -1
      plain.txt                                                           +2 -1
      steers-\u{1b}[31m-\n-\u{7}.txt                                      +2 -1
      日本語のフォルダ/とても長いファイル名の例です.txt                   +2 -1
    9 files, +17 -8

    200 columns
      a/very/long/path/that/goes/down/many/folders/until/it/does/not/fit/any/more/main.rs  +2 -1
      emoji-🦀👍🏽❤️.md                                                                    +2 -1
      éeté.txt                                                                             +2 -1
      gpj\u{202e}exe.\u{200b}                                                              +2 -1
      new-and-not-there-before.txt                                                         +1 -0  new
      not-\xff\xfe-utf-8                                                                   +2 -1
      plain.txt                                                                            +2 -1
      steers-\u{1b}[31m-\n-\u{7}.txt                                                       +2 -1
      日本語のフォルダ/とても長いファイル名の例です.txt                                    +2 -1
    9 files, +17 -8
    ");
}

#[test]
fn a_preview() {
    insta::assert_snapshot!(at_widths(&with_hostile_names(), &["rewind", "@", "--dry-run"]), @r"
    40 columns
    Rewind to ID “日本語で全部
    \u{202…” (just now)
    Takes back:
    se\u{1b}[31mssion\u{202e}-with-a-long-na
    me

      restore   …es/not/fit/any/more/main.rs
      restore   emoji-🦀👍🏽❤️.md
      restore   éeté.txt
      restore   gpj\u{202e}exe.\u{200b}
      restore   not-\xff\xfe-utf-8
      restore   plain.txt
      restore   …ers-\u{1b}[31m-\n-\u{7}.txt
      restore   …長いファイル名の例です.txt
      delete    new-and-not-there-before.txt
                did not exist then

    9 paths changed while `sed
    \u{1b}[1m\u{202e} -i 's/two/2/'
    every-file-in-the-tree …` ran; may
    include yours.

    8 to restore, 1 to delete

    80 columns
    Rewind to ID “日本語で全部 \u{202e}to\u{1b}[2Jdo, and…” (just now)
    Takes back: se\u{1b}[31mssion\u{202e}-with-a-long-name

      restore   …/that/goes/down/many/folders/until/it/does/not/fit/any/more/main.rs
      restore   emoji-🦀👍🏽❤️.md
      restore   éeté.txt
      restore   gpj\u{202e}exe.\u{200b}
      restore   not-\xff\xfe-utf-8
      restore   plain.txt
      restore   steers-\u{1b}[31m-\n-\u{7}.txt
      restore   日本語のフォルダ/とても長いファイル名の例です.txt
      delete    new-and-not-there-before.txt  did not exist then

    9 paths changed while `sed \u{1b}[1m\u{202e} -i 's/two/2/'
    every-file-in-the-tree …` ran; may include yours.

    8 to restore, 1 to delete

    200 columns
    Rewind to ID “日本語で全部 \u{202e}to\u{1b}[2Jdo, and then some more words, so that it is long” (just now)
    Takes back: se\u{1b}[31mssion\u{202e}-with-a-long-name

      restore   a/very/long/path/that/goes/down/many/folders/until/it/does/not/fit/any/more/main.rs
      restore   emoji-🦀👍🏽❤️.md
      restore   éeté.txt
      restore   gpj\u{202e}exe.\u{200b}
      restore   not-\xff\xfe-utf-8
      restore   plain.txt
      restore   steers-\u{1b}[31m-\n-\u{7}.txt
      restore   日本語のフォルダ/とても長いファイル名の例です.txt
      delete    new-and-not-there-before.txt  did not exist then

    9 paths changed while `sed \u{1b}[1m\u{202e} -i 's/two/2/' every-file-in-the-tree …` ran; may include yours.

    8 to restore, 1 to delete
    ");
}

#[test]
fn other_output_fits_the_terminal_too() {
    let user = with_hostile_names();
    for args in [&["diff"][..], &["rewind", "@", "--dry-run", "--diff"], &["log", "-a"]] {
        for columns in [80, 200] {
            let ran = user.terminal(columns, 200).run(args, "", "");
            assert_eq!(ran.code, 0, "{args:?}");
            assert_fits(&ran, args, columns);
        }
    }
}

#[test]
fn settings_are_not_cut_where_it_is_narrow() {
    let user = User::new();
    user.set(r#"{"preciousTotalBytes": 18446744073709551615}"#);
    for columns in [40, 60, 80] {
        let ran = user.terminal(columns, 200).run(&["config"], "", "");
        assert_eq!(ran.code, 0);
        assert_fits(&ran, &["config"], columns);
        assert!(ran.shown().contains("18446744073709551615"), "{columns}: {}", ran.shown());
    }
}
