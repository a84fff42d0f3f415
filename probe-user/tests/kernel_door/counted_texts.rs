//! Texts whose length is known, at both ends of calls, through every kind of link.

use crate::support::{BINARY, Session, Target, site};
use ctrace_common::{Cookie, Kind, Operand, ValueForm, ValueSources};
use ctrace_core::{
    function::ValueKind,
    units::FuncId,
    values::{Text, Value},
};
use ctrace_user::testing::bpf::{CallSources, LinkChoice, Role};

const RAX: u8 = 0;
const RDX: u8 = 2;
const RSP: u8 = 4;
const RSI: u8 = 6;

const FUNCTION: FuncId = FuncId(23);

fn register(base: u8) -> Operand {
    Operand { base, ..Operand::ZERO }
}

/// Texts with different lengths, around one that ends with a 0. The last length cannot be read.
fn arguments() -> ValueSources {
    let on_stack = Operand { memory: 1, displacement: 8, ..register(RSP) };
    ValueSources::new(&[
        (register(RSI), ValueForm::Counted(register(RDX))),
        (register(RSI), ValueForm::Text),
        (Operand { displacement: 1, ..register(RSI) }, ValueForm::Counted(on_stack)),
        (register(RSI), ValueForm::Counted(Operand::NOWHERE)),
    ])
}

fn result() -> ValueSources {
    let text = (register(RAX), ValueForm::Counted(register(RDX)));
    ValueSources::of_result(Some(text))
}

/// A text; `None` if it cannot be read.
type Told = Option<Vec<u8>>;

/// The texts of each call of `spans`, in their order, and that of its result.
fn told() -> [([Told; 4], Told); 9] {
    let of = |text: &[u8]| Some(text.to_vec());
    let (f, l) = (&[b'f'; 64], &[b'l'; 64]);
    let f_and_end = [&f[1..], &[0]].concat();
    [
        ([of(b"a\0b"), of(b"a"), of(b"\0b"), None], of(b"\0b\0")),
        ([of(&f[1..]), of(f), of(b"ff"), None], of(&f[1..])),
        ([of(f), of(f), of(b"ff"), None], of(&f_and_end)),
        ([of(l), of(l), of(b"ll"), None], of(l)),
        ([of(b""), None, None, None], of(b"")),
        ([of(b"abc"), None, of(b"bc"), None], None),
        ([None, None, of(b"bc"), None], None),
        ([None, None, None, None], None),
        ([of(l), of(l), of(b"ll"), None], of(l)),
    ]
}

#[test]
fn they_have_as_many_bytes_as_their_length_says() {
    let text = |text: &Told| text.as_ref().map(|text| Value::Text(Text::new(text).unwrap()));
    for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let sources = CallSources { entry: arguments(), exit: result(), condition: None };
        let element = session.kernel.add_call_values(FUNCTION, &sources).unwrap().entry;
        let mut target = Target::start(&["spans"]);
        let sites = [site("labelled", Cookie::with_values(FUNCTION.0, element))];
        let (role, pid) = (Role::FunctionWithValues, Some(target.pid()));
        let _attachment =
            session.kernel.attach(&BINARY.path, pid, role, &sites, choice, false).unwrap();
        target.go();
        target.finish();
        session.drain();
        let (entries, exits) = (session.of(Kind::Enter), session.of(Kind::Return));
        assert_eq!((entries.len(), exits.len(), session.payloads.len()), (9, 9, 18));
        let values = |ts: u64, count: usize| -> Vec<_> {
            let mut payloads = session.payloads.iter();
            let payload = payloads.find(|payload| payload.time.0 == ts).expect("its payload");
            payload.values(vec![ValueKind::Text; count]).collect()
        };
        for (call, (arguments, result)) in told().iter().enumerate() {
            let arguments: Vec<_> = arguments.iter().map(text).collect();
            assert_eq!(values(entries[call].ts, 4), arguments, "call {call}");
            assert_eq!(values(exits[call].ts, 1), [text(result)], "call {call}");
        }
    }
}
