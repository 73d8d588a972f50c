//! Where messages begin and end.

use takeback_ipc::{Frame, FrameReader};

use crate::fakes::Dribble;

/// The frames in `bytes`, and why there are no more, however they are cut on the way.
fn frames(bytes: &[u8], limit: usize) -> (Vec<Frame>, Option<String>) {
    let read = |step| {
        let mut reader = FrameReader::new(Dribble { bytes, step }, limit);
        let mut frames = Vec::new();
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return (frames, None),
                Err(error) => return (frames, Some(error.to_string())),
            }
        }
    };
    let whole = read(usize::MAX);
    for step in [1, 2, 3, 7] {
        assert_eq!(read(step), whole, "{step} bytes at a time");
    }
    whole
}

fn whole(text: &str) -> Frame {
    Frame::Whole(text.as_bytes().to_vec())
}

#[test]
fn a_line_is_a_frame() {
    let cases: [(&[u8], &[Frame]); 6] = [
        (b"", &[]),
        (b"\n\n  \n", &[]),
        (b"{}\n", &[whole("{}")]),
        (b"{}\r\n\n[]\n", &[whole("{}\r"), whole("[]")]),
        (b"{}\n{\"cut\"", &[whole("{}"), whole("{\"cut\"")]),
        (b"x\nContent-Length: 2\n", &[whole("x"), whole("Content-Length: 2")]),
    ];
    for (bytes, expected) in cases {
        assert_eq!(frames(bytes, 100), (expected.to_vec(), None), "{bytes:?}");
    }
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let bytes = [b"12345\n123456\n", vec![b'x'; 200_000].as_slice(), b"\nok\n123456"].concat();
    let too_large = || Frame::TooLarge { id: None };
    let expected = [whole("12345"), too_large(), too_large(), whole("ok"), too_large()];
    assert_eq!(frames(&bytes, 5), (expected.to_vec(), None));
}

#[test]
fn a_frame_may_have_its_length_before_it() {
    let bytes = b"Content-Length: 2\r\n\r\n{}content-length:4\nContent-Type: x\n\n{\n}\n";
    assert_eq!(frames(bytes, 100), (vec![whole("{}"), whole("{\n}\n")], None));
    let bytes = b"Content-Length: 6\r\n\r\n123456Content-Length: 2\r\n\r\n{}";
    assert_eq!(frames(bytes, 5), (vec![Frame::TooLarge { id: None }, whole("{}")], None));
    let cut: [&[u8]; 3] = [b"Content-Length: 9\r\n\r\n{}", b"Content-Length: 9\r\n", b"Con"];
    for bytes in cut {
        assert_eq!(frames(bytes, 100), (vec![], None), "a client that went: {bytes:?}");
    }
}

#[test]
fn a_broken_header_ends_it() {
    let long = [b"Content-Length: 2\r\nX: ".as_slice(), &[b'x'; 9000]].concat();
    let cases: [(&[u8], &str); 4] = [
        (b"Content-Length: many\r\n\r\n{}", "Content-Length is not a number"),
        (b"Content-Type: x\r\n\r\n{}", "there is no Content-Length"),
        (b"Content\r\n\r\n{}", "invalid header"),
        (&long, "the headers are too long"),
    ];
    for (bytes, why) in cases {
        let expected = (vec![], Some(format!("no frame begins here: {why}")));
        assert_eq!(frames(bytes, 100), expected);
    }
}

#[test]
fn the_id_of_an_oversized_frame_is_found() {
    let text = |id: &str| format!(r#"{{"params":["{}"],"id":{id}}}"#, "x".repeat(100_000));
    let frame = |id: &str| Frame::TooLarge { id: Some(id.to_owned()) };
    let lines = format!("{}\n{}\n{{}}\n", text("7"), text("\"a\""));
    let expected = vec![frame("7"), frame("\"a\""), whole("{}")];
    assert_eq!(frames(lines.as_bytes(), 50), (expected, None));
    let headers = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let lengths = format!("{}{}", headers(&text("8")), headers("{}"));
    assert_eq!(frames(lengths.as_bytes(), 50), (vec![frame("8"), whole("{}")], None));
}
