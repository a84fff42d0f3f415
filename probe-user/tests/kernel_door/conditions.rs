//! Conditions on calls, through every kind of link.

use crate::support::{BINARY, Session, Target, site};
use ctrace_common::{
    COMPARED_TEXT, Comparison, Condition, Cookie, EQUAL, GREATER, Kind, LESS, MAX_COMPARISONS,
    Operand, SIGN, TEXT, ValueForm, ValueSources,
};
use ctrace_core::{function::ValueKind, units::FuncId, values::Value};
use ctrace_user::testing::bpf::{CallSources, LinkChoice, LinkKind, Role, Unmet};

const FUNCTION: FuncId = FuncId(23);
const RSP: u8 = 4;
const RSI: u8 = 6;
const RDI: u8 = 7;

/// Compares the first argument of `labelled`, a signed byte: 0, -1, … -6.
fn byte(relation: u8, with: i64) -> Comparison {
    let operand = Operand { base: RDI, size: 1, signed: 1, ..Operand::ZERO };
    let number = with as u64 ^ SIGN;
    Comparison { operand, number, flip: SIGN, relation, ..Comparison::default() }
}

/// Compares the second one: "key", 64 times `f`, 100 times `l`, "\xff", "", and two that cannot be
/// read.
fn label(relation: u8, with: &str) -> Comparison {
    let operand = Operand { base: RSI, ..Operand::ZERO };
    let mut bytes = [0; COMPARED_TEXT];
    bytes[..with.len()].copy_from_slice(with.as_bytes());
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|it| u64::from_le_bytes(*it)).collect();
    let text = words.try_into().expect("as many words");
    Comparison { operand, relation, kind: TEXT, text, ..Comparison::default() }
}

/// Returns the condition that is met if all of one of these hold.
fn any(alternatives: &[&[Comparison]]) -> Condition {
    let parts = alternatives.iter().flat_map(|all| {
        all.iter().enumerate().map(|(at, one)| Comparison { begins: u8::from(at == 0), ..*one })
    });
    let parts: Vec<_> = parts.collect();
    let mut comparisons = [Comparison::default(); MAX_COMPARISONS];
    comparisons[..parts.len()].copy_from_slice(&parts);
    Condition { count: parts.len() as u32, reserved: 0, comparisons }
}

/// Conditions, the calls that meet them, and how many of the others have a value that cannot be read.
fn cases() -> Vec<(Condition, Vec<i64>, u64)> {
    let f = "f".repeat(COMPARED_TEXT - 2);
    vec![
        (any(&[&[byte(EQUAL, -3)]]), vec![-3], 0),
        (any(&[&[byte(LESS, -3)]]), vec![-4, -5, -6], 0),
        (any(&[&[byte(GREATER | EQUAL, -1)]]), vec![0, -1], 0),
        (any(&[&[label(EQUAL, "key")]]), vec![0], 2),
        (any(&[&[label(EQUAL, "")]]), vec![-4], 2),
        // Only as long as it is read.
        (any(&[&[label(EQUAL, &f)]]), vec![], 2),
        (any(&[&[label(LESS | GREATER, "key")]]), vec![-1, -2, -3, -4], 2),
        (any(&[&[byte(LESS, 0), byte(GREATER, -3)]]), vec![-1, -2], 0),
        (any(&[&[byte(EQUAL, 0)], &[byte(EQUAL, -6)]]), vec![0, -6], 0),
        (
            any(&[&[label(EQUAL, "key"), byte(EQUAL, -1)], &[label(EQUAL, "key"), byte(EQUAL, 0)]]),
            vec![0],
            2,
        ),
        (any(&[&[label(EQUAL, "key")], &[byte(LESS, -4)]]), vec![0, -5, -6], 0),
        (any(&[&[byte(EQUAL, -1)][..]; MAX_COMPARISONS]), vec![-1], 0),
    ]
}

