//! The engine's numbers against a slow and obvious reading of the definitions, on random programs
//! of several threads: nested, recursive, tail-calling, jumping out of frames, seen through several
//! rings out of order.

mod support;

use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::function::FunctionInfo;
use ctrace_core::report::Report;
use ctrace_core::units::{Nanos, Tid};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use support::*;

/// Functions 0 and 1 may end in a tail call.
const FUNCTIONS: u32 = 5;
const THREADS: u64 = 4;
const RINGS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enter(u32),
    Exit,
    TailCall(u32),
    LongJump(usize),
    Point(u32),
}

#[derive(Clone, Debug)]
struct Step {
    thread: u64,
    op: Op,
    wait: u64,
    ring: usize,
    swap: bool,
}

/// What really happened.
#[derive(Clone, Debug)]
struct Call {
    thread: u64,
    func: u32,
    parent: Option<usize>,
    depth: usize,
    start: u64,
    end: u64,
    /// When the engine can know that it is over.
    known: u64,
    timed: bool,
}

#[derive(Clone, Default)]
struct Live {
    /// Call, stack pointer, room that callees leave for a later one above them.
    frames: Vec<(usize, u64, u64)>,
    dead: Vec<usize>,
    last: u64,
    base: u64,
}

#[derive(Default, Debug)]
struct Program {
    calls: Vec<Call>,
    rings: Vec<Vec<Event>>,
    end: u64,
}

fn run(steps: &[Step]) -> Program {
    let mut program = Program { rings: vec![Vec::new(); RINGS], ..Program::default() };
    let mut threads = vec![Live::default(); THREADS as usize];
    let mut rings = vec![0; THREADS as usize];
    let mut now = 100;
    for step in steps {
        now += step.wait;
        let (ts, index) = (now * THREADS + step.thread, step.thread as usize);
        let live = &mut threads[index];
        let base = 0x10_0000_0000 * (step.thread + 1) + live.base;
        let top = live.frames.last().copied();
        let func_of = |call: usize| program.calls[call].func;
        let (event, dies) = match (step.op, top) {
            (Op::Enter(func), _) => {
                (enter(func, top.map_or(base, |(_, sp, room)| sp - room), ts), false)
            }
            (Op::TailCall(func), Some((call, sp, _))) if func_of(call) < 2 => {
                (enter(func, sp, ts), false)
            }
            (Op::Exit, Some((call, sp, _))) => (ret(func_of(call), sp, ts), true),
            (Op::Point(func), Some((_, sp, _))) => (point(func, sp - 1, ts), false),
            (Op::LongJump(depth), Some(_)) => {
                let mut keep = live.frames.len().saturating_sub(depth);
                while keep > 0 && live.frames[keep - 1].1 == live.frames[keep].1 {
                    keep -= 1;
                }
                match keep.checked_sub(1).map(|last| &mut live.frames[last].2) {
                    Some(room) if *room > 2 => *room /= 2,
                    Some(_) => continue,
                    None => live.base += 16,
                }
                live.dead.extend(live.frames.drain(keep..).rev().map(|frame| frame.0));
                continue;
            }
            _ => continue,
        };
        for dead in live.dead.drain(..) {
            let call = &mut program.calls[dead];
            (call.end, call.known) = (live.last, ts);
        }
        if dies {
            let call = live.frames.pop().map(|frame| &mut program.calls[frame.0]);
            if let Some(call) = call {
                (call.end, call.known, call.timed) = (ts, ts, true);
            }
        } else {
            let is_point = matches!(step.op, Op::Point(_));
            let over = if is_point { ts } else { u64::MAX };
            program.calls.push(Call {
                thread: step.thread,
                func: event.func,
                parent: live.frames.last().map(|frame| frame.0),
                depth: live.frames.len(),
                start: ts,
                end: over,
                known: over,
                timed: false,
            });
            if !is_point {
                live.frames.push((program.calls.len() - 1, event.sp, 1 << 12));
            }
        }
        if ts > live.last {
            rings[index] = step.ring;
        }
        live.last = ts;
        let ring = &mut program.rings[rings[index]];
        ring.push(event.on(PID + step.thread as u32));
        if let [.., a, b] = &mut ring[..]
            && step.swap
            && a.ts < b.ts
        {
            std::mem::swap(a, b);
        }
        program.end = program.end.max(ts + 1);
    }
    program
}

