//! vramscope tells what is holding your GPU memory.
//!
//! Data flows one way: [`import`] reads files, [`align`] puts them on one time axis and links them, [`analysis`]
//! answers questions, [`report`], [`cli`] and [`app`] show the answers. [`model`] is the data that all of them speak, [`text`] the words.

#![forbid(unsafe_code)]

pub mod align;
pub mod analysis;
pub mod app;
pub mod cli;
pub mod import;
pub mod model;
pub mod report;
pub mod text;
