//! Numbers of an enumeration have their names wherever values are seen.

use super::*;
use ctrace_core::values::{Enumerator, MOST_ENUMERATORS};
use std::sync::Arc;

const MOVE: u32 = 3;

fn names(of: &[(i64, &str)]) -> Arc<[Arc<Enumerator>]> {
    let one = |&(number, name): &(i64, &str)| Arc::new(Enumerator { number, name: name.into() });
    of.iter().map(one).collect()
}

/// Records calls of a function with a signed and an unsigned enumeration, and a number.
fn recorded(calls: &[[u64; 3]], signed: Arc<[Arc<Enumerator>]>) -> Vec<u8> {
    let mut trace = Trace::new(Filter::default());
    let value = |name: &str, kind, names| ValueInfo { names, ..ValueInfo::new(name, kind) };
    let values = vec![
        value("way", ValueKind::Signed, signed),
        value("gear", ValueKind::Unsigned, names(&[(0, "LOW"), (0xffff_ffff, "TOP")])),
        value("speed", ValueKind::Unsigned, Arc::default()),
    ];
    trace.engine.add_function(FunctionInfo { values, ..function("move") });
    for (time, values) in (10..).step_by(10).zip(calls) {
        trace.push_with(enter(MOVE, 900, time), 0, values, 0);
        trace.push(ret(MOVE, 900, time + 5));
    }
    trace.end(1_000)
}

#[test]
fn numbers_have_their_names() {
    let ways = names(&[(-1, "BACK"), (1, "ON")]);
    let calls = [[u64::MAX, 0, 0], [1, 0xffff_ffff, 1], [3, 7, 2]];
    let recording = open(recorded(&calls, ways));
    let shown: Vec<_> =
        all(&recording).iter().rev().map(|it| recording.named_values(it).to_string()).collect();
    let expected = ["way=BACK gear=LOW speed=0", "way=ON gear=TOP speed=1", "way=3 gear=7 speed=2"];
    assert_eq!(shown, expected);
    let jsonl = String::from_utf8(export(&recording, "jsonl")).expect("text");
    assert!(jsonl.contains(r#""values":{"way":"BACK","gear":"LOW","speed":0}"#), "{jsonl}");
    assert!(jsonl.contains(r#""values":{"way":3,"gear":7,"speed":2}"#), "{jsonl}");
    let extras = Extras { values: Some(5), ..Extras::default() };
    let report = report_with(&recording, &Query::default(), meta_with(extras));
    let mut ways: Vec<_> = report.values[0].rows.iter().map(|it| it.value.to_string()).collect();
    ways.sort();
    assert_eq!(ways, ["3", "BACK", "ON"]);
}

/// A recording may come from anybody.
#[test]
fn names_are_harmless_and_few() {
    for evil in ["\x1b[2J", "7", "x=1 y", "", "a b"] {
        let recording = Recording::open(recorded(&[[1, 0, 0]], names(&[(1, evil)])));
        assert!(recording.map_or(true, |it| it.functions().is_empty()), "{evil:?}");
    }
    let many: Vec<_> = (0..2 * MOST_ENUMERATORS as i64).map(|at| (at / 2, "X")).collect();
    let recording = open(recorded(&[[1, 0, 0]], names(&many)));
    assert_eq!(recording.functions()[MOVE as usize].values[0].names.len(), MOST_ENUMERATORS);
}
