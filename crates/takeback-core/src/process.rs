//! Which processes run: whether the one that owned a session still does, and which one started which.

use takeback_store::Process;

/// This process.
#[must_use]
pub fn current() -> Option<Process> {
    started(std::process::id())
}

/// The process that has this number now; `None`: there is none, or only its corpse.
#[must_use]
pub fn started(pid: u32) -> Option<Process> {
    Some(Process { pid, started: stat_of(pid)?.started })
}

/// The process that started this one, or that took it over when the one that did had ended.
#[must_use]
pub fn parent_of(pid: u32) -> Option<u32> {
    stat_of(pid).map(|stat| stat.parent).filter(|parent| *parent != 0)
}

/// What a process is called: the name of its program, cut off after 15 bytes, unless it has given
/// itself another.
#[must_use]
pub fn name_of(pid: u32) -> Option<String> {
    stat_of(pid).map(|stat| stat.name)
}

#[must_use]
pub fn is_alive(process: Process) -> bool {
    started(process.pid) == Some(process)
}

/// What the kernel tells of a process.
struct Stat {
    name: String,
    parent: u32,
    /// In clock ticks since boot.
    started: u64,
}

/// `None`: there is none, or only its corpse.
fn stat_of(pid: u32) -> Option<Stat> {
    // A name is any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // It stands in parentheses and may hold more of them.
    let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    let runs = !matches!(state, "Z" | "X");
    runs.then(|| Stat { name: name.to_owned(), parent, started })
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
        // Until it has become the program, it is called like this one.
        while name_of(child.id()).as_deref() != Some("a) R 1 (b") {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it runs");
        }
        assert_eq!(parent_of(child.id()), Some(std::process::id()));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
}
