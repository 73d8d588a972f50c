//! Whether a process that owned a session still runs.

use takeback_store::Process;

/// This process.
#[must_use]
pub fn current() -> Option<Process> {
    started(std::process::id())
}

/// The process that has this number now.
#[must_use]
pub fn started(pid: u32) -> Option<Process> {
    start_of(pid).map(|started| Process { pid, started })
}

#[must_use]
pub fn parent_of(pid: u32) -> Option<u32> {
    fields_of(pid)?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What the kernel calls it: the first 15 bytes of its program's name, or what it calls itself.
#[must_use]
pub fn name_of(pid: u32) -> Option<String> {
    Some(fields_of(pid)?.0)
}

#[must_use]
pub fn is_alive(process: Process) -> bool {
    start_of(process.pid) == Some(process.started)
}

/// When a process was started, in clock ticks since boot; `None`: there is none, or only its corpse.
fn start_of(pid: u32) -> Option<u64> {
    let (_, fields) = fields_of(pid)?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// Its name, and what the kernel tells of it after that.
fn fields_of(pid: u32) -> Option<(String, String)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in parentheses and may hold anything, also more of them.
    let (name, fields) = stat.rsplit_once(')')?;
    Some((name.split_once('(')?.1.to_owned(), fields.to_owned()))
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
        assert_eq!(super::started(child.id()), Some(process));
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        assert_eq!(name_of(child.id()).as_deref(), Some("sleep"));
        assert!(
            !is_alive(Process { started: started + 1, ..process }),
            "another process of that number"
        );
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        assert!(!is_alive(process));
    }
}
