//! Drafts of random recordings: what they show happened, and all that is not known is marked.

use super::tests::{BEGIN, Made, all, all_rows, bytes_of, made, record, slow};
use super::*;
use crate::formats::Ended;
use crate::stop::Stop;
use crate::units::Nanos;
use proptest::prelude::*;
use std::collections::HashSet;

/// Makes the calls of a thread that are open at the end of each chunk those that end in later ones. No two calls
/// of a function begin at the same time.
fn consistent(mut chunks: Vec<Made>) -> Vec<Made> {
    let mut to = BEGIN;
    let ends: Vec<u64> = chunks
        .iter()
        .map(|chunk| {
            to += chunk.length;
            to
        })
        .collect();
    let mut seen = HashSet::new();
    let mut starts = Vec::new();
    for (number, (chunk, to)) in chunks.iter_mut().zip(&ends).enumerate() {
        let length = chunk.length.max(1);
        chunk.calls.retain(|&(thread, distance, duration, path, _)| {
            let start = to - distance % length - duration;
            let is_new = seen.insert((thread, start, path));
            if is_new {
                starts.push((number, thread, start, path));
            }
            is_new
        });
        chunk.open.clear();
    }
    for (ends_in, thread, start, path) in starts {
        let before = chunks.iter_mut().zip(&ends).take(ends_in);
        before.filter(|(_, to)| start < **to).for_each(|(chunk, to)| {
            chunk.open.push((thread, to - start, path));
        });
    }
    chunks
}

fn draft(recording: &Recording, chunks: usize) -> Draft {
    let draft = Draft::new(recording);
    draft.read(recording, |read| read >= chunks);
    draft
}

fn picture(draft: &Draft, recording: &Recording, view: &View) -> (View, Picture) {
    draft.picture(recording, view, &Stop::default()).expect("nobody stops it")
}

fn has(ranges: &[std::ops::Range<u64>], at: u64) -> bool {
    ranges.iter().any(|range| range.contains(&at))
}

/// The number of calls of a row that begin in a cell.
fn begun(row: &PictureRow, view: &View, at: u64) -> u64 {
    let cells = row.cells.iter().filter(|cell| cell.at == at).map(|cell| cell.count).sum::<u64>();
    cells + row.spans.iter().filter(|span| span.start.0 >> view.level == at).count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn a_draft_shows_what_happened_and_marks_what_it_does_not_know(
        chunks in prop::collection::vec(made(), 1..60).prop_map(consistent),
        read in prop_oneof![0..60_usize, Just(usize::MAX)],
        views in prop::collection::vec((0.0..1.1f64, prop_oneof![0.0..0.01f64, 0.0..1.5f64], 1..300u32), 6),
    ) {
        let recording = record(&chunks);
        let calls = all(&recording);
        let draft = draft(&recording, read);
        let (begin, end) = recording.period();
        let length = end.since(begin).0 as f64;
        for (from, part, pixels) in views {
            let from = begin.0 - 1_000 + (from * length) as u64;
            let asked = View::new(all_rows(), Nanos(from)..Nanos(from + (part * length) as u64 + 1), pixels);
            let (view, picture) = picture(&draft, &recording, &asked);
            prop_assert!(view.level >= asked.level && view.times().0 <= asked.times().0);
            prop_assert!(view.times().1 >= asked.times().1);
            let exact = slow(&recording, &calls, &view);
            for at in view.cells.clone() {
                prop_assert!(!has(&exact.lost, at) || has(&picture.lost, at) || has(&picture.unread, at));
            }
            for ((row, exact), key) in picture.rows.iter().zip(&exact.rows).zip(&view.rows) {
                let mine = calls.iter().filter(|(other, _)| other == key).map(|(_, span)| span);
                let functions: HashSet<u32> =
                    mine.clone().map(|span| recording.nodes()[span.path as usize].func.0).collect();
                prop_assert!(row.cells.iter().all(|cell| functions.contains(&cell.function)));
                prop_assert!(row.cells.iter().all(|cell| view.cells.contains(&cell.at)));
                for span in &row.spans {
                    let is = |call: &Span| match span.ended {
                        Ended::Open => (call.start, call.path) == (span.start, span.path) && call.end() >= span.end(),
                        _ => call == span,
                    };
                    prop_assert!(mine.clone().any(is), "{span:?} happened");
                }
                for at in view.cells.clone().filter(|at| !has(&picture.unread, *at)) {
                    prop_assert_eq!(begun(row, &view, at), begun(exact, &view, at), "{:?} {}", key, at);
                }
            }
        }
        let whole = View::new(all_rows(), begin..Nanos(end.0 + 1), 300);
        let (view, picture) = picture(&draft, &recording, &whole);
        if read >= chunks.len() {
            prop_assert_eq!(&picture, &slow(&recording, &calls, &view), "all was read");
        }
        // Reading all calls leaves nothing out of a draft of so few chunks.
        Timeline::build_behind(&recording, &draft, &AtomicU64::new(0)).expect("there is room");
        let (view, picture) = self::picture(&draft, &recording, &whole);
        let exact = slow(&recording, &calls, &view);
        prop_assert_eq!(picture, exact);
    }
}

/// A recording of a thread that does the same all the time, in so many chunks.
fn steady(chunks: usize, is_lossy: bool) -> Vec<Made> {
    let calls = (0..50).map(|n| (0, n * 1_000, 400, 1, true)).collect();
    vec![Made { length: 50_000, is_lossy, calls, open: Vec::new() }; chunks]
}

