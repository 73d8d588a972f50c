//! Whether a process that owned a session still runs.

use takeback_store::Process;

/// This process.
#[must_use]
pub fn current() -> Option<Process> {
    let pid = std::process::id();
    start_of(pid).map(|started| Process { pid, started })
}

#[must_use]
pub fn is_alive(process: Process) -> bool {
    start_of(process.pid) == Some(process.started)
}

/// When a process was started, in clock ticks since boot; `None`: there is none, or only its corpse.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in parentheses and may hold anything, also more of them.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_has_ended() {
        assert!(is_alive(current().expect("this process runs")));
        let mut child =
            std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let started = start_of(child.id()).expect("it runs");
        let process = Process { pid: child.id(), started };
        assert!(is_alive(process));
        assert!(
            !is_alive(Process { started: started + 1, ..process }),
            "another process of that number"
        );
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        assert!(!is_alive(process));
    }
}
