//! A large file is recorded and restored in little memory.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::Command;

use takeback_testkit::Sandbox;

use crate::listing::list;

/// Set for the process whose memory is measured: nothing else runs in it.
const ALONE: &str = "TAKEBACK_TEST_ALONE";
/// Enough for a file of any size (56 MB are used for one of 300 MB), and too little if the default one
/// were held in memory.
const MOST_MEGABYTES: u64 = 96;

#[test]
fn a_large_file_needs_little_memory() {
    let megabytes = match std::env::var("TAKEBACK_TEST_LARGE_MB") {
        Ok(megabytes) => megabytes.parse().expect("a number of megabytes"),
        Err(_) => 64,
    };
    if std::env::var_os(ALONE).is_some() {
        return take_back(megabytes);
    }
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "large_file::a_large_file_needs_little_memory", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    let peak = said.lines().find_map(|line| line.split("peak ").nth(1)).expect("it says its peak");
    let peak: u64 = peak.parse().unwrap();
    println!("{megabytes} MB taken back with {peak} kB");
    assert!(peak < MOST_MEGABYTES << 10, "{peak} kB for a file of {megabytes} MB");
}

fn take_back(megabytes: u64) {
    let mut sandbox = Sandbox::new();
    noise(&sandbox, "gone", megabytes, 1);
    noise(&sandbox, "changed", megabytes, 2);
    let before = list(&sandbox.root());
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "rm gone; …", |sandbox| {
        sandbox.remove("gone");
        noise(sandbox, "changed", megabytes, 3);
    });
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(before.differences(&list(&sandbox.root())), Vec::<String>::new());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
}

/// Bytes that cannot be compressed, and no two blocks the same.
fn noise(sandbox: &Sandbox, name: &str, megabytes: u64, seed: u64) {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(sandbox.at(name)).unwrap());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
    for _ in 0..(megabytes << 20) / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes()).unwrap();
    }
    file.flush().unwrap();
}
