//! The same for many, by several threads.

use std::thread::ScopedJoinHandle;

/// What `act` answers for each of `items`, in their order, by `threads` that share them.
pub fn at_once<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    act: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if threads <= 1 || items.len() <= 1 {
        return items.iter().map(act).collect();
    }
    std::thread::scope(|scope| {
        let act = &act;
        let shares = items.chunks(items.len().div_ceil(threads));
        let threads: Vec<ScopedJoinHandle<'_, Vec<R>>> =
            shares.map(|share| scope.spawn(move || share.iter().map(act).collect())).collect();
        let answers = threads.into_iter().flat_map(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        answers.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_in_order_however_many_threads_there_are() {
        for (count, threads) in [(0, 4), (1, 4), (3, 8), (100, 1), (100, 3), (100, 7)] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = (0..count).map(|item| 2 * item).collect();
            assert_eq!(at_once(&items, threads, |item| 2 * item), doubled);
        }
    }
}
