//! Tests that every reported duration happened, whatever is lost or late. (Two late neighbours, or
//! a loss that is reported late, cannot be known in time; `loss.late` counts them.)

use crate::calls::paths::ROOT;
use crate::engine::{Engine, EngineConfig};
use crate::function::FunctionInfo;
use crate::units::Nanos;
use ctrace_common::{Kind, Record};
use proptest::prelude::*;
use std::collections::HashSet;

const FUNCTIONS: u32 = 3;

fn bytes(record: &Record) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&record.ts_ns.to_le_bytes());
    bytes[8..16].copy_from_slice(&record.sp.to_le_bytes());
    bytes[20..24].copy_from_slice(&record.tid.to_le_bytes());
    bytes[24..28].copy_from_slice(&record.probe.to_le_bytes());
    bytes[28] = record.kind;
    bytes[30..].copy_from_slice(&record.lost_before.to_le_bytes());
    bytes
}

fn function() -> FunctionInfo {
    FunctionInfo::new("f", "app")
}

/// A step: enters a function (or leaves the innermost), and decides the fate of the event.
#[derive(Clone, Copy, Debug)]
struct Step {
    enter: Option<u32>,
    wait: u64,
    lost: bool,
    late: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let enter = prop_oneof![Just(None), (0..FUNCTIONS).prop_map(Some)];
    (enter, 1u64..50, prop::bool::weighted(0.1), prop::bool::weighted(0.1))
        .prop_map(|(enter, wait, lost, late)| Step { enter, wait, lost, late })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reported_duration_happened(steps in prop::collection::vec(step(), 1..200)) {
        let mut engine = Engine::new(EngineConfig::default());
        (0..FUNCTIONS).for_each(|_| { engine.add_function(function()); });
        let (mut stack, mut truth, mut lost, mut now) = (Vec::new(), HashSet::new(), 0, 100);
        let mut held = None;
        for step in steps {
            now += step.wait;
            let (kind, probe, sp) = match (step.enter, stack.last().copied()) {
                (Some(func), _) => {
                    let sp = (1 << 20) - 16 * stack.len() as u64;
                    stack.push((func, now, sp));
                    (Kind::Enter, func, sp)
                }
                (None, Some((func, start, sp))) => {
                    stack.pop();
                    truth.insert((func, start, now - start));
                    (Kind::Return, func, sp)
                }
                (None, None) => continue,
            };
            if step.lost {
                lost += 1;
                continue;
            }
            let lost_before = std::mem::take(&mut lost);
            let record = Record { ts_ns: now, sp, tid: 7, probe, kind: kind as u8, lost_before, ..Record::default() };
            if step.late && held.is_none() && lost_before == 0 {
                held = Some(record);
                continue;
            }
            engine.push(0, &bytes(&record));
            engine.advance(Nanos(now));
            if let Some(late) = held.take() {
                engine.push(1, &bytes(&late));
            }
        }
        engine.advance(Nanos(now));
        let ledger = &engine.tracker.ledger;
        for call in ledger.spool.logs().iter().flat_map(|log| log.backward()).filter(|c| c.timed) {
            prop_assert_ne!(call.node, ROOT);
            let func = ledger.paths.nodes()[call.node as usize].func.0;
            prop_assert!(truth.contains(&(func, call.start, call.duration)), "{call:?}");
        }
    }
}
