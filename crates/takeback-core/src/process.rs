//! Running processes: whether the owner of a session is alive, and which process started which.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;

use takeback_store::{Process, Timestamp};

use crate::platform::clock::ProcessClock;
use crate::platform::processes::{self, ProcessStat, stat_of};
pub use crate::platform::processes::{children_of, command_line_of};

/// This process.
#[must_use]
pub fn current() -> Option<Process> {
    started(std::process::id())
}

/// The process that has this id now; `None`: there is none, or it is a zombie.
#[must_use]
pub fn started(pid: u32) -> Option<Process> {
    Some(Process { pid, started: stat_of(pid)?.started ^ boot_number() })
}

/// When the process that has this id now was started.
#[must_use]
pub fn started_at(pid: u32) -> Option<Timestamp> {
    stat_of(pid).map(|stat| Timestamp(ProcessClock::read().time_of(stat.started)))
}

/// A number that differs after every boot: process ids and times since boot repeat.
fn boot_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let hash = blake3::hash(&processes::boot_id());
        let mut number = [0; 8];
        number.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_le_bytes(number)
    })
}

/// Whether a process that `agent` started at `from` or later still runs: a descendant, a member of such a
/// process's group, or an orphan whose working folder is in `root`. `until`: only those started by then. This
/// process and those between it and the agent do not count, nor do helpers that the agent started earlier.
#[must_use]
pub fn has_running(agent: Process, from: Timestamp, until: Option<Timestamp>, root: &Path) -> bool {
    let clock = ProcessClock::read();
    let all: HashMap<u32, ProcessStat> =
        processes::all().into_iter().filter_map(|pid| Some((pid, stat_of(pid)?))).collect();
    let is_below = |pid: u32| {
        let up = |pid: &u32| all.get(pid).map(|stat| stat.parent).filter(|parent| *parent != 0);
        std::iter::successors(Some(pid), up)
            .take(MOST_ANCESTORS)
            .skip(1)
            .any(|one| one == agent.pid)
    };
    let up = |pid: &u32| all.get(pid).map(|stat| stat.parent);
    let own: HashSet<u32> =
        std::iter::successors(Some(std::process::id()), up).take(MOST_ANCESTORS).collect();
    let is_in_time = |stat: &ProcessStat| {
        // The kernel counts in hundredths of a second.
        let at = clock.time_of(stat.started);
        at + 20 >= from.0 && until.is_none_or(|until| at <= until.0)
    };
    let candidates: Vec<(u32, &ProcessStat)> = all
        .iter()
        .filter(|(pid, stat)| !own.contains(pid) && is_in_time(stat))
        .map(|(pid, stat)| (*pid, stat))
        .collect();
    let below = candidates.iter().filter(|(pid, _)| is_below(*pid));
    let groups: HashSet<u32> = below.map(|(_, stat)| stat.group).collect();
    candidates.iter().any(|(pid, stat)| {
        groups.contains(&stat.group) || (stat.parent <= 1 && is_in_folder(*pid, root))
    })
}

/// No agent is further up than this.
const MOST_ANCESTORS: usize = 64;

fn is_in_folder(pid: u32, root: &Path) -> bool {
    processes::working_folder_of(pid).is_some_and(|folder| folder.starts_with(root))
}

/// The process that started this one, or that adopted it when its parent ended.
#[must_use]
pub fn parent_of(pid: u32) -> Option<u32> {
    stat_of(pid).map(|stat| stat.parent).filter(|parent| *parent != 0)
}

/// The processes that were started with this variable in their environment, and the session each is
/// in. One that has ended has no environment.
#[must_use]
pub fn with_variable(variable: &str) -> Vec<(u32, u32)> {
    let has = |pid: &u32| {
        processes::environment_of(*pid)
            .is_some_and(|all| all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()))
    };
    let marked = processes::all().into_iter().filter(has);
    marked.filter_map(|pid| Some((pid, stat_of(pid)?.session))).collect()
}

/// The name of a process: that of its program, cut off after 15 bytes, unless the process has set another.
#[must_use]
pub fn name_of(pid: u32) -> Option<String> {
    stat_of(pid).map(|stat| stat.name)
}

/// Whether exactly this process runs: a later one with the same pid is another.
#[must_use]
pub fn is_alive(process: Process) -> bool {
    started(process.pid) == Some(process)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_process_lives_until_it_has_ended() {
        assert!(is_alive(current().expect("this process runs")));
        let mut child =
            std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let process = started(child.id()).expect("it runs");
        assert!(is_alive(process));
        assert!(
            !is_alive(Process { started: process.started + 1, ..process }),
            "another process of that number"
        );
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        assert!(!is_alive(process));
        assert_eq!((started(process.pid), name_of(process.pid)), (None, None));
    }

    #[test]
    fn what_an_agent_started_runs_until_it_has_ended() {
        let now = || Timestamp(ProcessClock::read().now);
        let agent = current().expect("this process runs");
        let root = tempfile::tempdir().expect("a folder");
        // Helpers that the agent started before the call do not count.
        let mut helper = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(60));
        let began = now();
        // This process plays the agent, so it does not count itself.
        let seen = |until| has_running(agent, began, until, root.path());
        assert!(!seen(None), "only the helper runs");
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 60"])
            .process_group(0)
            .spawn()
            .expect("it starts");
        while !seen(None) {
            assert!(shell.try_wait().expect("it can be asked").is_none(), "it runs");
        }
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert!(seen(Some(now())), "it was started before now");
        assert!(!seen(Some(Timestamp(began.0 - 40))), "and not before the call");
        std::process::Command::new("kill")
            .args(["--", &format!("-{}", shell.id())])
            .status()
            .expect("it can be killed");
        shell.wait().expect("it ends");
        while seen(None) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // An orphan of a command runs in the folder.
        let left = std::process::Command::new("sh")
            .args(["-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"])
            .current_dir(root.path())
            .output()
            .expect("it runs");
        let left = String::from_utf8_lossy(&left.stdout).trim().to_owned();
        let is_orphan = left.parse().ok().and_then(parent_of).is_none_or(|parent| parent <= 1);
        assert!(!is_orphan || seen(None), "left behind in the folder");
        std::process::Command::new("kill").arg(&left).status().expect("it can be killed");
        helper.kill().expect("it can be killed");
        helper.wait().expect("it ends");
    }

    #[test]
    fn a_process_is_found_among_the_ancestors_of_another() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
        let grandchild = line.trim().parse().expect("a number");
        let ancestors: Vec<u32> =
            std::iter::successors(Some(grandchild), |pid| parent_of(*pid)).collect();
        assert_eq!(ancestors[..3], [grandchild, child.id(), me]);
        assert_eq!(ancestors.last().and_then(|first| parent_of(*first)), None);
        assert_eq!(name_of(child.id()).as_deref(), Some("sh"));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        std::process::Command::new("kill").arg(line.trim()).status().expect("it can be killed");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a program with a name of its own")]
    fn a_name_may_hold_anything() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = dir.path().join("a) R 1 (b");
        std::os::unix::fs::symlink("/bin/sleep", &program).expect("a link");
        let mut sleep = std::process::Command::new(&program);
        let mut child = sleep.arg0("sleep").arg("60").spawn().expect("it starts");
        // Until `exec`, it has the name of this process.
        while name_of(child.id()).as_deref() != Some("a) R 1 (b") {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it runs");
        }
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
}
