//! `mcp`: replaces this process by `takeback-mcp`, a separate program, so that `takeback` itself does not
//! carry an MCP server.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::{McpArgs, Options};
use crate::error::{CommandError, Kind};
use crate::settings::table;

const PROGRAM: &str = "takeback-mcp";

/// Returns only if it could not be started.
pub(crate) fn mcp(options: &Options, args: &McpArgs) -> Result<u8, CommandError> {
    let own = std::env::current_exe()?;
    let program = beside(&own).unwrap_or_else(|| PROGRAM.into());
    let mut command = Command::new(&program);
    command.env("TAKEBACK_PROGRAM", &own);
    if let Some(folder) = &options.directory {
        command.arg("-C").arg(folder);
    }
    if let Some(home) = &options.home {
        command.arg("--home").arg(home);
    }
    if options.verbose {
        command.arg("-v");
    }
    if args.allow_bisect {
        command.arg("--allow-bisect");
    }
    if args.allow_rewind {
        let key = table::key(table::ALLOW_AGENT_REWIND).expect("the table has this key");
        command.env(key.variable(), "true");
    }
    let error = command.exec();
    let what = format!("cannot start {}", program.display());
    if error.kind() == io::ErrorKind::NotFound {
        let message = format!("{what}: it does not exist");
        return Err(CommandError::new(Kind::Error, message).hint(
            "Install it: `cargo install --path crates/takeback-mcp` in Takeback's source, \
             or put it next to this program.",
        ));
    }
    Err(CommandError::new(Kind::Error, format!("{what}: {error}")))
}

/// The one next to this program.
fn beside(own: &Path) -> Option<PathBuf> {
    let program = own.with_file_name(PROGRAM);
    program.is_file().then_some(program)
}
