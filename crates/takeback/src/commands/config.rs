//! `config`: every setting with its value and where that comes from.

use std::io::Write as _;

use serde_json::json;

use crate::args::{ConfigArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place;
use crate::screen::{CARE, HINT, NAME, Screen, fit, plain, shorten, width};
use crate::settings::{Setting, Settings, table};

pub(crate) fn config(
    options: &Options,
    args: &ConfigArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let here = place::here(options)?;
    let settings = Settings::load(&here.root, &here.home)?;
    place::warn(options, &settings)?;
    match &args.key {
        Some(name) => one(&settings, name, screen)?,
        None => all(&settings, screen)?,
    }
    Ok(0)
}

fn one(settings: &Settings, name: &str, screen: &mut Screen) -> Result<(), CommandError> {
    if table::is_without_effect(name) {
        let text = format!("{name} has no effect in this version");
        return Err(CommandError::new(Kind::Usage, text)
            .hint("`takeback config` lists the settings that have one."));
    }
    if table::key(name).is_none() {
        return Err(CommandError::new(Kind::Usage, format!("there is no setting {name}")).hint(
            format!("Did you mean {}? `takeback config` lists them.", table::nearest(name)),
        ));
    }
    let setting = settings.setting(name);
    if screen.json {
        screen.json(&told(setting))?;
        return Ok(());
    }
    writeln!(screen.out, "{}", plain(&setting.value.to_string()))?;
    if screen.verbose {
        writeln!(screen.out, "{HINT}{}{HINT:#}", setting.origin)?;
        refusal(setting, screen)?;
    }
    Ok(())
}

fn all(settings: &Settings, screen: &mut Screen) -> Result<(), CommandError> {
    if screen.json {
        screen.json(&settings.all.iter().map(told).collect::<Vec<_>>())?;
        return Ok(());
    }
    let names = table::KEYS.iter().map(|key| key.name.len()).max().unwrap_or(0);
    let room = (width().saturating_sub(names + 4) / 2).clamp(12, 60);
    for setting in &settings.all {
        let text = match plain(&setting.value.to_string()) {
            none if none.is_empty() => "none".to_owned(),
            text if screen.verbose => text,
            text => shorten(&text, room),
        };
        writeln!(
            screen.out,
            "{NAME}{}{NAME:#}  {}  {HINT}{}{HINT:#}",
            fit(setting.name, names),
            fit(&text, room.max(text.chars().count())),
            setting.origin
        )?;
        refusal(setting, screen)?;
        if screen.verbose
            && let Some(key) = table::key(setting.name)
        {
            writeln!(screen.out, "  {HINT}{} ({}){HINT:#}", key.meaning, key.variable())?;
        }
    }
    Ok(())
}

fn refusal(setting: &Setting, screen: &mut Screen) -> std::io::Result<()> {
    let Some(refused) = &setting.refused else { return Ok(()) };
    writeln!(
        screen.out,
        "  {CARE}refused:{CARE:#} {} in {}  {HINT}{}{HINT:#}",
        shorten(&plain(&refused.value.to_string()), 40),
        refused.file.display(),
        refused.why
    )
}

fn told(setting: &Setting) -> serde_json::Value {
    let mut value = json!({
        "key": setting.name,
        "value": setting.value.to_json(),
        "origin": setting.origin.to_string(),
    });
    if let Some(refused) = &setting.refused {
        value["refused"] = json!({
            "value": refused.value,
            "origin": refused.file.to_string_lossy(),
            "why": refused.why,
        });
    }
    value
}
