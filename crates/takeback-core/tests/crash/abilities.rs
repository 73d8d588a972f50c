//! File systems and kernels with fewer abilities, for the crash and the fidelity tests.

use takeback_store::disk;
use takeback_testkit::Sandbox;

/// The abilities of the file system and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abilities {
    All,
    NoExchange,
    /// Neither exchange nor a rename that refuses to replace, nor files without a name.
    PlainRenames,
    NoOpenat2,
}

impl Abilities {
    pub(crate) const EACH: [Self; 4] =
        [Self::All, Self::NoExchange, Self::PlainRenames, Self::NoOpenat2];

    /// For the thread that calls it.
    pub(crate) fn limit(self, sandbox: &Sandbox) {
        let root = &sandbox.workspace.root;
        disk::only_plain_renames(self == Self::PlainRenames);
        match self {
            Self::All => {}
            Self::PlainRenames => root.without_unnamed_files(),
            Self::NoExchange => root.without_exchange(),
            Self::NoOpenat2 => root.without_openat2(),
        }
    }
}
