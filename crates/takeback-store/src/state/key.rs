//! The names of executions, branches, steps and attempts, each a type of its own: `exec-1` can never
//! be met when `exec-10` is meant.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longer names are refused.
const LONGEST: usize = 16 << 10;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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

/// A name that an agent gives: any text that is neither empty nor endless.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidKey> {
                let name = name.into();
                match name.len() {
                    0 => Err(InvalidKey::Empty { what: $what }),
                    1..=LONGEST => Ok(Self(name)),
                    length => Err(InvalidKey::TooLong { what: $what, length }),
                }
            }

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
    /// One of the ways that an execution went.
    BranchName,
    "a branch"
);
name!(
    /// What a document is kept under.
    DocumentKey,
    "a document"
);

impl BranchName {
    /// The branch that every execution begins with.
    #[must_use]
    pub fn main() -> Self {
        Self("main".to_owned())
    }
}

/// The number of a step. Steps are in order by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepIndex(pub u32);

impl fmt::Display for StepIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The how-manieth try of a step, from 1, counted over all branches of its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attempt(pub NonZeroU32);

impl Attempt {
    pub const FIRST: Self = Self(NonZeroU32::MIN);
    /// No attempt comes after it.
    pub const LAST: Self = Self(NonZeroU32::MAX);

    /// `None` for 0, which no attempt has.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

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

/// A run of checkpoints that follow one another, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineId(pub u64);

/// What one checkpoint, and no other, is kept under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointKey {
    pub execution: ExecutionId,
    pub step: StepIndex,
    pub attempt: Attempt,
}

impl CheckpointKey {
    /// The id that names this attempt whatever comes after it.
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

/// How people and agents name a checkpoint: `ckpt-{execution}-{step}` is the newest attempt on the
/// current branch, `ckpt-{execution}-{step}.a{attempt}` that attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId {
    pub execution: ExecutionId,
    pub step: StepIndex,
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
        // Neither a step nor an attempt has a dash, so the last one ends the execution's name.
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

/// Digits as they are printed: no sign, no leading zero. So every id is written in one way only.
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
    fn names_are_neither_empty_nor_endless() {
        assert_eq!(ExecutionId::new(""), Err(InvalidKey::Empty { what: "an execution" }));
        assert!(ExecutionId::new("x".repeat(LONGEST)).is_ok());
        let length = LONGEST + 1;
        let error = BranchName::new("x".repeat(length));
        assert_eq!(error, Err(InvalidKey::TooLong { what: "a branch", length }));
    }
}
