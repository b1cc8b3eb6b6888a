//! One binary for all integration tests: one link, shared helpers.
#![expect(missing_docs, reason = "tests describe themselves")]

mod figures;
mod mutations;
mod support;
