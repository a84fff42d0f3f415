//! The values beside the events of a point: which numbers come out of registers and memory.

use crate::support::{BINARY, Session, Target, site};
use ctrace_common::{
    Cookie, Kind, MAX_VALUES, NO_REGISTER, Operand, SINGLES, ValueForm, ValueSources,
};
use ctrace_core::{function::ValueKind, values::Value};
use ctrace_user::testing::bpf::{LinkChoice, Role};
use std::{thread, time::Duration};

const RAX: u8 = 0;
const RCX: u8 = 1;
const RBX: u8 = 3;
const RBP: u8 = 5;
const R11: u8 = 11;

/// No register, so it is a constant of 8 bytes.
const NUMBER: Operand = Operand::ZERO;

const fn register(base: u8, size: u8, signed: u8) -> Operand {
    Operand { base, size, signed, ..NUMBER }
}

fn sources(operands: &[Operand]) -> ValueSources {
    let words: Vec<_> = operands.iter().map(|operand| (*operand, ValueForm::Word)).collect();
    ValueSources::new(&words)
}

/// The table that `target.c` has.
const TABLE: [u64; 3] = [0x7172_7374_7576_7778, -2i64 as u64, 0x0102_0304_0506_0708];

#[test]
fn numbers_come_from_registers_and_memory() {
    let counter = BINARY.address("counter").wrapping_sub(BINARY.address("site_values")) as i64;
    let memory = |base| Operand { memory: 1, ..register(base, 8, 0) };
    let operands = [
        register(RAX, 8, 0),
        register(RAX, 4, 1),
        register(RAX, 2, 0),
        Operand { shift: 8, ..register(RAX, 1, 1) },
        Operand { displacement: -5, size: 4, signed: 1, ..NUMBER },
        Operand { displacement: -5, size: 2, ..NUMBER },
        Operand { index: RCX, scale: 8, ..memory(RBX) },
        // 8 behind the base, by way of a negative index.
        Operand { index: R11, scale: 2, displacement: 40, size: 1, ..memory(RBX) },
        // The last byte that can be read, and one more.
        Operand { size: 1, signed: 1, ..memory(RBP) },
        Operand { size: 2, ..memory(RBP) },
        Operand { base: NO_REGISTER, relative: 1, displacement: counter, size: 4, ..memory(0) },
        Operand::NOWHERE,
    ];
    assert_eq!(operands.len(), MAX_VALUES);
    for choice in [LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        // Not the first of the table.
        session.kernel.add_values(&[sources(&[NUMBER]); 3]).unwrap();
        let index = session.kernel.add_values(&[sources(&operands)]).unwrap();
        assert_eq!(index, 3);
        let mut target = Target::start(&["values", "30"]);
        let pid = target.pid();
        let sites = [site("site_values", Cookie::usdt(17, Kind::Point as u8, index))];
        let _points = session
            .kernel
            .attach(&BINARY.path, Some(pid), Role::PointWithValues, &sites, choice, false)
            .unwrap();
        target.go();
        target.finish();
        session.drain();
        let points = session.of(Kind::Point);
        assert_eq!((points.len(), session.payloads.len()), (30, 30));
        for (nth, (point, payload)) in points.iter().zip(&session.payloads).enumerate() {
            assert_eq!(
                (payload.time.0, payload.pid.0, payload.tid.0, payload.function.0),
                (point.ts, point.pid, point.tid, point.probe)
            );
            assert_eq!((point.probe, point.pid), (17, pid.0));
            let values: Vec<_> = payload.values([ValueKind::Unsigned; MAX_VALUES]).collect();
            let expected = [
                Some(0x8182_8384_8586_8788),
                Some(0xffff_ffff_8586_8788),
                Some(0x8788),
                Some(-0x79i64 as u64),
                Some(-5i64 as u64),
                Some(0xfffb),
                Some(TABLE[nth % 3]),
                Some(TABLE[1] & 0xff),
                Some(-0x3di64 as u64),
                None,
                Some(0xfedc_ba98),
                None,
            ];
            let expected = expected.map(|number| number.map(Value::Unsigned));
            assert_eq!(values, expected, "hit {nth} by {choice:?} links");
        }
        assert_eq!(session.lost().payloads, 0);
    }
}

