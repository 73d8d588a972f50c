//! The agents on this machine, where they keep their settings, and which program their hooks run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use takeback_agents::{AgentKind, Homes, has_other_post_edit_hook, is_takeback_command};

use crate::error::{CommandError, Kind};
use crate::place::{self, environment, quoted};

/// The folders in which the user's agents keep their settings.
pub(crate) fn homes() -> Result<Homes, CommandError> {
    let user = place::user_home().ok_or_else(|| {
        CommandError::new(Kind::Usage, "there is no home folder: HOME is not set")
            .hint("Set HOME; agents keep their settings there.")
    })?;
    Ok(Homes { user, variable: |name| environment(name).map(PathBuf::from) })
}

/// Whether an agent has a hook after edits other than Takeback's: usually a formatter.
pub(crate) fn has_formatter(agent: &AgentKind, cwd: Option<&Path>) -> bool {
    homes().is_ok_and(|homes| {
        let folder = agent.home.path(&homes);
        has_other_post_edit_hook(agent, &folder, cwd.unwrap_or(&folder), &is_takeback_command)
    })
}

/// An agent's program, if it is on PATH.
pub(crate) fn program_of(agent: &AgentKind) -> Option<PathBuf> {
    on_path(agent.program)
}

/// Whether the agent's program or its folder exists.
pub(crate) fn is_here(agent: &AgentKind, homes: &Homes) -> bool {
    program_of(agent).is_some() || agent.home.path(homes).is_dir()
}

/// This program for the command line of a hook: only its name if PATH leads to this program, so that the line
/// survives updates.
pub(crate) fn own_word() -> Result<String, CommandError> {
    let own = std::env::current_exe().and_then(std::fs::canonicalize).map_err(|error| {
        CommandError::new(Kind::Error, format!("cannot find the path of this program: {error}"))
    })?;
    let is_this = |found: PathBuf| std::fs::canonicalize(found).is_ok_and(|found| found == own);
    Ok(if on_path(NAME).is_some_and(is_this) { NAME.to_owned() } else { quoted(&own) })
}

const NAME: &str = "takeback";

/// Whether a program named in a command line can be run.
pub(crate) fn runs(program: &str) -> bool {
    found(program).is_some()
}

/// The program that a command line runs, as a shell finds it.
pub(crate) fn found(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        Some(PathBuf::from(program)).filter(|program| is_program(program))
    } else {
        on_path(program)
    }
}

fn on_path(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let folders = environment("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program.as_ref()))
        .find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
