//! Bytes as terminals send them, in every cut.

use proptest::prelude::*;
use takeback_tui::{Decoder, ESC_WAIT_MS, Key, Moment, Press};

/// What these bytes are when nothing follows.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut decoder = Decoder::new();
    let mut presses = decoder.feed(bytes, Moment(0));
    presses.extend(decoder.expire(Moment(u64::MAX)));
    presses.into_iter().map(|press| press.key).collect()
}

fn esc(at: u64) -> Press {
    Press { key: Key::Esc, at: Moment(at) }
}

/// The event parser of crossterm turns these two bytes into one Esc, and would never report a quick double
/// ESC.
#[test]
fn two_esc_in_one_read_are_two_presses() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.feed(b"\x1b\x1b", Moment(7)), []);
    assert_eq!(decoder.deadline(), Some(Moment(7 + ESC_WAIT_MS)));
    assert_eq!(decoder.expire(Moment(6 + ESC_WAIT_MS)), []);
    assert_eq!(decoder.expire(Moment(7 + ESC_WAIT_MS)), [esc(7), esc(7)]);
    assert_eq!(decoder.deadline(), None);
}

#[test]
fn an_esc_is_dated_when_it_came() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.feed(b"\x1b", Moment(100)), []);
    assert_eq!(decoder.feed(b"\x1b", Moment(110)), []);
    assert_eq!(decoder.expire(Moment(500)), [esc(100), esc(110)]);

    // A caller who was busy and asks late gets the same.
    assert_eq!(decoder.feed(b"\x1b", Moment(600)), []);
    let x = Press { key: Key::Char('x'), at: Moment(900) };
    assert_eq!(decoder.feed(b"x", Moment(900)), [esc(600), x]);
}

#[test]
fn any_number_of_esc_are_as_many_presses() {
    for count in 1..7 {
        assert_eq!(keys(&vec![0x1b; count]), vec![Key::Esc; count]);
    }
    assert_eq!(keys(b"\x1b\x1b\r"), [Key::Esc, Key::Esc, Key::Enter]);
    assert_eq!(keys(b"\x1b\x1b\x1b[A"), [Key::Esc, Key::Up]);
}

