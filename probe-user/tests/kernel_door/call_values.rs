//! The values at both ends of calls, through every kind of link.

use crate::support::{BINARY, Session, Target, site};
use ctrace_common::{Cookie, Kind, Operand, ValueForm, ValueSources};
use ctrace_core::{
    function::ValueKind,
    units::FuncId,
    values::{Text, Value},
};
use ctrace_user::testing::bpf::{CallElements, CallSources, LinkChoice, Role};

const RAX: u8 = 0;
const RSP: u8 = 4;
const RSI: u8 = 6;
const RDI: u8 = 7;

const FUNCTION: FuncId = FuncId(17);
const KINDS: [ValueKind; 4] = [ValueKind::Char, ValueKind::Text, ValueKind::Float, ValueKind::Text];

/// Sources for the first two arguments of `labelled`, the one on the stack, and the first two
/// letters of the text at its address.
fn arguments() -> ValueSources {
    let on_stack = Operand { base: RSP, memory: 1, displacement: 8, ..Operand::ZERO };
    let text = Operand { base: RSI, ..Operand::ZERO };
    ValueSources::new(&[
        (Operand { base: RDI, size: 1, ..Operand::ZERO }, ValueForm::Word),
        (text, ValueForm::Text),
        (on_stack, ValueForm::Word),
        (Operand { displacement: 1, ..text }, ValueForm::Text),
    ])
}

fn result() -> ValueSources {
    ValueSources::of_result(Some((Operand { base: RAX, ..Operand::ZERO }, ValueForm::Text)))
}

fn texts() -> [Option<Vec<u8>>; 7] {
    let of = |text: &[u8]| Some(text.to_vec());
    let (fits, longer) = ([b'f'; 64], [b'l'; 64]);
    [of(b"key"), of(&fits), of(&longer), of(b"\xff"), of(b""), None, None]
}

/// Returns the texts without their first letters. One letter behind an empty text is the next text,
/// which is not known.
fn rests() -> [Option<Vec<u8>>; 7] {
    let of = |text: &[u8]| Some(text.to_vec());
    let (fits, longer) = ([b'f'; 63], [b'l'; 64]);
    [of(b"ey"), of(&fits), of(&longer), of(b""), None, None, None]
}

fn text(text: &Option<Vec<u8>>) -> Option<Value> {
    text.as_ref().map(|text| Value::Text(Text::new(text).unwrap()))
}

/// Checks the values of all calls.
fn check(session: &Session, has_arguments: bool, has_result: bool, ends: Kind) {
    let (entries, exits) = (session.of(Kind::Enter), session.of(ends));
    assert_eq!((entries.len(), exits.len()), (7, 7));
    let payloads = || session.payloads.iter();
    let of_entries: Vec<_> = payloads()
        .filter(|payload| entries.iter().any(|entry| entry.ts == payload.time.0))
        .collect();
    let of_exits: Vec<_> =
        payloads().filter(|payload| exits.iter().any(|exit| exit.ts == payload.time.0)).collect();
    let wanted = (if has_arguments { 7 } else { 0 }, if has_result { 7 } else { 0 });
    assert_eq!((of_entries.len(), of_exits.len()), wanted);
    assert_eq!(session.payloads.len(), wanted.0 + wanted.1);
    for (call, payload) in of_entries.iter().enumerate() {
        let values: Vec<_> = payload.values(KINDS).collect();
        let number = f64::from_bits(0x3ff8_0000_0000_0000 + call as u64);
        assert_eq!(values[0], Some(Value::Char((call as u8).wrapping_neg())));
        assert_eq!(values[1], text(&texts()[call]), "call {call}");
        assert_eq!(values[2], Some(Value::Float(number.into())));
        if call != 4 {
            assert_eq!(values[3], text(&rests()[call]), "call {call}");
        }
    }
    for (call, payload) in of_exits.iter().enumerate().filter(|(call, _)| *call != 4) {
        let values: Vec<_> = payload.values([ValueKind::Text]).collect();
        assert_eq!(values, [text(&rests()[call])], "call {call}");
    }
    assert_eq!(session.lost().payloads, 0);
}

#[test]
fn arguments_and_results_come_through_every_link() {
    let none = ValueSources::default();
    for (entry, exit) in [(arguments(), result()), (arguments(), none), (none, result())] {
        for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
            let Some(mut session) = Session::start(false) else { return };
            // Not the first of the table.
            session.kernel.add_values(&[arguments(); 3]).unwrap();
            let sources = CallSources { entry, exit, condition: None };
            let elements = session.kernel.add_call_values(FUNCTION, &sources).unwrap();
            let CallElements { entry: element, has_arguments, has_result, .. } = elements;
            let mut target = Target::start(&["labels"]);
            let sites = [site("labelled", Cookie::with_values(FUNCTION.0, element))];
            let (role, pid) = (Role::FunctionWithValues, Some(target.pid()));
            let _attachment =
                session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap();
            target.go();
            target.finish();
            session.drain();
            check(&session, has_arguments, has_result, Kind::Return);
        }
    }
}

#[test]
fn results_are_at_rets() {
    for choice in [LinkChoice::Auto, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let sources = CallSources { entry: arguments(), exit: result(), condition: None };
        let elements = session.kernel.add_call_values(FUNCTION, &sources).unwrap();
        let mut target = Target::start(&["labels"]);
        let attach = |session: &Session, role, symbol, element| {
            let sites = [site(symbol, Cookie::with_values(FUNCTION.0, element))];
            let pid = Some(target.pid());
            session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap()
        };
        let element = elements.result().unwrap();
        let _exits = attach(&session, Role::RetSiteWithValues, "ret_labelled", element);
        let _entries = attach(&session, Role::EntryWithValues, "labelled", elements.entry);
        target.go();
        target.finish();
        session.drain();
        check(&session, true, true, Kind::ExitRet);
    }
}
