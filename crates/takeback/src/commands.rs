//! One file per command.

mod demo;
mod run;
mod record;
mod checkpoint;
mod log;
mod show;
mod diff;
mod rewind;
mod status;
mod recover;
mod verify;
mod export;
mod import;
mod filediff;
mod receipt;

use crate::args::{Args, Command};
use crate::error::CommandError;
use crate::screen::Screen;

/// Does what was asked; answers the exit code.
pub(crate) fn run(args: Args) -> Result<u8, CommandError> {
    let options = &args.options;
    let mut screen = Screen::new(options);
    let code = match args.command {
        Command::Demo => demo::demo(&mut screen)?,
        Command::Run(run) => return run::run(options, &run),
        Command::Record => record::record(options, &mut screen)?,
        Command::Checkpoint(checkpoint) => {
            checkpoint::checkpoint(options, &checkpoint, &mut screen)?
        }
        Command::Log(log) => log::log(options, &log, &mut screen)?,
        Command::Show(show) => show::show(options, &show, &mut screen)?,
        Command::Diff(diff) => diff::diff(options, &diff, &mut screen)?,
        Command::Rewind(rewind) => rewind::rewind(options, &rewind, &mut screen)?,
        Command::Undo(undo) => rewind::undo(options, &undo, &mut screen)?,
        Command::Redo(redo) => rewind::redo(options, &redo, &mut screen)?,
        Command::Status => status::status(options, &mut screen)?,
        Command::Recover(recover) => recover::recover(options, &recover, &mut screen)?,
        Command::Verify => verify::verify(options, &mut screen)?,
        Command::Export(export) => export::export(options, &export, &mut screen)?,
        Command::Import(import) => import::import(options, &import, &mut screen)?,
    };
    screen.out.flush()?;
    Ok(code)
}
