//! One binary for all integration tests: one link, shared helpers.

mod figures;
mod mutations;
mod support;
