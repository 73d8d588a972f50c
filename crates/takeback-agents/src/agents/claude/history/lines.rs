//! Reads the lines of a file, with a limit for each.

use std::io::{self, BufRead, Read as _};

/// Longer lines are skipped.
const LINE_MAX: u64 = 64 << 20;

/// Calls a function with each line that is not blank; `None` for one that is too long.
pub(super) fn each_line(
    mut input: impl BufRead,
    mut take: impl FnMut(Option<&[u8]>),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == LINE_MAX && bytes.last() != Some(&b'\n') {
            take(None);
            input.skip_until(b'\n')?;
        } else if !bytes.trim_ascii().is_empty() {
            take(Some(&bytes));
        }
    }
}
