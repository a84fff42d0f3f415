use super::{
    catalog,
    family::{Families, MetricValue},
    fixtures::{Did, snapshot},
    latency::Edges,
    names,
    text::encode,
};
use crate::daemon::{
    ids::SessionId,
    metrics::accumulator::{Accumulator, Bounds},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Sample = (String, BTreeMap<String, String>, f64);

/// Parses a sample line by the format's description.
fn parse(line: &str) -> Option<Sample> {
    let name_ends = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_ends);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, value) = rest.trim_start_matches(',').split_once("=\"")?;
            let (mut text, mut chars) = (String::new(), value.char_indices());
            rest = loop {
                match chars.next()? {
                    (at, '"') => break &value[at + 1..],
                    (_, '\\') => text.push(match chars.next()?.1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        _ => return None,
                    }),
                    (_, c) => text.push(c),
                }
            };
            labels.insert(label.to_owned(), text);
        }
        rest = &rest[1..];
    }
    Some((name.to_owned(), labels, rest.trim().parse().ok()?))
}

fn samples(text: &str) -> Vec<Sample> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[test]
fn a_histogram_is_written_as_prometheus_wants_it() {
    let mut all = Accumulator::new(Bounds {
        edges: Edges::new(vec![
            ctrace_core::units::Nanos(1_500),
            ctrace_core::units::Nanos(2_000_000_000),
        ])
        .expect("good edges"),
        ..Bounds::default()
    });
    let id = SessionId(1);
    all.begin(id, "web");
    all.observe(id, &snapshot(0, 10, &[Did::called("f(int)", &[1_000, 1_500_000, 1_500_000])]));
    let mut families = Families::default();
    all.tell(&mut families);
    let text = encode(&families.finish(), all.edges());
    let (_, from) =
        text.split_once("# HELP ctrace_function_duration_seconds ").expect("it is there");
    let lines: Vec<&str> = from.lines().take(7).collect();
    let labels = r#"target="web",function="f(int)",object="program",kind="function",group="""#;
    let name = "ctrace_function_duration_seconds";
    assert_eq!(lines[0], "Durations of the calls whose duration is known.");
    assert_eq!(lines[1], format!("# TYPE {name} histogram"));
    assert_eq!(lines[2], format!("{name}_bucket{{{labels},le=\"0.0000015\"}} 1"));
    assert_eq!(lines[3], format!("{name}_bucket{{{labels},le=\"2\"}} 3"));
    assert_eq!(lines[4], format!("{name}_bucket{{{labels},le=\"+Inf\"}} 3"));
    assert_eq!(lines[5], format!("{name}_sum{{{labels}}} 0.003001"));
    assert_eq!(lines[6], format!("{name}_count{{{labels}}} 3"));
}

proptest! {
    #[test]
    fn what_is_written_parses_back(names in prop::collection::vec(".*", 1..5), calls in 0..9usize) {
        let mut all = Accumulator::new(Bounds::default());
        let id = SessionId(1);
        all.begin(id, &names[0]);
        let did: Vec<Did> =
            names.iter().map(|name| Did { spent: 7, ..Did::called(name, &vec![123_456; calls]) }).collect();
        all.observe(id, &snapshot(0, 10, &did));
        let mut families = Families::default();
        all.tell(&mut families);
        let families = families.finish();
        let text = encode(&families, all.edges());
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        let samples = samples(&text);
        let numbers = families.iter().flat_map(|family| {
            family.points.iter().filter_map(|point| match point.value {
                MetricValue::Number(value) => Some((family.metric.name, &point.labels, value)),
                MetricValue::Histogram(_) => None,
            })
        });
        let written = samples.iter().filter(|(name, ..)| !name.starts_with("ctrace_function_duration"));
        prop_assert_eq!(written.clone().count(), numbers.clone().count());
        for ((name, labels, value), (metric, expected, number)) in written.zip(numbers) {
            prop_assert_eq!(name, metric);
            prop_assert_eq!(*value, number);
            let expected = expected.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            prop_assert_eq!(labels, &expected.collect::<BTreeMap<_, _>>());
        }
        let mut series: Vec<_> = samples.iter().map(|(name, labels, _)| (name, labels)).collect();
        let all_series = series.len();
        series.sort();
        series.dedup();
        prop_assert_eq!(series.len(), all_series, "a series is told twice");
    }
}

#[test]
fn names_that_look_the_same_share_a_series() {
    let mut all = Accumulator::new(Bounds::default());
    let id = SessionId(1);
    all.begin(id, "web");
    let did = ["x\n", "x\\u{a}"].map(|name| Did::called(name, &[5]));
    all.observe(id, &snapshot(0, 10, &did));
    let mut families = Families::default();
    all.tell(&mut families);
    let samples = samples(&encode(&families.finish(), all.edges()));
    let calls: Vec<f64> = samples
        .iter()
        .filter(|(name, ..)| name == "ctrace_function_calls_total")
        .map(|(.., value)| *value)
        .collect();
    assert_eq!(calls, [2.0]);
}

#[test]
fn hostile_names_stay_in_their_line() {
    let name = "a\"} 1\nevil{x=\"\\ \x1b]0;owned\x07 \u{202e}";
    let label = names::label(name);
    assert!(!label.contains(['\n', '\x1b', '\u{202e}']));
    let mut families = Families::default();
    families.push(&catalog::OF_FUNCTION[0].metric, vec![("function", label.clone())], 1.0);
    let text = encode(&families.finish(), &Edges::default());
    assert_eq!(text.lines().count(), 3);
    let [(_, labels, _)] = &samples(&text)[..] else { panic!("{text}") };
    assert_eq!(labels["function"], *label);
}
