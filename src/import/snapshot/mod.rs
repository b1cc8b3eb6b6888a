//! CUDA memory snapshots: pickles of `torch.cuda.memory._dump_snapshot`.
//!
//! The layout is that of `torch/cuda/memory.py` and `c10/cuda/CUDACachingAllocator.h` from PyTorch 2.0 on. `pickle`
//! runs the pickle's stack machine, `rows` turns dicts into rows on the way, `build` pairs allocs with frees.

mod build;
mod pickle;
mod rows;

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;
use crate::text::t;

/// The most that a compressed snapshot is inflated to.
const MAX_INFLATED_BYTES: u64 = 32 << 30;

/// Reads CUDA memory snapshots.
pub struct SnapshotImporter;

impl Importer for SnapshotImporter {
    fn name(&self) -> &'static str {
        "memory snapshot"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        match head.bytes {
            // PROTO with a version that exists, then something that a pickle begins with.
            [0x80, 2..=5, ..] => true,
            // Protocols 0 and 1 begin with a dict or list.
            [b'(', b'd' | b'l', b'p' | b'q', ..] | [b'}' | b']', b'q', ..] => true,
            _ => false,
        }
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let file = input.name();
        let inflated = input.read_all(progress, MAX_INFLATED_BYTES)?;
        progress.set_total(inflated.bytes.len() as u64);
        let mut rows = rows::Rows::for_bytes(inflated.bytes.len());
        let unpickled = pickle::unpickle(&inflated.bytes, rows::known_strings(), &mut rows, progress);
        let unpickled = unpickled.map_err(|error| match error {
            pickle::PickleError::Cancelled => ImportError::Cancelled { file: file.clone() },
            pickle::PickleError::Refused { opcode, byte } => ImportError::content(
                t!(
                    "the pickle would run code (opcode {opcode} at byte {byte}), which a memory snapshot never does and \
                     which is never done here",
                    opcode,
                    byte
                ),
                file.clone(),
            ),
            pickle::PickleError::Damaged { what, byte } => {
                ImportError::content(t!("this is not a whole pickle: {what} at byte {byte}", what, byte), file.clone())
            }
        })?;
        build::recording(unpickled, rows, inflated.cut, &file)
    }
}
