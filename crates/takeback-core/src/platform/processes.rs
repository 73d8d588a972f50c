//! Running processes, as `/proc` shows them. Every answer may be out of date when it arrives: the process may
//! have ended, and its number may belong to another one.

use std::path::PathBuf;

/// One process.
pub(crate) struct ProcessStat {
    /// The name of its program, cut off after 15 bytes, unless the process has set another.
    pub(crate) name: String,
    /// 0: none.
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// In clock ticks since boot: [`super::clock::ProcessClock`] makes it a time.
    pub(crate) started: u64,
}

/// `None`: no such process, or a zombie.
pub(crate) fn stat_of(pid: u32) -> Option<ProcessStat> {
    // A name may be any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name is in parentheses and may contain more of them.
    let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    let started = fields.nth(15)?.parse().ok()?;
    let runs = !matches!(state, "Z" | "X");
    runs.then(|| ProcessStat { name: name.to_owned(), parent, group, session, started })
}

/// The ids of all processes; empty if they cannot be listed.
pub(crate) fn all() -> Vec<u32> {
    let Ok(names) = std::fs::read_dir("/proc") else { return Vec::new() };
    names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The live processes that a process started; `None`: unknown.
#[must_use]
pub fn children_of(pid: u32) -> Option<Vec<u32>> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let lists: Vec<String> = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .collect();
    let is_known = !lists.is_empty();
    let children = lists.iter().flat_map(|list| list.split(' ')).filter_map(|pid| pid.parse().ok());
    is_known.then(|| children.collect())
}

/// The program and its arguments, a zero byte after each.
#[must_use]
pub fn command_line_of(pid: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|line| !line.is_empty())
}

/// The environment it was started with, a zero byte after each variable. `None`: another user's.
pub(crate) fn environment_of(pid: u32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

pub(crate) fn working_folder_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Text that differs after every boot: process ids and ticks since boot repeat.
pub(crate) fn boot_id() -> Vec<u8> {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim_ascii().to_vec()
}
