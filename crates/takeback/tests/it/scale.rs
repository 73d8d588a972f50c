//! Large trees and files, at a size that suits every run. With `TAKEBACK_TEST_RUNS` they are as large as in
//! practice: half a million files, a hundred thousand in one folder, a file of 2 GB.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::user::{Answer, User};

fn scaled(usual: u64, large: u64) -> u64 {
    if std::env::var_os("TAKEBACK_TEST_RUNS").is_some() { large } else { usual }
}

/// `takeback ARGS` with limited address space.
fn with_memory_limit(user: &User, megabytes: u64, args: &[&str]) -> Answer {
    let program = user.command(args);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {}; exec \"$0\" \"$@\"", megabytes << 10));
    command.arg(program.get_program()).args(program.get_args()).current_dir(user.work());
    command.env_clear().env("HOME", user.home());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // Otherwise each thread would reserve 64 MB of addresses and use almost none.
    command.env("MALLOC_ARENA_MAX", "1");
    user.answer_of(command, "")
}

/// The limit is smaller than a file of this size and the program together.
const LARGE: u64 = 300;
const LITTLE: u64 = 250;

fn same_bytes(one: &File, other: &File) -> bool {
    let length = |file: &File| file.metadata().expect("it is there").len();
    let mut parts = (vec![0; 1 << 20], vec![0; 1 << 20]);
    length(one) == length(other)
        && (0..length(one)).step_by(1 << 20).all(|at| {
            let one = one.read_at(&mut parts.0, at).expect("it can be read");
            let other = other.read_at(&mut parts.1, at).expect("it can be read");
            parts.0[..one] == parts.1[..other]
        })
}

#[test]
fn a_large_file_is_kept_and_comes_back_in_little_memory() {
    let user = User::new();
    let (large, copy) = (user.work().join("large"), user.home().join("copy"));
    let mut noise = File::open("/dev/urandom").expect("it is there").take(LARGE << 20);
    io::copy(&mut noise, &mut File::create(&large).expect("a file")).expect("it is filled");
    // A hole at its end takes no space, but time.
    let size = scaled(LARGE + 20, 2_000) << 20;
    File::options().write(true).open(&large).expect("it opens").set_len(size).expect("it grows");
    fs::copy(&large, &copy).expect("it is copied");
    let first = with_memory_limit(&user, LITTLE, &["checkpoint", "first"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""), "{first:?}");

    let kept = || -> u64 {
        let packs = fs::read_dir(user.store().join("packs")).expect("there are packs");
        packs.map(|pack| pack.unwrap().metadata().expect("it is there").len()).sum()
    };
    let before = kept();
    let file = File::options().write(true).open(&large).expect("it opens");
    file.write_all_at(b"changed", LARGE << 19).expect("it is changed");
    assert_eq!(with_memory_limit(&user, LITTLE, &["checkpoint", "second"]).code, 0);
    assert!(kept() - before < 8 << 20, "{} bytes for a change in one place", kept() - before);

    let back = with_memory_limit(&user, LITTLE, &["rewind", "first", "--exact", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    let open = |path| File::open(path).expect("it opens");
    assert!(same_bytes(&open(&large), &open(&copy)));
}

/// Makes `count` files in folders of `in_folder`, changes some of them, and rewinds.
fn many(count: u64, in_folder: u64, memory: u64) {
    let user = User::new();
    let name = |number: u64| format!("d{}/{number}", number / in_folder);
    for folder in 0..count.div_ceil(in_folder) {
        fs::create_dir(user.work().join(format!("d{folder}"))).expect("a folder");
    }
    for number in 0..count {
        fs::write(user.work().join(name(number)), number.to_string()).expect("a file");
    }
    let first = with_memory_limit(&user, memory, &["checkpoint", "first"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.out.contains(&format!("{count} files")), "{first:?}");
    for number in [1, count / 2, count - 2] {
        fs::write(user.work().join(name(number)), "changed").expect("a file");
    }
    for number in [0, count - 1] {
        fs::remove_file(user.work().join(name(number))).expect("it goes");
    }
    user.write("d0/new", "new");
    assert_eq!(with_memory_limit(&user, memory, &["checkpoint", "second"]).code, 0);
    let told = user.json(&["log", "-n", "2"]);
    assert_eq!(told[1]["filesChanged"], 6, "{told}");
    let back = with_memory_limit(&user, memory, &["rewind", "first", "--exact", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    assert!(!user.exists("d0/new"));
    for number in (0..count).step_by(97).chain([1, count / 2, count - 2, count - 1]) {
        assert_eq!(user.read(&name(number)), number.to_string());
    }
    assert_eq!(user.json(&["diff", "first"]), serde_json::json!([]));
}

#[test]
fn many_files() {
    many(scaled(3_000, 500_000), 50, scaled(LITTLE, 1_200));
}

#[test]
fn many_names_in_one_folder() {
    let count = scaled(3_000, 100_000);
    many(count, count, scaled(LITTLE, 500));
}

#[test]
fn a_tree_that_changes_while_it_is_read() {
    const FILES: usize = 300;
    let user = User::new();
    let write = |number: usize, round: usize| {
        let text = format!("{number} in round {round}\n").repeat(100);
        user.write(&format!("d{}/{number}", number % 7), &text);
    };
    (0..FILES).for_each(|number| write(number, 0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 1;
            while !is_over.load(Ordering::Relaxed) {
                (0..FILES).for_each(|number| write(number, round));
                // Whole folders appear and disappear as well.
                user.write(&format!("comes{}/x", round % 3), "x\n");
                drop(fs::remove_dir_all(user.work().join(format!("comes{}", (round + 1) % 3))));
                round += 1;
            }
        });
        for _ in 0..scaled(10, 200) {
            let answer = user.takeback(&["checkpoint"]);
            assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{answer:?}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    user.succeeds(&["checkpoint", "quiet"]);
    let quiet = user.tree();
    (0..FILES).for_each(|number| write(number, 0));
    user.succeeds(&["rewind", "quiet", "--exact", "--yes"]);
    assert_eq!(user.tree(), quiet);
    user.succeeds(&["verify"]);
}
