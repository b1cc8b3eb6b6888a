#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vramscope_fuzz::read_as("memory summary", bytes));
