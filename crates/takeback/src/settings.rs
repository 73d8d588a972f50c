//! Settings: the environment overrides the project's file, which overrides the user's file, which overrides
//! the defaults. Each value knows its origin.
//!
//! A project's file is written by the project's authors or by an agent. So it can only raise and add values
//! where the table allows it. Anything else is refused and shown; nothing in it is an error.

pub(crate) mod table;
mod change;
mod file;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use takeback_core::retention::Policy;
use takeback_core::worktree::ScopeOptions;
use takeback_core::{Limits, Tools};
use takeback_store::Durability;

use self::file::{Keys, SettingsFileError};
use self::table::{KEYS, Key, Project, Value};
use crate::error::{CommandError, Kind};
use crate::place::environment;
use crate::screen::shorten;
use crate::stores::StatesMedium;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// In the order of the table.
    pub(crate) all: Vec<Setting>,
    /// Warnings about the files.
    pub(crate) warnings: Vec<String>,
    /// Refused project settings that are reported immediately. `config` lists all of them.
    pub(crate) refusals: Vec<String>,
}

/// One value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// The refused value of the project's file.
    pub(crate) refused: Option<RefusedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    Environment(String),
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedValue {
    pub(crate) value: serde_json::Value,
    pub(crate) file: PathBuf,
    pub(crate) why: String,
}

/// A settings file that could not be read; its contents may be valid.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be read")]
struct UnreadableFile {
    path: PathBuf,
    source: std::io::Error,
}

impl Settings {
    pub(crate) fn load(root: &Path, home: &Path) -> Result<Self, CommandError> {
        let (user, project) = (user_file(home), project_file(root));
        let mut warnings = Vec::new();
        let user_keys = file::read(&user).map_err(|error| unusable(&user, error))?;
        let project_keys = file::read(&project).unwrap_or_else(|why| {
            warnings.push(format!("{} has no effect: {why}", project.display()));
            Keys::new()
        });
        let mut all = Vec::new();
        for key in &KEYS {
            let mut setting = of_user(key, user_keys.get(key.name), &user)?;
            if let Some(wanted) = project_keys.get(key.name)
                && !matches!(setting.origin, Origin::Environment(_))
            {
                setting = with_project(key, setting, wanted, &project);
            }
            all.push(setting);
        }
        for (file, keys) in [(&user, &user_keys), (&project, &project_keys)] {
            warnings.extend(unknown_keys(file, keys));
        }
        let refusals = refusals(&all);
        Ok(Self { all, warnings, refusals })
    }

    pub(crate) fn setting(&self, name: &str) -> &Setting {
        self.all.iter().find(|setting| setting.name == name).expect("the table has this key")
    }

    fn number(&self, name: &str) -> u64 {
        match self.setting(name).value {
            Value::Number(number) => number,
            _ => unreachable!("the table says that {name} is a number"),
        }
    }

