//! `--version`, and the build script that finds the commit.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::user::User;

#[test]
fn the_short_version_is_the_number_alone() {
    let user = User::new();
    let number = env!("CARGO_PKG_VERSION");
    assert_eq!(user.succeeds(&["-V"]).out, format!("takeback {number}\n"));
    let long = user.succeeds(&["--version"]).out;
    let build = long.strip_prefix(&format!("takeback {number}")).expect("the same number");
    if cfg!(debug_assertions) {
        assert_eq!(build, " (development build)\n");
    }
}

/// What the build script calls a package in `package`.
struct BuildScript {
    folder: tempfile::TempDir,
}

impl BuildScript {
    fn compile() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let status = Command::new(rustc)
            .args(["--edition", "2024", "-A", "warnings", "-o"])
            .arg(folder.path().join("build"))
            .arg(source)
            .status();
        assert!(status.expect("rustc runs").success());
        Self { folder }
    }

    /// Everything it prints.
    fn prints(&self, package: &Path, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new(self.folder.path().join("build"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CARGO_MANIFEST_DIR", package).env("CARGO_PKG_VERSION", "1.2.3");
        command.env("HOME", self.folder.path()).env("GIT_DIR", "/nowhere");
        command.env("PROFILE", "release").envs(variables.iter().copied());
        let output = command.current_dir(package).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn version(&self, package: &Path, variables: &[(&str, &str)]) -> String {
        let printed = self.prints(package, variables);
        let line =
            printed.lines().find_map(|line| line.strip_prefix("cargo:rustc-env=TAKEBACK_VERSION="));
        line.expect("a version").to_owned()
    }
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(args);
    command.current_dir(folder).env("GIT_COMMITTER_DATE", "2026-11-19T23:30:00+0100");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// A checkout with the crate at `crates/takeback`.
fn checkout() -> tempfile::TempDir {
    let top = tempfile::tempdir().expect("a folder");
    let package = top.path().join("crates/takeback");
    fs::create_dir_all(package.join("src")).expect("folders");
    fs::write(package.join("Cargo.toml"), "[package]").expect("a file");
    fs::write(package.join("src/lib.rs"), "").expect("a file");
    git(top.path(), &["init", "-q"]);
    git(top.path(), &["add", "."]);
    git(top.path(), &["commit", "-q", "-m", "first"]);
    top
}

#[test]
fn a_checkout_names_its_commit_and_whether_its_sources_were_changed() {
    let (script, top) = (BuildScript::compile(), checkout());
    let package = top.path().join("crates/takeback");
    let commit = &git(top.path(), &["rev-parse", "HEAD"])[..7];
    assert_eq!(script.version(&package, &[]), format!("1.2.3 ({commit} 2026-11-19)"));
    let epoch = [("SOURCE_DATE_EPOCH", "951782400")];
    assert_eq!(script.version(&package, &epoch), format!("1.2.3 ({commit} 2000-02-29)"));
    fs::write(top.path().join("notes"), "not a source").expect("a file");
    assert_eq!(script.version(&package, &[]), format!("1.2.3 ({commit} 2026-11-19)"));

    let other = top.path().join("other");
    git(top.path(), &["worktree", "add", "-q", other.to_str().expect("text")]);
    let package_there = other.join("crates/takeback");
    assert_eq!(script.version(&package_there, &[]), format!("1.2.3 ({commit} 2026-11-19)"));
    let printed = script.prints(&package_there, &[]);
    let watched = printed.lines().filter_map(|line| line.strip_prefix("cargo:rerun-if-changed="));
    let watched: Vec<&str> = watched.collect();
    assert!(watched.iter().any(|path| path.ends_with("worktrees/other/logs/HEAD")), "{watched:?}");
    let is_there = |path: &&&str| *path != &"build.rs" && !package_there.join(path).exists();
    assert_eq!(watched.iter().filter(is_there).count(), 0, "{watched:?}");

    fs::write(package.join("src/new.rs"), "").expect("a file");
    assert_eq!(script.version(&package, &[]), format!("1.2.3 ({commit}-modified 2026-11-19)"));
    let debug = [("PROFILE", "debug")];
    assert_eq!(script.version(&package, &debug), "1.2.3 (development build)");
    assert_eq!(script.prints(&package, &debug).matches("rerun-if-changed").count(), 1);
}

#[test]
fn a_package_names_the_commit_it_was_made_from() {
    let (script, top) = (BuildScript::compile(), checkout());
    // Unpacked inside another repository, which does not track it.
    let package = top.path().join("unpacked");
    fs::create_dir(&package).expect("a folder");
    fs::write(package.join("Cargo.toml"), "[package]").expect("a file");
    assert_eq!(script.version(&package, &[]), "1.2.3");
    let noted = |more: &str| {
        let text = format!("{{\n  \"git\": {{\n    \"sha1\": \"0123456789abcdef\"{more}\n  }}\n}}");
        fs::write(package.join(".cargo_vcs_info.json"), text).expect("a file");
    };
    noted("");
    assert_eq!(script.version(&package, &[]), "1.2.3 (0123456)");
    let epoch = [("SOURCE_DATE_EPOCH", "0"), ("PROFILE", "debug")];
    assert_eq!(script.version(&package, &epoch), "1.2.3 (0123456 1970-01-01)");
    noted(",\n    \"dirty\": true");
    assert_eq!(script.version(&package, &[]), "1.2.3 (0123456-modified)");
    let alone = tempfile::tempdir().expect("a folder");
    assert_eq!(script.version(alone.path(), &[]), "1.2.3", "no git, no package");
}
