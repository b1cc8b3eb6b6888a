//! Chrome traces of `torch.profiler` (kineto), of every release from 1.8 on, whole or broken.
//!
//! `read` goes through a file piece by piece; `scan` finds the events, `fast` and `event` read one, `repair`
//! one whose JSON is broken; `collect` keeps what is needed in compact rows. `attribute` tells which op, module and stack
//! each change of memory belongs to, by what is open on its thread (`nesting`); `infer` guesses its tensor; `pair` joins
//! allocs with frees; `build` makes the recording.

mod attribute;
mod build;
mod collect;
mod event;
mod fast;
mod frame;
mod header;
mod infer;
mod nesting;
mod pair;
mod read;
mod repair;
mod scan;

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;
use crate::text::t;
use read::Contents;

/// Reads Chrome traces of torch.profiler.
pub struct TraceImporter;

impl Importer for TraceImporter {
    fn name(&self) -> &'static str {
        "profiler trace"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        head.is_json() && header::is_trace(head.bytes)
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let Some(Contents { collected, header, cut, documents }) = read::stream(input, progress) else {
            return Err(ImportError::Cancelled { file: input.name() });
        };
        if collected.events == 0 {
            let cause = match cut {
                Some(why) => t!("the trace ends before its first event ({why})", why),
                None => t!("the trace holds no events").to_owned(),
            };
            return Err(ImportError::content(cause, input.name()));
        }
        let mut recording = build::recording(collected, &header, cut, input.path());
        if documents > 1 {
            recording.warn(
                "several-documents",
                t!(
                    "the file holds {count} traces, one behind the other: they are shown as one",
                    count = documents
                ),
            );
        }
        Ok(recording)
    }
}
