//! What stops recording, and what the log is missing.

use anstyle::Style;

use crate::answers;
use crate::commands::verify::damage_beside;
use crate::heartbeat::{Refusal, heartbeats, refusals};
use crate::marker::ACKNOWLEDGE;
use crate::place::{Location, Place, sentence};
use crate::probe::{NotWritable, not_writable};
use crate::screen::{WARNING, plain};
use crate::settings::table;
use crate::stores;
use crate::time::{ago, now};

pub(super) struct Gaps {
    pub(super) not_writable: Option<NotWritable>,
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
        let mut said = Vec::new();
        if !place.settings.is_enabled() {
            let origin = &place.settings.setting(table::ENABLED).origin;
            said.push(format!("Recording is off: {} is false ({origin})", table::ENABLED));
        }
        if let Some(found) = &self.not_writable {
            said.push(format!("{}. {}", sentence(&found.what()), found.next()));
        }
        if let Some(gone) = &place.gone {
            said.push(format!("{}. {ACKNOWLEDGE}", sentence(&gone.what())));
        }
        let (root, store) = (place.workspace.root.path(), &place.workspace.store_dir);
        said.extend(
            damage_beside(root, store).unwrap_or_default().iter().map(|what| sentence(what)),
        );
        said.extend(place.missed.as_deref().map(sentence));
        if let Some((session, refusal)) = &self.too_old {
            let (program, when) = (sentence(&refusal.program()), ago(refusal.at, now()));
            said.push(format!(
                "{program} is too old for this store and recorded nothing {when} (session {session}). \
                 Update or remove it."
            ));
        }
        said.iter().map(|text| (WARNING, plain(text))).collect()
    }

    pub(super) fn too_old(&self) -> Option<answers::TooOld> {
        let (session, refusal) = self.too_old.as_ref()?;
        Some(answers::TooOld {
            at: answers::time(refusal.at),
            version: refusal.version.clone(),
            program: refusal.program.clone(),
            session: session.clone(),
        })
    }
}
