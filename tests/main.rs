//! One binary for all integration tests: one link, shared helpers.

mod app;
mod cli;
mod end_to_end;
mod figures;
mod mutations;
mod report;
mod support;
