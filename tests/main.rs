//! One binary for all integration tests: one link, shared helpers.

mod cli;
mod figures;
mod logs;
mod mutations;
mod report;
mod support;
mod trace;
