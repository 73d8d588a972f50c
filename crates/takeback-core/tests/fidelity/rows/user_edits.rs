//! Ignored files, and people's work beside the agent's.

use std::fs;

use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "ignored .env, gone",
            |s| {
                s.write(".gitignore", ".env\n*.local\n");
                s.write(".env", "TOKEN=1\n");
                s.set_mode(".env", 0o600);
                s.write("conf/db.local", "d\n");
            },
            |s| {
                s.remove(".env");
                s.write("conf/db.local", "changed\n");
            },
        ),
        Row {
            expect: |expected, damaged| {
                for path in ["build/deep", "build/deep/out", "build/new.o"] {
                    expected.0.insert(path.into(), damaged.0[path.as_bytes()].clone());
                }
            },
            ..row(
                "files in an ignored folder, and new ones",
                |s| {
                    s.write(".gitignore", "build/\n");
                    s.write("build/old.o", "o\n");
                    s.write("build/gone.o", "g\n");
                    s.write("a.c", "a\n");
                },
                |s| {
                    s.write("build/old.o", "changed\n");
                    s.remove("build/gone.o");
                    s.write("build/new.o", "new\n");
                    s.write("build/deep/out", "new\n");
                    s.write("a.c", "changed\n");
                },
            )
        },
        Row {
            user_work: |s| s.write("new name.txt", "moved by the agent, then edited\n"),
            expect: |expected, damaged| {
                let path = b"new name.txt".to_vec();
                expected.0.insert(path.clone(), damaged.0[&path].clone());
            },
            remarks: &["conflict new name.txt: \
                     it was old\\nname.txt, which is restored, and it was changed since"],
            ..row(
                "renamed by the agent, then edited by a person",
                |s| {
                    s.write("old\nname.txt", "moved\n");
                    s.write("b.txt", "b\n");
                },
                |s| {
                    fs::rename(s.at("old\nname.txt"), s.at("new name.txt")).unwrap();
                    s.write("b.txt", "changed\n");
                },
            )
        },
        Row {
            user_work: |s| s.write("new/a.txt", "a, edited\n"),
            expect: |expected, damaged| {
                for path in ["new", "new/a.txt"] {
                    expected.0.insert(path.into(), damaged.0[path.as_bytes()].clone());
                }
            },
            remarks: &[
                "kept new: something else is in it",
                "conflict new/a.txt: it was old/a.txt, which is restored, and it was changed since",
            ],
            ..row(
                "folder renamed by the agent, one file then edited by a person",
                |s| {
                    s.write("old/a.txt", "a\n");
                    s.write("old/b.txt", "b\n");
                    s.write("old/same-as-a.txt", "a\n");
                    s.write("old/empty.txt", "");
                },
                |s| fs::rename(s.at("old"), s.at("new")).unwrap(),
            )
        },
        Row {
            user_work: |s| s.write("made", "made, edited\n"),
            expect: |expected, damaged| {
                expected.0.insert(b"made".to_vec(), damaged.0[&b"made"[..]].clone());
            },
            remarks: &["conflict made: the agent made it, and it was changed since"],
            ..row(
                "empty file gone and another made: not a rename",
                |s| s.write("gone", ""),
                |s| {
                    s.remove("gone");
                    s.write("made", "");
                },
            )
        },
    ]
}
