//! One binary for all integration tests: one link, shared helpers.

mod cli;
mod figures;
mod layouts;
mod logs;
mod mutations;
mod report;
mod support;