#[test]
fn sequences_are_no_esc() {
    for (bytes, key) in [
        (&b"\x1b[A"[..], Key::Up),
        (b"\x1bOA", Key::Up),
        (b"\x1b\x1b[A", Key::Up),
        (b"\x1b\x1bOB", Key::Down),
        (b"\x1bx", Key::Alt('x')),
        ("\x1bä".as_bytes(), Key::Alt('ä')),
        (b"\x1b[", Key::Alt('[')),
        (b"\x1bO", Key::Alt('O')),
        (b"\x1b]", Key::Alt(']')),
        (b"\x1b\r", Key::NewLine),
        (b"\x1b\x7f", Key::Alt('\x7f')),
    ] {
        assert_eq!(keys(bytes), [key], "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn keys_in_their_variants() {
    let table: &[(Key, &[&str])] = &[
        (Key::Enter, &["\r", "\x1b[13u", "\x1bOM"]),
        (Key::NewLine, &["\n", "\x1b[13;2u", "\x1b[27;2;13~", "\x1b[13;5u", "\x1b\n"]),
        (Key::Tab, &["\t", "\x1b[9u"]),
        (Key::BackTab, &["\x1b[Z", "\x1b[9;2u", "\x1b[1;2Z"]),
        (Key::Backspace, &["\x7f", "\x08", "\x1b[127u"]),
        (Key::Delete, &["\x1b[3~", "\x1b[3;5~", "\x1b[3$", "\x1b[3^"]),
        (Key::Esc, &["\x1b", "\x1b[27u", "\x1b[27;1:1u"]),
        (Key::Up, &["\x1b[A", "\x1bOA", "\x1b[1;2A", "\x1b[1;5A", "\x1b[a", "\x1bOa"]),
        (Key::Down, &["\x1b[B", "\x1bOB", "\x1b[1;3B"]),
        (Key::Left, &["\x1b[D", "\x1bOD", "\x1b[1;2D"]),
        (Key::Right, &["\x1b[C", "\x1bOC", "\x1b[1;2C"]),
        (Key::WordLeft, &["\x1b[1;5D", "\x1b[1;3D", "\x1b\x1b[D", "\x1bOd", "\x1bO5D"]),
        (Key::WordRight, &["\x1b[1;5C", "\x1b[1;3C", "\x1b\x1b[C", "\x1bOc", "\x1b[1;5:1C"]),
        (Key::Home, &["\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "\x1b[1;5H"]),
        (Key::End, &["\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "\x1b[1;2F"]),
        (Key::PageUp, &["\x1b[5~", "\x1b[5;5~"]),
        (Key::PageDown, &["\x1b[6~", "\x1b[6;2~"]),
        (Key::F(1), &["\x1bOP", "\x1b[11~", "\x1b[[A", "\x1b[P"]),
        (Key::F(3), &["\x1bOR", "\x1b[13~", "\x1b[1;2R"]),
        (Key::F(5), &["\x1b[15~", "\x1b[[E"]),
        (Key::F(6), &["\x1b[17~"]),
        (Key::F(12), &["\x1b[24~", "\x1b[24;2~"]),
        (Key::Ctrl('c'), &["\x03", "\x1b[99;5u", "\x1b[27;5;99~"]),
        (Key::Ctrl(' '), &["\0"]),
        (Key::Ctrl('\\'), &["\x1c"]),
        (Key::Ctrl('_'), &["\x1f"]),
        (Key::Alt('a'), &["\x1ba", "\x1b[97;3u"]),
        (Key::Char('ä'), &["ä", "\x1b[228u"]),
        (Key::Char('7'), &["7", "\x1bOw"]),
        (Key::Char('👩'), &["👩"]),
    ];
    for (key, variants) in table {
        for bytes in *variants {
            assert_eq!(keys(bytes.as_bytes()), std::slice::from_ref(key), "{bytes:?}");
        }
    }
}

#[test]
fn reports_and_unknown_keys_are_swallowed_whole() {
    for bytes in [
        &b"\x1b[I"[..],
        b"\x1b[O",
        b"\x1b[<0;12;7M",
        b"\x1b[<0;12;7m",
        b"\x1b[M !!",
        b"\x1b[M\x1b[A",
        b"\x1b[?2026;1$y",
        b"\x1b[?62;1;4c",
        b"\x1b[>1;95;0c",
        b"\x1b[12;40R",
        b"\x1b[2~",
        b"\x1b[201~",
        b"\x1b[99~",
        b"\x1b[57441;2u",
        b"\x1b[97;1:3u",
        b"\x1b[1;1:3A",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1bP1$r0m\x1b\\",
        b"\x1bP a\\b\x1b[A \x1b\\",
        b"\x1b_Gi=1;OK\x1b\\",
    ] {
        let bytes = [bytes, b"z"].concat();
        assert_eq!(keys(&bytes), [Key::Char('z')], "{:?}", String::from_utf8_lossy(&bytes));
    }
    let long = [b"\x1b[".as_slice(), &[b'1'; 5000], b"~z"].concat();
    assert_eq!(keys(&long), [Key::Char('z')]);
}

#[test]
fn a_torn_sequence_does_not_take_the_next_key() {
    assert_eq!(keys(b"\x1b[1;\x1b[A"), [Key::Up]);
    assert_eq!(keys(b"\x1b[1;\r"), [Key::Enter]);
}

#[test]
fn a_reply_without_an_end_does_not_take_the_keyboard() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.feed(b"\x1b]11;rgb", Moment(0)), []);
    let deadline = decoder.deadline().unwrap();
    assert_eq!(decoder.expire(deadline), []);
    assert_eq!(decoder.feed(b"z", deadline), [Press { key: Key::Char('z'), at: deadline }]);
}

#[test]
fn text_that_is_no_utf8_is_shown_as_such() {
    assert_eq!(keys(b"\xffa"), [Key::Char('\u{fffd}'), Key::Char('a')]);
    assert_eq!(keys(b"\xe4b"), [Key::Char('\u{fffd}'), Key::Char('b')]);
    assert_eq!(keys(b"\xe4\x1b[A"), [Key::Char('\u{fffd}'), Key::Up]);
    assert_eq!(
        keys("\u{9b}31m".as_bytes()),
        ["3", "1", "m"].map(|c| Key::Char(c.parse().unwrap()))
    );
}

#[test]
fn pasted_text_is_text() {
    for (bytes, text) in [
        ("one\rtwo\r\nthree\nfour", "one\ntwo\nthree\nfour"),
        ("\tfn main() {}\r", "\tfn main() {}\n"),
        ("\x1b[A\x1b\x1b\x1b[200~\x03", "[A[200~"),
        ("中文 👩‍👩‍👧", "中文 👩‍👩‍👧"),
        ("", ""),
    ] {
        let bytes = format!("\x1b[200~{bytes}\x1b[201~z");
        assert_eq!(keys(bytes.as_bytes()), [Key::Paste(text.to_owned()), Key::Char('z')]);
    }
}

#[test]
fn a_paste_waits_for_its_end() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.feed(b"\x1b[200~half", Moment(0)), []);
    assert_eq!(decoder.expire(Moment(1999)), []);
    assert_eq!(decoder.feed(b" whole\x1b[201", Moment(1999)), []);
    assert_eq!(decoder.deadline(), Some(Moment(3999)));
    // A caller who was busy and did not ask at the deadline has not torn it.
    let at = Moment(90_000);
    let key = Key::Paste("half whole".to_owned());
    assert_eq!(decoder.feed(b"~", at), [Press { key, at }]);
    assert_eq!(decoder.deadline(), None);
}

#[test]
fn a_paste_without_an_end_does_not_take_the_keyboard() {
    for (bytes, text) in [("half", "half"), ("", ""), ("half\x1b[201", "half"), ("a\x1b", "a")] {
        let mut decoder = Decoder::new();
        let bytes = format!("\x1b[200~{bytes}");
        assert_eq!(decoder.feed(bytes.as_bytes(), Moment(100)), []);
        assert_eq!(decoder.deadline(), Some(Moment(2100)));
        let key = Key::Paste(text.to_owned());
        assert_eq!(decoder.expire(Moment(2100)), [Press { key, at: Moment(100) }]);
        let z = Press { key: Key::Char('z'), at: Moment(2200) };
        assert_eq!(decoder.feed(b"z", Moment(2200)), [z]);
        // An end that comes late is no text.
        assert_eq!(decoder.feed(b"\x1b[201~", Moment(2300)), []);
    }
}

#[test]
fn of_a_paste_without_measure_the_beginning_is_taken() {
    let most = 1 << 20;
    for more in [0, 1, 5_000_000] {
        let bytes = ["\x1b[200~", &"x".repeat(most + more), "\x1b[20y\x1b[201~z"].concat();
        let kept = Key::Paste("x".repeat(most));
        assert!(keys(bytes.as_bytes()) == [kept, Key::Char('z')], "{more} more");
    }
}

/// Bytes that are likely to mean something together.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\x1b".to_vec()),
        Just(b"\x1b[".to_vec()),
        Just(b"\x1bO".to_vec()),
        Just(b"\x1b[200~".to_vec()),
        Just(b"\x1b[201~".to_vec()),
        Just(b"\x1b[M".to_vec()),
        Just(b"\x1b]".to_vec()),
        Just(b"\x1b\\".to_vec()),
        Just("中👩é".as_bytes().to_vec()),
        "[0-9;:<?$~ABCDHFZPRuM]{1,4}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 1..4),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_cut_makes_no_difference(bytes in bytes(), cuts in proptest::collection::vec(any::<bool>(), 64)) {
        let mut decoder = Decoder::new();
        let mut presses = Vec::new();
        let mut from = 0;
        for at in 1..=bytes.len() {
            if at == bytes.len() || cuts[at % cuts.len()] {
                presses.extend(decoder.feed(&bytes[from..at], Moment(0)));
                from = at;
            }
        }
        presses.extend(decoder.expire(Moment(u64::MAX)));
        let cut: Vec<Key> = presses.into_iter().map(|press| press.key).collect();
        prop_assert_eq!(cut, keys(&bytes));
    }

    #[test]
    fn text_comes_through(text in "\\PC{0,40}") {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let expected: Vec<Key> = text.chars().map(Key::Char).collect();
        prop_assert_eq!(keys(text.as_bytes()), expected);
    }

    /// Whatever was before, once the keyboard is quiet an arrow is an arrow; a few bytes at most are
    /// taken for the rest of a mouse report or a character.
    #[test]
    fn nothing_jams_the_keyboard(bytes in bytes()) {
        let mut decoder = Decoder::new();
        decoder.feed(&bytes, Moment(0));
        decoder.expire(Moment(10_000));
        decoder.feed(b"zzz", Moment(20_000));
        decoder.expire(Moment(30_000));
        let presses = decoder.feed(b"\x1b[A", Moment(40_000));
        prop_assert_eq!(presses, [Press { key: Key::Up, at: Moment(40_000) }]);
    }
}
