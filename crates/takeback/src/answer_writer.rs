//! Writes a command's answer to standard output, whose reader may be gone or whose disk may be full.

use std::io::{self, Write};

/// What a command does when its output is a closed pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrokenPipePolicy {
    /// For commands that only read: `takeback log | head`.
    Stop,
    /// For commands that change something or whose exit code matters: they run to their end.
    Continue,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer could not be written")]
struct WriteError(#[source] io::Error);

/// Wraps standard output and applies the [`BrokenPipePolicy`].
pub(crate) struct AnswerWriter<W> {
    pub(crate) to: W,
    pub(crate) on_broken_pipe: BrokenPipePolicy,
}

impl<W> AnswerWriter<W> {
    /// Maps the result of a write; `all` is what a complete write returns.
    fn check<T>(&self, written: io::Result<T>, all: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => match self.on_broken_pipe {
                BrokenPipePolicy::Stop => Err(error),
                BrokenPipePolicy::Continue => Ok(all),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(io::Error::new(error.kind(), WriteError(error))),
            written => written,
        }
    }
}

impl<W: Write> Write for AnswerWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.check(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.check(flushed, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailingWriter(io::ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_commands_that_change_something_continue_without_a_reader() {
        for (failure, on_broken_pipe, expected) in [
            (io::ErrorKind::BrokenPipe, BrokenPipePolicy::Stop, Err("broken pipe")),
            (io::ErrorKind::BrokenPipe, BrokenPipePolicy::Continue, Ok(3)),
            (
                io::ErrorKind::StorageFull,
                BrokenPipePolicy::Continue,
                Err("the answer could not be written"),
            ),
        ] {
            let mut answer = AnswerWriter { to: FailingWriter(failure), on_broken_pipe };
            let written = answer.write(b"abc").map_err(|error| error.to_string());
            assert_eq!(written, expected.map_err(str::to_owned), "{failure}");
            assert_eq!(answer.flush().is_ok(), expected.is_ok());
        }
    }
}
