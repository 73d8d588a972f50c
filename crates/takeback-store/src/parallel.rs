//! Maps a slice on several threads.

use std::thread::Builder;

/// Calls `act` on each of `items`, on up to `threads` threads, and returns the results in the order
/// of the items. Uses fewer threads if the system starts fewer.
pub fn map_in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    act: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if threads <= 1 || items.len() <= 1 {
        return items.iter().map(act).collect();
    }
    let act_on = |share: &[T]| -> Vec<R> { share.iter().map(&act).collect() };
    let act_on = &act_on;
    std::thread::scope(|scope| {
        let shares = items.chunks(items.len().div_ceil(threads));
        let threads: Vec<_> = shares
            .map(|share| (share, Builder::new().spawn_scoped(scope, move || act_on(share))))
            .collect();
        let answers = threads.into_iter().flat_map(|(share, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => act_on(share),
        });
        answers.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_with_any_number_of_threads() {
        for (count, threads) in [(0, 4), (1, 4), (3, 8), (100, 1), (100, 3), (100, 7)] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = (0..count).map(|item| 2 * item).collect();
            assert_eq!(map_in_parallel(&items, threads, |item| 2 * item), doubled);
        }
    }
}
