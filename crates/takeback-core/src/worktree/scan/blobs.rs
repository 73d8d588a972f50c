//! Packed blobs on their way from the scanning threads to the sink.

use std::cell::{Cell, RefCell};

use takeback_store::PackedBlob;

/// Batches of packed blobs between the readers and the sink.
pub(super) const BATCHES_IN_FLIGHT: usize = 8;

/// Blobs on their way to the sink, in batches: waking the other side for each blob takes as long as reading a
/// file.
pub(super) struct Blobs<'a> {
    send: &'a dyn Fn(Vec<PackedBlob>),
    batch: RefCell<Vec<PackedBlob>>,
    bytes: Cell<usize>,
}

impl<'a> Blobs<'a> {
    const BATCH: usize = 128 << 10;

    pub(super) fn new(send: &'a dyn Fn(Vec<PackedBlob>)) -> Self {
        Self { send, batch: RefCell::default(), bytes: Cell::new(0) }
    }

    pub(super) fn put(&self, blob: PackedBlob) {
        self.bytes.set(self.bytes.get() + blob.bytes.len());
        self.batch.borrow_mut().push(blob);
        if self.bytes.get() >= Self::BATCH {
            self.flush();
        }
    }

    pub(super) fn flush(&self) {
        self.bytes.set(0);
        (self.send)(self.batch.take());
    }
}
