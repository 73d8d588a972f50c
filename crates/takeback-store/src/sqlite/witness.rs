//! A small file beside the database that tells the last commit: SQLite drops the damaged end of its own
//! log without a word, and this is how it is missed.
//!
//! Written after each commit and never waited for. It may be behind; only what it knows and the database
//! does not is a loss.

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
pub(super) struct Witness(File);

impl Witness {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        disk::open_witness(path).map(Self)
    }

    /// The last commit it was told of; `None` if there was none, or it cannot be read.
    pub(super) fn last(&self) -> Option<(Head, Chain)> {
        let mut bytes = [0; LENGTH];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        parse(&bytes)
    }

    pub(super) fn tell(&self, head: Head, chain: Chain) -> io::Result<()> {
        disk::overwrite(&self.0, &line(head, chain))
    }
}

/// As [`Witness::last`], where nothing is to be made.
pub(super) fn last_at(path: &Path) -> Option<(Head, Chain)> {
    let file = File::open(path).ok()?;
    Witness(file).last()
}

fn line(head: Head, chain: Chain) -> Vec<u8> {
    let told = format!("{:016x} {:016x} {}", head.revision, head.seq.0, chain.0);
    format!("{told} {}\n", checksum(&told)).into_bytes()
}

fn checksum(told: &str) -> String {
    blake3::hash(told.as_bytes()).to_hex()[..8].to_owned()
}

fn parse(bytes: &[u8]) -> Option<(Head, Chain)> {
    let line = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (told, sum) = line.rsplit_once(' ')?;
    let mut parts = told.split(' ');
    let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
    let head = Head { revision: number()?, seq: Seq(number()?) };
    let chain = parts.next()?.parse::<Digest>().ok()?;
    (sum == checksum(told)).then_some((head, Chain(chain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_reads_back_and_nothing_else_does() {
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
