//! Runs the corpus of the fuzz targets in an ordinary build: each input unchanged, and with single
//! bytes changed. `cargo xtask test --all` does real fuzzing.

#![allow(unreachable_pub, reason = "shared with the fuzz targets, which are a crate of their own")]

#[path = "../support/corpus.rs"]
mod corpus;
#[path = "../../fuzz/src/lib.rs"]
mod fuzz_targets;

use self::fuzz_targets::{exports, marker_buffers, recording, records, report_facts};
use std::path::Path;

const BLOCK_MAGIC: &[u8] = b"CTRB";
const BLOCK_HEADER: usize = 24;

/// Checks the inputs of a target and changed copies of them.
fn check_all(target: &str, check: impl Fn(&[u8]), seal: impl Fn(&mut [u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    corpus::check_all(&folder, 100, check, seal);
}

/// Corrects the checksums, because fuzz targets do not check them.
fn seal(bytes: &mut [u8]) {
    let blocks: Vec<usize> = (0..bytes.len().saturating_sub(BLOCK_HEADER - 1))
        .filter(|at| bytes[*at..].starts_with(BLOCK_MAGIC))
        .collect();
    for at in blocks {
        let stored = u32::from_le_bytes([8, 9, 10, 11].map(|byte| bytes[at + byte])) as usize;
        if let Some(end) = (at + BLOCK_HEADER).checked_add(stored)
            && let Some(contents) = bytes.get(at + BLOCK_HEADER..end)
        {
            let sum = crc32fast::hash(contents);
            bytes[at + 16..at + 20].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[at..at + 20]);
        bytes[at + 20..at + 24].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn any_recording_can_be_exported() {
    check_all("exports", exports::check, seal);
}

#[test]
fn any_recording_can_be_reported() {
    check_all("recording", recording::check, seal);
}

#[test]
fn any_marker_buffer_is_read() {
    check_all("marker_buffers", marker_buffers::check, |_| ());
}

#[test]
fn any_record_is_counted() {
    check_all("records", records::check, |_| ());
}

#[test]
fn any_report_can_be_compared() {
    check_all("report_facts", report_facts::check, |_| ());
}
