#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ctrace_core_fuzz::report_facts::check(bytes));