fn steps(jumps: bool) -> impl Strategy<Value = Vec<Step>> {
    let func = 0..FUNCTIONS;
    let op = prop_oneof![
        6 => func.clone().prop_map(Op::Enter),
        6 => Just(Op::Exit),
        2 => func.clone().prop_map(Op::TailCall),
        u32::from(jumps) => (1usize..4).prop_map(Op::LongJump),
        1 => func.prop_map(Op::Point),
    ];
    let step = (0..THREADS, op, prop_oneof![0u64..3, 0u64..200], 0..RINGS, any::<bool>());
    let step =
        step.prop_map(|(thread, op, wait, ring, swap)| Step { thread, op, wait, ring, swap });
    prop::collection::vec(step, 1..300)
}

fn functions() -> Vec<FunctionInfo> {
    let name = |f: u32| format!("f{f}");
    (0..FUNCTIONS).map(|f| if f < 2 { tail_caller(&name(f)) } else { function(&name(f)) }).collect()
}

fn start(config: EngineConfig) -> Engine {
    engine(&functions(), EngineConfig { rings: RINGS, ..config })
}

/// Feeds what happened after `from` and up to `to`.
fn feed(engine: &mut Engine, program: &Program, from: u64, to: u64) {
    for (ring, events) in program.rings.iter().enumerate() {
        for event in events.iter().filter(|event| event.ts > from && event.ts <= to) {
            engine.push(ring, &event.bytes());
        }
    }
    engine.advance(Nanos(to));
}

type Intervals = Vec<(u64, u64)>;

fn length(mut intervals: Intervals) -> u64 {
    intervals.sort_unstable();
    let (mut sum, mut covered) = (0, 0);
    for (start, end) in intervals {
        sum += end.saturating_sub(start.max(covered));
        covered = covered.max(end);
    }
    sum
}

/// One function's numbers, in the order of `actual`.
type Row = Vec<u64>;

struct Expected {
    functions: Vec<Row>,
    centers: Vec<Row>,
    tracked: u64,
    paths: BTreeMap<String, [u64; 3]>,
}

fn rank(sorted: &[u64], permille: usize) -> u64 {
    sorted.get((sorted.len() * permille).div_ceil(1_000).max(1) - 1).copied().unwrap_or(0)
}

