//! `help`: what `--help` says.

use std::ffi::OsString;
use std::io::Write as _;

use crate::args::{HelpArgs, command_line, explain};
use crate::error::CommandError;
use crate::screen::Screen;

pub(crate) fn help(args: &HelpArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let words = args.command.iter().map(String::as_str);
    let words: Vec<OsString> =
        ["takeback"].into_iter().chain(words).chain(["--help"]).map(OsString::from).collect();
    match command_line().try_get_matches_from(&words) {
        // clap returns the help text as an error.
        Err(help) if !help.use_stderr() => {
            screen.page()?;
            write!(screen.out, "{}", help.render().ansi())?;
        }
        Err(error) => return Err(explain(error, &words).into()),
        Ok(_) => {}
    }
    Ok(0)
}
