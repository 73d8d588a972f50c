//! A state machine that turns bytes into key presses.

use super::sequence::{self, Meaning};
use super::{Key, Moment, Press};

/// How long an ESC waits for the rest of a sequence, in milliseconds.
///
/// A terminal sends the bytes of one key together, but a network may split them.
pub const ESC_WAIT_MS: u64 = 30;

/// A reply of the terminal that never ends must not block the keyboard.
const STRING_WAIT_MS: u64 = 1000;

/// Nor must a paste.
const PASTE_WAIT_MS: u64 = 2000;

/// A longer paste is cut off.
const PASTE_MAX: usize = 1 << 20;

/// No known sequence is longer; only the end of a longer one matters.
const SEQUENCE_MAX: usize = 64;

const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes the bytes of a terminal.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// When the last byte arrived.
    last: Moment,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// The first bytes of a character.
    Utf8(Character),
    /// ESC, at this moment.
    Esc(Moment),
    /// Two ESC: two presses, or the start of Alt with an arrow.
    EscEsc(Moment, Moment),
    /// `ESC [` or `ESC O` and what followed.
    Sequence(Sequence),
    /// This many bytes of a mouse report are left.
    Skip(u8),
    /// `ESC ]`, `ESC P` or `ESC _`: a reply of the terminal, up to BEL or `ESC \`.
    Reply { kind: u8, empty: bool, esc: bool },
    /// `matched`: how many bytes of the end marker came last.
    Paste { bytes: Vec<u8>, matched: usize },
}

#[derive(Debug)]
struct Character {
    bytes: Vec<u8>,
    length: usize,
    alt: bool,
}

#[derive(Debug)]
struct Sequence {
    /// `[` or `O`.
    kind: u8,
    bytes: Vec<u8>,
    /// The time of an ESC before it.
    alt: Option<Moment>,
}

impl Sequence {
    fn new(kind: u8, alt: Option<Moment>) -> Self {
        Self { kind, bytes: Vec::new(), alt }
    }
}

impl Decoder {
    /// A decoder without input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The presses that these bytes complete. If they arrive after the [`Self::deadline`], it expires
    /// first, except in a paste: the rest of it must not become keys because the caller was busy.
    pub fn feed(&mut self, bytes: &[u8], at: Moment) -> Vec<Press> {
        let pastes = matches!(self.state, State::Paste { .. });
        let mut out = if pastes { Vec::new() } else { self.expire(at) };
        for &byte in bytes {
            self.last = at;
            self.step(byte, at, &mut out);
        }
        out
    }

    /// When to call [`Self::expire`] if no more bytes arrive.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        match &self.state {
            State::Esc(_) | State::EscEsc(..) => Some(self.last.plus(ESC_WAIT_MS)),
            State::Sequence(sequence) if sequence.bytes.is_empty() => {
                Some(self.last.plus(ESC_WAIT_MS))
            }
            State::Reply { empty: true, .. } => Some(self.last.plus(ESC_WAIT_MS)),
            State::Reply { .. } => Some(self.last.plus(STRING_WAIT_MS)),
            State::Paste { .. } => Some(self.last.plus(PASTE_WAIT_MS)),
            _ => None,
        }
    }

    /// Completes an unfinished sequence once its deadline has passed.
    pub fn expire(&mut self, now: Moment) -> Vec<Press> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Vec::new();
        }
        let press = |key, at| Press { key, at };
        match std::mem::take(&mut self.state) {
            State::Esc(at) => vec![press(Key::Esc, at)],
            State::EscEsc(first, second) => vec![press(Key::Esc, first), press(Key::Esc, second)],
            State::Sequence(Sequence { kind, alt, .. }) => {
                let esc = alt.map(|at| press(Key::Esc, at));
                esc.into_iter().chain([press(Key::Alt(kind.into()), self.last)]).collect()
            }
            State::Reply { kind, empty: true, .. } => {
                vec![press(Key::Alt(kind.into()), self.last)]
            }
            State::Paste { bytes, .. } => vec![press(Key::Paste(paste_text(&bytes)), self.last)],
            _ => Vec::new(),
        }
    }

    fn step(&mut self, byte: u8, at: Moment, out: &mut Vec<Press>) {
        let mut press = |key| out.push(Press { key, at });
        self.state = match std::mem::take(&mut self.state) {
            State::Ground => ground(byte, at, &mut press),
            State::Utf8(character) => utf8(byte, character, at, &mut press),
            State::Esc(first) => match byte {
                0x1b => State::EscEsc(first, at),
                b'[' | b'O' => State::Sequence(Sequence::new(byte, None)),
                b']' | b'P' | b'_' => State::Reply { kind: byte, empty: true, esc: false },
                _ => after_esc(byte, at, &mut press),
            },
            State::EscEsc(first, second) => match byte {
                b'[' | b'O' => State::Sequence(Sequence::new(byte, Some(first))),
                _ => {
                    out.push(Press { key: Key::Esc, at: first });
                    if byte == 0x1b {
                        State::EscEsc(second, at)
                    } else {
                        out.push(Press { key: Key::Esc, at: second });
                        ground(byte, at, &mut |key| out.push(Press { key, at }))
                    }
                }
            },
            State::Sequence(sequence) => in_sequence(byte, sequence, at, &mut press),
            State::Skip(1) => State::Ground,
            State::Skip(left) => State::Skip(left - 1),
            State::Reply { kind, esc, .. } => match byte {
                0x07 => State::Ground,
                b'\\' if esc => State::Ground,
                _ => State::Reply { kind, empty: false, esc: byte == 0x1b },
            },
            State::Paste { bytes, matched } => in_paste(byte, bytes, matched, &mut press),
        };
    }
}

