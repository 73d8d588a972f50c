//! A small file next to the database that repeats the last commit. SQLite silently drops the damaged
//! end of its own log; this file is how the loss is noticed.
//!
//! Written after each commit and never synced. It may be behind the database, which means nothing; if
//! it is ahead, commits are lost.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::blob::Digest;
use crate::chain::Chain;
use crate::disk;
use crate::id::Seq;
use crate::store::Head;

/// `<revision> <seq> <chain> <checksum>` and a newline, all in hex.
const LENGTH: usize = 16 + 1 + 16 + 1 + 64 + 1 + 8 + 1;

#[derive(Debug)]
pub(super) struct LastCommit(File);

impl LastCommit {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        disk::open_overwritable(path).map(Self)
    }

    /// The last commit; `None` if there was none, or the file is damaged.
    pub(super) fn read(&self) -> Option<(Head, Chain)> {
        let mut bytes = [0; LENGTH];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        parse(&bytes)
    }

    pub(super) fn write(&self, head: Head, chain: Chain) -> io::Result<()> {
        disk::overwrite(&self.0, &line(head, chain))
    }
}

/// As [`LastCommit::read`], without creating the file.
pub(super) fn read_at(path: &Path) -> Option<(Head, Chain)> {
    let file = File::open(path).ok()?;
    LastCommit(file).read()
}

fn line(head: Head, chain: Chain) -> Vec<u8> {
    let text = format!("{:016x} {:016x} {}", head.revision, head.seq.0, chain.0);
    format!("{text} {}\n", checksum(&text)).into_bytes()
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
}

fn parse(bytes: &[u8]) -> Option<(Head, Chain)> {
    let line = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (text, sum) = line.rsplit_once(' ')?;
    let mut parts = text.split(' ');
    let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
    let head = Head { revision: number()?, seq: Seq(number()?) };
    let chain = parts.next()?.parse::<Digest>().ok()?;
    (sum == checksum(text)).then_some((head, Chain(chain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_and_a_damaged_one_does_not() {
        let head = Head { revision: 3, seq: Seq(u64::MAX) };
        let chain = Chain(Digest::of(b"x"));
        let line = line(head, chain);
        assert_eq!((line.len(), parse(&line)), (LENGTH, Some((head, chain))));
        for at in 0..line.len() {
            let mut other = line.clone();
            other[at] ^= 1;
            assert_eq!(parse(&other), None, "byte {at}");
        }
    }
}
