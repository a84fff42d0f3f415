//! Values of calls, in tables and beside calls.

use super::{FILE, NARROW, WIDE, check, fixture, sound, view};
use ctrace_core::report::{
    ByValue, NamedValues, OneValue, PointReport, PointsReport, Report, ValueCalls,
};
use ctrace_core::units::{Nanos, Pid, Tid};
use ctrace_core::values::{Text, Value};
use ctrace_user::testing::ui::ViewOptions;

/// Calls with values: the slowest, those inside it, and others; of one, a name would drive the terminal.
pub(crate) fn with_values() -> Report {
    let mut report = fixture::typical();
    let values = |signed: i64, unread: bool| {
        let second = (!unread).then_some(Value::Unsigned(u64::MAX - 1));
        let name = if unread { "arg1\x1b[2J" } else { "arg1" };
        NamedValues(vec![("arg0".into(), Some(Value::Signed(signed))), (name.into(), second)])
    };
    let point = |function: usize, at: u64, tid, unread| PointReport {
        function,
        name: report.functions[function].name.clone(),
        pid: Some(Pid(4711)),
        tid: Some(Tid(tid)),
        thread: Some(if tid == 4711 { "server".into() } else { "worker-0".into() }),
        start_ns: Nanos(report.start_ns.0 + at),
        values: values(-(at as i64), unread),
    };
    let inside = point(4, 203_000_500, 4714, true);
    let first = vec![point(2, 1_500, 4711, false), inside.clone()];
    report.points = PointsReport { first, more: 998, unread: 0 };
    let call = &mut report.slowest_calls.as_mut().expect("a typical report has them")[0];
    (call.values, call.points) =
        (values(42, false), PointsReport { first: vec![inside], ..PointsReport::default() });
    report.loss.payloads = 3;
    let of = |calls: u64, mean: u64| {
        let ns = |factor: u64| Some(Nanos(mean * factor));
        ValueCalls {
            calls,
            timed: calls - 1,
            total_ns: Nanos(mean * calls),
            mean_ns: ns(1),
            p50_ns: ns(1),
            p90_ns: ns(2),
            p99_ns: ns(3),
            max_ns: ns(7),
        }
    };
    let text = |text: &str| Value::Text(Text::new(text.as_bytes()).expect("it is short"));
    let row = |value, calls, mean| OneValue { value, of: of(calls, mean) };
    let table = |function, name: &str, rows| ByValue {
        function,
        name: name.into(),
        is_result: name == "retval",
        rows,
        others: None,
        unread: None,
        unsure: false,
    };
    let rows = vec![row(text("GET /\x1b[2J"), 1_204, 31_000), row(text("PUT"), 3, 905_000_000)];
    let keys = ByValue {
        others: Some(of(77, 2_000)),
        unread: Some(of(2, 400)),
        unsure: true,
        ..table(2, "key\x1b[2J", rows)
    };
    report.values = vec![keys, table(4, "retval", vec![row(Value::Signed(-1), 9, 12)])];
    report
}

/// The same, with a value of every other type each. One text would drive the terminal, and one was
/// cut. Further values could not be read.
fn with_values_of_all_types() -> Report {
    let mut report = with_values();
    let numbers = [-0.125, f64::INFINITY];
    let texts = [b"GET \"/\"\x1b[2J\xff".to_vec(), "é".repeat(32).into_bytes()];
    for ((point, number), text) in report.points.first.iter_mut().zip(numbers).zip(texts) {
        let text = Text::new(&text).expect("it is short");
        let values = [
            ("ratio", Value::Float(number.into())),
            ("key", Value::Text(text)),
            ("at", Value::Pointer(0x7fff_0000_1234)),
            ("found", Value::Bool(number > 0.0)),
            ("letter", Value::Char(0x1b)),
        ];
        let values = values.map(|(name, value)| (name.into(), Some(value)));
        point.values = NamedValues(values.into());
    }
    report.points.unread = 3;
    report
}

