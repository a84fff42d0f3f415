use super::order::CallOrder;
use super::replay::replay_within;
use super::*;
use crate::engine::{Engine, EngineConfig};
use crate::filter::Filter;
use crate::function::FunctionInfo;
use crate::ingest::event::Event;
use crate::recording::replay::Query;
use crate::recording::{Block, BlockKind, End, Start, Writer};
use crate::units::Tid;
use ctrace_common::{Kind, Record};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// Lines as text: the part, the function, its depth, the start and the duration.
#[derive(Default)]
struct Seen(Vec<String>);

impl Lines for Seen {
    fn define(&mut self, _: &Scene<'_>) {}

    fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>) -> io::Result<()> {
        self.0.push(match line {
            StreamLine::Call(call, _) => {
                let part = match call.part {
                    CallPart::Whole => "",
                    CallPart::Begun => "begun ",
                    CallPart::Resumed => "resumed ",
                    CallPart::Gone => "gone ",
                };
                let ended = match call.ended {
                    Ended::Timed => "",
                    Ended::Untimed => "?",
                    Ended::Open => "…",
                };
                let name = &scene.recording.functions()[call.function.index()].name;
                let CallLine { depth, start, duration, .. } = call;
                format!("{part}{name}{depth} {}+{}{ended}", start.0, duration.0)
            }
            StreamLine::Lost(lost) => {
                format!("lost {} {}..{}", lost.events, lost.from.0, lost.to.0)
            }
        });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn event(ts_ns: u64, probe: u32, kind: Kind, sp: u64) -> Event {
    event_of(1, ts_ns, probe, kind, sp)
}

fn event_of(tid: u32, ts_ns: u64, probe: u32, kind: Kind, sp: u64) -> Event {
    let record = Record { ts_ns, probe, sp, pid: 1, tid, ..Record::default() };
    Record { kind: kind as u8, ..record }.into()
}

/// A call of the function of this number, which begins and ends at these times.
fn call(function: u32, from: u64, to: u64) -> [Event; 2] {
    let sp = 900 - 100 * u64::from(function);
    [event(from, function, Kind::Enter, sp), event(to, function, Kind::Return, sp)]
}

/// Returns the blocks of calls, with chunks that end at these times. In the first one, `lost` events
/// were lost.
fn blocks_with(calls: &[[Event; 2]], ends: &[u64], filter: Filter, lost: u64) -> Vec<Block> {
    let config = EngineConfig { record: true, filter, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    for name in ["a", "b", "c"] {
        engine.add_function(FunctionInfo::new(name, "program"));
    }
    let mut events: Vec<Event> = calls.iter().flatten().copied().collect();
    // At one time, what began last ends first, and before others begin.
    events.sort_by_key(|event| (event.ts(), event.kind() == Some(Kind::Enter), event.sp()));
    engine.set_lost_events(lost, 0);
    let mut from = 0;
    let mut blocks = Vec::new();
    for &to in ends {
        let now: Vec<Event> =
            events.iter().filter(|event| (from..=to).contains(&event.ts())).copied().collect();
        from = to + 1;
        engine.push_events(0, &now);
        engine.advance(Nanos(to));
        engine.end_chunk(Nanos(to));
        blocks.extend(engine.take_blocks());
    }
    blocks
}

fn blocks(calls: &[[Event; 2]], ends: &[u64]) -> Vec<Block> {
    blocks_with(calls, ends, Filter::default(), 0)
}

/// Returns the lines while the blocks come, with room for so many that wait.
fn live_within(blocks: &[Block], end: u64, most: usize) -> Vec<String> {
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    live.order = CallOrder::new(Nanos(500 * MS), most);
    let mut seen = Seen::default();
    for block in blocks {
        live.take(block, &mut seen).expect("blocks of an engine are sound");
    }
    live.end(Nanos(end), &mut seen).expect("memory takes all");
    seen.0
}

fn live(blocks: &[Block], end: u64) -> Vec<String> {
    live_within(blocks, end, 1_000)
}

/// Returns the lines of a recording of these blocks, with room for so many that end in a later chunk.
fn recorded_within(blocks: &[Block], end: u64, most: usize) -> Vec<String> {
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    blocks.iter().for_each(|block| writer.write(block).expect("memory takes all"));
    let bytes = writer.finish(&End { end_ns: Nanos(end), ..End::default() });
    let recording = Recording::open(bytes.expect("memory takes all")).expect("a recording");
    let mut seen = Seen::default();
    replay_within(&recording, &Query::default(), &mut seen, (most, 1 << 20)).expect("sound");
    seen.0
}

fn recorded(blocks: &[Block], end: u64) -> Vec<String> {
    recorded_within(blocks, end, 1_000)
}

#[test]
fn calls_are_in_the_order_in_which_they_began() {
    let calls = [call(0, 10, 90), call(1, 20, 50), call(2, 30, 41), call(1, 60, 77)];
    let expected = ["a0 10+80", "b1 20+30", "c2 30+11", "b1 60+17"];
    for ends in [&[100][..], &[45, 100], &[25, 35, 55, 65, 100]] {
        let blocks = blocks(&calls, ends);
        assert_eq!(live(&blocks, 100), expected, "chunks that end at {ends:?}");
        assert_eq!(recorded(&blocks, 100), expected, "chunks that end at {ends:?}");
    }
}

#[test]
fn a_call_that_stays_open_holds_up_nothing() {
    let calls = [call(0, 7 * MS, 900 * MS), call(1, 20 * MS, 50 * MS), call(1, 700 * MS, 750 * MS)];
    let ends = [300 * MS, 600 * MS, 1_000 * MS];
    let blocks = blocks(&calls, &ends);
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let mut seen = Seen::default();
    let mut known = Vec::new();
    for block in &blocks {
        live.take(block, &mut seen).expect("sound");
        if block.kind == BlockKind::Calls {
            known.push(seen.0.len());
        }
    }
    live.end(Nanos(1_000 * MS), &mut seen).expect("memory takes all");
    assert_eq!(known, [0, 2, 4], "nothing waits for more than half a second");
    let shown = [
        "begun a0 7000000+593000000…",
        "b1 20000000+30000000",
        "b1 700000000+50000000",
        "resumed a0 7000000+893000000",
    ];
    assert_eq!(seen.0, shown);
    let whole = ["a0 7000000+893000000", "b1 20000000+30000000", "b1 700000000+50000000"];
    assert_eq!(recorded(&blocks, 1_000 * MS), whole, "a recording knows the end");
}

#[test]
fn a_call_is_announced_where_too_many_lines_wait() {
    let inner = (0..8).map(|at| call(1, 20 + 10 * at, 25 + 10 * at));
    let calls: Vec<_> = [call(0, 10, 130)].into_iter().chain(inner).collect();
    let blocks = blocks(&calls, &[56, 99, 140]);
    let whole = live_within(&blocks, 140, 8);
    assert_eq!((whole.len(), whole[0].as_str()), (9, "a0 10+120"));
    let seen = live_within(&blocks, 140, 3);
    assert_eq!(seen.len(), 10, "{seen:?}");
    let (first, last) = (&seen[0], &seen[9]);
    assert_eq!((first.as_str(), last.as_str()), ("begun a0 10+46…", "resumed a0 10+120"));
}

#[test]
fn a_call_that_was_announced_and_is_left_out_is_said_to_have_gone() {
    let filter = Filter { min_duration: Nanos(60), ..Filter::default() };
    let blocks = blocks_with(&[call(0, 12, 50)], &[30, 80], filter, 5);
    let expected = ["begun a0 12+18…", "lost 5 0..30", "gone a0 12+68?"];
    assert_eq!(live_within(&blocks, 80, 0), expected);
    assert_eq!(live_within(&blocks, 80, 1), ["lost 5 0..30"], "nothing was announced");
}

#[test]
fn calls_that_are_open_at_the_end_say_so() {
    let [enter, _] = call(0, 100 * MS, 0);
    let [within, _] = call(1, 800 * MS, 0);
    let early = [event(10 * MS, 2, Kind::Enter, 500), event(30 * MS, 2, Kind::Return, 500)];
    let open = [[enter, within], early];
    let blocks = blocks(&open, &[700 * MS, 900 * MS]);
    let seen = live(&blocks, 1_000 * MS);
    let expected = [
        "c0 10000000+20000000",
        "begun a0 100000000+600000000…",
        "b1 800000000+200000000…",
        "resumed a0 100000000+900000000…",
    ];
    assert_eq!(seen, expected);
    let whole = ["c0 10000000+20000000", "a0 100000000+900000000…", "b1 800000000+200000000…"];
    assert_eq!(recorded(&blocks, 1_000 * MS), whole);
}

#[test]
fn what_a_recording_has_no_room_for_comes_at_its_end() {
    let calls = [call(0, 10, 90), call(1, 20, 50), call(2, 30, 41), call(1, 60, 77)];
    let blocks = blocks(&calls, &[25, 35, 100]);
    // In the order of the file, the outermost call that ends in the last chunk comes first.
    let seen = recorded_within(&blocks, 100, 1);
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert_eq!(seen[0], "a0 10+80");
    assert_eq!(seen.iter().filter(|line| line.starts_with("resumed ")).count(), 2, "{seen:?}");
    assert_eq!(recorded_within(&blocks, 100, 9).len(), 4);
}

#[test]
fn losses_are_a_line_where_they_were() {
    let calls = [call(0, 40, 70), call(0, 140, 170), call(0, 240, 270)];
    let blocks = blocks_with(&calls, &[100, 200, 300], Filter::default(), 312);
    let expected = ["a0 40+30", "lost 312 0..100", "a0 140+30", "a0 240+30"];
    assert_eq!(live(&blocks, 300), expected);
    assert_eq!(recorded(&blocks, 300), expected);
}

#[test]
fn threads_that_ended_are_forgotten_while_lines_of_others_wait() {
    let of_two = [event_of(2, 20, 2, Kind::Enter, 700), event_of(2, 30, 2, Kind::Return, 700)];
    let calls = [call(0, 10, 150), of_two, call(0, 160, 250), call(1, 170, 180)];
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let mut seen = Seen::default();
    let (mut second, mut known) = (None, Vec::new());
    for block in &mut blocks(&calls, &[100, 200, 300]) {
        if block.kind == BlockKind::Calls && second.is_none() {
            second = live.recording.threads().find(|of| of.tid == Tid(2)).map(|of| of.id);
            block.ended.extend(second);
        }
        live.take(block, &mut seen).expect("sound");
        if block.kind == BlockKind::Calls {
            known.push((seen.0.len(), live.recording.threads().count()));
        }
    }
    assert_eq!(known, [(0, 2), (2, 1), (4, 1)]);
}

/// Calls side by side and inside each other, as their depths and lengths say.
fn nested(steps: &[(u8, u8, u8)]) -> Vec<[Event; 2]> {
    let (mut calls, mut now) = (Vec::new(), 10);
    for &(gap, length, inside) in steps {
        let (from, length) = (now + u64::from(gap), u64::from(length) + 10);
        let to = from + length;
        calls.push(call(0, from, to));
        if inside > 0 {
            let end = from + 2 + u64::from(inside) % (length - 4);
            calls.push(call(1, from + 1, end.max(from + 2)));
        }
        now = to + 1;
    }
    calls
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the chunks and the room, each call has one line, or a beginning and an end. Times
    /// never go back.
    #[test]
    fn each_call_is_there_once(
        steps in prop::collection::vec((0_u8..30, any::<u8>(), any::<u8>()), 1..20),
        cuts in prop::collection::btree_set(1_u64..3_000, 0..9),
        most in 0_usize..6,
    ) {
        let calls = nested(&steps);
        let end = 20_000;
        let ends: Vec<u64> = cuts.into_iter().chain([end]).collect();
        let blocks = blocks(&calls, &ends);
        let mut starts: Vec<u64> = calls.iter().map(|[enter, _]| enter.ts()).collect();
        starts.sort_unstable();
        for (lines, is_live) in
            [(live_within(&blocks, end, most), true), (recorded_within(&blocks, end, most), false)]
        {
            let mut last = 0;
            let (mut begun, mut ended) = (Vec::new(), Vec::new());
            for line in &lines {
                let mut words = line.split(' ').rev();
                let times = words.next().expect("times").trim_end_matches('…');
                let part = words.nth(1);
                let (start, duration) = times.split_once('+').expect("two times");
                let [start, duration] = [start, duration].map(|time| time.parse::<u64>().expect("a number"));
                let at = if part == Some("resumed") { start + duration } else { start };
                prop_assert!(at >= last, "{lines:?}");
                last = at;
                match part {
                    Some("begun") => begun.push(start),
                    Some("resumed") => ended.push(start),
                    _ => {
                        begun.push(start);
                        ended.push(start);
                    }
                }
            }
            ended.sort_unstable();
            prop_assert_eq!(&ended, &starts);
            if is_live {
                begun.sort_unstable();
                prop_assert_eq!(&begun, &starts);
            }
        }
    }
}
