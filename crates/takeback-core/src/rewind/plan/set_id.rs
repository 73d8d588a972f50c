//! Set-id and sticky bits: a newly made file does not get them.
//!
//! The new file belongs to the user who runs the rewind, so the same bits would grant different rights. A
//! file that keeps its bytes is the same file and keeps its bits.

use takeback_store::Entry;

use super::{Step, Verdict};

const SPECIAL: u32 = 0o7000;

/// `to`, without the bits that cannot be set on what is `present` now.
pub(super) fn givable(to: &Entry, present: &Entry) -> Entry {
    match (to, present) {
        (Entry::File { digest, size, mode }, present) => {
            let kept = match present {
                Entry::File { digest: same, mode, .. } if same == digest => mode & SPECIAL,
                _ => 0,
            };
            Entry::File { digest: *digest, size: *size, mode: mode & (!SPECIAL | kept) }
        }
        (to, _) => to.clone(),
    }
}

/// The bits that a step does not restore, in words.
pub(crate) fn dropped_bits(step: &Step) -> Option<String> {
    let (Verdict::Restore { to } | Verdict::Merge { to }) = &step.verdict else { return None };
    let lacking = to.mode()? & !step.goal()?.mode()?;
    let names: Vec<&str> = [(0o4000, "set-user-id"), (0o2000, "set-group-id"), (0o1000, "sticky")]
        .into_iter()
        .filter(|(bit, _)| lacking & bit != 0)
        .map(|(_, name)| name)
        .collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("{name} bit")),
        [names @ .., last] => Some(format!("{} and {last} bits", names.join(", "))),
    }
}

/// Why a step has nothing to do after all: only bits that are not restored differ.
pub(super) fn only_bits_are_gone(step: &Step) -> Option<String> {
    let bits = dropped_bits(step).filter(|_| step.goal().as_ref() == Some(&step.present))?;
    let (are, them) = if bits.ends_with('s') { ("are", "them") } else { ("is", "it") };
    Some(format!("only its {bits} {are} gone, and a rewind does not restore {them}"))
}
