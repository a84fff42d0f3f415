//! Tests of all formats.

use crate::formats::fixture;
use ctrace_core::formats::{Coverage, Export, ExportError, Format, Options};
use ctrace_core::recording::replay::Query;
use ctrace_core::report::LossReport;
use std::cell::Cell;
use std::collections::HashSet;
use std::io;

type AnyFormat = Format;

fn recordings() -> Vec<fixture::Bytes> {
    vec![
        fixture::typical(),
        fixture::hostile(),
        fixture::empty(),
        fixture::cut_off(),
        fixture::deep(),
    ]
}

#[test]
fn formats_have_names_help_and_extensions_of_their_own() {
    let all = AnyFormat::ALL;
    let names: HashSet<_> = all.iter().map(|format| format.name).collect();
    assert_eq!(names.len(), all.len());
    for format in all {
        assert!(!format.help.is_empty() && !format.help.contains('\n'), "{}", format.name);
        assert!(!format.extension.is_empty() && !format.extension.starts_with('.'));
    }
}

#[test]
fn every_format_takes_every_recording_and_text_drives_no_terminal() {
    for recording in recordings() {
        for format in AnyFormat::ALL {
            let mut out = Vec::new();
            let seen = Cell::new(0);
            let progress = |calls| seen.set(seen.get() + calls);
            let export = Export {
                recording: &recording,
                query: &Query::default(),
                options: Options::default(),
                progress: &progress,
            };
            match format.write(&export, &mut out) {
                Ok(_) => {
                    let calls: u64 = recording.chunks().iter().map(|chunk| chunk.calls).sum();
                    assert_eq!(seen.get(), calls, "{}", format.name);
                }
                Err(ExportError::NothingToDraw) => assert_eq!(format.name, "flamegraph"),
                Err(error) => panic!("{}: {error}", format.name),
            }
            if format.is_binary {
                let mut parts = out.windows(fixture::TEXT.len());
                assert!(!parts.any(|part| part == fixture::TEXT.as_bytes()), "{}", format.name);
            } else {
                let text = String::from_utf8(out).expect("UTF-8");
                let bad = text
                    .chars()
                    .find(|&c| c != '\n' && ctrace_core::report::render::clean::is_harmful(c));
                // Inferno's own script contains tabs.
                assert!(bad.is_none_or(|c| c == '\t'), "{}: {bad:?}", format.name);
            }
        }
    }
}

#[test]
fn every_format_tells_what_is_missing() {
    let lost = LossReport { calls_untimed: 2, calls_open: 1, ..LossReport::default() };
    let typical = Coverage { calls: 6, lost, ..Coverage::default() };
    for format in AnyFormat::ALL {
        assert_eq!(fixture::export(format.name, &fixture::typical()).1, typical, "{}", format.name);
        let told = fixture::export(format.name, &fixture::cut_off()).1;
        assert!(told.has_no_end && told.unreadable_bytes > 0, "{}: {told:?}", format.name);
        assert!(fixture::export(format.name, &fixture::deep()).1.calls_without_path > 80);
    }
}

/// A reader that closes its end.
struct Closed;

impl io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_is_the_error_it_is() {
    let recording = fixture::typical();
    for format in AnyFormat::ALL {
        let (query, options) = (&Query::default(), Options::default());
        let export = Export { recording: &recording, query, options, progress: &|_| {} };
        match format.write(&export, &mut Closed) {
            Err(ExportError::Write(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{}", format.name);
            }
            other => panic!("{}: {other:?}", format.name),
        }
    }
}

#[test]
fn a_damaged_chunk_is_left_out_and_counted() {
    let mut bytes = fixture::bytes_of(&fixture::functions(), &fixture::groups());
    let whole = fixture::open(bytes.clone());
    let calls: Vec<u64> = whole.chunks().iter().map(|chunk| chunk.calls).collect();
    assert_eq!(calls, [2, 1, 2], "and one is open");
    // Blocks of calls begin like this. Their contents follow a header of 24 bytes.
    let starts: Vec<usize> =
        (0..bytes.len() - 8).filter(|&at| bytes[at..].starts_with(b"CTRB\x04\0")).collect();
    bytes[starts[1] + 24] ^= 0x55;
    let damaged = fixture::open(bytes);
    for format in AnyFormat::ALL {
        let told = fixture::export(format.name, &damaged).1;
        assert_eq!((told.calls, told.unreadable_calls), (6 - 1, 1), "{}", format.name);
    }
}
