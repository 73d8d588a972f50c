//! Reads a `settings.json`: the user's, which must be valid, and the project's, which is not trusted and
//! never stops a command. Comments and trailing commas are allowed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use rustix::fs::OFlags;
use serde_json::{Map, Value};

pub(super) type Keys = Map<String, Value>;

/// Why a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsFileError {
    /// It is not a file, or its contents are invalid.
    #[error("{0}")]
    Wrong(String),
    /// It could not be read; its contents may be valid.
    #[error("it cannot be read: {0}")]
    Unread(io::Error),
}

impl From<io::Error> for SettingsFileError {
    fn from(error: io::Error) -> Self {
        Self::Unread(error)
    }
}

/// The keys of the file at `path`; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Keys, SettingsFileError> {
    match text(path)? {
        Some(text) => parse(&text),
        None => Ok(Keys::new()),
    }
}

/// The keys of a file with these contents.
pub(super) fn parse(text: &[u8]) -> Result<Keys, SettingsFileError> {
    // Most files have no comments, and this parser is the faster one.
    let parsed = serde_json::from_slice(text).or_else(|error| with_comments(text).ok_or(error));
    match parsed {
        Ok(Value::Object(keys)) => Ok(keys),
        Ok(_) => Err(SettingsFileError::Wrong("it is not a JSON object".to_owned())),
        Err(error) => Err(SettingsFileError::Wrong(error.to_string())),
    }
}

fn with_comments(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    CstRootNode::parse(text, &OPTIONS).ok()?.to_serde_value()
}

/// JSON with comments and trailing commas, and nothing else.
pub(super) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn text(path: &Path) -> Result<Option<Vec<u8>>, SettingsFileError> {
    const MOST: u64 = 1 << 20;
    // Opening a pipe must not block.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file: File = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(error.into()),
            };
        }
    };
    if !file.metadata()?.is_file() {
        return Err(SettingsFileError::Wrong("it is not a file".to_owned()));
    }
    let mut text = Vec::new();
    file.take(MOST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(SettingsFileError::Wrong("it is larger than 1 MiB".to_owned()));
    }
    Ok(Some(text))
}
