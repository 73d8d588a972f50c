//! Documents: one file per key, below the folder of its category.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::file::{self, io_error};
use super::folder::DamagePolicy;
use super::record::check_depth;
use super::{JsonStates, file_name, stem};
use crate::disk;
use crate::state::{Category, DocumentKey, StateError};

impl JsonStates {
    pub(super) fn write_document(
        &self,
        category: Category,
        key: &DocumentKey,
        document: &Value,
    ) -> Result<(), StateError> {
        check_depth("document", document)?;
        let folder = self.make_folder(category.name())?;
        let part = file_name::file_name_part(key.as_str());
        let path = folder.join(format!("{part}.json"));
        let _held = file::lock(&path, self.lock_timeout)?;
        let text = if file_name::is_cut(&part) {
            let fields = json!({ "key": key.as_str(), "document": document });
            let Value::Object(fields) = fields else { unreachable!("it is one") };
            file::text(fields)
        } else {
            file::pretty(document)
        };
        disk::replace_private_file_durably(&path, &text).map_err(io_error(&path, "writing it"))?;
        if let Some(unencoded) = unencoded_document(&folder, key) {
            file::remove(&unencoded)?;
        }
        Ok(())
    }

    pub(super) fn read_document(
        &self,
        category: Category,
        key: &DocumentKey,
    ) -> Result<Option<Value>, StateError> {
        let Some(path) = self.document_path(category, key)? else {
            return Ok(None);
        };
        Ok(self
            .read_stored_document(&path, DamagePolicy::LockAndSetAside)?
            .map(|(_, document)| document))
    }

    pub(super) fn list_documents(
        &self,
        category: Category,
    ) -> Result<Vec<DocumentKey>, StateError> {
        let mut keys = Vec::new();
        for path in self.files(category.name())? {
            let Some(part) = stem(&path) else { continue };
            let key = if file_name::is_cut(part) {
                self.read_stored_document(&path, DamagePolicy::LockAndSetAside)?
                    .and_then(|(key, _)| key)
            } else {
                file_name::key_of(part)
            };
            keys.extend(key.and_then(|key| DocumentKey::new(key).ok()));
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    pub(super) fn remove_document(
        &self,
        category: Category,
        key: &DocumentKey,
    ) -> Result<bool, StateError> {
        let Some(path) = self.document_path(category, key)? else {
            return Ok(false);
        };
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(false);
        }
        let _held = file::lock(&path, self.lock_timeout)?;
        let was_there = file::remove(&path)?;
        self.sync(&path)?;
        file::remove(&file::lock_path(&path))?;
        Ok(was_there)
    }
}

/// Where a program that does not encode keys would have put a document, if that is a different
/// path.
pub(super) fn unencoded_document(folder: &Path, key: &DocumentKey) -> Option<PathBuf> {
    let key = key.as_str();
    let is_own = !key.contains(['/', '\0', '%']) && key.len() <= 250;
    (is_own && file_name::file_name_part(key) != key).then(|| folder.join(format!("{key}.json")))
}
