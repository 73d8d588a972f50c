//! Finds the commit that is built, for `takeback --version`: in a published package from the file that cargo
//! adds, in a checkout from git. Elsewhere the version has no commit.
//!
//! A development build does not name it, because each commit would build the crate again.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script is told everything by its environment"
)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let build = match packaged_commit(&package) {
        Some(commit) => Some(join(&commit, epoch_date())),
        None if variable("PROFILE") == "debug" => Some("development build".to_owned()),
        None => checked_out_commit(&package),
    };
    let version = variable("CARGO_PKG_VERSION");
    let build = build.map_or_else(String::new, |build| format!(" ({build})"));
    println!("cargo:rustc-env=TAKEBACK_VERSION={version}{build}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn join(commit: &str, date: Option<String>) -> String {
    date.map_or_else(|| commit.to_owned(), |date| format!("{commit} {date}"))
}

/// The commit that `cargo package` noted.
fn packaged_commit(package: &Path) -> Option<String> {
    let noted = fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = noted.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    let commit = short(commit)?;
    let is_modified = noted.split_whitespace().collect::<String>().contains("\"dirty\":true");
    Some(if is_modified { format!("{commit}-modified") } else { commit })
}

fn short(commit: &str) -> Option<String> {
    let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    commit.get(..7).filter(|_| is_hex).map(str::to_owned)
}

/// The commit of the checkout that this package is part of. A package that was unpacked inside another
/// repository is not part of it.
fn checked_out_commit(package: &Path) -> Option<String> {
    git(package, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let told = git(package, &["log", "-1", "--format=%H %cs"])?;
    let (commit, date) = told.split_once(' ')?;
    // What is in a build changes with these files, and its commit with what git notes about HEAD.
    let top = PathBuf::from(git(package, &["rev-parse", "--show-toplevel"])?);
    let sources =
        ["Cargo.toml", "Cargo.lock", "crates/*/src/*", "crates/*/Cargo.toml", "crates/*/build.rs"];
    for crates in fs::read_dir(top.join("crates")).into_iter().flatten().flatten() {
        for part in ["src", "Cargo.toml", "build.rs"] {
            rerun_if_changed(&crates.path().join(part));
        }
    }
    rerun_if_changed(&top.join("Cargo.lock"));
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        rerun_if_changed(&package.join(git(package, &["rev-parse", "--git-path", name])?));
    }
    let status = [&["status", "--porcelain", "--untracked-files=all", "--"][..], &sources].concat();
    let is_modified = git(&top, &status).is_none_or(|changes| !changes.is_empty());
    let commit = short(commit)?;
    let commit = if is_modified { format!("{commit}-modified") } else { commit };
    Some(join(&commit, Some(epoch_date().unwrap_or_else(|| date.to_owned()))))
}

/// A missing path would run the script at every build.
fn rerun_if_changed(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn git(folder: &Path, args: &[&str]) -> Option<String> {
    // A hook of git may run the build, with variables that are about another repository.
    let output = Command::new("git")
        .arg("--no-optional-locks")
        .args(args)
        .current_dir(folder)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The date that reproducible builds are told, in UTC.
fn epoch_date() -> Option<String> {
    let seconds: i64 = variable("SOURCE_DATE_EPOCH").parse().ok()?;
    // Days in eras of 400 years that begin in March, so that a leap day is the last day of its year.
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}
