//! Writes to a file through a memory map, as databases and linkers do.

use std::fs::File;
use std::path::Path;

use memmap2::MmapMut;

/// A writable memory map of a file, which must not be empty.
pub struct MemoryMap(MmapMut);

impl MemoryMap {
    /// Maps a file.
    #[must_use]
    #[expect(unsafe_code, reason = "other processes could change mapped memory; none does here")]
    pub fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path).expect("it opens");
        // SAFETY: the file belongs to the test and is not truncated while it is mapped; every byte value
        // is valid.
        Self(unsafe { MmapMut::map_mut(&file) }.expect("it can be mapped"))
    }

    /// Overwrites the first bytes, without a flush.
    pub fn store(&mut self, bytes: &[u8]) {
        self.0[..bytes.len()].copy_from_slice(bytes);
    }

    /// Sets every byte, and flushes.
    pub fn fill(&mut self, byte: u8) {
        self.0.fill(byte);
        self.0.flush().expect("it is written");
    }
}
