//! File names: keys are encoded so that they cannot leave their folder.

use std::fmt::Write as _;

use crate::blob::Digest;
use crate::state::{Attempt, CheckpointId, ExecutionId, StepIndex};

/// Longer parts are shortened, so that a whole name stays below 255 bytes: with `ckpt-`, step,
/// attempt, `.json`, and the suffix of a lock, a damaged or a temporary file.
const LONGEST: usize = 200;
/// How many bytes of a shortened part stay readable.
const SHOWN: usize = 120;
/// Separates the readable bytes from the digest. Other parts never contain `%` before a dash.
const CUT: &str = "%-";

/// Encodes a key as a part of a file name. Letters, digits, `_`, `-` and dots (except a leading
/// one) stay as they are; any other byte becomes `%XX`. A part over 200 bytes is shortened and gets
/// the digest of the key, so different keys never have the same part.
#[must_use]
pub fn file_name_part(key: &str) -> String {
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
        // Do not cut between a `%` and its digits.
        let end = part[..SHOWN].rfind('%').filter(|at| at + 3 > SHOWN).unwrap_or(SHOWN);
        part.truncate(end);
        write!(part, "{CUT}{}", Digest::of(key.as_bytes())).expect("a text takes any");
    }
    part
}

/// Decodes a part; `None` if it was shortened or is invalid. Accepts bytes that should have been
/// encoded: other programs write such names.
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

/// The file name of a checkpoint: without an attempt, that of the newest one on the current line.
pub(super) fn checkpoint(
    execution: &ExecutionId,
    step: StepIndex,
    attempt: Option<Attempt>,
) -> String {
    named(&file_name_part(execution.as_str()), step, attempt)
}

/// The file name that a program without encoding uses. `None` if that is not a valid name, is the
/// encoding of another key, or is the same name.
pub(super) fn unencoded(
    execution: &ExecutionId,
    step: StepIndex,
    attempt: Option<Attempt>,
) -> Option<String> {
    let key = execution.as_str();
    let name = named(key, step, attempt);
    let is_own = !key.contains(['/', '\0', '%']) && name.len() <= 255;
    (is_own && file_name_part(key) != key).then_some(name)
}

/// The file name with an already encoded part.
pub(super) fn named(part: &str, step: StepIndex, attempt: Option<Attempt>) -> String {
    match attempt {
        Some(attempt) => format!("ckpt-{part}-{step}.a{attempt}.json"),
        None => format!("ckpt-{part}-{step}.json"),
    }
}

/// The parts of a checkpoint's file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckpointFileName {
    /// The encoded execution id.
    pub(super) part: String,
    pub(super) step: StepIndex,
    pub(super) attempt: Option<Attempt>,
    /// Whether the file was set aside (`.json.damaged-N`).
    pub(super) aside: bool,
}

pub(super) fn parse(name: &str) -> Option<CheckpointFileName> {
    let (stem, aside) = match name.strip_suffix(".json") {
        Some(stem) => (stem, false),
        None => (original(name)?.strip_suffix(".json")?, true),
    };
    let (part, place) = stem.strip_prefix("ckpt-")?.rsplit_once('-')?;
    let CheckpointId { step, attempt, .. } = format!("ckpt-x-{place}").parse().ok()?;
    let part = if is_cut(part) { part.to_owned() } else { file_name_part(&key_of(part)?) };
    (!part.is_empty()).then_some(CheckpointFileName { part, step, attempt, aside })
}

/// The name of a file before it was set aside; `None` if it was not.
pub(super) fn original(name: &str) -> Option<&str> {
    let (original, number) = name.rsplit_once(".damaged-")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_in_their_folder_and_read_back() {
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
            assert_eq!(file_name_part(key), part);
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
            let part = file_name_part(&key);
            assert!(part.len() <= LONGEST && is_cut(&part), "{part}");
            assert_ne!(part, file_name_part(&format!("{key}y")));
            let (shown, _) = part.split_once(CUT).unwrap();
            assert!(key_of(shown).is_some() || shown.ends_with("%C3"), "{shown}");
        }
        assert_eq!(file_name_part(&"x".repeat(200)), "x".repeat(200));
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
    fn names_are_parsed() {
        let named = |part: &str, step, attempt, aside| {
            let attempt = Attempt::new(attempt);
            Some(CheckpointFileName {
                part: part.to_owned(),
                step: StepIndex(step),
                attempt,
                aside,
            })
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
