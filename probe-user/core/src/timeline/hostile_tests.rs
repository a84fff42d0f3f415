//! Recordings that no ctrace wrote, and damaged ones: pictures stay right, in bounded memory.

use super::band::{Band, BandRow, MOST_ENTRIES};
use super::leaves::Leaves;
use super::tests::{
    BEGIN, Made, add, all, all_rows, begun, bytes_of, picture, record, slow, written,
};
use super::*;
use crate::calls::spool::Call as SpoolCall;
use crate::formats::Ended;
use crate::recording::{Block, BlockKind, ChunkLoss, Harvest, put_varint};
use crate::stop::Stop;
use crate::units::Nanos;

fn built(recording: &Recording) -> Timeline {
    Timeline::build(recording, &AtomicU64::new(0)).expect("there is room")
}

/// The calls of a thread: distance from the end of the one before, duration, path.
type RawThread = (u32, Vec<(u64, u64, u32)>);

/// Writes a chunk as its bytes are, whatever they tell.
fn raw_chunk(from: u64, to: u64, threads: &[RawThread]) -> Block {
    let mut out = Vec::new();
    for number in [from, to - from, 0, 0, 0, 0, 0, threads.len() as u64] {
        put_varint(&mut out, number);
    }
    for (thread, calls) in threads {
        for number in [u64::from(*thread), calls.len() as u64, 0] {
            put_varint(&mut out, number);
        }
    }
    let calls = || threads.iter().flat_map(|(_, calls)| calls);
    let tag = |path: u32| u64::from(path) << 1 | 1;
    let columns = [
        calls().map(|call| call.0).collect::<Vec<_>>(),
        calls().map(|call| call.1).collect(),
        calls().map(|call| tag(call.2)).collect(),
    ];
    for column in columns {
        let mut bytes = Vec::new();
        column.into_iter().for_each(|number| put_varint(&mut bytes, number));
        put_varint(&mut out, bytes.len() as u64);
        out.extend(bytes);
    }
    Block::new(BlockKind::Calls, out)
}

fn of_chunks(chunks: impl IntoIterator<Item = Block>) -> Recording {
    let mut writer = begun();
    for chunk in chunks {
        writer.write(&chunk).expect("memory takes all");
    }
    Recording::open(writer.into_inner()).expect("a recording")
}

#[track_caller]
fn check(recording: &Recording, time: std::ops::Range<u64>, pixels: u32) {
    let view = View::new(all_rows(), Nanos(time.start)..Nanos(time.end), pixels);
    let mut expected = slow(recording, &all(recording), &view);
    let found = picture(&built(recording), recording, &view);
    expected.lost.clone_from(&found.lost);
    assert_eq!(found, expected);
}

#[test]
fn a_thread_that_a_chunk_names_again_and_again_is_one() {
    // The ends of later parts are between those of earlier ones.
    let threads = (0..60_000).map(|n| (n % 3, vec![(n.into(), 5, 1 + n % 3), (70_000, 9, 1)]));
    let threads: Vec<RawThread> = threads.collect();
    let recording = of_chunks([raw_chunk(BEGIN, BEGIN + 200_000, &threads)]);
    assert_eq!(recording.chunks()[0].calls, 120_000);
    check(&recording, BEGIN + 50_000..BEGIN + 50_100, 90);
    check(&recording, BEGIN + 199_000..BEGIN + 200_000, 7);
}

#[test]
fn ends_that_jump_are_put_in_order() {
    // The second ends 101 ns after the first: its distance is nearly 2^64.
    let jump = u64::MAX - 100;
    let threads = [(0, vec![(50_000, 9, 1), (jump, 9, 1), (60, 9, 1), (10, 9, 1)])];
    let recording = of_chunks([raw_chunk(BEGIN, BEGIN + 100_000, &threads)]);
    check(&recording, BEGIN + 49_000..BEGIN + 51_000, 100);
}

#[test]
fn calls_that_overlap_take_bounded_memory() {
    let recording = record(&[]);
    let nodes = recording.nodes();
    let span = |start, duration| Span {
        start: Nanos(start),
        duration: Nanos(duration),
        path: 1,
        ended: Ended::Timed,
    };
    // While the tree is made.
    let mut band = Band::new(4);
    let many = 4 * MOST_ENTRIES as u64;
    let spans = (0..many).map(|n| span(n, 1 << 20)).collect();
    band.rows.insert(all_rows()[0], BandRow { spans, ..BandRow::default() });
    band.limit(30, nodes);
    let row = &band.rows[&all_rows()[0]];
    assert!((20..30).contains(&band.level), "{}", band.level);
    assert!(row.cells.capacity() + row.spans.capacity() <= 3 * MOST_ENTRIES);
    assert_eq!(row.cells.iter().map(|cell| cell.count).sum::<u64>(), many);
    // While a picture is made: of calls, and of cells.
    let view = View { rows: vec![all_rows()[0]], level: 10, cells: 0..64 };
    let mut row = PictureRow::default();
    (0..1_000_000).for_each(|n| row.push(&span(n % 50_000, 1 << 14 | n), &view, nodes));
    (0..1_000_000).for_each(|n| row.push(&span(n * 7 % 50_000, 1_000), &view, nodes));
    assert!(row.spans.capacity() <= 4 * MOST_SPANS, "{}", row.spans.capacity());
    assert!(row.cells.capacity() <= 8_192, "{}", row.cells.capacity());
    let row = row.finish(&view);
    assert_eq!(row.spans.len() as u64 + row.left_out, 1_000_000);
    assert_eq!(row.cells.iter().map(|cell| cell.count).sum::<u64>(), 1_000_000);
}