/// The definitions, for the calls that ended in `(from, to]` or are open at `to`.
fn expect(calls: &[Call], from: u64, to: u64, cut: f64) -> Expected {
    let is_in = |c: &Call| c.start <= to && c.known > from;
    let is_open = |c: &Call| c.known > to;
    let clip = |c: &Call| (c.start.max(from), if is_open(c) { to } else { c.end });
    let inside = || calls.iter().enumerate().filter(|(_, c)| is_in(c));
    let mut edges: Vec<u64> = inside().flat_map(|(_, c)| [clip(c).0, clip(c).1]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut innermost: BTreeMap<usize, Intervals> = BTreeMap::new();
    for edge in edges.windows(2) {
        for thread in 0..THREADS {
            let on = inside().filter(|(_, c)| {
                c.thread == thread && clip(c).0 <= edge[0] && clip(c).1 >= edge[1]
            });
            if let Some((index, _)) = on.max_by_key(|(_, c)| c.depth) {
                innermost.entry(index).or_default().push((edge[0], edge[1]));
            }
        }
    }
    let segments = |index: usize| innermost.get(&index).cloned().unwrap_or_default();
    let mut own: Vec<u64> = calls.iter().map(|c| c.end.saturating_sub(c.start)).collect();
    for c in calls.iter().filter(|c| c.end != u64::MAX) {
        if let Some(parent) = c.parent {
            own[parent] = own[parent].saturating_sub(c.end - c.start);
        }
    }
    let mut expected = Expected {
        functions: Vec::new(),
        centers: Vec::new(),
        tracked: length(innermost.values().flatten().copied().collect()),
        paths: BTreeMap::new(),
    };
    for (index, c) in inside() {
        let mut path = format!("f{}", c.func);
        let mut above = c.parent;
        while let Some(parent) = above {
            path = format!("f{}>{path}", calls[parent].func);
            above = calls[parent].parent;
        }
        let sums = expected.paths.entry(path).or_default();
        sums[0] += 1;
        if !is_open(c) {
            sums[1] += c.end - c.start;
            sums[2] += own[index];
        }
    }
    for func in 0..FUNCTIONS {
        let mine = || inside().filter(|(_, c)| c.func == func);
        let ended = || mine().filter(|(_, c)| !is_open(c));
        let mut timed: Vec<(usize, &Call)> = ended().filter(|(_, c)| c.timed).collect();
        // Of two that end together in one thread, the inner one ends first.
        timed.sort_by_key(|(_, c)| (c.end - c.start, c.known, Reverse(c.depth)));
        let durations: Vec<u64> = timed.iter().map(|(_, c)| c.end - c.start).collect();
        let mut threads: Vec<u64> = mine().map(|(_, c)| c.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let sum: u64 = durations.iter().sum();
        let n = durations.len() as f64;
        let mean = sum as f64 / n;
        let sd = (durations.iter().map(|&d| (d as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
        let or_zero = |value: f64| if value.is_nan() { 0 } else { value.round() as u64 };
        let mut row = vec![
            mine().count() as u64,
            timed.len() as u64,
            ended().filter(|(_, c)| !c.timed).count() as u64,
            mine().filter(|(_, c)| is_open(c)).count() as u64,
            0,
            threads.len() as u64,
            ended().map(|(_, c)| c.end - c.start).sum(),
            ended().map(|(index, _)| own[index]).sum(),
            length(mine().map(|(_, c)| clip(c)).collect()),
            length(mine().flat_map(|(index, _)| segments(index)).collect()),
            durations.first().copied().unwrap_or(0),
            or_zero(mean),
            durations.last().copied().unwrap_or(0),
            or_zero(sd),
        ];
        row.extend([500, 900, 950, 990, 999].map(|permille| rank(&durations, permille)));
        expected.functions.push(row);
        let k = (n * cut / 100.0).floor() as usize;
        let (low, rest) = timed.split_at(k);
        let (middle, high) = rest.split_at(rest.len() - k);
        let lengths = |calls: &[(usize, &Call)]| -> Vec<u64> {
            calls.iter().map(|(_, c)| c.end - c.start).collect()
        };
        let mean = |d: Vec<u64>| or_zero(d.iter().sum::<u64>() as f64 / d.len() as f64);
        expected.centers.push(vec![
            lengths(low).first().copied().unwrap_or(0),
            mean(lengths(low)),
            lengths(middle).first().copied().unwrap_or(0),
            mean(lengths(middle)),
            rank(&lengths(middle), 500),
            lengths(middle).last().copied().unwrap_or(0),
            length(middle.iter().map(|(_, c)| clip(c)).collect()),
            length(middle.iter().flat_map(|(index, _)| segments(*index)).collect()),
            mean(lengths(high)),
            lengths(high).last().copied().unwrap_or(0),
        ]);
    }
    expected
}

fn value(nanos: Option<Nanos>) -> u64 {
    nanos.map_or(0, |nanos| nanos.0)
}

fn rows(report: &Report) -> Vec<Row> {
    let row = |f: &ctrace_core::report::FunctionReport| {
        let d = &f.durations;
        let mut row = vec![f.calls, f.timed, f.untimed, f.open, f.headless, f.threads];
        row.extend([f.total_ns, f.self_ns, f.active_ns, f.active_exclusive_ns].map(|n| n.0));
        row.extend([d.min_ns, d.mean_ns, d.max_ns, d.sd_ns].map(value));
        row.extend([d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.p999_ns].map(value));
        row
    };
    report.functions.iter().map(row).collect()
}

fn centers(report: &Report) -> Vec<Row> {
    let row = |f: &ctrace_core::report::FunctionReport| {
        let (a, c, z) = (&f.fastest, &f.center, &f.slowest);
        [
            a.min_ns,
            a.mean_ns,
            c.min_ns,
            c.mean_ns,
            c.median_ns,
            c.max_ns,
            c.active_ns,
            c.active_exclusive_ns,
            z.mean_ns,
            z.max_ns,
        ]
        .map(value)
        .to_vec()
    };
    report.functions.iter().map(row).collect()
}

fn paths(report: &Report) -> BTreeMap<String, [u64; 3]> {
    let hit = report.paths.iter().filter(|path| path.calls > 0);
    hit.map(|p| (p.path.join(">"), [p.calls, p.total_ns.0, p.self_ns.0])).collect()
}

/// A call that the filter drops leaves its callees to its caller.
fn filter(calls: &[Call], keep: impl Fn(&Call) -> bool) -> Vec<Call> {
    let mut places = vec![None; calls.len()];
    let mut kept: Vec<Call> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let mut parent = call.parent;
        while let Some(above) = parent.filter(|&above: &usize| places[above].is_none()) {
            parent = calls[above].parent;
        }
        if keep(call) {
            places[index] = Some(kept.len());
            kept.push(Call { parent: parent.and_then(|above| places[above]), ..call.clone() });
        }
    }
    kept
}

fn report_with(program: &Program, config: EngineConfig) -> Report {
    let mut engine = start(config);
    for cut in 1..=4 {
        feed(&mut engine, program, program.end * (cut - 1) / 4, program.end * cut / 4);
    }
    engine.report(Nanos(program.end), meta(10.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_report_is_as_defined(steps in steps(true), cut in prop_oneof![Just(0.0), Just(10.0), Just(34.0)]) {
        let program = run(&steps);
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, program.end / 2);
        feed(&mut engine, &program, program.end / 2, program.end);
        let report = engine.report(Nanos(program.end), meta(cut));
        let expected = expect(&program.calls, 0, program.end, cut);
        prop_assert_eq!(rows(&report), expected.functions);
        prop_assert_eq!(centers(&report), expected.centers);
        prop_assert_eq!(report.tracked_ns.0, expected.tracked);
        prop_assert_eq!(paths(&report), expected.paths);
        prop_assert_eq!(report.loss.late, 0);
    }

    #[test]
    fn an_interval_covers_the_calls_that_ended_in_it(steps in steps(true), at in 0u64..=100) {
        let program = run(&steps);
        let middle = program.end * at / 100;
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, middle);
        let first = engine.report_interval(Nanos(middle), meta(10.0));
        feed(&mut engine, &program, middle, program.end);
        let second = engine.report_interval(Nanos(program.end), meta(10.0));
        for (report, from, to) in [(first, 0, middle), (second, middle, program.end)] {
            let expected = expect(&program.calls, from, to, 10.0);
            prop_assert_eq!(rows(&report), expected.functions);
            prop_assert_eq!(centers(&report), expected.centers);
            prop_assert_eq!(report.tracked_ns.0, expected.tracked);
            prop_assert_eq!(paths(&report), expected.paths);
            prop_assert!(!report.approximate);
        }
    }

    #[test]
    fn folding_the_spool_changes_no_sum_and_no_union(steps in steps(false), bytes in 0usize..6_000) {
        let program = run(&steps);
        let whole = report_with(&program, EngineConfig::default());
        let folded = report_with(&program, EngineConfig { spool_bytes: bytes, ..EngineConfig::default() });
        for (whole, folded) in rows(&whole).iter().zip(rows(&folded)) {
            prop_assert_eq!(&whole[..14], &folded[..14]);
            for (exact, got) in whole[14..].iter().zip(&folded[14..]) {
                prop_assert!(exact.abs_diff(*got) as f64 <= *exact as f64 / 1_000.0);
            }
        }
        prop_assert_eq!(whole.tracked_ns, folded.tracked_ns);
        prop_assert_eq!(paths(&whole), paths(&folded));
        let centers = folded.functions.iter().all(|f| f.center == Default::default());
        prop_assert!(!folded.approximate || centers);
    }

    #[test]
    fn a_filtered_call_is_as_if_never_selected(
        steps in steps(true), min in 0u64..800, depth in prop_oneof![Just(None), (1u32..5).prop_map(Some)],
        thread in prop_oneof![Just(None), (0..THREADS).prop_map(Some)],
    ) {
        let program = run(&steps);
        let threads = thread.map(|t| ThreadFilter::Tid(Tid(PID + t as u32))).into_iter().collect();
        let filter_by = Filter { min_duration: Nanos(min), max_depth: depth, threads };
        let report = report_with(&program, EngineConfig { filter: filter_by, ..EngineConfig::default() });
        let kept = filter(&program.calls, |c| {
            !(c.timed && c.end - c.start < min)
                && depth.is_none_or(|depth| c.depth < depth as usize)
                && thread.is_none_or(|thread| c.thread == thread)
        });
        let expected = expect(&kept, 0, program.end, 10.0);
        prop_assert_eq!(rows(&report), expected.functions);
        prop_assert_eq!(centers(&report), expected.centers);
        prop_assert_eq!(report.tracked_ns.0, expected.tracked);
        prop_assert_eq!(report.filtered_calls as usize, program.calls.len() - kept.len());
    }

    #[test]
    fn no_bytes_make_it_panic(
        records in prop::collection::vec(
            (0usize..3, prop_oneof![
                prop::collection::vec(any::<u8>(), 0..70),
                (any::<[u8; 64]>(), 0u8..24, any::<bool>(), 0u8..6).prop_map(|(mut b, kind, long, small)| {
                    b[28] = kind;
                    b[8 + usize::from(small)..32].iter_mut().enumerate().for_each(|(i, b)| if i != 20 - usize::from(small) { *b &= 1 });
                    b[..if long { 64 } else { 32 }].to_vec()
                }),
            ]), 0..300),
        spool in 0usize..20_000, cut in any::<f64>(),
    ) {
        let mut engine = start(EngineConfig { spool_bytes: spool, max_paths: 20, ..EngineConfig::default() });
        for (index, (ring, bytes)) in records.iter().enumerate() {
            engine.push(*ring, bytes);
            if index % 50 == 49 {
                engine.advance(Nanos(1 << (index % 64)));
                engine.report_interval(Nanos(index as u64), meta(cut));
            }
        }
        engine.advance(Nanos::MAX);
        for f in engine.report(Nanos::MAX, meta(cut)).functions {
            prop_assert_eq!(f.calls, f.timed + f.untimed + f.open);
        }
    }
}
