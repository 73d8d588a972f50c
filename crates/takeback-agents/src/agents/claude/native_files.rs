//! The answers of `rewind_files`, and the meaning of its errors.

use serde_json::Value;

use super::wire::WireRewindAnswer;
use crate::chat_agent::{NativeFiles, NativeFilesError};

pub(super) fn parse_rewind_answer(
    answer: Result<Value, String>,
) -> Result<NativeFiles, NativeFilesError> {
    let answer = answer.map_err(|error| to_error(&error))?;
    let rewound: WireRewindAnswer = serde_json::from_value(answer)
        .map_err(|error| NativeFilesError::Failed(error.to_string()))?;
    match rewound {
        WireRewindAnswer { can_rewind: true, files_changed, .. } => {
            Ok(NativeFiles { paths: files_changed })
        }
        WireRewindAnswer { error, .. } => Err(to_error(&error.unwrap_or_default())),
    }
}

fn to_error(error: &str) -> NativeFilesError {
    if error.contains("No file checkpoint found") {
        NativeFilesError::NoCheckpoint
    } else if error.contains("not enabled") {
        NativeFilesError::NotEnabled
    } else {
        NativeFilesError::Failed(error.trim_start_matches("Failed to rewind: ").to_owned())
    }
}