    fn names(&self, name: &str) -> Vec<String> {
        match &self.setting(name).value {
            Value::Names(names) => names.clone(),
            _ => unreachable!("the table says that {name} is a list"),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.setting(table::ENABLED).value == Value::Flag(true)
    }

    /// Points kept per session, not counting safety points.
    pub(crate) fn points_per_session(&self) -> u64 {
        self.number(table::POINTS_PER_SESSION)
    }

    /// Days that an archived session is kept.
    pub(crate) fn archive_days(&self) -> u64 {
        self.number(table::ARCHIVE_DAYS)
    }

    pub(crate) fn tools(&self) -> Tools {
        Tools {
            edit: self.names(table::EDIT_TOOLS),
            shell: self.names(table::SHELL_TOOLS),
            read_only: self.names(table::READ_ONLY_TOOLS),
        }
    }

    pub(crate) fn scope(&self) -> ScopeOptions {
        ScopeOptions {
            derived_folders: self.names(table::DERIVED_FOLDERS),
            precious_file_max: self.number(table::PRECIOUS_FILE_MAX),
            precious_total_max: self.number(table::PRECIOUS_TOTAL),
            ..ScopeOptions::default()
        }
    }

    /// Whether agents' states are kept as files that other programs can read.
    pub(crate) fn states_medium(&self) -> StatesMedium {
        match self.setting(table::STATES_AS_JSON).value {
            Value::Flag(true) => StatesMedium::Json,
            _ => StatesMedium::Sqlite,
        }
    }

    /// Prompts in `metadata.json`, and points on the first page of the rewind menu.
    pub(crate) fn checkpoint_keep_count(&self) -> usize {
        usize::try_from(self.number(table::KEEP_COUNT)).unwrap_or(usize::MAX).max(1)
    }

    pub(crate) fn double_esc_ms(&self) -> u64 {
        self.number(table::DOUBLE_ESC)
    }

    pub(crate) fn rewind_key(&self) -> &str {
        match &self.setting(table::REWIND_KEY).value {
            Value::Word(word) => word,
            _ => unreachable!("the table says that it is a word"),
        }
    }

    /// How durable recording is.
    pub(crate) fn durability(&self) -> Durability {
        match self.setting(table::DURABILITY).value {
            Value::Durability(durability) => durability,
            _ => unreachable!("the table says what it is"),
        }
    }

    /// Whether a model may rewind without asking the user.
    pub(crate) fn allow_agent_rewind(&self) -> bool {
        self.setting(table::ALLOW_AGENT_REWIND).value == Value::Flag(true)
    }

    /// Whether an agent's model is told what was taken back.
    pub(crate) fn tells_agent(&self) -> bool {
        self.setting(table::TELL_AGENT).value == Value::Flag(true)
    }

    /// Whether an agent's model is warned before it overwrites what others changed.
    pub(crate) fn warns_on_overwrite(&self) -> bool {
        self.setting(table::WARN_ON_OVERWRITE).value == Value::Flag(true)
    }

    /// Whether a settings file turns recording on.
    pub(crate) fn is_enabled_by_a_file(&self) -> bool {
        self.is_enabled() && matches!(self.setting(table::ENABLED).origin, Origin::File(_))
    }

    /// The retention policy.
    pub(crate) fn retention(&self) -> Policy {
        Policy {
            points_per_session: usize::try_from(self.points_per_session()).unwrap_or(usize::MAX),
            archive_days: u32::try_from(self.archive_days()).unwrap_or(u32::MAX),
            max_bytes: self.max_store_bytes(),
        }
    }

    /// The maximum size of a store; 0: unlimited.
    pub(crate) fn max_store_bytes(&self) -> u64 {
        self.number(table::MAX_STORE)
    }

    /// The maximum size of all stores; 0: unlimited.
    pub(crate) fn max_home_bytes(&self) -> u64 {
        self.number(table::MAX_HOME)
    }

    pub(crate) fn hook_deadline(&self) -> Duration {
        Duration::from_millis(self.number(table::HOOK_DEADLINE))
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            edit_capture_max: self.number(table::EDIT_CAPTURE_MAX),
            recorder_patience: Duration::from_millis(self.number(table::HOOK_DEADLINE)),
            ..Limits::default()
        }
    }

    /// How long a scan may keep an agent waiting.
    pub(crate) fn scan_budget(&self) -> Duration {
        Duration::from_millis(self.number(table::SCAN_BUDGET))
    }

    /// From this many files on, the scan continues in the background.
    pub(crate) fn background_scan_files(&self) -> u64 {
        self.number(table::BACKGROUND_SCAN)
    }

    /// [`Self::limits`] while an agent waits: after two thirds of the time no more file contents are read;
    /// the rest is for listing names.
    pub(crate) fn agent_limits(&self) -> Limits {
        let budget = self.scan_budget();
        Limits {
            scan_budget: Some(budget * 2 / 3),
            scan_overrun: budget / 3,
            barrier_patience: budget,
            ..self.limits()
        }
    }
}

/// The user's settings file.
pub(crate) fn user_file(home: &Path) -> PathBuf {
    home.join("settings.json")
}

/// The project's settings file.
pub(crate) fn project_file(root: &Path) -> PathBuf {
    root.join(".takeback").join("settings.json")
}

fn unusable(path: &Path, error: SettingsFileError) -> CommandError {
    match error {
        SettingsFileError::Wrong(why) => {
            CommandError::new(Kind::Usage, format!("{} is invalid: {why}", path.display()))
                .hint("Fix it (`takeback config edit`) or move it away.")
        }
        SettingsFileError::Unread(source) => {
            CommandError::new(Kind::Error, UnreadableFile { path: path.to_owned(), source })
        }
    }
}

/// The text of the settings file `path` with another value for `key`, or without the key.
pub(crate) fn changed_text(
    path: &Path,
    text: &str,
    key: &Key,
    value: Option<&Value>,
) -> Result<String, CommandError> {
    change::with_value(text, key.name, value).map_err(|error| unusable(path, error))
}

/// Checks the text of a settings file: every key it has is one that exists, with a value it takes. Returns
/// what is wrong.
pub(crate) fn problems_of(text: &[u8]) -> Vec<String> {
    let keys = match file::parse(text) {
        Ok(keys) => keys,
        Err(error) => return vec![error.to_string()],
    };
    let wrong = |(name, value): (&String, &serde_json::Value)| match table::key(name) {
        None => Some(match table::nearest(name) {
            Some(nearest) => format!("there is no setting {name}; did you mean {nearest}?"),
            None => format!("there is no setting {}", shorten(name, table::LONGEST)),
        }),
        Some(key) => match key.read_json(value) {
            None => Some(format!("{name} must be {}", key.takes())),
            Some(value) => key.refuses(&value).map(|why| format!("{name} {why}")),
        },
    };
    keys.iter().filter_map(wrong).collect()
}