#[test]
fn what_was_not_read_is_like_what_is_near() {
    let recording = record(&steady(400, false));
    let (begin, end) = recording.period();
    let view = View::new(all_rows(), begin..end, 100);
    let (view, picture) = picture(&draft(&recording, 20), &recording, &view);
    let cells = &picture.rows[0].cells;
    let length = 1_u64 << view.level;
    let whole = cells.len().checked_sub(2).expect("many cells");
    for cell in &cells[1..whole] {
        assert!(has(&picture.unread, cell.at), "{cell:?} is marked");
        assert!((0.35..0.45).contains(&(cell.covered as f64 / length as f64)), "{cell:?}");
        let expected = length as f64 / 1_000.0;
        assert!((cell.count as f64 - expected).abs() <= 0.1 * expected, "{cell:?}");
    }
    assert_eq!(whole as u64 + 2, view.cells.end - view.cells.start, "none is empty");
}

/// The index tells that an unread chunk has fewer calls.
#[test]
fn an_idle_time_that_was_not_read_has_no_calls() {
    let mut chunks = steady(400, false);
    let is_idle = |number: usize| (150..250).contains(&number);
    for (number, chunk) in chunks.iter_mut().enumerate().filter(|(number, _)| is_idle(*number)) {
        chunk.calls.truncate(if number < 200 { 0 } else { 5 });
    }
    let recording = record(&chunks);
    let (begin, end) = recording.period();
    let view = View::new(all_rows(), begin..end, 100);
    let (view, picture) = picture(&draft(&recording, 20), &recording, &view);
    let of = |numbers: std::ops::Range<u64>| {
        let times = numbers.start * 50_000 + BEGIN..numbers.end * 50_000 + BEGIN;
        let cells = picture.rows[0].cells.iter().filter(|cell| {
            let (from, to) = view.times_of(cell.at);
            times.start <= from && to <= times.end
        });
        cells.map(|cell| cell.count).sum::<u64>() as f64 / (numbers.end - numbers.start) as f64
    };
    assert!(!picture.unread.is_empty());
    assert_eq!(of(152..198), 0.0, "nothing was called");
    let [full, few] = [of(20..140), of(200..248)];
    assert!((40.0..=50.0).contains(&full) && (3.0..=5.0).contains(&few), "{full} {few}");
}

/// What is damaged is only known where it was read.
#[test]
fn damage_among_chunks_that_were_not_read_is_no_loss_yet() {
    let mut bytes = bytes_of(&steady(400, false));
    let recording = Recording::open(bytes.clone()).expect("a recording");
    let draft_of = draft(&recording, 20);
    let unread = (100..300).find(|number| draft_of.wants(*number)).expect("most were not read");
    bytes[recording.chunks()[unread].offset as usize + 60] ^= 0x55;
    let recording = Recording::open(bytes).expect("a recording");
    let (begin, end) = recording.period();
    let view = View::new(all_rows(), begin..end, 1_000);
    let (before, after) = (draft(&recording, 20), draft(&recording, usize::MAX));
    let [before, after] = [before, after].map(|draft| picture(&draft, &recording, &view).1);
    assert!(before.lost.is_empty() && !before.unread.is_empty());
    assert!(after.unread.is_empty() && !after.lost.is_empty());
}

#[test]
fn a_draft_of_a_recording_without_calls_is_empty() {
    let recording =
        record(&[Made { length: 70_000, is_lossy: false, calls: Vec::new(), open: Vec::new() }]);
    let (begin, end) = recording.period();
    let draft = draft(&recording, 1);
    assert_eq!((draft.about(&recording).calls, draft.about(&recording).threads.len()), (0, 0));
    let (_, picture) = picture(&draft, &recording, &View::new(Vec::new(), begin..end, 30));
    assert_eq!((picture.rows.len(), picture.unread.len(), picture.lost.len()), (0, 0, 0));
}

#[test]
fn losses_are_marked_where_chunks_were_read() {
    let recording = record(&steady(400, true));
    let (begin, end) = recording.period();
    let (view, picture) =
        picture(&draft(&recording, 20), &recording, &View::new(all_rows(), begin..end, 1_000));
    let lost: u64 = picture.lost.iter().map(|range| range.end - range.start).sum();
    assert!(lost >= 20 && !picture.unread.is_empty(), "{:?}", picture.lost);
    assert!(
        view.cells.clone().all(|at| at + 1 >= view.cells.end
            || has(&picture.lost, at)
            || has(&picture.unread, at))
    );
}

#[test]
fn a_short_time_is_read_when_it_is_asked_for() {
    let recording = record(&steady(400, false));
    let calls = all(&recording);
    let view = View::new(all_rows(), Nanos(BEGIN + 320_000)..Nanos(BEGIN + 480_000), 200);
    let (shown, picture) = picture(&draft(&recording, 3), &recording, &view);
    assert_eq!((&shown, &picture), (&view, &slow(&recording, &calls, &view)));
}

#[test]
fn a_draft_tells_of_threads_and_estimates_their_calls() {
    let recording = record(&steady(400, false));
    let about = draft(&recording, 20).about(&recording);
    assert_eq!(about.calls, 400 * 50);
    let threads: Vec<_> =
        about.threads.iter().map(|thread| (thread.depths, thread.calls)).collect();
    assert_eq!(threads, [(1, 400 * 50)]);
}

#[test]
fn a_chunk_that_cannot_be_read_is_lost_and_stands_for_nothing() {
    let mut bytes = bytes_of(&steady(3, false));
    let recording = Recording::open(bytes.clone()).expect("a recording");
    let offset = recording.chunks()[1].offset as usize + 60;
    bytes[offset] ^= 0x55;
    let recording = Recording::open(bytes).expect("a recording");
    let (begin, end) = recording.period();
    let draft = draft(&recording, usize::MAX);
    let (_, picture) = picture(&draft, &recording, &View::new(all_rows(), begin..end, 30));
    assert!(picture.unread.is_empty() && !picture.lost.is_empty());
}
