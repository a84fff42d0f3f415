//! Counts by value that these tests play, and the parts that come of them.

use super::*;
use crate::calls::paths::ROOT;
use crate::function::{FunctionInfo, ValueKind};
use ctrace_common::{BUCKETS, MAX_TEXT, SINGLES, TEXTS, bucket_of};

/// The caller, the function, the number of its value, and the durations of its calls.
struct Programs(Vec<(u32, u32, u32, Vec<u64>)>);

impl CountedCalls for Programs {
    fn path(&self, number: u32) -> Option<(u32, FuncId)> {
        self.0.get(number as usize - 1).map(|(caller, function, ..)| (*caller, FuncId(*function)))
    }

    fn sums(&self, path: u32) -> CountedSums {
        let calls = &self.0[path as usize - 1].3;
        CountedSums {
            timed: calls.len() as u64,
            timed_ns: calls.iter().sum(),
            own_ns: calls.iter().sum(),
            extremes: calls.iter().min().copied().zip(calls.iter().max().copied()),
            ..CountedSums::default()
        }
    }

    fn buckets(&self, path: u32) -> Vec<u32> {
        let mut all = vec![0; BUCKETS];
        self.0[path as usize - 1].3.iter().for_each(|duration| all[bucket_of(*duration)] += 1);
        all
    }

    fn apart(&self, _: FuncId) -> CountedApart {
        CountedApart { unplaced: 3, ..CountedApart::default() }
    }
}

impl ValuedCalls for Programs {
    fn value_number(&self, path: u32) -> u32 {
        self.0[path as usize - 1].2
    }

    /// The value is ten times its number.
    fn value(&self, number: u32) -> CountedValue {
        CountedValue { word: u64::from(number) * 10, ..CountedValue::default() }
    }
}

const SERVE: u32 = 0;
const STEP: u32 = 1;

fn engine() -> Engine {
    let mut engine = Engine::new(EngineConfig::default());
    for name in ["serve", "step"] {
        engine.add_function(FunctionInfo::new(name, "program"));
    }
    engine
}

/// The value of a part, and the calls of its functions and of its paths.
type Part = (String, [u64; 2], Vec<(String, u64)>);

/// Returns each part.
fn parts(programs: &Programs, kind: ValueKind, most: usize) -> Vec<Part> {
    let info = ValueInfo::new("key", kind);
    let all = CountedParts::of(programs, FuncId(SERVE), &info, most);
    let engine = engine();
    let each = all.each.iter().map(|part| {
        let period = Nanos(0)..Nanos(100);
        let report =
            engine.report_counted_part(programs, (&all, part), period, ReportMeta::default());
        let name = match (&part.value, part.is_unread) {
            (Some(value), false) => format!("{value:?}"),
            (None, false) => "others".to_owned(),
            (None, true) => "unread".to_owned(),
            (Some(_), true) => panic!("it was read"),
        };
        let [serve, step] = &report.functions[..] else { panic!("two functions") };
        let paths = report.paths.iter().map(|path| (path.path.join(";"), path.calls)).collect();
        (name, [serve.calls, step.calls], paths)
    });
    each.collect()
}

#[test]
fn calls_are_told_apart_by_value_with_what_they_called() {
    let programs = Programs(vec![
        (ROOT, STEP, NO_VALUE, vec![5; 7]),
        (ROOT, SERVE, 1, vec![10, 20]),
        (2, STEP, NO_VALUE, vec![1; 4]),
        (1, SERVE, 2, vec![100]),
        (4, STEP, NO_VALUE, vec![3, 3]),
        (ROOT, SERVE, 3, vec![7]),
        (ROOT, SERVE, OTHER_VALUES, vec![9]),
        (ROOT, SERVE, UNREAD_VALUE, vec![2, 2]),
        // A number that another thread was quicker with.
        (ROOT, SERVE, 4, vec![]),
    ]);
    let path = |path: &str, calls| (path.to_owned(), calls);
    let found = parts(&programs, ValueKind::Unsigned, 2);
    let expected = [
        ("Unsigned(20)", [1, 2], vec![path("serve", 1), path("serve;step", 2)]),
        ("Unsigned(10)", [2, 4], vec![path("serve", 2), path("serve;step", 4)]),
        ("others", [2, 0], vec![path("serve", 2)]),
        ("unread", [2, 0], vec![path("serve", 2)]),
    ];
    assert_eq!(found, expected.map(|(name, calls, paths)| (name.to_owned(), calls, paths)));
    let all =
        CountedParts::of(&programs, FuncId(SERVE), &ValueInfo::new("key", ValueKind::Signed), 2);
    assert_eq!((all.without, all.beyond), (3, 1));
}

/// A call inside another one with another value belongs to both.
#[test]
fn calls_inside_themselves_are_in_several_parts() {
    let programs = Programs(vec![
        (ROOT, SERVE, 1, vec![10]),
        (1, SERVE, 2, vec![9, 9]),
        (2, STEP, NO_VALUE, vec![1; 3]),
    ]);
    let calls: Vec<_> =
        parts(&programs, ValueKind::Unsigned, 9).into_iter().map(|(_, calls, _)| calls).collect();
    // The inner calls took more time.
    assert_eq!(calls, [[2, 3], [3, 3]]);
}

/// The only call with a value goes on, and what it called has ended.
#[test]
fn calls_inside_one_that_has_not_ended_are_in_a_part() {
    let programs = Programs(vec![
        (ROOT, SERVE, 1, vec![10]),
        (ROOT, SERVE, 2, vec![]),
        (2, STEP, NO_VALUE, vec![1; 3]),
    ]);
    let calls: Vec<_> =
        parts(&programs, ValueKind::Unsigned, 9).into_iter().map(|(_, calls, _)| calls).collect();
    assert_eq!(calls, [[1, 0], [0, 3]]);
}

/// All numbers but 0 are true: they make one part.
#[test]
fn numbers_that_mean_the_same_are_one_value() {
    let programs = Programs(vec![
        (ROOT, SERVE, 1, vec![1]),
        (ROOT, SERVE, 2, vec![1]),
        (ROOT, SERVE, 7, vec![1]),
    ]);
    let found = parts(&programs, ValueKind::Bool, 1);
    assert_eq!(found, [("Bool(true)".to_owned(), [3, 0], vec![("serve".to_owned(), 3)])]);
}

#[test]
fn a_value_is_read_as_a_program_has_noted_it() {
    let read = |kind, forms: u64, word: u64, bytes: &[u8]| {
        let mut value = CountedValue { forms, word, ..CountedValue::default() };
        for (place, bytes) in value.text.iter_mut().zip(bytes.chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            *place = u64::from_le_bytes(all);
        }
        counted_value(&ValueInfo::new("key", kind), &value)
    };
    let (text, single) = (1 << TEXTS, 1 << SINGLES);
    assert_eq!(read(ValueKind::Signed, 0, u64::MAX, b""), Some(Value::Signed(-1)));
    let half = u64::from(0.5_f32.to_bits());
    assert_eq!(read(ValueKind::Float, single, half, b""), Some(Value::Float(0.5.into())));
    for bytes in [&b"GET"[..], b"", b"a text of nine", &[b'x'; MAX_TEXT]] {
        let found = read(ValueKind::Text, text, bytes.len() as u64, bytes);
        let Some(Value::Text(found)) = found else { panic!("a text") };
        assert_eq!(found.bytes(), bytes);
    }
    // A length that cannot be, and a text where there should be a number.
    assert_eq!(read(ValueKind::Text, text, 1_000, b""), None);
    assert_eq!(read(ValueKind::Unsigned, text, 3, b"abc"), None);
}
