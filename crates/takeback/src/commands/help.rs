//! `help`: what `--help` says.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::args::{Args, HelpArgs};
use crate::error::CommandError;
use crate::screen::Screen;

pub(crate) fn help(args: &HelpArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let words = args.command.iter().map(String::as_str);
    let words = ["takeback"].into_iter().chain(words).chain(["--help"]);
    match Args::command().try_get_matches_from(words) {
        // clap returns the help text as an error.
        Err(help) if !help.use_stderr() => write!(screen.out, "{}", help.render().ansi())?,
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    Ok(0)
}
