//! What `rewind_files` answers, and what its errors mean.

use serde_json::Value;

use super::wire::WireRewound;
use crate::talk::{OwnFiles, OwnFilesError};

pub(super) fn rewound(answer: Result<Value, String>) -> Result<OwnFiles, OwnFilesError> {
    let answer = answer.map_err(|error| why_not(&error))?;
    let rewound: WireRewound =
        serde_json::from_value(answer).map_err(|error| OwnFilesError::Failed(error.to_string()))?;
    match rewound {
        WireRewound { can_rewind: true, files_changed, .. } => {
            Ok(OwnFiles { paths: files_changed })
        }
        WireRewound { error, .. } => Err(why_not(&error.unwrap_or_default())),
    }
}

fn why_not(error: &str) -> OwnFilesError {
    if error.contains("No file checkpoint found") {
        OwnFilesError::NoCheckpoint
    } else if error.contains("not enabled") {
        OwnFilesError::NotEnabled
    } else {
        OwnFilesError::Failed(error.trim_start_matches("Failed to rewind: ").to_owned())
    }
}
