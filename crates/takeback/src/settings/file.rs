//! Reading a `settings.json`: the user's, which must make sense, and the project's, which anybody may
//! have written and which never keeps a command from its work.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Map, Value};

pub(super) type Keys = Map<String, Value>;

/// What keeps a settings file from being used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// What is in it, or what it is, in words.
    #[error("{0}")]
    Wrong(String),
    /// The file may be as it should be.
    #[error("it cannot be read: {0}")]
    Unread(io::Error),
}

impl From<io::Error> for Unusable {
    fn from(error: io::Error) -> Self {
        Self::Unread(error)
    }
}

/// The keys of the file at `path`; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Keys, Unusable> {
    match text(path)? {
        Some(text) => match serde_json::from_slice(&text) {
            Ok(Value::Object(keys)) => Ok(keys),
            Ok(_) => Err(Unusable::Wrong("it is not a JSON object".to_owned())),
            Err(error) => Err(Unusable::Wrong(error.to_string())),
        },
        None => Ok(Keys::new()),
    }
}

fn text(path: &Path) -> Result<Option<Vec<u8>>, Unusable> {
    const MOST: u64 = 1 << 20;
    // A pipe in its place must not keep anybody waiting.
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
        return Err(Unusable::Wrong("it is not a file".to_owned()));
    }
    let mut text = Vec::new();
    file.take(MOST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(Unusable::Wrong("it is larger than 1 MiB".to_owned()));
    }
    Ok(Some(text))
}
