//! What stops recording, and what the log is missing.

use anstyle::Style;

use crate::answers;
use crate::commands::verify::damage_beside;
use crate::heartbeat::{Refusal, heartbeats, refusals};
use crate::marker::ACKNOWLEDGE;
use crate::place::{Location, Place, sentence};
use crate::probe::{WriteFailure, not_writable};
use crate::screen::{WARNING, plain};
use crate::settings::table;
use crate::stores;
use crate::time::{ago, now};

pub(super) struct Gaps {
    pub(super) not_writable: Option<WriteFailure>,
    /// An older Takeback that could not record, and its session.
    too_old: Option<(String, Refusal)>,
}

impl Gaps {
    pub(super) fn of(location: &Location) -> Self {
        let store = stores::store_of(&location.root, &location.home);
        let beats = heartbeats(&location.home);
        let refusals = refusals(&beats, Some(&store), now());
        let newest = refusals.into_iter().max_by_key(|(_, refusal, _)| refusal.at);
        Self {
            not_writable: not_writable(&location.home, &location.root),
            too_old: newest.map(|(beat, refusal, _)| (beat.session.clone(), refusal.clone())),
        }
    }

    pub(super) fn warnings(&self, place: &Place) -> Vec<(Style, String)> {
        let mut texts = Vec::new();
        if !place.settings.is_enabled() {
            let origin = &place.settings.setting(table::ENABLED).origin;
            texts.push(format!("Recording is off: {} is false ({origin})", table::ENABLED));
        }
        if let Some(found) = &self.not_writable {
            texts.push(format!("{}. {}", sentence(&found.what()), found.next()));
        }
        if let Some(gone) = &place.gone {
            texts.push(format!("{}. {ACKNOWLEDGE}", sentence(&gone.what())));
        }
        let (root, store) = (place.workspace.root.path(), &place.workspace.store_dir);
        texts.extend(
            damage_beside(root, store).unwrap_or_default().iter().map(|what| sentence(what)),
        );
        texts.extend(place.missed.as_deref().map(sentence));
        if let Some((session, refusal)) = &self.too_old {
            let (program, when) = (sentence(&refusal.program()), ago(refusal.at, now()));
            texts.push(format!(
                "{program} is too old for this store and recorded nothing {when} (session {session}). \
                 Update or remove it."
            ));
        }
        texts.iter().map(|text| (WARNING, plain(text))).collect()
    }

    pub(super) fn too_old(&self) -> Option<answers::VersionMismatch> {
        let (session, refusal) = self.too_old.as_ref()?;
        Some(answers::VersionMismatch {
            at: answers::time(refusal.at),
            version: refusal.version.clone(),
            program: refusal.program.clone(),
            session: session.clone(),
        })
    }
}
