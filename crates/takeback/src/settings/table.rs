//! Every setting: its default, its meaning, and what a project's file may do with it. The single source for
//! `config`, for warnings, and for parsing.

use takeback_agents::default_tools;
use takeback_core::retention::Policy;
use takeback_core::worktree::ScopeOptions;
use takeback_core::{Limits, edit_distance};
use takeback_store::Durability;

use crate::answers::SettingValue;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name in `settings.json`.
    pub(crate) name: &'static str,
    pub(crate) default: fn() -> Value,
    pub(crate) project: Project,
    pub(crate) meaning: &'static str,
}

/// What a project's file may do with a setting. It can never reduce what is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// Raise it above the user's value; `true` is higher than `false`.
    Raise,
    /// Add names to the user's.
    Add,
    /// Set any value: protection does not depend on it.
    Set,
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Flag(bool),
    Number(u64),
    Names(Vec<String>),
    Word(String),
    Durability(Durability),
}

pub(crate) const ENABLED: &str = "enableFileCheckpointing";
pub(crate) const POINTS_PER_SESSION: &str = "pointsPerSession";
pub(crate) const ARCHIVE_DAYS: &str = "archiveDays";
pub(crate) const EDIT_CAPTURE_MAX: &str = "editCaptureMaxBytes";
pub(crate) const EDIT_TOOLS: &str = "editTools";
pub(crate) const SHELL_TOOLS: &str = "shellTools";
pub(crate) const READ_ONLY_TOOLS: &str = "readOnlyTools";
pub(crate) const PRECIOUS_FILE_MAX: &str = "preciousFileMaxBytes";
pub(crate) const PRECIOUS_TOTAL: &str = "preciousTotalBytes";
pub(crate) const DERIVED_FOLDERS: &str = "derivedFolders";
pub(crate) const HOOK_DEADLINE: &str = "hookDeadlineMs";
pub(crate) const SCAN_BUDGET: &str = "scanBudgetMs";
pub(crate) const BACKGROUND_SCAN: &str = "backgroundScanFiles";
pub(crate) const STATES_AS_JSON: &str = "statesAsJsonFiles";
pub(crate) const KEEP_COUNT: &str = "checkpointKeepCount";
pub(crate) const DOUBLE_ESC: &str = "doubleEscMs";
pub(crate) const REWIND_KEY: &str = "rewindKey";
pub(crate) const ALLOW_AGENT_REWIND: &str = "allowAgentRewind";
pub(crate) const DURABILITY: &str = "durability";
pub(crate) const TELL_AGENT: &str = "tellAgent";
pub(crate) const WARN_ON_OVERWRITE: &str = "warnOnOverwrite";

pub(crate) const MAX_STORE: &str = "maxStoreBytes";
pub(crate) const MAX_HOME: &str = "maxHomeBytes";

