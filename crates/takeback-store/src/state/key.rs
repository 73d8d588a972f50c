//! The names of executions, branches, steps and attempts. Each has its own type, and ids are
//! parsed, so `exec-1` never matches `exec-10`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most bytes of a name.
const LONGEST: usize = 16 << 10;

/// Why a text is not a name or an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum InvalidKey {
    #[error("the name of {what} is empty")]
    Empty { what: &'static str },
    #[error("the name of {what} has {length} bytes; {LONGEST} are the most")]
    TooLong { what: &'static str, length: usize },
    #[error(
        "{0:?} is not the id of a checkpoint, like ckpt-EXECUTION-STEP or ckpt-EXECUTION-STEP.a2"
    )]
    NoCheckpointId(String),
}

/// A name that an agent chooses: any non-empty text up to [`LONGEST`] bytes.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Accepts any non-empty text that is not too long.
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidKey> {
                let name = name.into();
                match name.len() {
                    0 => Err(InvalidKey::Empty { what: $what }),
                    1..=LONGEST => Ok(Self(name)),
                    length => Err(InvalidKey::TooLong { what: $what, length }),
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidKey;

            fn try_from(name: String) -> Result<Self, InvalidKey> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidKey;

            fn from_str(name: &str) -> Result<Self, InvalidKey> {
                Self::new(name)
            }
        }
    };
}

name!(
    /// One run of an agent through its steps.
    ExecutionId,
    "an execution"
);
name!(
    /// A named line of an execution. The first one is `main`.
    BranchName,
    "a branch"
);
name!(
    /// The key of a document within its category.
    DocumentKey,
    "a document"
);

impl BranchName {
    /// `main`, the first branch of an execution.
    #[must_use]
    pub fn main() -> Self {
        Self("main".to_owned())
    }
}

/// The number of a step, which gives the order of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepIndex(pub u32);

impl fmt::Display for StepIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of an attempt at a step, from 1, counted over all branches of the execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub NonZeroU32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Self = Self(NonZeroU32::MIN);
    /// The highest attempt; none can follow it.
    pub const LAST: Self = Self(NonZeroU32::MAX);

    /// The attempt with this number; `None` for 0.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The next attempt; [`Self::LAST`] stays the same.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a line: a sequence of checkpoints, each the parent of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineId(pub u64);

/// The full key of one checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointKey {
    /// The execution.
    pub execution: ExecutionId,
    /// The step.
    pub step: StepIndex,
    /// The attempt.
    pub attempt: Attempt,
}

impl CheckpointKey {
    /// The id of exactly this attempt, which stays valid when newer ones follow.
    #[must_use]
    pub fn id(&self) -> CheckpointId {
        let Self { execution, step, attempt } = self.clone();
        CheckpointId { execution, step, attempt: Some(attempt) }
    }
}

impl fmt::Display for CheckpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

/// A checkpoint's id as people and agents write it: `ckpt-{execution}-{step}` for the newest
/// attempt on the current branch, `ckpt-{execution}-{step}.a{attempt}` for one attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId {
    /// The execution.
    pub execution: ExecutionId,
    /// The step.
    pub step: StepIndex,
    /// The attempt; `None` means the newest one on the current branch.
    pub attempt: Option<Attempt>,
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ckpt-{}-{}", self.execution, self.step)?;
        match self.attempt {
            Some(attempt) => write!(f, ".a{attempt}"),
            None => Ok(()),
        }
    }
}

impl FromStr for CheckpointId {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let invalid = || InvalidKey::NoCheckpointId(text.to_owned());
        let rest = text.strip_prefix("ckpt-").ok_or_else(invalid)?;
        // Steps and attempts contain no dash, so the last dash ends the execution's name.
        let (execution, place) = rest.rsplit_once('-').ok_or_else(invalid)?;
        let (step, attempt) = match place.split_once(".a") {
            Some((step, attempt)) => (step, Some(attempt)),
            None => (place, None),
        };
        let step = plain_number(step).ok_or_else(invalid)?;
        let attempt = match attempt {
            Some(attempt) => {
                Some(plain_number(attempt).and_then(Attempt::new).ok_or_else(invalid)?)
            }
            None => None,
        };
        let execution = ExecutionId::new(execution).map_err(|error| match error {
            InvalidKey::Empty { .. } => invalid(),
            error => error,
        })?;
        Ok(Self { execution, step: StepIndex(step), attempt })
    }
}

/// Parses digits without a sign or leading zeros, so that every id has only one spelling.
fn plain_number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_printed_and_nothing_else_is_one() {
        for (text, execution, step, attempt) in [
            ("ckpt-exec-1-10", "exec-1", 10, None),
            ("ckpt-exec-10-1", "exec-10", 1, None),
            ("ckpt-exec-001-0", "exec-001", 0, None),
            ("ckpt-a-3.a2-5", "a-3.a2", 5, None),
            ("ckpt-../x-1.a7", "../x", 1, Some(7)),
            ("ckpt---4294967295", "-", u32::MAX, None),
            ("ckpt-a\0b-1", "a\0b", 1, None),
        ] {
            let id: CheckpointId = text.parse().unwrap();
            let expected = CheckpointId {
                execution: ExecutionId::new(execution).unwrap(),
                step: StepIndex(step),
                attempt: attempt.and_then(Attempt::new),
            };
            assert_eq!(id, expected);
            assert_eq!(id.to_string(), text);
        }
        for bad in [
            "",
            "ckpt-",
            "ckpt-1",
            "ckpt--1",
            "ckpt-a-",
            "ckpt-a-x",
            "ckpt-a-01",
            "ckpt-a-+1",
            "ckpt-a-1.a0",
            "ckpt-a-1.a",
            "ckpt-a-1.a01",
            "ckpt-a-1.b2",
            "a-1",
            "ckpt-a-4294967296",
        ] {
            let error = bad.parse::<CheckpointId>();
            assert_eq!(error, Err(InvalidKey::NoCheckpointId(bad.to_owned())));
        }
    }

    #[test]
    fn empty_and_overlong_names_are_refused() {
        assert_eq!(ExecutionId::new(""), Err(InvalidKey::Empty { what: "an execution" }));
        assert!(ExecutionId::new("x".repeat(LONGEST)).is_ok());
        let length = LONGEST + 1;
        let error = BranchName::new("x".repeat(length));
        assert_eq!(error, Err(InvalidKey::TooLong { what: "a branch", length }));
    }
}
