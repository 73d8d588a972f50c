//! Reading a `settings.json`: the user's, which must make sense, and the project's, which anybody may
//! have written and which never keeps a command from its work.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Map, Value};

pub(super) type Keys = Map<String, Value>;

/// What keeps a settings file from being used, in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusable(pub(super) String);

/// The keys of the file at `path`; none if there is no file.
pub(super) fn read(path: &Path) -> Result<Keys, Unusable> {
    match text(path) {
        Ok(Some(text)) => match serde_json::from_slice(&text) {
            Ok(Value::Object(keys)) => Ok(keys),
            Ok(_) => Err(Unusable("it is not a JSON object".to_owned())),
            Err(error) => Err(Unusable(error.to_string())),
        },
        Ok(None) => Ok(Keys::new()),
        Err(error) => Err(Unusable(error.to_string())),
    }
}

fn text(path: &Path) -> io::Result<Option<Vec<u8>>> {
    const MOST: u64 = 1 << 20;
    // A pipe in its place must not keep anybody waiting.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file: File = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(error),
            };
        }
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = Vec::new();
    file.take(MOST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(Some(text))
}
