//! One binary for all integration tests: one link, shared helpers.

mod app;
mod chinese;
mod cli;
mod end_to_end;
mod faults;
mod figures;
mod findings;
mod layouts;
mod logs;
mod mutations;
mod ranks;
mod report;
mod security;
mod simulated;
mod support;
mod survivors;
mod trace;
