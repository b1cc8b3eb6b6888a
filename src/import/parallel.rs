//! Several files at once, on named threads.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Works on items on so many named threads. Each takes the next one when it is done, until `work` says to stop.
///
/// # Errors
/// When the system did not give all the threads; those that it gave have done the work.
pub fn in_parallel<T: Sync>(
    name: &str,
    threads: usize,
    items: &[T],
    work: impl Fn(usize, &T) -> ControlFlow<()> + Sync,
) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let work_on = || {
        while let Some((at, item)) = next_of(items, &next) {
            if work(at, item).is_break() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for number in 1..=threads.min(items.len()) {
            thread::Builder::new().name(format!("{name} {number}")).spawn_scoped(scope, work_on)?;
        }
        Ok(())
    })
}

fn next_of<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}
