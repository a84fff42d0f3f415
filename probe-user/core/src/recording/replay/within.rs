//! The calls of one function that have one value, as a selection: these calls and those inside them.

use super::Query;
use super::by_value::by_value;
use super::count::count;
use super::lens::Lens;
use super::select::CallReader;
use super::values::each_payload;
use crate::ranges::Ranges;
use crate::recording::Recording;
use crate::report::{ByValue, OneValue};
use crate::units::{FuncId, Nanos, ThreadId};
use crate::values::Value;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Stretches of time of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Within(HashMap<ThreadId, Ranges>);

impl Within {
    /// Makes the union of these stretches, both of whose ends belong to them.
    pub fn new(stretches: impl IntoIterator<Item = (ThreadId, Range<Nanos>)>) -> Self {
        let mut threads = HashMap::<ThreadId, Vec<Range<u64>>>::new();
        for (thread, Range { start, end }) in stretches {
            threads.entry(thread).or_default().push(start.0..end.0.saturating_add(1));
        }
        Self(threads.into_iter().map(|(thread, all)| (thread, Ranges::new(all))).collect())
    }

    /// Returns whether a call of this thread that begins then is in one of them.
    #[inline]
    pub(crate) fn holds(&self, thread: ThreadId, start: u64) -> bool {
        self.0.get(&thread).is_some_and(|stretches| stretches.contains(start))
    }
}

/// The calls that have one of the values of an argument, or of the result.
#[derive(Clone, Debug)]
pub struct WithValue {
    /// The value; `None` for all others together, or for those that could not be read.
    pub value: Option<Value>,
    /// True for those that could not be read.
    pub is_unread: bool,
    /// The calls.
    pub within: Arc<Within>,
}

/// The calls of a function, apart by a value.
#[derive(Clone, Debug)]
pub struct WithValues {
    /// The values that took the most time, then the others.
    pub each: Vec<WithValue>,
    /// The number of finished calls without this value: it was lost, or the call has none.
    pub without: u64,
    /// True if there are too many values to compare all: one of the others may have taken more time than
    /// one that is told apart.
    pub unsure: bool,
}

/// The reason why the calls of a function cannot be told apart by a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoValues {
    /// The memory for them has a bound.
    #[error(
        "there are more than {MOST_CALLS} calls with such values; choose a part of the time (--time)"
    )]
    TooMany,
}

/// The calls that are told apart, at most: 192 MiB, and as much again while they are put in order.
const MOST_CALLS: usize = 1 << 23;

/// Tells the calls of a function that a query selects apart by the value in this place. `most` values
/// are told apart from all others.
pub fn by_values_of(
    recording: &Recording,
    query: &Query,
    function: FuncId,
    place: usize,
    most: usize,
) -> Result<WithValues, NoValues> {
    let lens = Lens::new(query, recording.nodes(), recording.functions());
    let chunks = lens.chunks(recording.chunks());
    let counted = count(recording, &lens, chunks);
    let name = recording
        .functions()
        .get(function.index())
        .and_then(|info| Some(&info.values.get(place)?.name));
    let tables = by_value(recording, &lens, chunks, &counted, most);
    let is_wanted =
        |table: &ByValue| table.function == function.index() && Some(&table.name) == name;
    let table = tables.into_iter().find(is_wanted);
    let unsure = table.as_ref().is_some_and(|table| table.unsure);
    let rows = table.map(|table| table.rows).unwrap_or_default();
    let values: Vec<Value> = rows.into_iter().map(|OneValue { value, .. }| value).collect();
    let numbers: HashMap<&Value, usize> =
        values.iter().enumerate().map(|(number, value)| (value, number)).collect();
    let (others, unread) = (values.len(), values.len() + 1);
    let mut all = vec![Vec::new(); values.len() + 2];
    let mut seen = 0;
    let mut selected = CallReader::new(recording, &lens, &counted);
    each_payload(&mut selected, chunks, |payload, call| {
        if payload.function != function {
            return;
        }
        let number = match payload.values.get(place) {
            _ if payload.absent >> place & 1 == 1 => return,
            Some(Some(value)) => numbers.get(value).copied().unwrap_or(others),
            _ => unread,
        };
        seen += 1;
        if seen <= MOST_CALLS {
            all[number].push((payload.thread, Nanos(call.start)..Nanos(call.end())));
        }
    });
    if seen > MOST_CALLS {
        return Err(NoValues::TooMany);
    }
    let values = values.into_iter().map(Some).chain([None, None]);
    let each = all.into_iter().zip(values).enumerate();
    let each = each.filter(|(_, (stretches, _))| !stretches.is_empty());
    let each = each.map(|(number, (stretches, value))| {
        let within = Arc::new(Within::new(stretches));
        WithValue { value, is_unread: number == unread, within }
    });
    let tallies = lens.paths.nodes().iter().zip(&counted.counts.tallies);
    let calls = tallies.filter(|(node, _)| node.func == function);
    let calls = calls.map(|(_, tally)| tally.ended());
    let calls = calls.fold(0, u64::saturating_add);
    Ok(WithValues { each: each.collect(), without: calls.saturating_sub(seen as u64), unsure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_overlap_are_one() {
        let (one, other) = (ThreadId(1), ThreadId(2));
        let within = Within::new([
            (one, Nanos(50)..Nanos(60)),
            (one, Nanos(10)..Nanos(20)),
            (other, Nanos(5)..Nanos(5)),
            // The same call inside itself.
            (one, Nanos(12)..Nanos(15)),
            (one, Nanos(55)..Nanos(70)),
        ]);
        let held: Vec<u64> = (0..80).filter(|at| within.holds(one, *at)).collect();
        assert_eq!(held, (10..=20).chain(50..=70).collect::<Vec<_>>());
        assert_eq!((0..9).filter(|at| within.holds(other, *at)).collect::<Vec<_>>(), [5]);
        assert!(!within.holds(ThreadId(3), 12));
    }
}
