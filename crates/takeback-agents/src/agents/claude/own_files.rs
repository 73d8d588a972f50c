//! The answers of `rewind_files`, and the meaning of its errors.

use serde_json::Value;

use super::wire::WireRewound;
use crate::chat_agent::{NativeFiles, NativeFilesError};

pub(super) fn rewound(answer: Result<Value, String>) -> Result<NativeFiles, NativeFilesError> {
    let answer = answer.map_err(|error| why_not(&error))?;
    let rewound: WireRewound = serde_json::from_value(answer)
        .map_err(|error| NativeFilesError::Failed(error.to_string()))?;
    match rewound {
        WireRewound { can_rewind: true, files_changed, .. } => {
            Ok(NativeFiles { paths: files_changed })
        }
        WireRewound { error, .. } => Err(why_not(&error.unwrap_or_default())),
    }
}

fn why_not(error: &str) -> NativeFilesError {
    if error.contains("No file checkpoint found") {
        NativeFilesError::NoCheckpoint
    } else if error.contains("not enabled") {
        NativeFilesError::NotEnabled
    } else {
        NativeFilesError::Failed(error.trim_start_matches("Failed to rewind: ").to_owned())
    }
}
