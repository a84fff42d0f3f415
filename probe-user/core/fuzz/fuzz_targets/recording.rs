#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ctrace_core_fuzz::recording::check(bytes));
