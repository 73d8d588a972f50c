//! Packed blobs on their way from the scanning threads to the sink.

use std::cell::{Cell, RefCell};

use takeback_store::PackedBlob;

/// Batches of packed blobs under way between the readers and the sink.
pub(super) const BATCHES_IN_FLIGHT: usize = 8;

/// Blobs on their way to the sink. Handed over in batches: to wake the other side for each of them
/// takes as long as to read a file.
pub(super) struct Blobs<'a> {
    hand_over: &'a dyn Fn(Vec<PackedBlob>),
    batch: RefCell<Vec<PackedBlob>>,
    bytes: Cell<usize>,
}

impl<'a> Blobs<'a> {
    const BATCH: usize = 128 << 10;

    pub(super) fn new(hand_over: &'a dyn Fn(Vec<PackedBlob>)) -> Self {
        Self { hand_over, batch: RefCell::default(), bytes: Cell::new(0) }
    }

    pub(super) fn put(&self, blob: PackedBlob) {
        self.bytes.set(self.bytes.get() + blob.bytes.len());
        self.batch.borrow_mut().push(blob);
        if self.bytes.get() >= Self::BATCH {
            self.hand_over();
        }
    }

    pub(super) fn hand_over(&self) {
        self.bytes.set(0);
        (self.hand_over)(self.batch.take());
    }
}
