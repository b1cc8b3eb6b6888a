#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vramscope_fuzz::open_and_ask(bytes));
