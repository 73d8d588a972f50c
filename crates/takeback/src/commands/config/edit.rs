//! `config edit` and `config path`: a settings file as a whole.

use std::io::Write as _;
use std::path::Path;

use super::settings_file;
use crate::answers;
use crate::args::{Options, ScopeName};
use crate::ask;
use crate::editor::run_editor;
use crate::error::{CommandError, Kind};
use crate::foreign_file::ForeignFile;
use crate::place::{self, tilde_path};
use crate::screen::{Screen, WARNING, is_interactive, plain};
use crate::settings::problems_of;

pub(super) fn path(
    options: &Options,
    scope: ScopeName,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (path, _) = settings_file(scope, &place::locate(options)?);
    if screen.json {
        screen.json(&answer(&path))?;
    } else {
        writeln!(screen.out, "{}", plain(&path.to_string_lossy()))?;
    }
    Ok(0)
}

/// The editor gets a copy: other commands never read a half-edited file.
pub(super) fn edit(
    options: &Options,
    scope: ScopeName,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (path, mode) = settings_file(scope, &place::locate(options)?);
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        CommandError::new(Kind::Error, error).hint("Nothing was changed.")
    };
    let file = ForeignFile::read(&path, mode).map_err(|error| failed(error.into()))?;
    let mut text = file.bytes.clone().unwrap_or_else(|| b"{\n}\n".to_vec());
    let before = text.clone();
    let draft = tempfile::Builder::new().prefix("takeback-settings-").suffix(".json").tempfile()?;
    draft.as_file().write_all(&text)?;
    loop {
        run_editor(draft.path())?;
        // By its path: most editors replace the file.
        text = std::fs::read(draft.path())?;
        if text == before {
            break;
        }
        let problems = problems_of(&text);
        if problems.is_empty() {
            file.replace(&text).map_err(|error| failed(error.into()))?;
            break;
        }
        if !is_interactive() || screen.json {
            let text = format!("the settings are not valid: {}", problems.join("; "));
            return Err(CommandError::new(Kind::Usage, text).hint("Nothing was changed."));
        }
        for problem in &problems {
            writeln!(screen.out, "{WARNING}invalid:{WARNING:#} {}", plain(problem))?;
        }
        let again = ask::answer(&["Edit again? [Y/n]".to_owned()], screen)?;
        if matches!(again.as_str(), "n" | "N" | "no") {
            return Err(CommandError::new(Kind::Usage, "the settings are not valid")
                .hint("Nothing was changed."));
        }
    }
    if screen.json {
        screen.json(&answer(&path))?;
    } else if text == before {
        writeln!(screen.out, "No changes.")?;
    } else {
        writeln!(screen.out, "Saved {}.", tilde_path(&path))?;
    }
    Ok(0)
}

fn answer(path: &Path) -> answers::ConfigFileAnswer {
    answers::ConfigFileAnswer { file: answers::place(path), exists: path.exists() }
}
