//! Random programs of several threads: their true calls, and their events.

use crate::support::*;
use proptest::prelude::*;

/// Functions 0 and 1 may end in a tail call.
pub(crate) const FUNCTIONS: u32 = 5;
/// The one whose ways out are probed: its jump is an event, and its call ends with the next one.
pub(crate) const PASSES_ON: u32 = 1;
pub(crate) const THREADS: u64 = 4;
pub(crate) const RINGS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Enter(u32),
    Exit,
    TailCall(u32),
    LongJump(usize),
    Point(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) thread: u64,
    pub(crate) op: Op,
    pub(crate) wait: u64,
    pub(crate) ring: usize,
    pub(crate) swap: bool,
}

/// A true call of the program.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) thread: u64,
    pub(crate) func: u32,
    pub(crate) parent: Option<usize>,
    pub(crate) depth: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The time at which the engine can know that it is over.
    pub(crate) known: u64,
    pub(crate) timed: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Live {
    /// The call, its stack pointer, and the room that callees leave for a later one above them.
    frames: Vec<(usize, u64, u64)>,
    /// The calls that left by a jump that was seen.
    jumped: Vec<usize>,
    dead: Vec<usize>,
    last: u64,
    base: u64,
}

#[derive(Default, Debug)]
pub(crate) struct Program {
    pub(crate) calls: Vec<Call>,
    pub(crate) rings: Vec<Vec<Event>>,
    pub(crate) end: u64,
}

pub(crate) fn run(steps: &[Step]) -> Program {
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
                if func_of(call) == PASSES_ON {
                    live.jumped.push(call);
                }
                (enter(func, sp, ts), false)
            }
            (Op::Exit, Some((call, sp, _))) => match func_of(call) {
                PASSES_ON => (at_ret(PASSES_ON, sp, ts), true),
                func => (ret(func, sp, ts), true),
            },
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
            let mut over = live.frames.pop();
            while let Some((call, sp, _)) = over {
                let call = &mut program.calls[call];
                (call.end, call.known, call.timed) = (ts, ts, true);
                let jumped =
                    |frame: &mut (usize, u64, u64)| frame.1 == sp && live.jumped.contains(&frame.0);
                over = live.frames.pop_if(jumped);
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
        if let (Op::TailCall(_), Some((call, sp, _))) = (step.op, top)
            && live.jumped.last() == Some(&call)
        {
            ring.push(jump(PASSES_ON, sp, ts).on(PID + step.thread as u32));
        }
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

pub(crate) fn steps(jumps: bool) -> impl Strategy<Value = Vec<Step>> {
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