#[test]
fn values_beside_calls() {
    let options = ViewOptions { top: Some(1), ..view("calls") };
    check("beside_calls_80", &with_values(), &options, &NARROW);
    check("beside_calls_file", &with_values(), &options, &FILE);
    let by_value = ViewOptions { top: Some(1), ..view("values") };
    check("by_value_80", &with_values(), &by_value, &NARROW);
    check("by_value_file", &with_values(), &view("values"), &FILE);
    check("beside_calls_of_all_types", &with_values_of_all_types(), &options, &FILE);
}

/// Several tables share the rows of one, and few calls stand beside them. JSON has all.
#[test]
fn tables_of_values_share_their_rows() {
    let mut report = with_values();
    let table = report.values[0].clone();
    let row = |at: i64| OneValue { value: Value::Signed(7_000 + at), of: table.rows[0].of };
    let of = |rows: i64| ByValue { rows: (0..rows).map(row).collect(), ..table.clone() };
    let point = report.points.first[0].clone();
    report.points.first = vec![point; 9];
    report.values = vec![of(20), of(20), of(8), of(20)];
    let views = ["values", "calls"].map(|name| name.parse().expect("a view"));
    let options = ViewOptions { views: views.to_vec(), ..ViewOptions::default() };
    let shown = |options: &ViewOptions| {
        let text = sound(&report, options, &WIDE);
        let values = text.lines().filter(|line| line.contains("  70")).count();
        (values, text.lines().filter(|line| line.contains("arg0=-1500")).count())
    };
    // Five of each, and the eight that are not many more.
    assert_eq!(shown(&options), (23, 3));
    assert_eq!(shown(&ViewOptions { top: Some(12), ..options }), (44, 9));
}

/// Points take no time: their table has no columns of times.
#[test]
fn a_table_of_values_has_no_column_that_no_row_fills() {
    let mut report = with_values();
    let plain = ValueCalls {
        timed: 0,
        total_ns: Nanos::ZERO,
        mean_ns: None,
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        max_ns: None,
        ..report.values[0].rows[0].of
    };
    let row = |number| OneValue { value: Value::Signed(number), of: plain };
    let points = ByValue {
        rows: (0..99).map(row).collect(),
        others: None,
        unread: None,
        ..report.values[0].clone()
    };
    report.values = vec![points];
    let text = sound(&report, &view("values"), &WIDE);
    let headings =
        text.lines().find(|line| line.trim_start().starts_with("calls")).expect("a line");
    assert_eq!(headings.split_whitespace().collect::<Vec<_>>(), ["calls", "value"]);
    let left_out = text.lines().find(|line| line.contains("(--top)")).expect("79 are left out");
    assert!(left_out.ends_with(" calls"), "{left_out}");
    // A call that has not ended has a total alone.
    report.values[0].rows[0].of.total_ns = Nanos(7);
    let text = sound(&report, &view("values"), &WIDE);
    let headings =
        text.lines().find(|line| line.trim_start().starts_with("calls")).expect("a line");
    assert_eq!(headings.split_whitespace().collect::<Vec<_>>(), ["calls", "total", "value"]);
}

/// What was asked for and cannot be read is told where the values are missing.
#[test]
fn why_no_call_has_values_is_told_in_their_place() {
    let mut report = fixture::typical();
    let none = |report: &Report| {
        let text = sound(report, &view("values"), &WIDE);
        let paragraph =
            text.split("No call has values: ").nth(1).expect("there are none").to_owned();
        let end = paragraph.find(".\n").expect("the end of a sentence");
        paragraph[..end].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(none(&report), "--arg, --ret and -u choose some");
    report.notes = vec![
        "something else".to_owned(),
        "the values of parse are not read: the compiler has changed the parameters of parse.isra.0"
            .to_owned(),
        "`key` is not read in 2 functions".to_owned(),
    ];
    assert_eq!(none(&report), report.notes[1..].join("; "));
    let text = sound(&report, &view("values"), &WIDE);
    assert_eq!(text.matches("parse.isra.0").count(), 1, "it is told once: {text}");
}
