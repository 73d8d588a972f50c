//! The way of a command's answer to its reader, who may have gone, or whose disk may be full.

use std::io::{self, Write};

/// What a command does when the reader of its answer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenUnread {
    /// It has only been looking: `takeback log | head`.
    Stop,
    /// It changes something, or its exit code says something: it goes on to its end.
    GoOn,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer could not be written")]
struct Lost(#[source] io::Error);

/// Passes an answer on.
pub(crate) struct Answer<W> {
    pub(crate) to: W,
    pub(crate) when_unread: WhenUnread,
}

impl<W> Answer<W> {
    /// The outcome of a write of which `all` is the whole.
    fn passed<T>(&self, written: io::Result<T>, all: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => match self.when_unread {
                WhenUnread::Stop => Err(error),
                WhenUnread::GoOn => Ok(all),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(io::Error::new(error.kind(), Lost(error))),
            written => written,
        }
    }
}

impl<W: Write> Write for Answer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.passed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.passed(flushed, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_who_changes_something_goes_on_without_a_reader() {
        for (failure, when_unread, expected) in [
            (io::ErrorKind::BrokenPipe, WhenUnread::Stop, Err("broken pipe")),
            (io::ErrorKind::BrokenPipe, WhenUnread::GoOn, Ok(3)),
            (io::ErrorKind::StorageFull, WhenUnread::GoOn, Err("the answer could not be written")),
        ] {
            let mut answer = Answer { to: Failing(failure), when_unread };
            let written = answer.write(b"abc").map_err(|error| error.to_string());
            assert_eq!(written, expected.map_err(str::to_owned), "{failure}");
            assert_eq!(answer.flush().is_ok(), expected.is_ok());
        }
    }
}
