#![no_main]

use ctrace_fuzz::list;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| list::check(list::shared_folder(), bytes));
