//! Which folders Copilot CLI trusts: it ignores the hooks of a project in any other.

use serde_json::Value;

use crate::install::{HookProblem, HookScope, TrustSite, parse_settings};

pub(super) fn problem(site: &TrustSite<'_>) -> Option<HookProblem> {
    if site.files.iter().any(|file| file.scope == HookScope::User) {
        return None;
    }
    let config = parse_settings(site.config).unwrap_or_default();
    let mut folders = ["trusted_folders", "trustedFolders"]
        .into_iter()
        .filter_map(|key| config.get(key)?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let is_trusted = folders.any(|folder| site.root.starts_with(folder));
    (!is_trusted).then(|| HookProblem {
        why: "Copilot CLI does not trust this folder and ignores its hooks".to_owned(),
        next: "Start `copilot` there and trust the folder, or use `takeback init` without --scope \
               project."
            .to_owned(),
    })
}