fn ground(byte: u8, at: Moment, press: &mut impl FnMut(Key)) -> State {
    match byte {
        0x1b => return State::Esc(at),
        0x80.. => return utf8_begin(byte, false, press),
        _ => press(sequence::single(byte)),
    }
    State::Ground
}

/// A byte after an ESC that starts no sequence: Alt with a key.
fn after_esc(byte: u8, at: Moment, press: &mut impl FnMut(Key)) -> State {
    match byte {
        b'\r' | b'\n' => press(Key::NewLine),
        0x08 | 0x7f => press(Key::Alt('\x7f')),
        b' '..=b'~' => press(Key::Alt(byte.into())),
        0x80.. => return utf8_begin(byte, true, press),
        _ => return ground(byte, at, press),
    }
    State::Ground
}

fn utf8_begin(byte: u8, alt: bool, press: &mut impl FnMut(Key)) -> State {
    let length = match byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => {
            press(Key::Char(char::REPLACEMENT_CHARACTER));
            return State::Ground;
        }
    };
    State::Utf8(Character { bytes: vec![byte], length, alt })
}

fn utf8(byte: u8, mut character: Character, at: Moment, press: &mut impl FnMut(Key)) -> State {
    if !(0x80..=0xbf).contains(&byte) {
        press(Key::Char(char::REPLACEMENT_CHARACTER));
        return ground(byte, at, press);
    }
    character.bytes.push(byte);
    if character.bytes.len() < character.length {
        return State::Utf8(character);
    }
    let text = String::from_utf8_lossy(&character.bytes);
    for c in text.chars().filter(|c| !c.is_control()) {
        press(if character.alt { Key::Alt(c) } else { Key::Char(c) });
    }
    State::Ground
}

fn in_sequence(byte: u8, mut sequence: Sequence, at: Moment, press: &mut impl FnMut(Key)) -> State {
    // A control character or a byte of text cannot be part of a sequence: the sequence was cut off.
    if !(0x20..0x7f).contains(&byte) {
        return ground(byte, at, press);
    }
    if sequence.bytes.len() < SEQUENCE_MAX {
        sequence.bytes.push(byte);
    }
    match sequence::read(sequence.kind, &sequence.bytes, byte, sequence.alt.is_some()) {
        Meaning::Unfinished => State::Sequence(sequence),
        Meaning::Nothing => State::Ground,
        Meaning::Key(key) => {
            press(key);
            State::Ground
        }
        Meaning::Paste => State::Paste { bytes: Vec::new(), matched: 0 },
        Meaning::Mouse => State::Skip(3),
    }
}

fn in_paste(byte: u8, mut bytes: Vec<u8>, matched: usize, press: &mut impl FnMut(Key)) -> State {
    if byte == PASTE_END[matched] {
        if matched + 1 == PASTE_END.len() {
            press(Key::Paste(paste_text(&bytes)));
            return State::Ground;
        }
        return State::Paste { bytes, matched: matched + 1 };
    }
    let mut keep = |more: &[u8]| {
        let room = PASTE_MAX.saturating_sub(bytes.len());
        bytes.extend(more.iter().take(room));
    };
    keep(&PASTE_END[..matched]);
    // Only its first byte can start the end marker again: it occurs once in it.
    let begins = byte == PASTE_END[0];
    if !begins {
        keep(&[byte]);
    }
    State::Paste { bytes, matched: usize::from(begins) }
}

fn paste_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}
