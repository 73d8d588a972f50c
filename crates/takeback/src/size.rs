//! Measures sizes on disk. Links are not followed.

use std::path::Path;
use std::time::{Duration, Instant};

/// A measured size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Exactly(u64),
    /// The budget ran out before everything was counted.
    AtLeast(u64),
}

/// How many names and how much time measuring may take.
pub(crate) struct Budget {
    names: usize,
    until: Instant,
}

impl Budget {
    pub(crate) fn new(names: usize, time: Duration) -> Self {
        Self { names, until: Instant::now() + time }
    }

    /// An equal share of the rest, for one of `of` items.
    fn share(&mut self, of: usize) -> Self {
        let names = self.names / of.max(1);
        self.names -= names;
        let left = self.until.saturating_duration_since(Instant::now());
        let time = left / u32::try_from(of.max(1)).unwrap_or(u32::MAX);
        Self::new(names, time)
    }
}

/// The sizes of these files and folders; `None` for each that cannot be measured. Budget that one does not
/// use is left for the next.
pub(crate) fn sizes<'p>(
    paths: impl ExactSizeIterator<Item = Option<&'p Path>>,
    mut budget: Budget,
) -> Vec<Option<Size>> {
    let count = paths.len();
    paths
        .enumerate()
        .map(|(at, path)| {
            let mut own = budget.share(count - at);
            let size = path.and_then(|path| size(path, &mut own));
            budget.names += own.names;
            size
        })
        .collect()
}

fn size(path: &Path, budget: &mut Budget) -> Option<Size> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_dir() {
        return Some(Size::Exactly(metadata.len()));
    }
    let mut bytes = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder that cannot be listed adds nothing; the sum is still a lower bound.
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            if budget.names == 0 || Instant::now() >= budget.until {
                return Some(Size::AtLeast(bytes));
            }
            budget.names -= 1;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    Some(Size::Exactly(bytes))
}

/// The total size of a folder.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let mut all = Budget::new(usize::MAX, Duration::from_secs(3600));
    match size(folder, &mut all) {
        Some(Size::Exactly(bytes) | Size::AtLeast(bytes)) => bytes,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_folder_is_counted_as_far_as_the_budget_goes_and_the_others_are_not_starved() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, files) in [("large", 50), ("small", 2)] {
            std::fs::create_dir_all(at(name).join("deep")).unwrap();
            for n in 0..files {
                std::fs::write(at(name).join("deep").join(n.to_string()), "12345").unwrap();
            }
        }
        std::fs::write(at("file"), "123").unwrap();
        let paths = [at("large"), at("small"), at("file"), at("none")];
        let hour = Duration::from_secs(3600);
        let sizes_within = |names| {
            let paths = paths.iter().map(|path| Some(path.as_path()));
            sizes(paths, Budget::new(names, hour))
        };
        use Size::{AtLeast, Exactly};
        assert_eq!(
            sizes_within(1000),
            [Some(Exactly(250)), Some(Exactly(10)), Some(Exactly(3)), None]
        );
        assert_eq!(
            sizes_within(40),
            [Some(AtLeast(45)), Some(Exactly(10)), Some(Exactly(3)), None]
        );
        assert_eq!(sizes([None].into_iter(), Budget::new(9, hour)), [None]);
        let paths = paths.iter().map(|path| Some(path.as_path()));
        let late = sizes(paths, Budget::new(1000, Duration::ZERO));
        assert_eq!(late[..2], [Some(AtLeast(0)), Some(AtLeast(0))], "no time is left");
    }
}