pub(crate) const KEYS: [Key; 23] = [
    Key {
        name: ENABLED,
        default: || Value::Flag(true),
        project: Project::Raise,
        meaning: "record changes and make points",
    },
    Key {
        name: POINTS_PER_SESSION,
        default: || Value::Number(50),
        project: Project::Raise,
        meaning: "points kept per session; the oldest are dropped first",
    },
    Key {
        name: ARCHIVE_DAYS,
        default: || Value::Number(7),
        project: Project::Raise,
        meaning: "days an archived session is kept",
    },
    Key {
        name: MAX_STORE,
        default: || Value::Number(Policy::default().max_bytes),
        project: Project::Nothing,
        meaning: "maximum size of a store in bytes; oldest points are dropped first (0 = unlimited)",
    },
    Key {
        name: MAX_HOME,
        default: || Value::Number(20 << 30),
        project: Project::Nothing,
        meaning: "maximum size of all stores in bytes (0 = unlimited)",
    },
    Key {
        name: EDIT_CAPTURE_MAX,
        default: || Value::Number(Limits::default().edit_capture_max),
        project: Project::Raise,
        meaning: "maximum size of a file that is saved before an edit, unless a point already has it",
    },
    // An unknown tool may write anything; calling it an edit tool would reduce what is scanned.
    Key {
        name: EDIT_TOOLS,
        default: || Value::Names(default_tools().edit),
        project: Project::Nothing,
        meaning: "tools that write only the paths they name",
    },
    Key {
        name: SHELL_TOOLS,
        default: || Value::Names(default_tools().shell),
        project: Project::Add,
        meaning: "tools that may write anywhere; unknown tools count as such",
    },
    Key {
        name: READ_ONLY_TOOLS,
        default: || Value::Names(default_tools().read_only),
        project: Project::Nothing,
        meaning: "tools that write nothing",
    },
    Key {
        name: PRECIOUS_FILE_MAX,
        default: || Value::Number(ScopeOptions::default().precious_file_max),
        project: Project::Raise,
        meaning: "maximum size of an ignored file that is still recorded",
    },
    Key {
        name: PRECIOUS_TOTAL,
        default: || Value::Number(ScopeOptions::default().precious_total_max),
        project: Project::Raise,
        meaning: "maximum size of all recorded ignored files together",
    },
    Key {
        name: DERIVED_FOLDERS,
        default: || Value::Names(Vec::new()),
        project: Project::Nothing,
        meaning: "more build output folders that are not recorded",
    },
    Key {
        name: HOOK_DEADLINE,
        default: || {
            let patience = Limits::default().recorder_patience.as_millis();
            Value::Number(u64::try_from(patience).unwrap_or(u64::MAX))
        },
        project: Project::Nothing,
        meaning: "how long an agent waits for a locked workspace, in milliseconds",
    },
    Key {
        name: SCAN_BUDGET,
        default: || Value::Number(10_000),
        project: Project::Nothing,
        meaning: "how long a scan may keep an agent waiting, in milliseconds",
    },
    Key {
        name: BACKGROUND_SCAN,
        default: || Value::Number(20_000),
        project: Project::Nothing,
        meaning: "scan in the background once a tree has about this many files",
    },
    Key {
        name: STATES_AS_JSON,
        default: || Value::Flag(false),
        project: Project::Nothing,
        meaning: "keep agents' states in JSON files instead of the store",
    },
    Key {
        name: KEEP_COUNT,
        default: || Value::Number(10),
        project: Project::Set,
        meaning: "prompts in metadata.json, and points on the first page of the rewind menu",
    },
    Key {
        name: DOUBLE_ESC,
        default: || Value::Number(300),
        project: Project::Nothing,
        meaning: "longest time between the two presses of the rewind key, in milliseconds",
    },
    Key {
        name: REWIND_KEY,
        default: || Value::Word("esc".to_owned()),
        project: Project::Nothing,
        meaning: "key that opens the rewind menu when pressed twice",
    },
    Key {
        name: ALLOW_AGENT_REWIND,
        default: || Value::Flag(false),
        project: Project::Nothing,
        meaning: "let a model rewind over MCP without asking you",
    },
    Key {
        name: TELL_AGENT,
        default: || Value::Flag(true),
        project: Project::Nothing,
        meaning: "tell the agent with its next prompt which of its changes were taken back",
    },
    Key {
        name: WARN_ON_OVERWRITE,
        default: || Value::Flag(false),
        project: Project::Raise,
        meaning: "warn the agent before it edits a file that others changed since it last knew it",
    },
    Key {
        name: DURABILITY,
        default: || Value::Durability(Durability::default()),
        project: Project::Nothing,
        meaning: "how recording syncs to disk: full, normal or off; a power loss may cost the last seconds",
    },
];

pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// A longer name is not a typo.
pub(crate) const LONGEST: usize = 64;

