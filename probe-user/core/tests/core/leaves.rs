//! Tests the shortcut for a leaf call, whose return directly follows its entry. The shortcut must
//! make no difference: the same events are processed with and without another thread's event
//! between any two. Both must give the same report, whatever is lost, late, filtered or folded.

use crate::support::*;
use ctrace_core::engine::EngineConfig;
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::report::{LossReport, Report};
use ctrace_core::units::{Nanos, Tid};
use proptest::prelude::*;

const FUNCTIONS: u32 = 3;
const THREADS: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enter(u32),
    Exit,
    Leaf(u32),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    thread: u32,
    op: Op,
    wait: u64,
    lost: bool,
    late: bool,
    advance: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let func = 0..FUNCTIONS;
    let op = prop_oneof![
        1 => func.clone().prop_map(Op::Enter),
        1 => Just(Op::Exit),
        2 => func.prop_map(Op::Leaf),
    ];
    let rare = || prop::bool::weighted(0.05);
    (0..THREADS, op, 0u64..60, rare(), rare(), prop::bool::weighted(0.2)).prop_map(
        |(thread, op, wait, lost, late, advance)| Step { thread, op, wait, lost, late, advance },
    )
}

/// An event, or the time to advance to.
type Fed = Result<Event, u64>;

fn feed(steps: &[Step]) -> Vec<Fed> {
    let mut stacks = vec![Vec::new(); THREADS as usize];
    let mut lost = vec![0; THREADS as usize];
    let (mut fed, mut late, mut now) = (Vec::new(), Vec::new(), 100);
    for step in steps {
        let stack: &mut Vec<u32> = &mut stacks[step.thread as usize];
        let sp = |depth: usize| (1 << 20) + (u64::from(step.thread) << 32) - 16 * depth as u64;
        let events = match step.op {
            Op::Enter(func) => {
                stack.push(func);
                vec![enter(func, sp(stack.len()), 0)]
            }
            Op::Exit => {
                let depth = stack.len();
                stack.pop().map(|func| ret(func, sp(depth), 0)).into_iter().collect()
            }
            Op::Leaf(func) => {
                let sp = sp(stack.len() + 1);
                vec![enter(func, sp, 0), ret(func, sp, 0)]
            }
        };
        for (nth, event) in events.into_iter().enumerate() {
            now += step.wait;
            let lost = &mut lost[step.thread as usize];
            if step.lost && nth == step.wait as usize % 2 {
                *lost += 1;
                continue;
            }
            let event = Event { ts: now, lost: std::mem::take(lost), ..event };
            let to = if step.late { &mut late } else { &mut fed };
            to.push(Ok(event.on(PID + step.thread)));
        }
        if step.advance {
            fed.push(Err(now));
            fed.append(&mut late);
        }
    }
    fed.append(&mut late);
    fed.push(Err(now));
    fed
}

/// Returns the reports of two periods. With `noise`, an event that is no call comes after each
/// event.
fn reports(fed: &[Fed], noise: bool, config: &EngineConfig) -> [Report; 2] {
    let functions = ["a", "b", "c"].map(function);
    let mut engine = engine(&functions, config.clone());
    let mut half = |fed: &[Fed]| {
        let mut now = 0;
        for step in fed {
            match step {
                Ok(event) => {
                    engine.push(0, &event.bytes());
                    if noise {
                        engine.push(0, &enter(FUNCTIONS, 1, event.ts).on(PID + THREADS).bytes());
                    }
                }
                Err(to) => {
                    now = *to;
                    engine.advance(end(now));
                }
            }
        }
        let report = engine.report_interval(end(now), meta(10.0));
        let late = report.loss.late >> u32::from(noise);
        Report { loss: LossReport { late, decode_errors: 0, ..report.loss }, ..report }
    };
    let middle = fed.iter().take(fed.len() / 2).rposition(Result::is_err).map_or(0, |at| at + 1);
    [half(&fed[..middle]), half(&fed[middle..])]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_leaf_is_a_call_like_any_other(
        steps in prop::collection::vec(step(), 1..200),
        min in prop_oneof![Just(0u64), 1u64..60],
        max_depth in prop_oneof![Just(None), (1u32..4).prop_map(Some)],
        thread in prop_oneof![Just(None), (0..THREADS).prop_map(Some)],
        spool_bytes in prop_oneof![Just(1 << 20), 0usize..3_000],
    ) {
        let threads = thread.map(|t| ThreadFilter::Tid(Tid(PID + t))).into_iter().collect();
        let filter = Filter { min_duration: Nanos(min), max_depth, threads };
        let config = EngineConfig { filter, spool_bytes, rings: 1, ..EngineConfig::default() };
        let fed = feed(&steps);
        let [plain, noisy] = [false, true].map(|noise| reports(&fed, noise, &config));
        for (plain, noisy) in plain.iter().zip(&noisy) {
            prop_assert_eq!(format!("{plain:?}"), format!("{noisy:?}"));
        }
    }
}
