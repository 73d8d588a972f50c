//! `config set` and `config unset`: one value in a settings file.

use std::io::Write as _;

use super::{answer, named, settings_file, value_of};
use crate::answers;
use crate::args::{ConfigSetArgs, ConfigUnsetArgs, Options, ScopeName};
use crate::error::{CommandError, Kind};
use crate::foreign_file::ForeignFile;
use crate::place::{self, Location, tilde_path};
use crate::screen::{HINT, NAME, Screen, plain, shorten};
use crate::settings::table::{Key, Value};
use crate::settings::{Origin, Settings, changed_text};

pub(super) fn set(
    options: &Options,
    args: &ConfigSetArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let key = named(&args.key)?;
    let value = value(key, &args.value)?;
    write(options, (key, Some(&value)), args.file.scope, screen)
}

pub(super) fn unset(
    options: &Options,
    args: &ConfigUnsetArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    write(options, (named(&args.key)?, None), args.file.scope, screen)
}

/// The value as the user wrote it: as in an environment variable, or a JSON list.
fn value(key: &Key, text: &str) -> Result<Value, CommandError> {
    let of_json = || serde_json::from_str(text).ok().and_then(|value| key.read_json(&value));
    let wrong = |why: String| {
        let value = shorten(&plain(text), 40);
        CommandError::new(Kind::Usage, format!("{} {why}, not {value:?}", key.name))
            .hint(format!("{}: {}.", key.name, key.meaning))
    };
    let read = match text.starts_with('[') {
        true => of_json(),
        false => key.read_text(text),
    };
    let value = read.ok_or_else(|| wrong(format!("must be {}", key.takes())))?;
    match key.refuses(&value) {
        Some(why) => Err(wrong(why)),
        None => Ok(value),
    }
}

fn write(
    options: &Options,
    (key, value): (&Key, Option<&Value>),
    scope: ScopeName,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    if let (ScopeName::Project, Some(value)) = (scope, value) {
        check_project(&location, key, value)?;
    }
    let (path, mode) = settings_file(scope, &location);
    let file = ForeignFile::read(&path, mode).map_err(|error| unchanged(error.into()))?;
    let text = std::str::from_utf8(file.bytes.as_deref().unwrap_or_default())
        .map_err(|error| unchanged(format!("{}: {error}", path.display()).into()))?;
    let changed = changed_text(&path, text, key, value)?;
    let is_new = file.bytes.is_none() && value.is_none();
    if changed != text && !is_new {
        file.replace(changed.as_bytes()).map_err(|error| unchanged(error.into()))?;
    }
    let settings = Settings::load(&location.root, &location.home)?;
    let setting = settings.setting(key.name);
    if screen.json {
        let value = value.map(Value::answer);
        let file = answers::place(&path);
        screen.json(&answers::ConfigSetAnswer { file, value, setting: answer(setting) })?;
        return Ok(0);
    }
    let shown = value_of(setting);
    writeln!(screen.out, "{NAME}{}{NAME:#} is {shown}", key.name)?;
    let own = Origin::File(path.clone());
    let origin = match &setting.origin {
        origin if *origin == own => format!("set in {}", tilde_path(&path)),
        Origin::Default if value.is_none() => "the default".to_owned(),
        Origin::Default => format!("the default, as in {}", tilde_path(&path)),
        Origin::Environment(variable) => format!("{variable} overrides {}", tilde_path(&path)),
        Origin::File(other) if value.is_none() => format!("set in {}", tilde_path(other)),
        Origin::File(other) => format!("{} overrides {}", tilde_path(other), tilde_path(&path)),
    };
    writeln!(screen.out, "  {HINT}{}{HINT:#}", plain(&origin))?;
    Ok(0)
}

/// Refuses what the project's file has no say in.
fn check_project(location: &Location, key: &Key, value: &Value) -> Result<(), CommandError> {
    let settings = Settings::load(&location.root, &location.home)?;
    match settings.project_refusal(key, value) {
        None => Ok(()),
        Some(why) => {
            let text = format!("the project's settings cannot have {} = {value}: {why}", key.name);
            Err(CommandError::new(Kind::Usage, plain(&text)).hint(
                "`takeback config set KEY VALUE --scope user` sets it for you, in all projects.",
            ))
        }
    }
}

fn unchanged(error: Box<dyn std::error::Error + Send + Sync>) -> CommandError {
    CommandError::new(Kind::Error, error).hint("Nothing was changed.")
}
