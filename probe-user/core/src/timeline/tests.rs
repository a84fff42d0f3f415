//! Pictures of random recordings, compared with those made by looking at every call.

use super::*;
use crate::calls::spool::{Call as SpoolCall, LogId, Spool};
use crate::formats::Ended;
use crate::function::FunctionInfo;
use crate::recording::{
    Block, BlockKind, ChunkLoss, End, Harvest, Names, OpenCall, Start, Writer, put_varint,
};
use crate::stop::Stop;
use crate::units::Nanos;
use proptest::prelude::*;

pub(super) const FUNCTIONS: u32 = 5;
/// The nodes of the tree of paths: the node above, and the function. Another one is outside the tree.
const PATHS: [(u32, u32); 8] = [(0, 0), (1, 1), (2, 2), (2, 3), (0, 3), (5, 4), (1, 0), (7, 4)];
pub(super) const OTHER: u32 = PATHS.len() as u32 + 1;
pub(super) const THREADS: u32 = 3;
pub(super) const BEGIN: u64 = 1_000_000;

/// A chunk to be written.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) length: u64,
    pub(super) is_lossy: bool,
    /// Thread, distance of its end from the chunk's end, duration, path, whether it is timed.
    pub(super) calls: Vec<(u32, u64, u64, u32, bool)>,
    pub(super) open: Vec<(u32, u64, u32)>,
}

fn duration() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..20u64, 1..500u64, 1..6_000u64, 1..100_000u64]
}

pub(super) fn made() -> impl Strategy<Value = Made> {
    let path = || 1..=OTHER;
    let call = || (0..THREADS, 0..5_000u64, duration(), path(), prop::bool::weighted(0.9));
    let calls = prop_oneof![
        4 => prop::collection::vec(call(), 0..8),
        1 => prop::collection::vec(call(), 100..200),
    ];
    let open = prop::collection::vec((0..THREADS, duration(), path()), 0..3);
    let length = prop_oneof![0..5u64, 1..5_000u64, 1..80_000u64];
    (length, prop::bool::weighted(0.1), calls, open)
        .prop_map(|(length, is_lossy, calls, open)| Made { length, is_lossy, calls, open })
}

pub(super) fn record(chunks: &[Made]) -> Recording {
    Recording::open(bytes_of(chunks)).expect("a recording")
}

pub(super) fn bytes_of(chunks: &[Made]) -> Vec<u8> {
    let (writer, to) = written(chunks);
    let end = End { end_ns: Nanos(to + 77), ..End::default() };
    writer.finish(&end).expect("memory takes all")
}

/// Returns a recording that was not ended, and the end of its last chunk.
pub(super) fn written(chunks: &[Made]) -> (Writer<Vec<u8>>, u64) {
    let mut writer = begun();
    let mut from = BEGIN;
    for chunk in chunks {
        let to = from + chunk.length;
        let loss = ChunkLoss { late: chunk.is_lossy.into(), ..ChunkLoss::default() };
        let mut harvest = Harvest::new(from..to, loss);
        for thread in 0..THREADS {
            let mine = chunk.calls.iter().filter(|call| call.0 == thread);
            let calls = mine.map(|&(_, distance, duration, node, timed)| {
                let end = to - distance % chunk.length.max(1);
                SpoolCall { start: end - duration, duration, node, timed }
            });
            let open = chunk.open.iter().filter(|open| open.0 == thread);
            let open = open.map(|&(_, before, path)| OpenCall { start: Nanos(to - before), path });
            add(&mut harvest, ThreadId(thread), calls.collect(), open.collect());
        }
        writer.write(&Block::of_calls(harvest, Vec::new(), None)).expect("memory takes all");
        from = to;
    }
    (writer, from)
}

/// Adds the calls of a thread to a chunk.
pub(super) fn add(
    harvest: &mut Harvest,
    thread: ThreadId,
    mut calls: Vec<SpoolCall>,
    open: Vec<OpenCall>,
) {
    calls.sort_by_key(|call| (call.end(), call.duration));
    let (mut spool, mut log) = (Spool::new(usize::MAX), LogId::of(thread));
    calls.into_iter().for_each(|call| spool.push(&mut log, call));
    let cut = spool.cut(0);
    harvest.add(thread, spool.take_before(&cut).pop().unwrap_or_default(), open);
}

