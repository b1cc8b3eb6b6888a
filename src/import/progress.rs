//! How far a long job has come, and how to stop it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between the thread that works and the one that watches. Cloning shares.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// Says how much there is to do, in bytes of the file.
    pub fn set_total(&self, total: u64) {
        self.inner.total.store(total, Ordering::Relaxed);
    }

    /// Says how much is done. Cheap; call it every few hundred kilobytes.
    pub fn set_done(&self, done: u64) {
        self.inner.done.store(done, Ordering::Relaxed);
    }

    /// The share that is done, 0 to 1.
    pub fn share(&self) -> f32 {
        let total = self.inner.total.load(Ordering::Relaxed).max(1);
        (self.inner.done.load(Ordering::Relaxed) as f32 / total as f32).min(1.0)
    }

    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.inner.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the work should stop: importers ask every few thousand events and return `ImportError::Cancelled`.
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled.load(Ordering::Relaxed)
    }
}
