//! JSON with lone surrogates.
//!
//! A JavaScript string can hold one half of a surrogate pair, and writes it as an escape that is no
//! character. The rest of the payload still names the files that are about to be written.

/// The JSON with U+FFFD in place of each lone surrogate; `None` if there is none.
pub(super) fn without_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < json.len() {
        if json[at] != b'\\' {
            at += 1;
            continue;
        }
        let Some(unit) = escaped(json, at) else {
            // Another escape: its second byte starts none.
            at += 2;
            continue;
        };
        let pairs = (0xD800..0xDC00).contains(&unit)
            && escaped(json, at + 6).is_some_and(|low| (0xDC00..0xE000).contains(&low));
        if pairs {
            at += 12;
            continue;
        }
        if (0xD800..0xE000).contains(&unit) {
            let mended = mended.get_or_insert_with(|| json.to_vec());
            mended[at + 2..at + 6].copy_from_slice(b"fffd");
        }
        at += 6;
    }
    mended
}

/// The number in the `\uXXXX` at this offset.
fn escaped(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let mend = |json: &str| {
            without_lone_surrogates(json.as_bytes()).map(|it| String::from_utf8(it).unwrap())
        };
        assert_eq!(mend(r#""a\u0041 😀 \\ud83d""#), None);
        assert_eq!(mend(r#""\ud83d\ude00""#), None);
        assert_eq!(mend(r#""x \ud83d""#).as_deref(), Some(r#""x \ufffd""#));
        assert_eq!(mend(r#""\ude00\ud83d\ude00""#).as_deref(), Some(r#""\ufffd\ud83d\ude00""#));
        assert_eq!(mend(r#""\ud83d\ud83d\ude00""#).as_deref(), Some(r#""\ufffd\ud83d\ude00""#));
        assert_eq!(mend("\\ud8"), None);
    }
}
