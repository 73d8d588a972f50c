//! The names of keys in the settings.

use super::Key;

/// Ctrl with these letters is Enter, Tab, Backspace or a new line, or ends the program.
const RESERVED: &[char] = &['c', 'd', 'h', 'i', 'j', 'm'];

/// A name that [`parse_key`] does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} cannot be pressed twice: use esc, tab, f1 to f12, ctrl- with a letter other than c, d, h, i, \
     j or m, or alt- with a character"
)]
pub struct KeyNameError {
    /// The name.
    pub name: String,
}

/// Parses `esc`, `ctrl-r`, `alt-z` or `f2`, in any case and also with `+` for `-`.
pub fn parse_key(name: &str) -> Result<Key, KeyNameError> {
    let error = || KeyNameError { name: name.to_owned() };
    let lower = name.trim().to_lowercase();
    match lower.as_str() {
        "esc" | "escape" => return Ok(Key::Esc),
        "tab" => return Ok(Key::Tab),
        _ => {}
    }
    if let Some(number) = lower.strip_prefix('f').and_then(|number| number.parse().ok()) {
        return if (1..=12).contains(&number) { Ok(Key::F(number)) } else { Err(error()) };
    }
    let (modifier, rest) = lower.split_once(['-', '+']).ok_or_else(error)?;
    let mut rest = rest.chars();
    let (Some(c), None) = (rest.next(), rest.next()) else { return Err(error()) };
    match modifier {
        "ctrl" if c.is_ascii_lowercase() && !RESERVED.contains(&c) => Ok(Key::Ctrl(c)),
        "alt" if !c.is_control() && !c.is_whitespace() => Ok(Key::Alt(c)),
        _ => Err(error()),
    }
}

/// The display name of a key: `Esc`, `Ctrl-R`, `Alt-z`, `F2`.
#[must_use]
pub fn key_name(key: &Key) -> String {
    match key {
        Key::Ctrl(c) => format!("Ctrl-{}", c.to_uppercase()),
        Key::Alt(c) => format!("Alt-{c}"),
        key => format!("{key:?}").replace(['(', ')'], ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys() {
        for (name, key) in [
            ("esc", Key::Esc),
            ("Escape", Key::Esc),
            ("tab", Key::Tab),
            ("ctrl-r", Key::Ctrl('r')),
            ("Ctrl+R", Key::Ctrl('r')),
            ("alt-z", Key::Alt('z')),
            ("alt--", Key::Alt('-')),
            ("f1", Key::F(1)),
            ("F12", Key::F(12)),
        ] {
            assert_eq!(parse_key(name), Ok(key.clone()), "{name}");
            assert_eq!(parse_key(&key_name(&key)), Ok(key), "{name}");
        }
    }

    #[test]
    fn display_names() {
        let keys = [Key::Esc, Key::Tab, Key::F(2), Key::Ctrl('r'), Key::Alt('z')];
        assert_eq!(keys.map(|key| key_name(&key)), ["Esc", "Tab", "F2", "Ctrl-R", "Alt-z"]);
    }

    #[test]
    fn the_error_names_the_key() {
        for name in
            ["", "x", "ctrl-", "ctrl-c", "ctrl-m", "ctrl-1", "alt-ab", "f0", "f13", "meta-x"]
        {
            let error = parse_key(name).unwrap_err();
            assert_eq!(error, KeyNameError { name: name.to_owned() });
        }
        insta::assert_snapshot!(
            parse_key("enter").unwrap_err(),
            @r#""enter" cannot be pressed twice: use esc, tab, f1 to f12, ctrl- with a letter other than c, d, h, i, j or m, or alt- with a character"#
        );
    }
}
