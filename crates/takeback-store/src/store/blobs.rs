//! Contents by digest.

use std::io;

use super::StoreError;
use crate::blob::{Digest, PackedBlob};

/// The contents that a log refers to, each stored once.
pub trait Blobs {
    /// Stores a blob for the next commit. One that is stored already costs nothing.
    fn put(&mut self, blob: PackedBlob) -> Result<(), StoreError>;

    /// Whether a blob is recorded as stored. [`Self::is_complete`] looks further.
    fn has(&self, digest: &Digest) -> Result<bool, StoreError>;

    /// One blob as it is stored, not yet verified.
    fn read_packed(&self, digest: &Digest) -> Result<PackedBlob, StoreError>;

    /// Passes the contents of `digest` to `sink` part by part, in order, each verified. The whole is
    /// verified too: what `sink` received is right only if this returns `Ok`.
    fn read(
        &self,
        digest: &Digest,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let damaged = || StoreError::DamagedBlob { digest: *digest };
        let unwritten = |source| StoreError::Sink { digest: *digest, source };
        let blob = self.read_packed(digest)?;
        let chunks = blob.chunks();
        if chunks.is_empty() {
            return sink(&blob.unpack().ok_or_else(damaged)?).map_err(unwritten);
        }
        let mut whole = blake3::Hasher::new();
        for chunk in chunks {
            let contents = self.read_packed(&chunk)?.unpack().ok_or_else(damaged)?;
            whole.update(&contents);
            sink(&contents).map_err(unwritten)?;
        }
        if *whole.finalize().as_bytes() == digest.0 { Ok(()) } else { Err(damaged()) }
    }

    /// Whether the contents of `digest` and all their parts are stored where they should be. A store
    /// may answer without reading their bytes: only [`Self::read`] verifies those.
    fn is_complete(&self, digest: &Digest) -> Result<bool, StoreError> {
        match self.read(digest, &mut |_| Ok(())) {
            Err(error) if error.is_lost_contents() => Ok(false),
            read => read.map(|()| true),
        }
    }

    /// The contents of `digest`, verified, whole in memory.
    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let mut contents = Vec::new();
        self.read(digest, &mut |part| {
            contents.extend_from_slice(part);
            Ok(())
        })?;
        Ok(contents)
    }
}