impl Settings {
    /// Why a project's file may not set this value; `None` if it may.
    pub(crate) fn project_refusal(&self, key: &Key, value: &Value) -> Option<String> {
        let own = Setting { refused: None, ..self.setting(key.name).clone() };
        let wanted = serde_json::json!(value.answer());
        with_project(key, own, &wanted, Path::new("")).refused.map(|refused| refused.why)
    }
}

/// Warns about some of the unknown keys: there may be many, and long ones.
fn unknown_keys(file: &Path, keys: &Keys) -> Vec<String> {
    const MOST: usize = 5;
    let unknown: Vec<&String> = keys.keys().filter(|name| table::key(name).is_none()).collect();
    let file = file.display();
    let mut warnings: Vec<String> = unknown
        .iter()
        .take(MOST)
        .map(|name| match table::nearest(name) {
            Some(nearest) => format!("{file}: there is no setting {name}; did you mean {nearest}?"),
            None => format!("{file}: there is no setting {}", shorten(name, table::LONGEST)),
        })
        .collect();
    if unknown.len() > MOST {
        let more = unknown.len() - MOST;
        warnings.push(format!("{file}: and {more} more unknown settings"));
    }
    warnings
}

/// Refused settings that need an immediate warning: the project tried to turn recording off, or has an
/// invalid value.
fn refusals(all: &[Setting]) -> Vec<String> {
    all.iter()
        .filter_map(|setting| {
            let RefusedValue { file, why, .. } = setting.refused.as_ref()?;
            let is_urgent = setting.name == table::ENABLED || why.starts_with(NOT_A_VALUE);
            let file = file.display();
            is_urgent.then(|| format!("{file}: {} has no effect: {why}", setting.name))
        })
        .collect()
}

/// The user's value: from the environment, their file, or the default.
fn of_user(
    key: &'static Key,
    in_file: Option<&serde_json::Value>,
    file: &Path,
) -> Result<Setting, CommandError> {
    let variable = key.variable();
    let (value, origin) = if let Some(text) = environment(&variable) {
        let value = text.to_str().and_then(|text| key.read_text(text)).ok_or_else(|| {
            CommandError::new(Kind::Usage, format!("{variable} must be {}", key.takes()))
        })?;
        (value, Origin::Environment(variable))
    } else if let Some(value) = in_file {
        let value = key.read_json(value).ok_or_else(|| {
            let text = format!("{}: {} must be {}", file.display(), key.name, key.takes());
            CommandError::new(Kind::Usage, text).hint("Fix it: `takeback config edit`.")
        })?;
        (value, Origin::File(file.to_owned()))
    } else {
        ((key.default)(), Origin::Default)
    };
    Ok(Setting { name: key.name, value, origin, refused: None })
}

const NOT_A_VALUE: &str = "it must be";

/// Applies the project's value to a user's setting.
fn with_project(
    key: &Key,
    mut setting: Setting,
    wanted: &serde_json::Value,
    file: &Path,
) -> Setting {
    let may = match (key.project, key.read_json(wanted)) {
        (_, None) => Err(format!("{NOT_A_VALUE} {}", key.takes())),
        (Project::Nothing, Some(_)) => Err("only your own settings may set it".to_owned()),
        (Project::Raise, Some(Value::Flag(false))) if setting.value == Value::Flag(true) => {
            Err("a project cannot switch recording off".to_owned())
        }
        (Project::Raise, Some(Value::Number(wanted))) if matches!(setting.value, Value::Number(own) if wanted < own) => {
            Err("a project can only raise it".to_owned())
        }
        (Project::Set, Some(Value::Number(0))) => {
            Err("a project can only choose 1 or more".to_owned())
        }
        (Project::Raise | Project::Set, Some(value)) => Ok(value),
        (Project::Add, Some(value)) => Ok(added(&setting.value, value)),
    };
    match may {
        Ok(value) if value == setting.value && setting.origin != Origin::Default => {}
        Ok(value) => {
            setting.value = value;
            setting.origin = Origin::File(file.to_owned());
        }
        Err(why) => {
            setting.refused =
                Some(RefusedValue { value: wanted.clone(), file: file.to_owned(), why });
        }
    }
    setting
}

