//! Tests files that were only begun.

use super::open;
use crate::cli::LensArgs;
use ctrace_core::recording::{End, Start, Writer};
use std::path::PathBuf;

#[test]
fn files_that_were_only_begun_are_left_out_of_several() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    let sound = writer.finish(&End::default()).expect("memory takes all");
    let good = put("trace.ctrace", &sound);
    let (begun, empty) = (put("trace.1.ctrace", &sound[..30]), put("trace.2.ctrace", &[]));
    let other = put("notes.txt", b"no recording at all");
    let paths = [good.clone(), begun.clone(), empty.clone()];
    assert!(open(&paths, &LensArgs::default()).expect("the first").end().is_some());
    let refused =
        |paths: &[PathBuf]| open(paths, &LensArgs::default()).err().expect("refused").to_string();
    assert!(refused(std::slice::from_ref(&begun)).contains("holds nothing"));
    assert!(refused(std::slice::from_ref(&empty)).contains("is empty"));
    assert!(refused(&[begun, empty]).contains("holds nothing"));
    assert!(refused(&[good, other]).contains("notes.txt is no recording"));
}
