//! Permissions.

use takeback_testkit::Sandbox;

use super::{Row, row, unlocked};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = plain();
    rows.extend(read_only_folders());
    rows.extend(set_id());
    rows
}

/// Lays out one file with a mode.
macro_rules! file {
    ($path:literal, $mode:literal) => {
        |s: &Sandbox| {
            s.write($path, "before\n");
            s.set_mode($path, $mode);
        }
    };
}

fn plain() -> Vec<Row> {
    vec![
        row("0600, made readable by all", file!("secret", 0o600), |s| s.set_mode("secret", 0o644)),
        row("0600, deleted", file!("secret", 0o600), |s| s.remove("secret")),
        row("0600, written anew as 0644", file!("secret", 0o600), |s| {
            s.remove("secret");
            s.write("secret", "other\n");
            s.set_mode("secret", 0o644);
        }),
        row("executable, made plain", file!("run.sh", 0o755), |s| s.set_mode("run.sh", 0o644)),
        row("executable, deleted", file!("run.sh", 0o755), |s| s.remove("run.sh")),
        row("plain, made executable and changed", file!("run.sh", 0o640), |s| {
            s.write("run.sh", "rm\n");
            s.set_mode("run.sh", 0o777);
        }),
        row("read-only file, replaced", file!("fixed", 0o444), |s| {
            super::replace(&s.at("fixed"), "changed\n");
        }),
        row("read-only file, deleted", file!("fixed", 0o444), |s| s.remove("fixed")),
        row(
            "folder without any permission",
            |s| s.write("shut/inside/file", "f\n"),
            |s| s.set_mode("shut", 0),
        ),
        row(
            "odd modes of folders",
            |s| {
                s.write("a/x", "x\n");
                s.write("b/c/x", "x\n");
                s.set_mode("a", 0o711);
                s.set_mode("b/c", 0o750);
                s.set_mode("b", 0o700);
            },
            |s| {
                s.remove("a");
                s.set_mode("b", 0o777);
                s.remove("b/c");
            },
        ),
    ]
}

fn read_only_folders() -> Vec<Row> {
    let open = |s: &takeback_testkit::Sandbox| {
        for folder in ["ro", "ro/deep"] {
            if s.exists(folder) {
                s.set_mode(folder, 0o755);
            }
        }
    };
    let laid_out: fn(&Sandbox) = |s| {
        s.write("ro/changed", "1\n");
        s.write("ro/gone", "2\n");
        s.write("ro/same", "3\n");
        s.write("ro/deep/gone", "4\n");
        s.write("ro/deep/same", "5\n");
        s.set_mode("ro/deep", 0o555);
        s.set_mode("ro", 0o555);
    };
    let rows = vec![
        row("read-only folder, files in it changed, made and gone", laid_out, |s| {
            unlocked(s, "ro", || {
                super::replace(&s.at("ro/changed"), "changed\n");
                s.remove("ro/gone");
                s.write("ro/made", "made\n");
                unlocked(s, "ro/deep", || s.remove("ro/deep/gone"));
            });
        }),
        row("read-only folder, gone", laid_out, |s| {
            s.set_mode("ro", 0o755);
            s.set_mode("ro/deep", 0o755);
            s.remove("ro");
        }),
        row("read-only folder, writable now", laid_out, |s| {
            s.set_mode("ro", 0o755);
            s.set_mode("ro/deep", 0o775);
            s.write("ro/changed", "changed\n");
            s.remove("ro/gone");
            s.remove("ro/deep/gone");
        }),
        row(
            "writable folder, read-only now",
            |s| {
                s.write("ro/changed", "1\n");
                s.write("ro/gone", "2\n");
                s.write("ro/deep/gone", "4\n");
            },
            |s| {
                s.write("ro/changed", "changed\n");
                s.remove("ro/gone");
                s.remove("ro/deep/gone");
                s.write("ro/made", "made\n");
                s.set_mode("ro/deep", 0o500);
                s.set_mode("ro", 0o555);
            },
        ),
        row(
            "read-only folder that the agent made",
            |_| {},
            |s| {
                s.write("ro/deep/made", "made\n");
                s.set_mode("ro/deep", 0o555);
                s.set_mode("ro", 0o555);
            },
        ),
        row(
            "file, a read-only folder now",
            |s| s.write("ro", "a file\n"),
            |s| {
                s.remove("ro");
                s.write("ro/deep/made", "made\n");
                s.set_mode("ro/deep", 0o555);
                s.set_mode("ro", 0o555);
            },
        ),
        row("read-only folder, a file now", laid_out, |s| {
            s.set_mode("ro", 0o755);
            s.set_mode("ro/deep", 0o755);
            s.remove("ro");
            s.write("ro", "a file\n");
        }),
    ];
    rows.into_iter().map(|row| Row { clean_up: open, ..row }).collect()
}

fn set_id() -> Vec<Row> {
    let tool: fn(&Sandbox) = |s| {
        s.write("tool", "t\n");
        s.set_mode("tool", 0o4755);
        s.write("untouched", "u\n");
        s.set_mode("untouched", 0o6755);
        s.write("folder/same", "f\n");
        s.set_mode("folder", 0o1755);
    };
    vec![
        Row {
            expect: |expected, _| expected.thing("tool").mode = 0o755,
            remarks: SAID,
            ..row("set-id file, deleted", tool, |s| s.remove("tool"))
        },
        Row {
            expect: |expected, _| expected.thing("tool").mode = 0o755,
            remarks: SAID,
            ..row("set-id file, replaced", tool, |s| super::replace(&s.at("tool"), "other\n"))
        },
        Row {
            expect: |expected, _| {
                expected.thing("tool").mode = 0o711;
                expected.thing("gone").mode = 0o700;
            },
            remarks: &[
                "note gone: comes back without its sticky bit",
                "note tool: comes back without its set-user-id, set-group-id and sticky bits",
            ],
            ..row(
                "every special bit, deleted",
                |s| {
                    s.write("tool", "t\n");
                    s.set_mode("tool", 0o7711);
                    s.write("gone", "g\n");
                    s.set_mode("gone", 0o1700);
                },
                |s| {
                    s.remove("tool");
                    s.remove("gone");
                },
            )
        },
        row("set-id file, its other bits changed", tool, |s| s.set_mode("tool", 0o4700)),
        Row {
            expect: |expected, damaged| {
                *expected.thing("tool") = damaged.0[&b"tool"[..]].clone();
                expected.0.remove(&b"made"[..]);
            },
            remarks: &[
                "kept tool: only its set-user-id bit is gone, and a rewind does not restore it",
            ],
            ..row("set-id bit, taken away", tool, |s| {
                s.set_mode("tool", 0o755);
                s.write("made", "m\n");
            })
        },
        Row {
            expect_undone: |expected| expected.thing("plain").mode = 0o755,
            ..row(
                "plain file, given a set-id bit",
                |s| {
                    s.write("plain", "p\n");
                    s.set_mode("plain", 0o755);
                    s.write("beside", "b\n");
                },
                |s| {
                    s.set_mode("plain", 0o4755);
                    s.write("beside", "changed\n");
                },
            )
        },
        Row {
            expect_undone: |expected| expected.thing("made").mode = 0o755,
            ..row(
                "set-id file that the agent made",
                |_| {},
                |s| {
                    s.write("made", "m\n");
                    s.set_mode("made", 0o4755);
                },
            )
        },
    ]
}

const SAID: &[&str] = &["note tool: comes back without its set-user-id bit"];