/// The user's names, plus the project's additional ones.
fn added(own: &Value, more: Value) -> Value {
    match (own, more) {
        (Value::Names(own), Value::Names(more)) => {
            let mut known: HashSet<String> = own.iter().cloned().collect();
            let mut names = own.clone();
            names.extend(more.into_iter().filter(|name| known.insert(name.clone())));
            Value::Names(names)
        }
        (own, _) => own.clone(),
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Environment(variable) => f.write_str(variable),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(key: &'static Key, value: Value) -> Setting {
        let origin = Origin::File(PathBuf::from("user"));
        Setting { name: key.name, value, origin, refused: None }
    }

    #[test]
    fn every_key_can_be_read_as_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::load(folder.path(), folder.path()).unwrap();
        assert_eq!(settings.tools(), takeback_agents::default_tools());
        assert_eq!(settings.retention(), Policy::default());
        assert_eq!(settings.limits().edit_capture_max, 1 << 20);
        assert_eq!(settings.limits().recorder_patience, Duration::from_secs(1));
        assert_eq!(settings.limits().scan_budget, None);
        let limits = settings.agent_limits();
        assert_eq!(limits.scan_budget, Some(Duration::from_secs(10) * 2 / 3));
        assert_eq!(limits.scan_overrun, Duration::from_secs(10) / 3);
        assert_eq!(settings.scope().precious_total_max, 256 << 20);
        assert!(settings.is_enabled() && settings.warnings.is_empty());
    }

    #[test]
    fn a_project_only_ever_covers_more() {
        let names = |names: &[&str]| Value::Names(names.iter().map(|n| (*n).to_owned()).collect());
        let raise = "a project can only raise it";
        let nothing = "only your own settings may set it";
        let cases = [
            (
                table::ENABLED,
                Value::Flag(true),
                json!(false),
                Err("a project cannot switch recording off"),
            ),
            (table::ENABLED, Value::Flag(false), json!(true), Ok(Value::Flag(true))),
            (table::POINTS_PER_SESSION, Value::Number(50), json!(80), Ok(Value::Number(80))),
            (table::POINTS_PER_SESSION, Value::Number(50), json!(20), Err(raise)),
            (
                table::POINTS_PER_SESSION,
                Value::Number(50),
                json!("80"),
                Err("it must be a whole number"),
            ),
            (
                table::POINTS_PER_SESSION,
                Value::Number(50),
                json!(-1),
                Err("it must be a whole number"),
            ),
            (table::ARCHIVE_DAYS, Value::Number(7), json!(0), Err(raise)),
            (table::EDIT_CAPTURE_MAX, Value::Number(9), json!(8), Err(raise)),
            (table::PRECIOUS_FILE_MAX, Value::Number(9), json!(0), Err(raise)),
            (table::PRECIOUS_TOTAL, Value::Number(9), json!(0), Err(raise)),
            (table::SHELL_TOOLS, names(&["a"]), json!(["b", "a"]), Ok(names(&["a", "b"]))),
            (table::EDIT_TOOLS, names(&["a"]), json!(["b"]), Err(nothing)),
            (table::READ_ONLY_TOOLS, names(&["a"]), json!(["b"]), Err(nothing)),
            (table::DERIVED_FOLDERS, names(&[]), json!(["src"]), Err(nothing)),
            (table::HOOK_DEADLINE, Value::Number(1000), json!(1), Err(nothing)),
            (table::ALLOW_AGENT_REWIND, Value::Flag(false), json!(true), Err(nothing)),
        ];
        for (name, own, wanted, expected) in cases {
            let key = table::key(name).unwrap();
            let before = user(key, own);
            let after = with_project(key, before.clone(), &wanted, Path::new("project"));
            let file = PathBuf::from("project");
            let expected = match expected {
                Ok(value) => Setting { value, origin: Origin::File(file), ..before },
                Err(why) => {
                    let refused = RefusedValue { value: wanted.clone(), file, why: why.to_owned() };
                    Setting { refused: Some(refused), ..before }
                }
            };
            assert_eq!(after, expected, "{name} {wanted}");
        }
    }

    #[test]
    fn every_key_has_its_variable() {
        let variables: Vec<String> = KEYS.iter().map(Key::variable).collect();
        assert_eq!(variables[1], "TAKEBACK_POINTS_PER_SESSION");
        assert_eq!(variables[12], "TAKEBACK_HOOK_DEADLINE_MS");
    }

    #[test]
    fn the_nearest_key_is_named() {
        for (wrong, right) in [
            ("pointPerSession", "pointsPerSession"),
            ("enablefilecheckpointing", "enableFileCheckpointing"),
            ("maxStoreByte", "maxStoreBytes"),
        ] {
            assert_eq!(table::nearest(wrong), Some(right));
        }
        assert_eq!(table::nearest(&"pointsPerSession".repeat(5)), None, "too long for a typo");
    }
}