/// Returns a recording that has names and paths, and no calls yet.
pub(super) fn begun() -> Writer<Vec<u8>> {
    let start = Start { start_ns: Nanos(BEGIN), ..Start::default() };
    let mut writer = Writer::uncompressed(Vec::new(), &start).expect("memory takes all");
    let functions = (0..FUNCTIONS).map(|f| FunctionInfo::new(format!("f{f}"), "object"));
    let names = Names { functions: functions.collect(), ..Names::default() };
    let mut paths = Vec::new();
    for (above, function) in PATHS {
        put_varint(&mut paths, above.into());
        put_varint(&mut paths, u64::from(function) << 1);
    }
    put_varint(&mut paths, 0);
    put_varint(&mut paths, u64::from(FUNCTIONS - 1) << 1 | 1);
    let blocks = names.to_blocks().expect("names are JSON").into_iter();
    for block in blocks.chain([Block::new(BlockKind::Paths, paths)]) {
        writer.write(&block).expect("memory takes all");
    }
    writer
}

/// Returns every call with its row.
pub(super) fn all(recording: &Recording) -> Vec<(RowKey, Span)> {
    let mut calls = Vec::new();
    let count = recording.chunks().len();
    for (number, entry) in recording.chunks().iter().enumerate() {
        let chunk = recording.chunk(entry).expect("a sound chunk");
        for thread in chunk.threads() {
            let mut push = |start: Nanos, duration, path: u32, ended| {
                let depth = recording.nodes()[path as usize].depth - 1;
                let key = RowKey { thread: thread.thread, depth };
                calls.push((key, Span { start, duration, path, ended }));
            };
            for call in chunk.calls(thread) {
                let ended = if call.is_timed() { Ended::Timed } else { Ended::Untimed };
                push(call.start(), call.duration(), call.path(), ended);
            }
            if number + 1 == count {
                let end = recording.period().1;
                for open in &thread.open {
                    push(open.start, end.since(open.start), open.path, Ended::Open);
                }
            }
        }
    }
    calls
}

/// Makes a picture cell by cell: each looks at every call.
pub(super) fn slow(recording: &Recording, calls: &[(RowKey, Span)], view: &View) -> Picture {
    let length = 1u64 << view.level;
    let (from, to) = (view.cells.start * length, view.cells.end * length);
    let rows = view.rows.iter().map(|row| {
        let mine: Vec<Span> = calls.iter().filter(|(key, _)| key == row).map(|c| c.1).collect();
        let (small, large): (Vec<Span>, Vec<Span>) =
            mine.into_iter().partition(|span| span.duration.0 < length);
        let touches = |span: &Span, from: u64, to: u64| {
            let (start, end) = (span.start.0, span.start.0 + span.duration.0);
            start < to && end > from || (from..to).contains(&start)
        };
        let mut spans: Vec<Span> =
            large.into_iter().filter(|span| touches(span, from, to)).collect();
        spans.sort_by_key(Span::order);
        let cells = view.cells.clone().filter_map(|at| {
            let (from, to) = (at * length, (at + 1) * length);
            let here = || small.iter().filter(|span| touches(span, from, to));
            let longest = here().map(|span| span.duration.0).max()?;
            let of_longest = here().filter(|span| span.duration.0 == longest);
            let function = |span: &Span| recording.nodes()[span.path as usize].func.0;
            let ends = here().map(|span| match span.ended {
                Ended::Timed => Cell::TIMED,
                Ended::Untimed => Cell::UNTIMED,
                Ended::Open => Cell::OPEN,
            });
            let covered = here().map(|span| {
                (span.start.0 + span.duration.0).min(to).saturating_sub(span.start.0.max(from))
            });
            Some(Cell {
                at,
                covered: covered.sum(),
                longest,
                count: here().filter(|span| (from..to).contains(&span.start.0)).count() as u64,
                function: of_longest.map(function).min()?,
                ends: ends.fold(0, |all, one| all | one),
            })
        });
        PictureRow { cells: cells.collect(), spans, left_out: 0 }
    });
    let is_lossy = |entry: &crate::recording::ChunkEntry| {
        recording.chunk(entry).is_ok_and(|chunk| chunk.loss.late > 0)
    };
    let lost: Vec<_> = recording.chunks().iter().filter(|entry| is_lossy(entry)).collect();
    let is_lost = |at: u64| {
        let (from, to) = (at * length, (at + 1) * length);
        lost.iter().any(|entry| entry.from.0 < to && entry.to.0 >= from)
    };
    let mut stretches: Vec<std::ops::Range<u64>> = Vec::new();
    for at in view.cells.clone().filter(|at| is_lost(*at)) {
        match stretches.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => stretches.push(at..at + 1),
        }
    }
    Picture { rows: rows.collect(), lost: stretches, unread: Vec::new() }
}

