//! What the files are called: keys as parts of file names that cannot leave their folder.

use std::fmt::Write as _;

use crate::blob::Digest;
use crate::state::{Attempt, CheckpointId, ExecutionId, StepIndex};

/// A longer part is cut. With all that stands before and after it (`ckpt-`, a step, an attempt,
/// `.json`, what a lock, a set aside or an unfinished file has) a name keeps below 255 bytes.
const LONGEST: usize = 200;
/// How much of a part that is cut stays, for people to see.
const SHOWN: usize = 120;
/// Stands between it and its digest. A part that was not cut has no `%` before a dash.
const CUT: &str = "%-";

/// A key as a part of a file's name: letters, digits, `_`, `-` and dots that are not the first stand
/// for themselves, any other byte is `%XX`. One that is too long is cut and told apart by its digest.
#[must_use]
pub fn part_of(key: &str) -> String {
    let mut part = String::with_capacity(key.len());
    for (position, byte) in key.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if plain || byte == b'.' && position > 0 {
            part.push(char::from(byte));
        } else {
            write!(part, "%{byte:02X}").expect("a text takes any");
        }
    }
    if part.len() > LONGEST {
        // Before a `%` that would be left without its digits.
        let end = part[..SHOWN].rfind('%').filter(|at| at + 3 > SHOWN).unwrap_or(SHOWN);
        part.truncate(end);
        write!(part, "{CUT}{}", Digest::of(key.as_bytes())).expect("a text takes any");
    }
    part
}

/// The key that a part stands for; `None` if it was cut, or is no key's. What is not encoded, though
/// it should be, stands for itself: other programs write such names.
pub(super) fn key_of(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn is_cut(part: &str) -> bool {
    part.contains(CUT)
}

/// The name of the file of a checkpoint: of the newest attempt on the current line, or of one by its
/// number.
pub(super) fn checkpoint(
    execution: &ExecutionId,
    step: StepIndex,
    attempt: Option<Attempt>,
) -> String {
    named(&part_of(execution.as_str()), step, attempt)
}

/// The same as programs write it that encode nothing; `None` if that is no file's name, or what
/// another key is encoded as, or the same.
pub(super) fn unencoded(
    execution: &ExecutionId,
    step: StepIndex,
    attempt: Option<Attempt>,
) -> Option<String> {
    let key = execution.as_str();
    let name = named(key, step, attempt);
    let is_own = !key.contains(['/', '\0', '%']) && name.len() <= 255;
    (is_own && part_of(key) != key).then_some(name)
}

/// The same with the execution's part as it is.
pub(super) fn named(part: &str, step: StepIndex, attempt: Option<Attempt>) -> String {
    match attempt {
        Some(attempt) => format!("ckpt-{part}-{step}.a{attempt}.json"),
        None => format!("ckpt-{part}-{step}.json"),
    }
}

/// What a file's name says about the checkpoint in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Of the execution.
    pub(super) part: String,
    pub(super) step: StepIndex,
    pub(super) attempt: Option<Attempt>,
    /// What stands behind `.json`, if the file was set aside.
    pub(super) aside: bool,
}

pub(super) fn parse(name: &str) -> Option<Named> {
    let (stem, aside) = match name.strip_suffix(".json") {
        Some(stem) => (stem, false),
        None => (original(name)?.strip_suffix(".json")?, true),
    };
    let (part, place) = stem.strip_prefix("ckpt-")?.rsplit_once('-')?;
    let CheckpointId { step, attempt, .. } = format!("ckpt-x-{place}").parse().ok()?;
    let part = if is_cut(part) { part.to_owned() } else { part_of(&key_of(part)?) };
    (!part.is_empty()).then_some(Named { part, step, attempt, aside })
}

/// The name that a file had before it was set aside.
pub(super) fn original(name: &str) -> Option<&str> {
    let (original, number) = name.rsplit_once(".damaged-")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_name_nothing_outside_and_read_back() {
        for (key, part) in [
            ("exec-1_A.b", "exec-1_A.b"),
            ("..", "%2E."),
            (".", "%2E"),
            ("../x", "%2E.%2Fx"),
            ("a/b", "a%2Fb"),
            ("a\0", "a%00"),
            ("%2e", "%252e"),
            ("ä ", "%C3%A4%20"),
        ] {
            assert_eq!(part_of(key), part);
            assert_eq!(key_of(part).as_deref(), Some(key));
        }
        for bad in ["%", "%4", "%+1", "%zz", "%FF", "a%-b"] {
            assert_eq!(key_of(bad), None, "{bad}");
        }
        assert_eq!(key_of("as it is ä").as_deref(), Some("as it is ä"));
    }

    #[test]
    fn long_keys_are_cut_and_stay_apart() {
        for key in
            ["x".repeat(201), "/".repeat(67), format!("{}é", "x".repeat(195)), "é".repeat(8000)]
        {
            let part = part_of(&key);
            assert!(part.len() <= LONGEST && is_cut(&part), "{part}");
            assert_ne!(part, part_of(&format!("{key}y")));
            let (shown, _) = part.split_once(CUT).unwrap();
            assert!(key_of(shown).is_some() || shown.ends_with("%C3"), "{shown}");
        }
        assert_eq!(part_of(&"x".repeat(200)), "x".repeat(200));
        let longest = format!(
            "{}.damaged-9999",
            checkpoint(
                &ExecutionId::new("x".repeat(200)).unwrap(),
                StepIndex(u32::MAX),
                Attempt::new(u32::MAX)
            )
        );
        assert!(longest.len() <= 255, "{}", longest.len());
    }

    #[test]
    fn names_tell_what_is_in_them() {
        let named = |part: &str, step, attempt, aside| {
            let attempt = Attempt::new(attempt);
            Some(Named { part: part.to_owned(), step: StepIndex(step), attempt, aside })
        };
        assert_eq!(parse("ckpt-exec-1-10.json"), named("exec-1", 10, 0, false));
        assert_eq!(parse("ckpt-a.a1-1.a2.json"), named("a.a1", 1, 2, false));
        assert_eq!(parse("ckpt-a b-1.json"), named("a%20b", 1, 0, false));
        assert_eq!(parse("ckpt-a%20b-1.json"), named("a%20b", 1, 0, false));
        assert_eq!(parse("ckpt-a-1.json.damaged-12"), named("a", 1, 0, true));
        for other in [
            "ckpt-a-1.json.lock",
            "ckpt-a-1.json.7.new",
            "ckpt-a-01.json",
            "a-1.json",
            "ckpt--1.json",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