/// The known key closest to `name`; `None` if `name` is too long to be a typo.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST {
        return None;
    }
    let least = |key: &&&'static str| edit_distance(&key.to_lowercase(), &name.to_lowercase());
    let names: Vec<&'static str> = KEYS.iter().map(|key| key.name).collect();
    names.iter().min_by_key(least).copied()
}

impl Key {
    /// `pointsPerSession`: `TAKEBACK_POINTS_PER_SESSION`.
    pub(crate) fn variable(&self) -> String {
        let mut variable = "TAKEBACK_".to_owned();
        for c in self.name.chars() {
            if c.is_uppercase() {
                variable.push('_');
            }
            variable.push(c.to_ascii_uppercase());
        }
        variable
    }

    /// What kind of value it takes, in words.
    pub(crate) fn takes(&self) -> &'static str {
        match (self.default)() {
            Value::Flag(_) => "true or false",
            Value::Number(_) => "a whole number",
            Value::Names(_) => "a list of names",
            Value::Word(_) => "a word",
            Value::Durability(_) => "full, normal or off",
        }
    }

    /// Why `config set` does not write this value, which is of the right kind, although a file may have it:
    /// it would count as another one.
    pub(crate) fn refuses(&self, value: &Value) -> Option<String> {
        match (self.name, value) {
            (POINTS_PER_SESSION | KEEP_COUNT, Value::Number(0)) => {
                Some("must be 1 or more".to_owned())
            }
            (ARCHIVE_DAYS, Value::Number(days)) if *days > u64::from(u32::MAX) => {
                Some(format!("must be at most {}", u32::MAX))
            }
            (REWIND_KEY, Value::Word(word)) if takeback_tui::parse_key(word).is_err() => Some(
                "must be esc, tab, f1 to f12, ctrl- with a letter other than c, d, h, i, j or m, or \
                 alt- with a character"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// A value from a file; `None` if it is of the wrong kind.
    pub(crate) fn read_json(&self, value: &serde_json::Value) -> Option<Value> {
        match (self.default)() {
            Value::Flag(_) => value.as_bool().map(Value::Flag),
            Value::Number(_) => value.as_u64().map(Value::Number),
            Value::Names(_) => {
                let name = |name: &serde_json::Value| name.as_str().map(str::to_owned);
                value.as_array()?.iter().map(name).collect::<Option<_>>().map(Value::Names)
            }
            Value::Word(_) => value.as_str().map(|word| Value::Word(word.to_owned())),
            Value::Durability(_) => value.as_str().and_then(durability),
        }
    }

    /// A value from the environment: a list is written with commas.
    pub(crate) fn read_text(&self, text: &str) -> Option<Value> {
        match (self.default)() {
            Value::Flag(_) => match text {
                "true" | "1" => Some(Value::Flag(true)),
                "false" | "0" => Some(Value::Flag(false)),
                _ => None,
            },
            Value::Number(_) => text.parse().ok().map(Value::Number),
            Value::Names(_) => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                Some(Value::Names(names.map(str::to_owned).collect()))
            }
            Value::Word(_) => Some(Value::Word(text.to_owned())),
            Value::Durability(_) => durability(text),
        }
    }
}

fn durability(word: &str) -> Option<Value> {
    let mut levels = Durability::ALL.into_iter();
    levels.find(|level| level.name() == word).map(Value::Durability)
}

impl Value {
    pub(crate) fn answer(&self) -> SettingValue {
        match self {
            Self::Flag(flag) => SettingValue::Flag(*flag),
            Self::Number(number) => SettingValue::Number(*number),
            Self::Names(names) => SettingValue::Names(names.clone()),
            Self::Word(word) => SettingValue::Text(word.clone()),
            Self::Durability(durability) => SettingValue::Text(durability.name().to_owned()),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Names(names) => f.write_str(&names.join(", ")),
            Self::Word(word) => f.write_str(word),
            Self::Durability(durability) => f.write_str(durability.name()),
        }
    }
}