/// Makes a picture as a reader does.
pub(super) fn picture(timeline: &Timeline, recording: &Recording, view: &View) -> Picture {
    timeline.picture(recording, view, &Stop::default()).expect("nobody stops it")
}

pub(super) fn all_rows() -> Vec<RowKey> {
    let rows = (0..=THREADS).flat_map(|thread| (0..4).map(move |depth| (ThreadId(thread), depth)));
    rows.map(|(thread, depth)| RowKey { thread, depth }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn every_picture_is_that_of_every_call(
        chunks in prop::collection::vec(made(), 0..40),
        // Without tiles, with some, with all.
        scale in prop_oneof![Just(0.0), 1.0..60.0f64, Just(1e6)],
        views in prop::collection::vec(
            (0.0..1.1f64, prop_oneof![0.0..0.01f64, 0.0..1.5f64], 1..300u32),
            6,
        ),
        chosen in prop::collection::vec(any::<bool>(), FUNCTIONS as usize),
        is_saved in any::<bool>(),
    ) {
        let recording = record(&chunks);
        let calls = all(&recording);
        let read = AtomicU64::new(0);
        let timeline = Timeline::build_scaled(&recording, None, &read, scale).expect("there is room");
        let ended = calls.iter().filter(|(_, span)| span.ended != Ended::Open).count() as u64;
        prop_assert_eq!(read.into_inner(), ended);
        let timeline = if is_saved {
            let mut bytes = Vec::new();
            timeline.save(&recording, b"it", &mut bytes).expect("memory takes all");
            Timeline::load(&recording, b"it", bytes).expect("it is of this recording")
        } else {
            timeline
        };
        let (begin, end) = recording.period();
        let length = end.since(begin).0 as f64;
        for (from, part, pixels) in views {
            let from = begin.0 - 1_000 + (from * length) as u64;
            let to = from + (part * length) as u64 + 1;
            let view = View::new(all_rows(), Nanos(from)..Nanos(to), pixels);
            prop_assert!(view.cells.start << view.level <= from);
            prop_assert!(view.cells.end << view.level >= to);
            let (cell, pixel) = (1u64 << view.level, (to - from).div_ceil(pixels.into()));
            prop_assert!(cell >= pixel && (cell < 2 * pixel));
            // A coarser picture first, for which nothing is read.
            let (quick, kept) = (timeline.quick(&view), timeline.leaves.kept());
            let coarse = picture(&timeline, &recording, &quick);
            prop_assert_eq!(&coarse, &slow(&recording, &calls, &quick), "{:?}", quick);
            prop_assert!(timeline.leaves.kept() == kept || scale < 1e6);
            let shorter = (view.level < quick.level).then(|| view.at_level(quick.level - 1));
            prop_assert!(shorter.is_none_or(|shorter| timeline.quick(&shorter).level == quick.level));
            let picture = picture(&timeline, &recording, &view);
            prop_assert_eq!(&picture, &slow(&recording, &calls, &view), "{:?}", view);
            prop_assert_eq!(timeline.quick(&view).level, view.level, "its chunks are kept");
            let hits = timeline.hits(&recording, &Chosen::of(chosen.to_vec()), Nanos(from)..Nanos(to), 7, &Stop::default());
            let mut columns = vec![0; 7];
            for (_, span) in &calls {
                let function = recording.nodes()[span.path as usize].func.index();
                if (from..to).contains(&span.start.0) && chosen[function] {
                    columns[((span.start.0 - from) * 7 / (to - from)) as usize] += 1;
                }
            }
            prop_assert_eq!(hits.count, columns.iter().sum::<u64>());
            prop_assert_eq!(hits.columns, columns);
        }
        let mut threads = BTreeMap::<ThreadId, (u32, u64)>::new();
        for (key, _) in &calls {
            let thread = threads.entry(key.thread).or_default();
            *thread = (thread.0.max(key.depth + 1), thread.1 + 1);
        }
        let told = timeline.threads().iter().map(|(id, facts)| (*id, (facts.depths, facts.calls)));
        prop_assert_eq!(told.collect::<BTreeMap<_, _>>(), threads);
    }
}

#[test]
fn a_view_of_all_time_has_a_level() {
    for (time, pixels, level) in
        [(0..u64::MAX, 1, 63), (0..u64::MAX, 2_000, 54), (7..8, 500, 0), (0..1_000, 500, 1)]
    {
        let view = View::new(all_rows(), Nanos(time.start)..Nanos(time.end), pixels);
        assert_eq!(view.level, level, "{time:?}");
    }
}