#[test]
fn floating_point_numbers_come_with_their_sizes() {
    let Some(mut session) = Session::start(false) else { return };
    let memory = Operand { memory: 1, ..register(RBX, 8, 0) };
    let operands = [
        memory,
        Operand { displacement: 4, size: 4, ..memory },
        Operand { size: 4, ..memory },
        // It reaches into a page that is not there.
        Operand { base: RBP, size: 4, ..memory },
    ];
    let sources = ValueSources { forms: 0b1110 << SINGLES, ..sources(&operands) };
    let index = session.kernel.add_values(&[sources]).unwrap();
    let mut target = Target::start(&["values", "3"]);
    let sites = [site("site_values", Cookie::usdt(17, Kind::Point as u8, index))];
    let (role, pid) = (Role::PointWithValues, Some(target.pid()));
    let choice = LinkChoice::Auto;
    let _points = session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap();
    target.go();
    target.finish();
    session.drain();
    let [low, high] = [TABLE[0] as u32, (TABLE[0] >> 32) as u32].map(f32::from_bits);
    let numbers = [f64::from_bits(TABLE[0]), high.into(), low.into()];
    let expected = numbers.map(|number| Some(Value::Float(number.into())));
    assert_eq!(session.payloads.len(), 3);
    for payload in &session.payloads {
        let values: Vec<_> = payload.values([ValueKind::Float; 4]).collect();
        assert_eq!((&values[..3], &values[3]), (&expected[..], &None));
    }
}

#[test]
fn a_payload_has_as_many_slots_as_its_values_need() {
    let operands: Vec<_> =
        (0..MAX_VALUES as i64).map(|n| Operand { displacement: 100 + n, ..NUMBER }).collect();
    let Some(mut session) = Session::start(false) else { return };
    let all: Vec<_> = (1..=MAX_VALUES).map(|count| sources(&operands[..count])).collect();
    assert_eq!(session.kernel.add_values(&all).unwrap(), 0);
    for (count, index) in (1..=MAX_VALUES).zip(0..) {
        let mut target = Target::start(&["values", "1"]);
        let sites = [site("site_values", Cookie::usdt(0, Kind::Point as u8, index))];
        let (role, pid) = (Role::PointWithValues, Some(target.pid()));
        let choice = LinkChoice::Auto;
        let _points =
            session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap();
        target.go();
        target.finish();
        session.drain();
        let payload = session.payloads.pop().expect("one payload");
        let values: Vec<_> = payload.values([ValueKind::Unsigned; MAX_VALUES]).collect();
        // The rest of the last slot is 0.
        assert_eq!(values.len(), count.next_multiple_of(4));
        for (value, place) in values.into_iter().zip(0..) {
            let expected = if place < count as u64 { 100 + place } else { 0 };
            assert_eq!(value, Some(Value::Unsigned(expected)));
        }
    }
}

#[test]
fn lost_payloads_are_counted_apart() {
    const HITS: usize = 100_000;
    let Some(mut session) = Session::with_rings(4096, false) else { return };
    session.kernel.add_values(&[sources(&[register(RCX, 8, 0); 9])]).unwrap();
    let mut target = Target::start(&["values", &HITS.to_string()]);
    let sites = [site("site_values", Cookie::usdt(0, Kind::Point as u8, 0))];
    let (role, pid) = (Role::PointWithValues, Some(target.pid()));
    let choice = LinkChoice::Auto;
    let _points = session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap();
    target.go();
    while target.is_running() {
        session.drain();
        thread::sleep(Duration::from_millis(2));
    }
    target.finish();
    session.drain();
    let lost = session.lost();
    let points = session.count(Kind::Point, 0);
    assert!(lost.events > 0, "a ring of a page cannot hold it all");
    assert!(lost.payloads > 0, "four slots are scarcer than one");
    assert_eq!(points + lost.events as usize, HITS);
    assert_eq!(session.payloads.len() + lost.payloads as usize, points);
}
