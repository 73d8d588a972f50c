//! `config`: every setting with its value and where it was set; and its subcommands.

mod change;
mod edit;

use std::io::Write as _;
use std::path::PathBuf;

use crate::answers;
use crate::args::{ConfigArgs, ConfigCommand, Options, ScopeName};
use crate::error::{CommandError, Kind};
use crate::place::{self, Location};
use crate::screen::{HINT, NAME, Screen, WARNING, full_width, plain, shorten, shorten_path, wrap};
use crate::settings::table::{Key, key, nearest};
use crate::settings::{Setting, Settings, project_file, table, user_file};
use crate::table::{Cell, Overflow, Table};

pub(crate) fn config(
    options: &Options,
    args: &ConfigArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    match (&args.command, &args.key) {
        (Some(_), Some(key)) => {
            let text = format!("a subcommand cannot follow the setting {}", plain(key));
            Err(CommandError::new(Kind::Usage, text).hint("See `takeback config --help`."))
        }
        (Some(ConfigCommand::Set(args)), None) => change::set(options, args, screen),
        (Some(ConfigCommand::Unset(args)), None) => change::unset(options, args, screen),
        (Some(ConfigCommand::Edit(args)), None) => edit::edit(options, args.scope, screen),
        (Some(ConfigCommand::Path(args)), None) => edit::path(options, args.scope, screen),
        (Some(ConfigCommand::Get(args)), None) => one(options, &args.key, screen),
        (None, Some(key)) => one(options, key, screen),
        (None, None) => all(options, screen),
    }
}

/// A settings file: its path, and its mode if it is new.
fn settings_file(scope: ScopeName, location: &Location) -> (PathBuf, u32) {
    match scope {
        ScopeName::User => (user_file(&location.home), 0o600),
        ScopeName::Project => (project_file(&location.root), 0o644),
    }
}

/// The setting that the user names.
fn named(name: &str) -> Result<&'static Key, CommandError> {
    key(name).ok_or_else(|| {
        let meant = nearest(name).map_or_else(String::new, |key| format!("Did you mean {key}? "));
        let name = shorten(&plain(name), table::LONGEST);
        CommandError::new(Kind::Usage, format!("there is no setting {name}"))
            .hint(format!("{meant}`takeback config` lists them."))
    })
}

fn one(options: &Options, name: &str, screen: &mut Screen) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    let settings = Settings::load(&location.root, &location.home)?;
    place::warn(options, &settings)?;
    let setting = settings.setting(named(name)?.name);
    if screen.json {
        screen.json(&answer(setting))?;
        return Ok(0);
    }
    writeln!(screen.out, "{}", plain(&setting.value.to_string()))?;
    if screen.verbose {
        writeln!(screen.out, "{HINT}{}{HINT:#}", setting.origin)?;
        refusal(setting, screen)?;
    }
    Ok(0)
}

fn all(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    let settings = Settings::load(&location.root, &location.home)?;
    // The list itself shows refused values.
    place::print_warnings(options, &settings.warnings)?;
    list(&settings, screen)?;
    Ok(0)
}

fn list(settings: &Settings, screen: &mut Screen) -> Result<(), CommandError> {
    if screen.json {
        screen.json(&settings.all.iter().map(answer).collect::<answers::ConfigAnswer>())?;
        return Ok(());
    }
    screen.page()?;
    if screen.verbose {
        return all_with_meaning(settings, screen);
    }
    if full_width() < NARROW {
        settings.all.iter().try_for_each(|setting| print_narrow(setting, screen))?;
        return Ok(settings.all.iter().try_for_each(|setting| refusal(setting, screen))?);
    }
    let mut table = Table::new(0, [Overflow::Nothing, Overflow::End(DIGITS), Overflow::Start(8)]);
    for setting in &settings.all {
        table.rows.push([
            Cell::new(NAME, setting.name),
            // `-v` shows all of a long list.
            Cell::plain(shorten(&value_of(setting), 60)),
            Cell::new(HINT, plain(&setting.origin.to_string())),
        ]);
    }
    table.print_within(full_width(), &mut screen.out)?;
    settings.all.iter().try_for_each(|setting| refusal(setting, screen))?;
    Ok(())
}

/// Digits of the longest number.
const DIGITS: usize = 20;
/// Columns for a name, a number and part of the origin.
const NARROW: usize = 60;

fn print_narrow(setting: &Setting, screen: &mut Screen) -> std::io::Result<()> {
    let room = full_width().saturating_sub(setting.name.len() + 2);
    let origin = shorten_path(&plain(&setting.origin.to_string()), room);
    writeln!(screen.out, "{NAME}{}{NAME:#}  {HINT}{origin}{HINT:#}", setting.name)?;
    for line in wrap(&value_of(setting), full_width().saturating_sub(2)) {
        writeln!(screen.out, "  {line}")?;
    }
    Ok(())
}

fn all_with_meaning(settings: &Settings, screen: &mut Screen) -> Result<(), CommandError> {
    for setting in &settings.all {
        let origin = plain(&setting.origin.to_string());
        writeln!(screen.out, "{NAME}{}{NAME:#}  {HINT}{origin}{HINT:#}", setting.name)?;
        writeln!(screen.out, "  {}", value_of(setting))?;
        if let Some(key) = key(setting.name) {
            writeln!(screen.out, "  {HINT}{} ({}){HINT:#}", key.meaning, key.variable())?;
        }
        refusal(setting, screen)?;
    }
    Ok(())
}

fn value_of(setting: &Setting) -> String {
    match plain(&setting.value.to_string()) {
        none if none.is_empty() => "none".to_owned(),
        text => text,
    }
}

fn refusal(setting: &Setting, screen: &mut Screen) -> std::io::Result<()> {
    let Some(refused) = &setting.refused else { return Ok(()) };
    let value = shorten(&plain(&refused.value.to_string()), 40);
    let file = plain(&refused.file.to_string_lossy());
    writeln!(screen.out, "{WARNING}refused:{WARNING:#} {} = {value} in {file}", setting.name)?;
    writeln!(screen.out, "  {HINT}{}{HINT:#}", refused.why)
}

fn answer(setting: &Setting) -> answers::Setting {
    answers::Setting {
        key: setting.name.to_owned(),
        value: setting.value.answer(),
        origin: setting.origin.to_string(),
        refused: setting.refused.as_ref().map(|refused| answers::RefusedSetting {
            value: refused.value.clone(),
            origin: answers::place(&refused.file),
            why: refused.why.to_string(),
        }),
    }
}
