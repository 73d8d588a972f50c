//! Which paths a request is limited to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use takeback_store::WorkPath;

use super::error::RewindError;

/// Paths and globs that a request is limited to; a folder includes everything in it.
#[derive(Debug)]
pub struct PathFilter(Option<GlobSet>);

impl PathFilter {
    /// A filter of globs from the root; without any it includes every path.
    pub fn new(patterns: &[String]) -> Result<Self, RewindError> {
        if patterns.is_empty() {
            return Ok(Self(None));
        }
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let failed = |source| RewindError::Pattern { pattern: pattern.clone(), source };
            let plain = pattern.trim_end_matches('/').trim_start_matches("./");
            for text in [plain.to_owned(), format!("{plain}/**")] {
                let glob =
                    GlobBuilder::new(&text).literal_separator(true).build().map_err(failed)?;
                set.add(glob);
            }
        }
        let pattern = patterns.join(" ");
        let set = set.build().map_err(|source| RewindError::Pattern { pattern, source })?;
        Ok(Self(Some(set)))
    }

    /// Whether `path` or a folder above it matches.
    #[must_use]
    pub fn includes(&self, path: &WorkPath) -> bool {
        let path = OsStr::from_bytes(path.as_bytes());
        self.0.as_ref().is_none_or(|set| set.is_match(path))
    }
}
