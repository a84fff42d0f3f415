//! The corpus of the fuzz targets in an ordinary build: each input as it is, and with single bytes
//! changed. Fuzzing for real is `cargo xtask test --all`.

#![allow(unreachable_pub, reason = "shared with the fuzz targets, which are a crate of their own")]

#[path = "../core/tests/support/corpus.rs"]
mod corpus;
#[path = "../fuzz/src/lib.rs"]
mod fuzz_targets;

use fuzz_targets::{arguments, list, names, providers};
use std::path::Path;

/// Checks the inputs of a target and changed copies of them.
fn check_all(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    corpus::check_all(&folder, 20, check, |_| ());
}

#[test]
fn any_file_can_be_listed() {
    let folder = tempfile::tempdir().expect("a folder for the file");
    check_all("list", |bytes| list::check(folder.path(), bytes));
}

#[test]
fn any_name_can_be_shown() {
    check_all("names", |bytes| names::check(&String::from_utf8_lossy(bytes)));
}

#[test]
fn any_note_has_arguments_that_can_be_followed_or_none() {
    check_all("arguments", |bytes| arguments::check(&String::from_utf8_lossy(bytes)));
}

#[test]
fn any_text_is_a_provider_file_or_an_error() {
    check_all("providers", |bytes| providers::check(&String::from_utf8_lossy(bytes)));
}
