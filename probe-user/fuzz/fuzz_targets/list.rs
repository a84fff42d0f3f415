#![no_main]

use ctrace_fuzz::list;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| list::check(folder(), bytes));

/// A folder of this process in memory.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let shared = Path::new("/dev/shm");
        let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let folder = folder.join(format!("ctrace-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the file");
        folder
    })
}