#[test]
fn a_picture_of_many_rows_has_no_more_calls_than_one_of_few() {
    let calls = (0..60_000).map(|n| (n % 3, n as u64 % 5_000, 1_000 + n as u64, 1, true)).collect();
    let recording = record(&[Made { length: 100_000, is_lossy: false, calls, open: Vec::new() }]);
    let rows: Vec<_> = all_rows().into_iter().cycle().take(480).collect();
    let view = View::new(rows, Nanos(BEGIN)..Nanos(BEGIN + 100_000), 200);
    let rows = picture(&built(&recording), &recording, &view).rows;
    let (shown, left_out) =
        rows.iter().fold((0, 0), |sum, row| (sum.0 + row.spans.len() as u64, sum.1 + row.left_out));
    assert!(shown <= 1 << 18, "{shown}");
    assert_eq!(shown + left_out, 60_000 * 480 / 16, "each call is drawn or counted");
}

#[test]
fn of_too_many_overlapping_calls_the_longest_are_shown() {
    let calls = (0..40_000).map(|n| (0, n % 5_000, 1_000 + n, 1, true)).collect();
    let recording = record(&[Made { length: 100_000, is_lossy: false, calls, open: Vec::new() }]);
    let row = RowKey { thread: ThreadId(0), depth: 0 };
    let view = View::new(vec![row], Nanos(BEGIN)..Nanos(BEGIN + 100_000), 200);
    let picture = picture(&built(&recording), &recording, &view);
    let PictureRow { spans, left_out, .. } = &picture.rows[0];
    assert_eq!((spans.len(), *left_out), (MOST_SPANS, 40_000 - MOST_SPANS as u64));
    let shortest = spans.iter().map(|span| span.duration.0).min();
    assert_eq!(shortest, Some(1_000 + left_out));
}

#[test]
fn the_chunks_last_used_are_kept_within_the_limit() {
    let chunk = |n: u64| {
        let calls = vec![(0, 1, 1); 200_000];
        raw_chunk(BEGIN + n, BEGIN + n + 1, &[(0, calls)])
    };
    let recording = of_chunks((0..20).map(chunk));
    let leaves = Leaves::default();
    let get = |number: usize| {
        leaves.get(&recording, number, &recording.chunks()[number], &Stop::default())
    };
    let first = get(0);
    for number in 1..20 {
        get(number);
        assert!(std::sync::Arc::ptr_eq(&first, &get(0)), "the one that is used stays: {number}");
    }
    let (kept, bytes) = leaves.kept();
    assert!((2..=13).contains(&kept) && bytes <= 64 << 20, "{kept} chunks in {bytes} bytes");
    assert!(bytes >= kept * 200_000 * size_of::<Span>(), "all of it is counted");
}

#[test]
fn chunks_without_calls_count_too() {
    let recording = of_chunks((0..1_000).map(|n| raw_chunk(BEGIN + n, BEGIN + n + 1, &[])));
    let leaves = Leaves::default();
    for (number, entry) in recording.chunks().iter().enumerate() {
        leaves.get(&recording, number, entry, &Stop::default());
    }
    let (kept, bytes) = leaves.kept();
    assert!(kept == 1_000 && bytes >= 100 * kept, "{bytes}");
}

#[test]
fn a_million_threads_are_refused() {
    let chunk = |n: u64| {
        let first = n as u32 * 270_000;
        let threads = (first..first + 270_000).map(|thread| (thread, vec![(0, 1, 1)]));
        raw_chunk(BEGIN + 10 * n, BEGIN + 10 * n + 10, &threads.collect::<Vec<_>>())
    };
    let recording = of_chunks((0..4).map(chunk));
    let refused = Timeline::build(&recording, &AtomicU64::new(0));
    assert_eq!(refused.err(), Some(TimelineError::TooManyThreads));
}

