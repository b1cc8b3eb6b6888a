//! One binary for all integration tests: one link, shared helpers.

mod cli;
mod figures;
mod findings;
mod layouts;
mod logs;
mod mutations;
mod report;
mod simulated;
mod support;
mod survivors;
mod trace;
