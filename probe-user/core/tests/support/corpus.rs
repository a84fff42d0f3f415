//! The inputs of a fuzz target: each as it is, and with single bytes changed.

use std::path::Path;

/// Calls `check` with each file of a folder and with as many copies of it, in each of which one byte
/// differs. `seal` repairs a copy before it is checked.
pub fn check_all(folder: &Path, copies: usize, check: impl Fn(&[u8]), seal: impl Fn(&mut [u8])) {
    let files = std::fs::read_dir(folder).expect("the corpus is in the repository");
    let mut checked = 0;
    for file in files {
        let input = std::fs::read(file.expect("readable").path()).expect("readable");
        check(&input);
        let copies = copies.min(input.len());
        for copy in 0..copies {
            let mut changed = input.clone();
            // The bytes lie all over the input, and no two copies add the same to theirs.
            let at = copy * input.len() / copies;
            changed[at] = changed[at].wrapping_add(1 + (copy * 37 % 255) as u8);
            seal(&mut changed);
            check(&changed);
            checked += 1;
        }
    }
    assert!(checked > 0, "{} is empty", folder.display());
}