/// Conditions on calls with other texts, whose numbers are 0 to 5, and 0 to -5 on the stack.
fn cases_of_lengths() -> Vec<(Condition, Vec<i64>, u64)> {
    let longest = "a".repeat(COMPARED_TEXT - 2);
    let on_stack = |relation, number, size| Comparison {
        operand: Operand { base: RSP, memory: 1, displacement: 8, size, ..Operand::ZERO },
        number,
        relation,
        ..Comparison::default()
    };
    vec![
        (any(&[&[label(EQUAL, &longest)]]), vec![1], 0),
        (any(&[&[label(EQUAL, &longest[1..])]]), vec![0], 0),
        (any(&[&[label(EQUAL, "abc")]]), vec![3], 0),
        (any(&[&[label(EQUAL, "ab")]]), vec![], 0),
        (any(&[&[label(EQUAL, "")]]), vec![4], 0),
        // Without a sign, they are the largest.
        (any(&[&[on_stack(GREATER, u64::MAX - 3, 8)]]), vec![1, 2, 3], 0),
        (any(&[&[on_stack(LESS | EQUAL, 0xfd, 1)]]), vec![0, 3, 4, 5], 0),
    ]
}

/// The same value as an argument, so that the calls that are left can be told.
fn arguments() -> ValueSources {
    ValueSources::new(&[(
        Operand { base: RDI, size: 1, signed: 1, ..Operand::ZERO },
        ValueForm::Word,
    )])
}

/// Traces `labelled` in one of the target's ways, which makes so many calls.
fn check(what: &str, all: usize, (condition, calls, unread): &(Condition, Vec<i64>, u64)) {
    for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        // Neither is the first of its table.
        let other = CallSources { condition: Some(any(&[])), ..CallSources::default() };
        session.kernel.add_call_values(FuncId(1), &other).unwrap();
        let condition = Some(*condition);
        let sources = CallSources { entry: arguments(), condition, ..CallSources::default() };
        let elements = session.kernel.add_call_values(FUNCTION, &sources).unwrap();
        assert!(elements.has_condition);
        let mut target = Target::start(&[what]);
        let sites = [site("labelled", Cookie::with_values(FUNCTION.0, elements.entry))];
        let (role, pid) = (Role::FunctionWithCondition, Some(target.pid()));
        let attachment =
            session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap();
        target.go();
        target.finish();
        session.drain();

        let numbers = session.payloads.iter().map(|it| it.values([ValueKind::Signed]).next());
        let numbers: Vec<_> = numbers.collect();
        let wanted: Vec<_> = calls.iter().map(|call| Some(Some(Value::Signed(*call)))).collect();
        assert_eq!((session.of(Kind::Enter).len(), numbers), (calls.len(), wanted));
        // A call that does not meet it may have an end.
        let is_skipped = attachment.kind() == LinkKind::Session;
        let ends = if is_skipped { calls.len() } else { all };
        assert_eq!(session.of(Kind::Return).len(), ends);
        let none = Unmet { function: FuncId(1), calls: 0, unread: 0 };
        let left_out = (all - calls.len()) as u64;
        let unmet = [none, Unmet { function: FUNCTION, calls: left_out, unread: *unread }];
        assert_eq!(session.kernel.unmet().unwrap(), unmet);
        // Once behind each call that meets it, the next one tells that it is over.
        let told = session.of(Kind::Unmet).len();
        assert!(told <= calls.len(), "{told} for {calls:?}");
        let is_last = calls.last().is_none_or(|call| call.unsigned_abs() as usize == all - 1);
        assert!(told > 0 || is_last, "no call behind {calls:?} tells that they are over");
    }
}

#[test]
fn only_calls_that_meet_a_condition_make_events() {
    cases().iter().for_each(|case| check("labels", 7, case));
}

#[test]
fn texts_are_compared_as_a_whole_and_numbers_as_they_are() {
    cases_of_lengths().iter().for_each(|case| check("lengths", 6, case));
}
