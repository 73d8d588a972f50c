//! The meaning of single bytes and of the sequences `ESC [ …` and `ESC O …`.

use super::Key;

pub(super) enum Meaning {
    Unfinished,
    /// Complete, but no supported key: a report, or a key that has no use here.
    Nothing,
    Key(Key),
    /// Pasted text follows.
    Paste,
    /// Three bytes of a mouse report follow.
    Mouse,
}

/// The key of a byte below 0x80 that is not ESC.
pub(super) fn single(byte: u8) -> Key {
    match byte {
        b'\r' => Key::Enter,
        b'\n' => Key::NewLine,
        b'\t' => Key::Tab,
        0x08 | 0x7f => Key::Backspace,
        0 => Key::Ctrl(' '),
        1..=26 => Key::Ctrl((byte - 1 + b'a').into()),
        0x1c..=0x1f => Key::Ctrl((byte + 0x40).into()),
        _ => Key::Char(byte.into()),
    }
}

/// `bytes`: what followed `ESC [` or `ESC O`, up to a limit; `last`: the last byte, even beyond it.
pub(super) fn read(kind: u8, bytes: &[u8], last: u8, alt: bool) -> Meaning {
    let params = &bytes[..bytes.len().saturating_sub(1)];
    if kind == b'O' {
        return match last {
            b'0'..=b'9' | b';' => Meaning::Unfinished,
            _ => application(params, last, alt),
        };
    }
    match (bytes, last) {
        // Function keys of the Linux console: `ESC [ [ A`.
        ([b'['], _) => Meaning::Unfinished,
        ([b'[', letter], _) => match letter {
            b'A'..=b'E' => Meaning::Key(Key::F(letter - b'A' + 1)),
            _ => Meaning::Nothing,
        },
        ([b'M'], _) => Meaning::Mouse,
        // rxvt ends Shift combinations with `$`, which does not end other sequences.
        ([b'0'..=b'9', ..], b'$') => numbered(params, alt),
        (_, 0x20..=0x3f) => Meaning::Unfinished,
        // Reports of the mouse, of modes, of the terminal's type.
        ([b'<' | b'=' | b'>' | b'?', ..], _) => Meaning::Nothing,
        (_, b'~' | b'^' | b'@') => numbered(params, alt),
        (_, b'u') => {
            let [code, modifiers, ..] = numbers(params);
            coded(code, modifiers, alt, is_release(params))
        }
        _ => lettered(params, last, alt),
    }
}

/// Shift, Alt and Ctrl; terminals send one more than the sum of 1, 2 and 4.
#[derive(Clone, Copy)]
struct Modifiers {
    shift: bool,
    alt: bool,
    ctrl: bool,
}

impl Modifiers {
    fn new(number: u32, alt: bool) -> Self {
        let bits = number.saturating_sub(1);
        Self { shift: bits & 1 != 0, alt: alt || bits & 2 != 0, ctrl: bits & 4 != 0 }
    }

    fn word(self) -> bool {
        self.alt || self.ctrl
    }
}

/// The first three numbers of `1;5:2;13`, without what follows a colon.
fn numbers(params: &[u8]) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(params.split(|byte| *byte == b';')) {
        *number = part
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .fold(0, |sum: u32, byte| sum.saturating_mul(10).saturating_add((byte - b'0').into()));
    }
    numbers
}

/// Some terminals also report key releases: `5:3`.
fn is_release(params: &[u8]) -> bool {
    params.split(|byte| *byte == b';').nth(1).is_some_and(|part| part.ends_with(b":3"))
}

fn application(params: &[u8], last: u8, alt: bool) -> Meaning {
    let digit = |first: u8| Meaning::Key(Key::Char((last - first + b'0').into()));
    match last {
        b'c' => Meaning::Key(Key::WordRight),
        b'd' => Meaning::Key(Key::WordLeft),
        b'a' => Meaning::Key(Key::Up),
        b'b' => Meaning::Key(Key::Down),
        b'I' => Meaning::Key(Key::Tab),
        b'M' => Meaning::Key(if alt { Key::NewLine } else { Key::Enter }),
        b'p'..=b'y' => digit(b'p'),
        b'j'..=b'o' => Meaning::Key(Key::Char((last - b'j' + b'*').into())),
        _ => {
            // `ESC O 5 D`: the modifiers come first, without the usual `1;`.
            let [first, second, _] = numbers(params);
            arrow(last, Modifiers::new(first.max(second), alt))
        }
    }
}

fn lettered(params: &[u8], last: u8, alt: bool) -> Meaning {
    let [first, modifiers, _] = numbers(params);
    match last {
        _ if is_release(params) => Meaning::Nothing,
        b'Z' => Meaning::Key(Key::BackTab),
        b'a'..=b'd' => arrow(last.to_ascii_uppercase(), Modifiers::new(modifiers, alt)),
        // Not F3 but a report of the cursor position.
        b'R' if first > 1 => Meaning::Nothing,
        _ => arrow(last, Modifiers::new(modifiers, alt)),
    }
}

fn arrow(last: u8, modifiers: Modifiers) -> Meaning {
    Meaning::Key(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if modifiers.word() => Key::WordRight,
        b'C' => Key::Right,
        b'D' if modifiers.word() => Key::WordLeft,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'P'..=b'S' => Key::F(last - b'P' + 1),
        _ => return Meaning::Nothing,
    })
}

/// `ESC [ 3 ~`.
fn numbered(params: &[u8], alt: bool) -> Meaning {
    let [number, modifiers, code] = numbers(params);
    Meaning::Key(match number {
        _ if is_release(params) => return Meaning::Nothing,
        1 | 7 => Key::Home,
        4 | 8 => Key::End,
        3 => Key::Delete,
        5 => Key::PageUp,
        6 => Key::PageDown,
        11..=15 => function(number - 10),
        17..=21 => function(number - 11),
        23 | 24 => function(number - 12),
        27 if code > 0 => return coded(code, modifiers, alt, false),
        200 => return Meaning::Paste,
        _ => return Meaning::Nothing,
    })
}

fn function(number: u32) -> Key {
    Key::F(u8::try_from(number).unwrap_or(0))
}

/// A key by the code of its character: `ESC [ 13 ; 2 u`, `ESC [ 27 ; 2 ; 13 ~`.
fn coded(code: u32, modifiers: u32, alt: bool, release: bool) -> Meaning {
    let modifiers = Modifiers::new(modifiers, alt);
    let any = modifiers.shift || modifiers.word();
    Meaning::Key(match (code, char::from_u32(code)) {
        _ if release => return Meaning::Nothing,
        (13 | 57414, _) if any => Key::NewLine,
        (13 | 57414, _) => Key::Enter,
        (27, _) => Key::Esc,
        (9, _) if modifiers.shift => Key::BackTab,
        (9, _) => Key::Tab,
        (8 | 127, _) if modifiers.word() => Key::Alt('\x7f'),
        (8 | 127, _) => Key::Backspace,
        // The private-use range has keys that are not characters.
        (57344..=63743, _) | (_, None) => return Meaning::Nothing,
        (_, Some(c)) if c.is_control() => return Meaning::Nothing,
        (_, Some(c)) if modifiers.ctrl => Key::Ctrl(c.to_ascii_lowercase()),
        (_, Some(c)) if modifiers.alt => Key::Alt(c),
        (_, Some(c)) if modifiers.shift => Key::Char(c.to_ascii_uppercase()),
        (_, Some(c)) => Key::Char(c),
    })
}
