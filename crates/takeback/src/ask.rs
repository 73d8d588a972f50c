//! Asks the user before something is done.

use std::io::{self, BufRead as _, Write as _};

use crate::error::{CommandError, Kind};
use crate::screen::Screen;

/// The error if confirmation is needed, but there is neither a terminal nor `-y`.
pub(crate) fn needs_confirmation(what: &str) -> CommandError {
    CommandError::new(Kind::Usage, format!("this {what} and needs confirmation"))
        .hint("Run it in a terminal, or pass -y; --dry-run shows what it would do.")
}

pub(crate) fn confirmed(screen: &mut Screen) -> io::Result<bool> {
    confirmed_as("Proceed? [y/N]", screen)
}

pub(crate) fn confirmed_as(question: &str, screen: &mut Screen) -> io::Result<bool> {
    writeln!(screen.out)?;
    Ok(matches!(answer(&[question.to_owned()], screen)?.as_str(), "y" | "Y" | "yes"))
}

/// Prints a question and returns the typed line; empty at the end of the input.
pub(crate) fn answer(question: &[String], screen: &mut Screen) -> io::Result<String> {
    write!(screen.out, "{} ", question.join("\n"))?;
    screen.out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    writeln!(screen.out)?;
    Ok(answer.trim().to_owned())
}
