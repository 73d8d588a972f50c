//! Asking before something is done.

use std::io::{self, BufRead as _, Write as _};

use crate::error::{CommandError, Kind};
use crate::screen::Screen;

/// Nobody sits there, and nobody said `-y`.
pub(crate) fn nobody(what: &str) -> CommandError {
    CommandError::new(Kind::Usage, format!("this {what} and nobody can be asked"))
        .hint("--dry-run shows what it would do, -y does it without asking.")
}

pub(crate) fn confirmed(screen: &mut Screen) -> io::Result<bool> {
    write!(screen.out, "\nDo this? [y/N] ")?;
    screen.out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    writeln!(screen.out)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
