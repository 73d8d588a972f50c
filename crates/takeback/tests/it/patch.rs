//! The output of `diff` is a patch with which `git apply` and `patch -p1` turn the old files into the new ones.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::user::User;

/// What is at a path, as far as a patch can express it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Nothing,
    File { bytes: Vec<u8>, executable: bool },
    Link(PathBuf),
}

type Tree = BTreeMap<Vec<u8>, Entry>;

fn file(bytes: impl AsRef<[u8]>) -> Entry {
    Entry::File { bytes: bytes.as_ref().to_vec(), executable: false }
}

fn script(bytes: impl AsRef<[u8]>) -> Entry {
    Entry::File { bytes: bytes.as_ref().to_vec(), executable: true }
}

fn link(target: &str) -> Entry {
    Entry::Link(target.into())
}

/// A name, its entry before, its entry now.
type Case = (&'static [u8], Entry, Entry);

fn cases() -> Vec<Case> {
    let long: String = (1..200).map(|n| format!("line {n}\n")).collect();
    let edited = long.replace("line 5\n", "line five\n").replace("line 150\n", "");
    vec![
        (b"long.txt", file(&long), file(edited)),
        (b"crlf.txt", file("a\r\nb\r\nc\r\n"), file("a\r\nB\r\nc\r\n")),
        (b"line-ends.txt", file("a\r\nb\r\n"), file("a\nb\n")),
        (b"end-lost.txt", file("a\nb\n"), file("a\nb")),
        (b"end-found.txt", file("a\nb"), file("a\nb\n")),
        (b"never-ended.txt", file("a\nb"), file("a\nc")),
        (b"new/deep/n.txt", Entry::Nothing, file("new\n")),
        (b"new/unended", Entry::Nothing, file("new")),
        (b"gone.txt", file("one\ntwo\n"), Entry::Nothing),
        (b"now-empty", file("one\n"), file("")),
        (b"now-full", file(""), file("one\n")),
        (b"run.sh", file("echo\n"), script("echo\n")),
        (b"edit.sh", script("echo 1\n"), file("echo 2\n")),
        (b"with some blanks.txt", file("a\n"), file("b\n")),
        ("größe 日本.txt".as_bytes(), file("a\n"), file("b\n")),
        (b"quote\"back\\slash", file("a\n"), file("b\n")),
        (b"tab\tand\nline", file("a\n"), file("b\n")),
        (b"not-\xff\xfe-utf-8", file("a\n"), file("b\n")),
        ("gpj\u{202e}.exe".as_bytes(), file("a\n"), file("b\n")),
        (b"latin-1.txt", file(b"caf\xe9\n"), file(b"caf\xe9s\n")),
        (b"steers.txt", file("a\n"), file("\x1b[31mred\x1b[0m\x07\u{202e}\n")),
        (b"-dash", file("a\n"), file("b\n")),
        (b"old name.txt", file("moved\nas it is\n"), Entry::Nothing),
        (b"new/name.txt", Entry::Nothing, file("moved\nas it is\n")),
        (b"old.sh", file("moved and more\n"), Entry::Nothing),
        (b"new \xff.sh", Entry::Nothing, script("moved and more\n")),
        (b"minus.sql", file("-- a comment\nx\n"), file("++ no comment\nx\n")),
    ]
}

fn set(root: &Path, cases: &[Case], which: impl Fn(&Case) -> Entry) {
    for case in cases {
        let path = root.join(OsStr::from_bytes(case.0));
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).expect("it goes");
        }
        let entry = which(case);
        if entry != Entry::Nothing {
            fs::create_dir_all(path.parent().expect("it is below")).expect("folders");
        }
        match entry {
            Entry::Nothing => {}
            Entry::Link(target) => symlink(target, &path).expect("a link"),
            Entry::File { bytes, executable } => {
                fs::write(&path, bytes).expect("a file");
                let mode = if executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            }
        }
    }
}

fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it can be read") {
            let path = entry.expect("it has a name").path();
            let below = path.strip_prefix(root).expect("below").as_os_str().as_bytes().to_vec();
            let metadata = path.symlink_metadata().expect("it is there");
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_symlink() {
                tree.insert(below, Entry::Link(fs::read_link(&path).expect("a link")));
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                let bytes = fs::read(&path).expect("it can be read");
                tree.insert(below, Entry::File { bytes, executable });
            }
        }
    }
    tree
}

/// Makes a patch of all cases, and applies it to the old files with `program`. The result, and the new files.
fn applied(cases: &[Case], program: &[&str]) -> (Tree, Tree) {
    let user = User::new();
    set(&user.work(), cases, |case| case.1.clone());
    user.succeeds(&["checkpoint", "first"]);
    set(&user.work(), cases, |case| case.2.clone());
    let patch = user.command(&["diff", "first"]).output().expect("it runs");
    assert!(patch.status.success());
    let copy = tempfile::tempdir().expect("a temporary folder");
    set(copy.path(), cases, |case| case.1.clone());
    let input = copy.path().with_extension("patch");
    fs::write(&input, &patch.stdout).expect("the patch is written");
    let output = Command::new(program[0])
        .args(&program[1..])
        .current_dir(copy.path())
        .stdin(Stdio::from(fs::File::open(&input).expect("the patch")))
        .output()
        .expect("it runs");
    fs::remove_file(input).expect("the patch goes");
    assert!(
        output.status.success(),
        "{program:?}: {}{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&patch.stdout),
    );
    (tree(copy.path()), tree(&user.work()))
}

#[test]
fn git_applies_it() {
    let mut cases = cases();
    cases.extend([
        (&b"link"[..], link("here"), link("there")),
        (b"new-link", Entry::Nothing, link("nowhere")),
        (b"file-to-link", file("text\n"), link("elsewhere")),
        (b"link-to-file", link("elsewhere"), file("text\n")),
        (b"empty", Entry::Nothing, file("")),
        (b"empty-gone", file(""), Entry::Nothing),
    ]);
    let (made, real) = applied(&cases, &["git", "apply", "-"]);
    assert_eq!(made, real);
    // Binary files stay as they are, and do not keep the rest from being applied.
    let binary: [Case; 4] = [
        (b"binary", file(b"\0a"), file(b"\0b")),
        (b"binary-gone", file(b"\0a"), Entry::Nothing),
        (b"binary-new", Entry::Nothing, file(b"\0b")),
        (b"link-to-binary", link("elsewhere"), file(b"\0b")),
    ];
    cases.extend(binary.clone());
    cases.push((b"binary.sh", file(b"\0a"), script(b"\0a")));
    let (made, mut real) = applied(&cases, &["git", "apply", "-"]);
    for (path, before, _) in binary {
        match before {
            Entry::Nothing => real.remove(path),
            before => real.insert(path.to_vec(), before),
        };
    }
    assert_eq!(made, real);
}

#[test]
fn patch_applies_it() {
    let (made, real) = applied(&cases(), &["patch", "-p1", "--binary", "--quiet"]);
    assert_eq!(made, real);
}

#[test]
fn what_a_patch_cannot_express_is_in_comments() {
    let user = User::with(&[("a.txt", "one\n"), ("private", "x\n"), ("bin", "\0a")]);
    let mode = |mode| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(user.work().join("private"), mode).expect("a mode");
    };
    mode(0o644);
    user.takeback(&["checkpoint"]);
    user.write("a.txt", "two\n");
    user.write("bin", "\0b");
    fs::create_dir(user.work().join("folder")).expect("a folder");
    mode(0o600);
    let answer = user.takeback(&["diff"]);
    insta::assert_snapshot!(answer.out, @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +two
    # bin: changed, not text
    # folder: new folder
    # private: mode 644 → 600
    ");
    insta::assert_snapshot!(answer.err, @"takeback: 1 file is not text and not in the patch");
    assert_eq!(user.takeback(&["diff", "-q"]).err, "");
}
