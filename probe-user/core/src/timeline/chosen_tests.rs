//! Pictures, counts and durations of chosen calls, compared with looking at every call.

use super::tests::{FUNCTIONS, all, all_rows, made, record, slow};
use super::*;
use crate::formats::Ended;
use crate::stop::Stop;
use crate::units::Nanos;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn what_is_told_of_chosen_calls_is_that_of_every_call(
        chunks in prop::collection::vec(made(), 0..30),
        scale in prop_oneof![Just(0.0), Just(1e6)],
        (from, part, pixels) in (0.0..0.9f64, 0.0..1.5f64, 1..300u32),
        functions in prop::collection::vec(any::<bool>(), FUNCTIONS as usize),
        durations in prop::option::of((0..400u64, 0..60_000u64)),
    ) {
        let recording = record(&chunks);
        let timeline = Timeline::build_scaled(&recording, None, &AtomicU64::new(0), scale);
        let timeline = timeline.expect("there is room");
        let (begin, end) = recording.period();
        let length = end.since(begin).0 as f64;
        let from = begin.0 + (from * length) as u64;
        let to = from + (part * length) as u64 + 1;
        let time = Nanos(from)..Nanos(to);
        let mut chosen = Chosen::of(functions.clone());
        if let Some((least, more)) = durations {
            chosen = chosen.lasting(Nanos(least)..=Nanos(least + more));
        }
        let is_chosen = |span: &Span| {
            let of_function = functions[recording.nodes()[span.path as usize].func.index()];
            let lasts = |(least, more)| {
                span.ended == Ended::Timed && (least..=least + more).contains(&span.duration.0)
            };
            of_function && durations.is_none_or(lasts)
        };
        let mut calls = all(&recording);
        calls.retain(|(_, span)| is_chosen(span));
        let view = View::new(all_rows(), time.clone(), pixels);
        let stop = Stop::default();
        let picture = timeline.picture_of(&recording, &view, &chosen, &stop);
        prop_assert_eq!(picture.expect("nobody stops it"), slow(&recording, &calls, &view));
        calls.retain(|(_, span)| (from..to).contains(&span.start.0));
        let hits = timeline.hits(&recording, &chosen, time.clone(), 5, &stop);
        prop_assert_eq!(hits.count, calls.len() as u64);
        let (begin, end) = (begin.0, end.0);
        let all = all(&recording);
        let begins = all.iter().filter(|(_, span)| is_chosen(span)).map(|(_, span)| span.start.0);
        let mut begins: Vec<u64> = begins.filter(|at| (begin..=end).contains(at)).collect();
        begins.sort_unstable();
        for n in [1, begins.len() / 2, begins.len(), begins.len() + 1] {
            let expected = begins.get(n.max(1) - 1).map(|at| Nanos(*at));
            let found = timeline.nth(&recording, &chosen, n as u64, &stop);
            prop_assert_eq!(found, expected.ok_or(begins.len() as u64));
        }
        let told = timeline.durations(&recording, &chosen, time, &stop);
        let timed = || calls.iter().filter(|(_, span)| span.ended == Ended::Timed);
        prop_assert_eq!(told.count + told.untimed, calls.len() as u64);
        prop_assert_eq!(told.count, timed().count() as u64);
        for bar in told.bars {
            let is_in = |span: &Span| bar.from_ns <= span.duration && span.duration <= bar.to_ns;
            prop_assert_eq!(bar.count, timed().filter(|(_, span)| is_in(span)).count() as u64);
        }
    }
}
