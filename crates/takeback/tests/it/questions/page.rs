//! `docs/concepts/questions.md` shows what the program prints: every command on the page runs, in order, in a
//! small project, and its output is compared.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use takeback::Tool;

use super::library;
use crate::user::User;

const DAY: Duration = Duration::from_secs(86_400);

fn git(user: &User, args: &[&str]) {
    let at = SystemTime::now() - 3 * DAY;
    let at = at.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
    let mut git = Command::new("git");
    git.args(["-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main"]);
    git.args(args).current_dir(user.work()).env("HOME", user.home());
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Ada")
            .env(format!("GIT_{role}_EMAIL"), "ada@example.com");
        git.env(format!("GIT_{role}_DATE"), format!("{at} +0000"));
    }
    assert!(git.output().expect("git runs").status.success(), "{args:?}");
}

const CART: &str = "pub fn total(prices: &[u32]) -> u32 {\n    prices.iter().sum()\n}\n";
const DISCOUNT: &str = "pub fn total(prices: &[u32], discount: u32) -> u32 {\n    let sum: u32 = \
                        prices.iter().sum();\n    sum - discount\n}\n";
const SATURATING: &str = "pub fn total(prices: &[u32], discount: u32) -> u32 {\n    let sum: u32 = \
                          prices.iter().sum();\n    sum.saturating_sub(discount)\n}\n";
const ROUNDED: &str = "pub fn total(prices: &[u32], discount: u32) -> u32 {\n    let sum: u32 = \
                       prices.iter().sum();\n    sum.saturating_sub(discount) / 10 * 10\n}\n";

/// Ada's commit; then a session with four prompts, and an edit of yours. The last prompt is taken back.
fn project() -> User {
    let user = User::with(&[("src/cart.rs", CART), ("README.md", "# Shop\n")]);
    git(&user, &["init", "-q"]);
    git(&user, &["add", "-A"]);
    git(&user, &["commit", "-qm", "A cart"]);
    let library = library(&user);
    library.start_session("claude-7d1f", Some("claude"), None).expect("recorded");
    let prompt = |text: &str| library.prompt("claude-7d1f", text).expect("recorded");
    let edit = |path: &'static str, text: &'static str| {
        let file = user.work().join(path);
        move || {
            fs::create_dir_all(file.parent().expect("below")).and_then(|()| fs::write(&file, text))
        }
    };
    let turn = prompt("Add a discount to the total");
    turn.call("1", Tool::edit("src/cart.rs"), edit("src/cart.rs", DISCOUNT)).expect("done");
    turn.end();
    std::thread::sleep(Duration::from_millis(300));
    edit("src/cart.rs", SATURATING)().expect("yours");
    let turn = prompt("Write the tests");
    let test = "grep -q saturating_sub src/cart.rs && ! grep -q / src/cart.rs\n";
    turn.call("2", Tool::shell("./new-test cart"), edit("tests/cart.sh", test)).expect("done");
    turn.end();
    let turn = prompt("Round the total");
    turn.call("3", Tool::edit("src/cart.rs"), edit("src/cart.rs", ROUNDED)).expect("done");
    turn.end();
    let turn = prompt("Explain the discount in the README");
    let readme = "# Shop\n\nA discount is taken from the total.\n";
    turn.call("4", Tool::edit("README.md"), edit("README.md", readme)).expect("done");
    turn.end();
    drop(library);
    user.succeeds(&["rewind", "@", "-y"]);
    user
}

/// The words of a line of shell, as far as the page needs them.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, ' ') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (_, c) => words.last_mut().expect("there is one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Ids as the page has them: the same in every run.
#[derive(Default)]
struct PageIds(HashMap<String, String>);

impl PageIds {
    fn replace(&mut self, text: &str) -> String {
        let is_id = |word: &str| {
            matches!(word.len(), 8 | 12 | 16 | 40)
                && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                && word.bytes().any(|byte| byte.is_ascii_digit())
        };
        let mut replaced = String::new();
        for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let core = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if is_id(core) {
                let count = self.0.len() as u64 + 1;
                let id = self.0.entry(core[..8].to_owned()).or_insert_with(|| {
                    // The page has no more than a few dozen.
                    let digits = |n: u64| format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                    digits(count) + &digits(count + 1000) + &digits(count + 2000)
                });
                replaced.push_str(&id[..core.len()]);
                replaced.push_str(&word[core.len()..]);
            } else {
                replaced.push_str(word);
            }
        }
        replaced
    }
}

/// The same times in every run.
fn same_times(text: &str) -> String {
    let shape = |word: &str| -> String {
        word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
    };
    let same = |word: &str| match shape(word.trim_end_matches([' ', '\n', ','])).as_str() {
        "00:00:00" => word.replace(word.get(..8).unwrap_or(word), "14:02:11"),
        "0000-00-00" => word.replace(word.get(..10).unwrap_or(word), "2026-11-20"),
        "0.0" => word.replace(word.get(..3).unwrap_or(word), "0.0"),
        _ => word.to_owned(),
    };
    text.split_inclusive([' ', '\n']).map(same).collect()
}

/// `TAKEBACK_UPDATE_REFERENCE=1` rewrites the page.
#[test]
fn the_page_shows_what_the_program_prints() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concepts/questions.md");
    let page = fs::read_to_string(&file).expect("the page is there");
    let user = project();
    let mut ids = PageIds::default();
    let mut expected = String::new();
    let mut ran = 0;
    for (at, part) in page.split("```").enumerate() {
        if at > 0 {
            expected.push_str("```");
        }
        let Some(block) = part.strip_prefix("console\n").filter(|_| at % 2 == 1) else {
            expected.push_str(part);
            continue;
        };
        expected.push_str("console\n");
        for line in block.lines() {
            let Some(command) = line.strip_prefix("$ takeback ") else { continue };
            let words = words(command);
            let mut args = vec!["--color", "always"];
            args.extend(words.iter().map(String::as_str));
            let output = user.command(&args).env("COLUMNS", "100").output().expect("it runs");
            let shown = [output.stderr, output.stdout].concat();
            let shown = String::from_utf8(shown).expect("text");
            let shown = anstream::adapter::strip_str(&shown).to_string();
            let shown = ids.replace(&same_times(&shown));
            expected.push_str(&format!("{line}\n"));
            for line in shown.lines() {
                expected.push_str(line.trim_end());
                expected.push('\n');
            }
            ran += 1;
        }
    }
    assert!(ran >= 12, "{ran} commands");
    if std::env::var_os("TAKEBACK_UPDATE_REFERENCE").is_some() {
        fs::write(&file, &expected).expect("the page is written");
    }
    let page = fs::read_to_string(&file).expect("the page is there");
    assert!(
        page == expected,
        "docs/concepts/questions.md is not what the program prints; TAKEBACK_UPDATE_REFERENCE=1 rewrites \
         it:\n{expected}"
    );
}
