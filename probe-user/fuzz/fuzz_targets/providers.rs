#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| ctrace_fuzz::providers::check(text));
