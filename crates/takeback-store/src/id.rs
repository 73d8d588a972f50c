//! Ids and numbers. Each kind has its own type, so a session id cannot be passed where a call id is
//! expected.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A position in a workspace's log. Changes count from 1; 0 is the empty log.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since 1970, UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// An id that Takeback generates: 16 hex digits on screen and in JSON.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:016x})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
                u64::from_str_radix(text, 16)
                    .ok()
                    .filter(|_| digits)
                    .map(Self)
                    .ok_or_else(|| InvalidId(text.to_owned()))
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

random_id!(
    /// A point.
    PointId
);
random_id!(
    /// A rewind, an undo or a redo.
    RewindId
);
random_id!(
    /// A turn: one prompt of a session and everything the agent does for it.
    TurnId
);

/// The text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an id of 16 hex digits")]
pub struct InvalidId(pub String);

/// An agent's own name for a conversation. Any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl SessionId {
    /// The session id of one `takeback run`, which is not an agent's conversation.
    #[must_use]
    pub fn of_run(number: u32) -> Self {
        Self(format!("run-{number:08x}"))
    }

    /// Whether this is an id made by [`Self::of_run`].
    #[must_use]
    pub fn is_run(&self) -> bool {
        let digits = self.0.strip_prefix("run-");
        digits.is_some_and(|digits| digits.len() == 8 && u32::from_str_radix(digits, 16).is_ok())
    }

    /// The id of a part of this session, for a subagent: `whole/name`.
    #[must_use]
    pub fn part(&self, name: &str) -> Self {
        Self(format!("{self}/{name}"))
    }

    /// The name with which [`Self::part`] of `whole` makes this id. The id alone does not make it a
    /// part: see [`Session::whole`](crate::Session::whole).
    #[must_use]
    pub fn part_of(&self, whole: &Self) -> Option<&str> {
        self.0.strip_prefix(&whole.0)?.strip_prefix('/')
    }

    /// Whether the ids allow that both are one session or parts of one. For callers that do not know
    /// the sessions, and for whom taking two sessions of a client for one is harmless.
    #[must_use]
    pub fn may_be_with(&self, other: &Self) -> bool {
        self.0.split('/').next() == other.0.split('/').next()
    }
}

/// An agent's own name for a tool call, unique within its session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

macro_rules! text_id {
    ($name:ident) => {
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

text_id!(SessionId);
text_id!(CallId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_printed_and_nothing_else_is_one() {
        let id = PointId(0x00ab_cdef);
        assert_eq!(id.to_string(), "0000000000abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "abcdef", "+000000000abcdef", "0000000000abcdeg", "00000000000abcdef"] {
            assert_eq!(bad.parse::<PointId>(), Err(InvalidId(bad.to_owned())));
        }
    }

    #[test]
    fn parts_of_one_session_may_be_together_and_others_may_not() {
        let id = SessionId::from;
        assert_eq!(id("a").part("b").part_of(&id("a")), Some("b"));
        assert_eq!(id("ab").part_of(&id("a")), None);
        for (one, other, may) in [
            ("a", "a", true),
            ("a/b", "a", true),
            ("a/b", "a/c", true),
            ("a", "ab", false),
            ("a/b", "c/b", false),
        ] {
            assert_eq!(id(one).may_be_with(&id(other)), may, "{one} {other}");
            assert_eq!(id(other).may_be_with(&id(one)), may, "{other} {one}");
        }
    }
}
