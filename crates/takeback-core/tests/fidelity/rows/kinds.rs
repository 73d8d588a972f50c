//! Files, links and folders, and each in the place of another.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::symlink;

use takeback_testkit::Sandbox;

use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = links();
    rows.extend(replaced());
    rows.extend(contents());
    rows.extend(vec![
        row(
            "empty folders, gone",
            |s| {
                fs::create_dir_all(s.at("empty/deeper")).unwrap();
                fs::create_dir_all(s.at("beside")).unwrap();
                s.set_mode("beside", 0o700);
            },
            |s| {
                s.remove("empty");
                s.remove("beside");
            },
        ),
        row(
            "what the agent made, and its folders",
            |s| s.write("kept/a", "a\n"),
            |s| {
                s.write("made/deep/file", "made\n");
                s.write("kept/made", "made\n");
                fs::create_dir_all(s.at("made/empty")).unwrap();
                symlink("../kept", s.at("made/link")).unwrap();
            },
        ),
        row(
            "everything, gone",
            |s| {
                s.write("a/b/c", "c\n");
                s.write("a/d", "d\n");
                s.write("e", "e\n");
                symlink("a/b", s.at("f")).unwrap();
            },
            |s| {
                s.remove("a");
                s.remove("e");
                fs::remove_file(s.at("f")).unwrap();
            },
        ),
    ]);
    rows
}

fn links() -> Vec<Row> {
    let laid_out: fn(&Sandbox) = |s| {
        s.write("file", "f\n");
        s.write("folder/a", "a\n");
        symlink("file", s.at("to-file")).unwrap();
        symlink("nowhere", s.at("dangling")).unwrap();
        symlink("folder", s.at("to-folder")).unwrap();
        symlink("/etc/hostname", s.at("absolute")).unwrap();
        symlink("../..", s.at("folder/out")).unwrap();
    };
    vec![
        row("links, changed", laid_out, |s| {
            for (name, target) in [
                ("to-file", "folder"),
                ("dangling", "file"),
                ("to-folder", "nowhere"),
                ("absolute", "/etc"),
                ("folder/out", "a"),
            ] {
                fs::remove_file(s.at(name)).unwrap();
                symlink(target, s.at(name)).unwrap();
            }
        }),
        row("links, gone", laid_out, |s| {
            for name in ["to-file", "dangling", "to-folder", "absolute", "folder/out"] {
                fs::remove_file(s.at(name)).unwrap();
            }
        }),
        row("written through a link", laid_out, |s| {
            fs::write(s.at("to-file"), "through\n").unwrap();
            fs::write(s.at("to-folder/a"), "through\n").unwrap();
            fs::write(s.at("to-folder/made"), "through\n").unwrap();
        }),
        row(
            "a link of the longest target",
            |s| symlink("x".repeat(4095), s.at("long")).unwrap(),
            |s| {
                fs::remove_file(s.at("long")).unwrap();
                symlink("x".repeat(4094), s.at("long")).unwrap();
            },
        ),
    ]
}

fn file(s: &Sandbox) {
    s.write("x", "a file\n");
    s.set_mode("x", 0o640);
}

fn link(s: &Sandbox) {
    s.write("elsewhere/a", "a\n");
    symlink("elsewhere", s.at("x")).unwrap();
}

fn folder(s: &Sandbox) {
    s.write("x/a", "in the folder\n");
    s.write("x/deep/b", "deeper\n");
    fs::create_dir(s.at("x/empty")).unwrap();
    symlink("a", s.at("x/link")).unwrap();
}

fn gone(s: &Sandbox) {
    let path = s.at("x");
    if fs::symlink_metadata(&path).unwrap().is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

fn replaced() -> Vec<Row> {
    vec![
        row("file, a link now", file, |s| {
            gone(s);
            link(s);
        }),
        row("file, a folder now", file, |s| {
            gone(s);
            folder(s);
        }),
        row("link, a file now", link, |s| {
            gone(s);
            file(s);
        }),
        row("link, a folder now", link, |s| {
            gone(s);
            folder(s);
        }),
        row("folder, a file now", folder, |s| {
            gone(s);
            file(s);
        }),
        row("folder, a link now", folder, |s| {
            gone(s);
            link(s);
        }),
    ]
}

fn contents() -> Vec<Row> {
    let laid_out: fn(&Sandbox) = |s| {
        s.write("binary", (0..=255).cycle().take(10_000).collect::<Vec<u8>>());
        s.write("crlf", "one\r\ntwo\r\n");
        s.write("mixed", "one\r\ntwo\nthree\r");
        s.write("no-newline", "one\ntwo");
        s.write("empty", "");
        s.write("bom", "\u{feff}text\n");
        s.write("not-utf8", b"caf\xe9\n");
        s.write("nul", "\0");
    };
    vec![
        row("all sorts of bytes, changed", laid_out, |s| {
            for name in ["binary", "crlf", "mixed", "no-newline", "empty", "bom", "not-utf8", "nul"]
            {
                s.write(name, "one\ntwo\n");
            }
        }),
        row("all sorts of bytes, gone", laid_out, |s| {
            for name in ["binary", "crlf", "mixed", "no-newline", "empty", "bom", "not-utf8", "nul"]
            {
                s.remove(name);
            }
        }),
        row("files, emptied", laid_out, |s| {
            for name in ["binary", "crlf", "no-newline"] {
                s.write(name, "");
            }
        }),
        row(
            "sparse files",
            |s| {
                sparse(s, "all-hole", &[]);
                sparse(s, "begins", &[(0, b"at the beginning")]);
                sparse(s, "islands", &[(5 << 20, b"here"), (9 << 20, b"there"), (9_999_999, b"!")]);
                sparse(s, "ends", &[(SPARSE - 3, b"end")]);
            },
            |s| {
                s.remove("all-hole");
                s.write("begins", "short\n");
                s.remove("islands");
                s.write("ends", "");
            },
        ),
    ]
}

/// Not a whole number of blocks.
const SPARSE: u64 = (12 << 20) + 777;

fn sparse(s: &Sandbox, name: &str, islands: &[(u64, &[u8])]) {
    let mut file = fs::File::create(s.at(name)).unwrap();
    file.set_len(SPARSE).unwrap();
    for (at, bytes) in islands {
        file.seek(SeekFrom::Start(*at)).unwrap();
        file.write_all(bytes).unwrap();
    }
}
