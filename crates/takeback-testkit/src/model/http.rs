//! As much of HTTP/1.1 as model clients need: one request per connection.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::format::Format;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// With names in lower case.
    pub headers: Vec<(String, String)>,
    /// `null` if there is none or it is not JSON.
    pub body: Value,
}

impl Request {
    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(known, _)| known == name);
        header.map(|(_, value)| value.as_str())
    }

    /// Whether it requests a message.
    #[must_use]
    pub fn wants_message(&self) -> bool {
        self.format().is_some_and(|format| !format.is_decision(&self.body))
    }

    /// The format of the request, if it is for the model.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        if self.method == "POST" { Format::at(&self.path) } else { None }
    }

    pub(super) fn is_streamed(&self) -> bool {
        self.format().is_some_and(|format| format.is_streamed(&self.path, &self.body))
    }
}

/// `None`: the client closed the connection.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, path) = (method.to_owned(), path.split('?').next().unwrap_or(path).to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Value::Null };
    let mut bytes = Vec::new();
    let chunked = |coding: &str| coding.eq_ignore_ascii_case("chunked");
    if request.header("transfer-encoding").is_some_and(chunked) {
        read_chunks(&mut reader, &mut bytes)?;
    } else {
        let length = request.header("content-length").and_then(|length| length.parse().ok());
        (&mut reader).take(length.unwrap_or(0)).read_to_end(&mut bytes)?;
    }
    request.body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Ok(Some(request))
}

fn read_chunks(reader: &mut BufReader<&TcpStream>, bytes: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = line.split(';').next().unwrap_or_default();
        let length = u64::from_str_radix(length.trim(), 16).unwrap_or(0);
        reader.by_ref().take(length).read_to_end(bytes)?;
        reader.read_line(&mut String::new())?;
        if length == 0 {
            return Ok(());
        }
    }
}

pub(super) fn write_json(
    stream: &mut TcpStream,
    request: &Request,
    status: u16,
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let sent = if request.method == "HEAD" { "" } else { &body };
    let length = ("content-length".to_owned(), body.len().to_string());
    head(stream, status, &[json_type(), length])?;
    stream.write_all(sent.as_bytes())
}

pub(super) fn write(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut all = vec![json_type(), ("content-length".to_owned(), body.len().to_string())];
    all.extend_from_slice(headers);
    head(stream, status, &all)?;
    stream.write_all(body.as_bytes())
}

pub(super) fn begin_stream(stream: &mut TcpStream) -> io::Result<()> {
    head(stream, 200, &[("content-type".to_owned(), "text/event-stream".to_owned())])
}

pub(super) fn write_piece(stream: &mut TcpStream, piece: &str) -> io::Result<()> {
    stream.write_all(piece.as_bytes())?;
    stream.flush()
}

fn json_type() -> (String, String) {
    ("content-type".to_owned(), "application/json".to_owned())
}

fn head(stream: &mut TcpStream, status: u16, headers: &[(String, String)]) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes())
}
