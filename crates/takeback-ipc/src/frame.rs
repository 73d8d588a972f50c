//! Frames: one message per line, or a `Content-Length` header before each.
//!
//! A client's first byte selects the framing for the whole connection. A frame over the limit is
//! skipped without being kept; only its id is extracted.

use std::io::{self, BufRead, BufReader, Read};

use crate::id_scanner::IdScanner;

/// How messages are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON text per line.
    Lines,
    /// `Content-Length: N`, an empty line, N bytes.
    Headers,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A complete message.
    Whole(Vec<u8>),
    /// Longer than the limit, and skipped.
    TooLarge {
        /// The id of the call as JSON, if there is one.
        id: Option<String>,
    },
}

/// Why the next frame could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Reading failed.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The headers are invalid.
    #[error("no frame begins here: {why}")]
    Header {
        /// What is wrong with them.
        why: &'static str,
    },
}

/// Bounds the memory that a client can use before its first frame.
const LONGEST_HEADER: usize = 8 << 10;

/// Splits a stream into frames.
pub struct FrameReader<R> {
    reader: BufReader<R>,
    framing: Option<Framing>,
    limit: usize,
}

impl<R: Read> FrameReader<R> {
    /// Reads frames of at most `limit` bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), framing: None, limit }
    }

    /// `None` until the first byte was read.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The next frame that is not empty; `None` at the end of the input. The last line may lack its
    /// newline.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let Some(first) = self.peek()? else { return Ok(None) };
            if first.is_ascii_whitespace() {
                self.reader.consume(1);
                continue;
            }
            let sniffed =
                if first.eq_ignore_ascii_case(&b'C') { Framing::Headers } else { Framing::Lines };
            return match *self.framing.get_or_insert(sniffed) {
                Framing::Lines => self.line().map(Some),
                Framing::Headers => self.after_headers(),
            };
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, FrameError> {
        Ok(fill(&mut self.reader)?.first().copied())
    }

    fn line(&mut self) -> Result<Frame, FrameError> {
        let mut line = Vec::new();
        let mut too_large: Option<IdScanner> = None;
        loop {
            let part = fill(&mut self.reader)?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let used = end.unwrap_or(part.len());
            if too_large.is_none() && line.len() + used > self.limit {
                let mut scanner = IdScanner::new();
                scanner.feed(&std::mem::take(&mut line));
                too_large = Some(scanner);
            }
            match &mut too_large {
                Some(scanner) => scanner.feed(&part[..used]),
                None => line.extend_from_slice(&part[..used]),
            }
            let is_last = end.is_some() || part.is_empty();
            self.reader.consume(used + usize::from(end.is_some()));
            if is_last {
                return Ok(too_large.as_ref().map_or(Frame::Whole(line), too_large_frame));
            }
        }
    }

    fn after_headers(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(length) = self.headers()? else { return Ok(None) };
        let mut body = Read::take(&mut self.reader, length as u64);
        if length > self.limit {
            let mut scanner = IdScanner::new();
            loop {
                let part = body.fill_buf().map_err(FrameError::Io)?;
                let length = part.len();
                if length == 0 {
                    return Ok(Some(too_large_frame(&scanner)));
                }
                scanner.feed(part);
                body.consume(length);
            }
        }
        let mut frame = Vec::new();
        body.read_to_end(&mut frame).map_err(FrameError::Io)?;
        Ok((frame.len() == length).then_some(Frame::Whole(frame)))
    }

    /// The value of `Content-Length`; `None`: the client disconnected within the headers.
    fn headers(&mut self) -> Result<Option<usize>, FrameError> {
        let mut length = None;
        let mut left = LONGEST_HEADER;
        loop {
            let mut line = Vec::new();
            let mut limited = Read::take(&mut self.reader, left as u64);
            limited.read_until(b'\n', &mut line).map_err(FrameError::Io)?;
            left -= line.len();
            if line.last() != Some(&b'\n') {
                let why = "the headers are too long";
                return if left == 0 { Err(FrameError::Header { why }) } else { Ok(None) };
            }
            let line = line.trim_ascii();
            if line.is_empty() {
                let why = "there is no Content-Length";
                return length.ok_or(FrameError::Header { why }).map(Some);
            }
            let why = "invalid header";
            let colon = line.iter().position(|byte| *byte == b':');
            let (name, value) = line.split_at(colon.ok_or(FrameError::Header { why })?);
            if name.trim_ascii().eq_ignore_ascii_case(b"Content-Length") {
                let number = str::from_utf8(value[1..].trim_ascii()).ok();
                let why = "Content-Length is not a number";
                length = Some(
                    number
                        .and_then(|number| number.parse().ok())
                        .ok_or(FrameError::Header { why })?,
                );
            }
        }
    }
}

fn too_large_frame(scanner: &IdScanner) -> Frame {
    Frame::TooLarge { id: scanner.id().map(|id| id.get().to_owned()) }
}

/// `fill_buf`, retried after signals.
fn fill<R: Read>(reader: &mut BufReader<R>) -> Result<&[u8], FrameError> {
    loop {
        match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FrameError::Io(error)),
            Ok(_) => break,
        }
    }
    Ok(reader.buffer())
}

impl Framing {
    /// Adds the newline or header to a message. `text` is JSON without newlines.
    #[must_use]
    pub fn framed(self, text: &str) -> Vec<u8> {
        match self {
            Self::Lines => [text.as_bytes(), b"\n"].concat(),
            Self::Headers => format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes(),
        }
    }
}
