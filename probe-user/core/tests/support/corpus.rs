//! The inputs of a fuzz target: unchanged, and with single bytes changed.

use std::path::Path;

/// Calls `check` with each file of a folder and with this many copies of it, each with one byte
/// changed. `seal` repairs a copy before it is checked.
pub fn check_all(folder: &Path, copies: usize, check: impl Fn(&[u8]), seal: impl Fn(&mut [u8])) {
    let files = std::fs::read_dir(folder).expect("the corpus is in the repository");
    let mut checked = 0;
    for file in files {
        let input = std::fs::read(file.expect("readable").path()).expect("readable");
        check(&input);
        let copies = copies.min(input.len());
        for copy in 0..copies {
            let mut changed = input.clone();
            // The bytes are spread over the input, and the copies add different numbers.
            let at = copy * input.len() / copies;
            changed[at] = changed[at].wrapping_add(1 + (copy * 37 % 255) as u8);
            seal(&mut changed);
            check(&changed);
            checked += 1;
        }
    }
    assert!(checked > 0, "{} is empty", folder.display());
}
