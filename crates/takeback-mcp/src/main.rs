//! `takeback-mcp`: reads arguments and environment, speaks MCP on standard input and output, and ends
//! when its input does.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use takeback_mcp::{Backend, BackendOptions, Commands, Log, Server};

const HELP: &str = "\
Takeback as an MCP server, on standard input and output. Usually started as `takeback mcp`.

Usage: takeback-mcp [-C DIR] [--home DIR] [--allow-bisect] [-v]

  -C DIR          Work in this folder instead of the current one
  --home DIR      Where Takeback keeps its data
  --allow-bisect  Offer the tool bisect, with which the model runs commands of its choice
  -v              Log calls to standard error

TAKEBACK_PROGRAM names the `takeback` to run [default: next to this program, then on PATH].
";

struct Arguments {
    /// For the `takeback` that is started.
    passed_on: Vec<OsString>,
    commands: Commands,
    verbose: bool,
}

enum Action {
    Serve(Arguments),
    Print(String),
}

fn main() -> ExitCode {
    let arguments = match read(std::env::args_os().skip(1)) {
        Ok(Action::Serve(arguments)) => arguments,
        Ok(Action::Print(text)) => {
            return match std::io::stdout().write_all(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Err(wrong) => {
            say(&format!("takeback-mcp: {wrong}; --help lists the options"));
            return ExitCode::from(2);
        }
    };
    let options = BackendOptions { program: program(), arguments: arguments.passed_on };
    let log: Log = if arguments.verbose { Arc::new(say) } else { Arc::new(|_| {}) };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("takeback-mcp: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(serve(Arc::new(Backend::new(options, log)), arguments.commands));
    // Do not wait for a call that is still running in the child.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            say(&format!("takeback-mcp: {wrong}"));
            ExitCode::FAILURE
        }
    }
}

/// Serves until the client closes standard input.
async fn serve(backend: Arc<Backend>, commands: Commands) -> Result<(), String> {
    let server = Server::new(Arc::clone(&backend), commands);
    let done = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        // The client closed its end without a message: no error.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    backend.close().await;
    done
}

fn read(mut words: impl Iterator<Item = OsString>) -> Result<Action, String> {
    let mut arguments =
        Arguments { passed_on: Vec::new(), commands: Commands::Refused, verbose: false };
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-C" | "--home") => {
                let Some(value) = words.next() else {
                    return Err(format!("{} needs a folder", word.display()));
                };
                arguments.passed_on.extend([word, value]);
            }
            Some("--allow-bisect") => arguments.commands = Commands::Allowed,
            Some("-v" | "--verbose") => arguments.verbose = true,
            Some("-h" | "--help") => return Ok(Action::Print(HELP.to_owned())),
            Some("-V" | "--version") => {
                return Ok(Action::Print(format!("takeback-mcp {}\n", env!("CARGO_PKG_VERSION"))));
            }
            _ => return Err(format!("unknown argument {}", word.display())),
        }
    }
    Ok(Action::Serve(arguments))
}

#[expect(clippy::disallowed_methods, reason = "the binary reads the environment, here alone")]
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("TAKEBACK_PROGRAM").filter(|named| !named.is_empty()) {
        return named.into();
    }
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(|folder| folder.join("takeback"));
    beside.filter(|program| program.is_file()).unwrap_or_else(|| "takeback".into())
}

fn say(line: &str) {
    // If standard error is closed, there is nowhere left to report this.
    drop(writeln!(std::io::stderr(), "{line}"));
}
