//! Writing to a file through a memory map, as databases and linkers do.

use std::fs::File;
use std::path::Path;

use memmap2::MmapMut;

/// A file of at least one byte, mapped to be written.
pub struct Mapped(MmapMut);

impl Mapped {
    #[must_use]
    #[expect(unsafe_code, reason = "a map is memory that others can change; nobody does here")]
    pub fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path).expect("it opens");
        // SAFETY: the file is a test's own. Nobody cuts it short while it is mapped, and what is
        // read through the map is bytes, of which every value is a valid one.
        Self(unsafe { MmapMut::map_mut(&file) }.expect("it can be mapped"))
    }

    /// Overwrites the first bytes, and waits for nothing.
    pub fn store(&mut self, bytes: &[u8]) {
        self.0[..bytes.len()].copy_from_slice(bytes);
    }

    /// Sets every byte, and waits until they are on disk.
    pub fn fill(&mut self, byte: u8) {
        self.0.fill(byte);
        self.0.flush().expect("it is written");
    }
}
