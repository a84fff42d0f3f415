//! The calls of a target's functions by one value of theirs. Some values get series of their own.
//!
//! A value gets its series when it is among those that took the most time so far, and keeps it. What was
//! counted before stays with the others, so no counter ever goes down.

use super::{
    catalog,
    family::{Families, Labels},
    names::{self, FunctionKey},
};
use ctrace_core::{
    function::FunctionInfo,
    recording::{CallValue, ValueSum},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Series of values that a target has, at most. So many values can be among the first, one after another.
pub(crate) const MOST_SERIES: usize = 100;
/// Functions that a target has series of, at most. A target may bring new names each time that it starts.
const MOST_FUNCTIONS: usize = 100;
/// Values whose sums are known, to find out which take the most time.
const MOST_KNOWN: usize = 4_096;

/// The calls of a function that have one value, since the last time.
#[derive(Clone, Debug)]
pub(crate) struct CallsOfValue {
    function: FunctionKey,
    value: LabelValue,
    sum: ValueSum,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum LabelValue {
    Known(Arc<str>),
    Others,
    Unread,
    Lost,
}

/// `None` stands for all functions without series of their own.
type Key = (Option<FunctionKey>, LabelValue);

impl CallsOfValue {
    pub(crate) fn new(function: &FunctionInfo, value: CallValue, sum: ValueSum) -> Self {
        let value = match value {
            CallValue::Known(value) => LabelValue::Known(names::label(&value.to_string())),
            CallValue::Other => LabelValue::Others,
            CallValue::Unread => LabelValue::Unread,
            CallValue::Lost => LabelValue::Lost,
        };
        Self { function: FunctionKey::of(function), value, sum }
    }
}

/// The values of one target.
pub(super) struct Values {
    argument: Arc<str>,
    most: usize,
    functions: BTreeSet<FunctionKey>,
    /// All calls of the values that are known.
    known: HashMap<Key, ValueSum>,
    /// The published sums. Values without an entry are among the others.
    series: BTreeMap<Key, ValueSum>,
}

impl Values {
    pub(super) fn new(argument: &str, most: usize) -> Self {
        let argument = names::label(argument);
        let (functions, known) = (BTreeSet::new(), HashMap::new());
        Self { argument, most, functions, known, series: BTreeMap::new() }
    }

    /// Lets so many values at a time have series: those that have them keep them.
    pub(super) fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Adds calls.
    pub(super) fn add(&mut self, calls: Vec<CallsOfValue>) {
        let calls: Vec<(Key, ValueSum)> =
            calls.into_iter().map(|of| ((self.admitted(of.function), of.value), of.sum)).collect();
        for (key, sum) in &calls {
            let has_room = self.known.len() < MOST_KNOWN || self.known.contains_key(key);
            if matches!(key, (Some(_), LabelValue::Known(_))) && has_room {
                self.known.entry(key.clone()).or_default().add(sum);
            }
        }
        self.promote();
        for (key, sum) in calls {
            let key = match &key.1 {
                LabelValue::Known(_) if !self.series.contains_key(&key) => {
                    (key.0, LabelValue::Others)
                }
                _ => key,
            };
            self.series.entry(key).or_default().add(&sum);
        }
    }

    /// Returns the function if it has series of its own.
    fn admitted(&mut self, function: FunctionKey) -> Option<FunctionKey> {
        if self.functions.len() < MOST_FUNCTIONS {
            self.functions.insert(function.clone());
        }
        self.functions.contains(&function).then_some(function)
    }

    /// Gives series to the values that took the most time.
    fn promote(&mut self) {
        let is_known = |key: &&Key| matches!(key.1, LabelValue::Known(_));
        let room = MOST_SERIES.saturating_sub(self.series.keys().filter(is_known).count());
        let mut first: Vec<_> = self.known.iter().collect();
        first.sort_unstable_by_key(|(key, sum)| (Reverse(sum.total), Reverse(sum.calls), *key));
        first.truncate(self.most);
        let new = first.into_iter().filter(|(key, _)| !self.series.contains_key(*key));
        let new: Vec<Key> = new.take(room).map(|(key, _)| key.clone()).collect();
        self.series.extend(new.into_iter().map(|key| (key, ValueSum::default())));
    }

    pub(super) fn tell(&self, target: &Arc<str>, families: &mut Families) {
        for ((function, value), sum) in &self.series {
            let (which, value) = match value {
                LabelValue::Known(value) => ("value", Arc::clone(value)),
                LabelValue::Others => ("others", "".into()),
                LabelValue::Unread => ("unread", "".into()),
                LabelValue::Lost => ("lost", "".into()),
            };
            let more = [("argument", Arc::clone(&self.argument)), ("which", which.into())];
            let function = function.as_ref();
            let names = function.map_or_else(|| names::other(target), |it| it.labels(target));
            let labels: Labels = names.into_iter().chain(more).chain([("value", value)]).collect();
            families.push(&catalog::VALUE_CALLS, labels.clone(), sum.calls as f64);
            families.push(&catalog::VALUE_TIME, labels, catalog::VALUE_TIME.value(sum.total.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::metrics::family::MetricValue;
    use ctrace_core::{units::Nanos, values::Value};

    fn calls(value: u64, calls: u64, total: u64) -> CallsOfValue {
        let function = FunctionInfo::new("handle", "program");
        let sum = ValueSum { calls, total: Nanos(total) };
        CallsOfValue::new(&function, CallValue::Known(Value::Unsigned(value)), sum)
    }

    /// A program may have other names each time that it starts, and two that are shown alike.
    #[test]
    fn names_without_end_have_bounded_series() {
        let mut values = Values::new("key", 20);
        for number in 0..3 * MOST_FUNCTIONS {
            let function = FunctionInfo::new(format!("f{number}"), "program");
            let sum = ValueSum { calls: 2, total: Nanos(5) };
            values.add(vec![CallsOfValue::new(&function, CallValue::Unread, sum)]);
        }
        let told = told(&values);
        assert_eq!(told.len(), MOST_FUNCTIONS + 1);
        assert_eq!(told.iter().map(|(_, calls)| calls).sum::<f64>(), 600.0);
        let mut values = Values::new("key", 20);
        for name in ["a\x1b", "a\\u{1b}"] {
            let function = FunctionInfo::new(name, "program");
            let sum = ValueSum { calls: 2, total: Nanos(5) };
            values.add(vec![CallsOfValue::new(&function, CallValue::Unread, sum)]);
        }
        assert_eq!(self::told(&values).len(), 1);
    }

    /// Returns the calls of each series by its value, those of the others first.
    fn told(values: &Values) -> Vec<(String, f64)> {
        let mut families = Families::default();
        values.tell(&"web".into(), &mut families);
        let family = families.finish().into_iter().next().expect("calls come first");
        assert_eq!(family.metric.name, catalog::VALUE_CALLS.name);
        let of = |labels: &Labels, name: &str| {
            let label = labels.iter().find(|(label, _)| *label == name);
            label.map_or_else(String::new, |(_, value)| value.to_string())
        };
        let mut all: Vec<_> = family
            .points
            .iter()
            .map(|point| {
                let names: Vec<_> = point.labels.iter().map(|(name, _)| *name).collect();
                assert_eq!(names, family.metric.labels);
                let MetricValue::Number(calls) = point.value else { panic!("a counter") };
                let [value, which] = ["value", "which"].map(|name| of(&point.labels, name));
                (if which == "value" { value } else { which }, calls)
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    #[test]
    fn the_values_that_take_the_most_time_have_series_and_keep_them() {
        let mut values = Values::new("key", 2);
        values.add(vec![calls(7, 3, 500), calls(8, 90, 20), calls(9, 5, 400)]);
        let own = |list: &[(&str, f64)]| -> Vec<(String, f64)> {
            list.iter().map(|(value, calls)| ((*value).to_owned(), *calls)).collect()
        };
        assert_eq!(told(&values), own(&[("7", 3.0), ("9", 5.0), ("others", 90.0)]));
        // The third becomes the first: what was counted before stays with the others.
        values.add(vec![calls(8, 2, 5_000), calls(9, 1, 1)]);
        assert_eq!(told(&values), own(&[("7", 3.0), ("8", 2.0), ("9", 6.0), ("others", 90.0)]));
        values.add(vec![calls(9, 4, 1), calls(10, 6, 1)]);
        assert_eq!(told(&values), own(&[("7", 3.0), ("8", 2.0), ("9", 10.0), ("others", 96.0)]));
    }

    #[test]
    fn another_number_of_values_counts_from_then_on() {
        let mut values = Values::new("key", 1);
        let each = || vec![calls(7, 3, 500), calls(8, 4, 400), calls(9, 5, 300)];
        let names = |values: &Values| -> Vec<String> {
            told(values).into_iter().map(|(value, _)| value).collect()
        };
        values.add(each());
        assert_eq!(names(&values), ["7", "others"]);
        values.set_most(2);
        values.add(each());
        assert_eq!(names(&values), ["7", "8", "others"]);
        // A counter never goes away.
        values.set_most(0);
        values.add(each());
        assert_eq!(names(&values), ["7", "8", "others"]);
    }

    #[test]
    fn however_many_values_there_are_series_have_a_bound_and_add_up() {
        let mut values = Values::new("key", 20);
        let mut before = Vec::new();
        for round in 0..300 {
            // Each round has a value that takes more time than all before.
            values
                .add((0..30).map(|n| calls(30 * round + n, 1, (round + 1) * 1_000 + n)).collect());
            let now = told(&values);
            assert!(now.len() <= MOST_SERIES + 1);
            for (value, calls) in &before {
                let same = now.iter().find(|(other, _)| other == value);
                assert!(same.is_some_and(|(_, now)| now >= calls), "{value} went down");
            }
            assert_eq!(now.iter().map(|(_, calls)| calls).sum::<f64>(), (30 * (round + 1)) as f64);
            before = now;
        }
        assert_eq!(before.len(), MOST_SERIES + 1);
        assert!(values.known.len() <= MOST_KNOWN);
    }

    #[test]
    fn what_has_no_value_is_apart() {
        let function = FunctionInfo::new("handle", "program");
        let sum = |calls| ValueSum { calls, total: Nanos(5) };
        let mut values = Values::new("key", 20);
        values.add(vec![
            CallsOfValue::new(&function, CallValue::Unread, sum(2)),
            CallsOfValue::new(&function, CallValue::Lost, sum(3)),
            CallsOfValue::new(&function, CallValue::Other, sum(4)),
        ]);
        let own = [("lost", 3.0), ("others", 4.0), ("unread", 2.0)];
        assert_eq!(told(&values), own.map(|(which, calls)| (which.to_owned(), calls)));
    }
}
