//! How long a scan may take.

use std::time::{Duration, Instant};

/// Deadlines for reading files and for comparing names. None: no deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    read_until: Option<Instant>,
    confirm_until: Option<Instant>,
    end: Option<Instant>,
}

impl Budget {
    pub(crate) const UNLIMITED: Self = Self { read_until: None, confirm_until: None, end: None };

    /// `read` from now on for names and files, and `overrun` more for names. In the first half of the
    /// overrun a few files are still read: see [`Self::to_confirm`].
    #[must_use]
    pub(crate) fn starting_now(read: Duration, overrun: Duration) -> Self {
        let now = Instant::now();
        let after = |overrun| now.checked_add(read.checked_add(overrun)?);
        Self {
            read_until: now.checked_add(read),
            confirm_until: after(overrun / 2),
            end: after(overrun),
        }
    }

    #[must_use]
    pub(crate) fn lets_read(self) -> bool {
        !is_past(self.read_until)
    }

    /// With more time, for a file that is most likely unchanged: otherwise the log would have to say that its
    /// contents are unknown.
    #[must_use]
    pub(crate) fn to_confirm(self) -> Self {
        Self { read_until: self.confirm_until, ..self }
    }

    #[must_use]
    pub(crate) fn is_over(self) -> bool {
        is_past(self.end)
    }
}

fn is_past(moment: Option<Instant>) -> bool {
    moment.is_some_and(|moment| Instant::now() >= moment)
}
