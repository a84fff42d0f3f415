//! Bytes that are not those of a timeline of the recording. `every_picture_is_that_of_every_call` has the others.

use super::*;
use crate::stop::Stop;
use crate::timeline::picture::View;
use crate::timeline::tests::{Made, all_rows, made, record};
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;

fn saved(recording: &Recording, known_by: &[u8]) -> Vec<u8> {
    let read = AtomicU64::new(0);
    let timeline = Timeline::build_scaled(recording, None, &read, 1e6).expect("there is room");
    let mut bytes = Vec::new();
    timeline.save(recording, known_by, &mut bytes).expect("memory takes all");
    bytes
}

fn some() -> Vec<Made> {
    let chunk = |calls: u64| Made {
        length: 7_000,
        is_lossy: false,
        calls: (0..calls).map(|place| (0, 10 * place, 5 + place % 9, 1, true)).collect(),
        open: vec![(1, 300, 1)],
    };
    (1..30).map(chunk).collect()
}

#[test]
fn another_recording_has_another_timeline() {
    let recording = record(&some());
    let bytes = saved(&recording, b"inode 7");
    assert!(Timeline::load(&recording, b"inode 7", bytes.clone()).is_some());
    assert!(Timeline::load(&recording, b"inode 8", bytes.clone()).is_none());
    let longer: Vec<Made> = some().into_iter().chain(some()).collect();
    assert!(Timeline::load(&record(&longer), b"inode 7", bytes).is_none());
}

#[test]
fn a_changed_byte_is_noticed() {
    let recording = record(&some());
    let whole = saved(&recording, b"it");
    for at in (0..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(Timeline::load(&recording, b"it", bytes).is_none(), "byte {at}");
        assert!(Timeline::load(&recording, b"it", whole[..at].to_vec()).is_none(), "{at} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Whoever can write the file can write its checksum, too.
    #[test]
    fn crafted_bytes_harm_nothing(
        chunks in prop::collection::vec(made(), 1..30),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        views in prop::collection::vec((0..400_000u64, 1..400_000u64, 1..300u32), 4),
    ) {
        let recording = record(&chunks);
        let mut bytes = saved(&recording, b"");
        let inside = MARK.len()..bytes.len() - CHECKSUM;
        for (place, byte) in changes {
            bytes[inside.start + place.index(inside.len())] = byte;
        }
        let checksum = crc32fast::hash(&bytes[inside.clone()]).to_le_bytes();
        bytes[inside.end..].copy_from_slice(&checksum);
        if let Some(timeline) = Timeline::load(&recording, b"", bytes) {
            timeline.about(&recording);
            for (from, length, pixels) in views {
                let from = recording.period().0.0.saturating_add(from);
                let time = crate::units::Nanos(from)..crate::units::Nanos(from + length);
                let view = View::new(all_rows(), time, pixels);
                timeline.picture(&recording, &timeline.quick(&view), &Stop::default());
                timeline.picture(&recording, &view, &Stop::default());
            }
        }
    }
}
