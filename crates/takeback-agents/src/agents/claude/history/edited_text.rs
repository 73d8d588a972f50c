//! The contents of a file after an edit, from the program's notes about the edit.

use std::path::{Path, PathBuf};

use takeback_core::exchange::SavedFile;

use super::wire::WireToolResult;

/// A file's text after an edit, with line feeds even if the file has other line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditedText(String);

impl EditedText {
    /// `None`: unknown, because the file is large or the tool wrote none.
    pub(super) fn of(result: WireToolResult) -> Option<(PathBuf, Self)> {
        match result {
            WireToolResult::Write(write) => Some((write.file_path.into(), Self(write.content))),
            WireToolResult::Edit(edit) => {
                let before = edit.original_file?;
                let after = if edit.replace_all {
                    before.replace(&edit.old_string, &edit.new_string)
                } else {
                    before.replacen(&edit.old_string, &edit.new_string, 1)
                };
                (before != after).then(|| (edit.file_path.into(), Self(after)))
            }
            WireToolResult::Other(_) => None,
        }
    }

    /// The file's bytes after the edit, if its contents `before` determine how the text was
    /// encoded.
    pub(super) fn kept(&self, before: &SavedFile) -> Option<SavedFile> {
        let (bytes, mode) = match before {
            // The usual mode of a new file.
            SavedFile::Absent => return Some(self.as_bytes(LineEnd::Lf, 0o644)),
            SavedFile::Copy(copy) => read(copy)?,
            SavedFile::Bytes { bytes, mode } => (bytes.clone(), *mode),
            SavedFile::Lost => return None,
        };
        let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.starts_with('\u{feff}'))?;
        Some(self.as_bytes(LineEnd::of(text)?, mode))
    }

    fn as_bytes(&self, ends: LineEnd, mode: u32) -> SavedFile {
        let bytes = match ends {
            LineEnd::Lf => self.0.clone(),
            LineEnd::CrLf => self.0.replace("\r\n", "\n").replace('\n', "\r\n"),
        };
        SavedFile::Bytes { bytes: bytes.into_bytes(), mode }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Lf,
    CrLf,
}

impl LineEnd {
    /// `None`: it has both.
    fn of(text: &str) -> Option<Self> {
        let (all, windows) = (text.matches('\n').count(), text.matches("\r\n").count());
        match windows {
            0 => Some(Self::Lf),
            _ if windows == all => Some(Self::CrLf),
            _ => None,
        }
    }
}

/// A copy's bytes and permissions.
fn read(copy: &Path) -> Option<(Vec<u8>, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let meta = std::fs::symlink_metadata(copy).ok().filter(std::fs::Metadata::is_file)?;
    Some((std::fs::read(copy).ok()?, meta.permissions().mode() & 0o777))
}