#[test]
fn stopped_work_ends_and_leaves_nothing_wrong_behind() {
    let calls = (0..2_000).map(|n| (0, n * 10, 5, 1, true)).collect();
    let recording = record(&[Made { length: 20_000, is_lossy: false, calls, open: Vec::new() }]);
    // Without tiles, so that chunks must be read.
    let timeline =
        Timeline::build_scaled(&recording, None, &AtomicU64::new(0), 0.0).expect("there is room");
    let view = View::new(all_rows(), Nanos(BEGIN)..Nanos(BEGIN + 20_000), 100);
    let stop = Stop::default();
    stop.stop();
    assert_eq!(timeline.picture(&recording, &view, &stop), None);
    let row = all_rows()[0];
    assert!(timeline.near(&recording, row, Nanos(BEGIN + 15), 9, &stop).is_none());
    let time = Nanos(BEGIN)..Nanos(BEGIN + 20_000);
    assert_eq!(
        timeline.hits(&recording, &Chosen::of(vec![true; 5]), time.clone(), 3, &stop).count,
        0
    );
    let expected = slow(&recording, &all(&recording), &view);
    assert_eq!(picture(&timeline, &recording, &view), expected);
    assert_eq!(
        timeline.hits(&recording, &Chosen::of(vec![true; 5]), time, 3, &Stop::default()).count,
        2_000
    );
}

fn plain(calls: u64) -> Made {
    let calls = (0..calls).map(|n| (0, n * 10, 5, 1, true)).collect();
    Made { length: 10_000, is_lossy: false, calls, open: Vec::new() }
}

/// Returns the lost cells of 512 ns as times since the start, of a picture up to `until`.
fn lost(recording: &Recording, until: u64) -> Vec<(u64, u64)> {
    let row = RowKey { thread: ThreadId(0), depth: 0 };
    let view = View { rows: vec![row], level: 9, cells: BEGIN >> 9..(BEGIN + until) >> 9 };
    let lost = picture(&built(recording), recording, &view).lost;
    lost.iter().map(|cells| ((cells.start << 9) - BEGIN, (cells.end << 9) - BEGIN)).collect()
}

/// True if these stretches are one, which these times bound to the length of a cell.
fn is_about(lost: &[(u64, u64)], from: u64, to: u64) -> bool {
    matches!(lost, [(start, end)] if start.abs_diff(from) <= 512 && end.abs_diff(to) <= 1_024)
}

#[test]
fn a_damaged_chunk_is_lost_and_nothing_else() {
    let chunks = [plain(30), plain(40), plain(50)];
    let offset = record(&chunks).chunks()[1].offset as usize + 60;
    let mut bytes = bytes_of(&chunks);
    bytes[offset] ^= 0x55;
    let recording = Recording::open(bytes).expect("the rest of it");
    let timeline = built(&recording);
    assert_eq!(timeline.unreadable_calls(), 40);
    let row = RowKey { thread: ThreadId(0), depth: 0 };
    let view = View::new(vec![row], Nanos(BEGIN)..Nanos(BEGIN + 30_000), 30);
    let picture = picture(&timeline, &recording, &view);
    let count: u64 = picture.rows[0].cells.iter().map(|cell| cell.count).sum();
    assert_eq!(count, 80);
    let lost = lost(&recording, 30_000);
    assert!(is_about(&lost, 10_000, 20_000), "{lost:?}");
}

#[test]
fn what_a_file_without_an_index_is_missing_is_lost_at_its_place() {
    let (writer, end) = written(&[plain(30), plain(40), plain(50)]);
    let sound = writer.into_inner();
    let whole = Recording::open(sound.clone()).expect("all of it");
    let tail = lost(&whole, 40_000);
    assert!(is_about(&tail, end - BEGIN, 39_936), "what came after the last chunk: {tail:?}");
    let offset = whole.chunks()[1].offset as usize;
    // The header, so that the block is not found; its contents, so that it is found and is no chunk.
    for at in [offset, offset + 60] {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x55;
        let recording = Recording::open(bytes).expect("the rest of it");
        assert_eq!(recording.chunks().len(), 2);
        let lost = lost(&recording, 29_000);
        assert!(is_about(&lost, 10_000, 20_000), "{at}: {lost:?}");
    }
    let mut bytes = sound.clone();
    bytes.truncate(whole.chunks()[2].offset as usize + 30);
    let cut = Recording::open(bytes).expect("the rest of it");
    let lost = lost(&cut, 40_000);
    assert!(is_about(&lost, 20_000, 39_936), "{lost:?}");
}

#[test]
fn calls_of_a_cell_are_put_in_any_order() {
    let mut harvest = Harvest::new(BEGIN..BEGIN + 100_000, ChunkLoss::default());
    let calls = (0..30_000_u64).map(|n| {
        let start = BEGIN + n * 7_919 % 90_000;
        SpoolCall { start, duration: n % 600, node: 1, timed: true }
    });
    add(&mut harvest, ThreadId(0), calls.collect(), Vec::new());
    let recording = of_chunks([Block::of_calls(harvest, Vec::new(), None)]);
    check(&recording, BEGIN..BEGIN + 100_000, 150);
}
