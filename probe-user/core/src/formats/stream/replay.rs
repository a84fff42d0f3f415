//! The lines of a recording. Everything is known, so each call is one line, where it began.
//!
//! A chunk has the calls that ended in it. Most of them also began in it. A first pass over the
//! chunks gathers the others, so that the second one can emit each where it began. There are few in
//! a recording of ctrace. Of a file that has more than there is room for, the rest are emitted where
//! they ended.

use super::{CallLine, CallPart, Lines, LostSoFar, Scene, Waiting};
use crate::calls::paths::Node;
use crate::formats::excerpt::{CallRow, Excerpt, Step};
use crate::formats::{Coverage, Export, ExportError, Options};
use crate::recording::Recording;
use crate::recording::replay::Query;
use crate::report::CallValues;
use crate::units::{FuncId, Nanos, ThreadId};
use crate::values::Value;

/// Calls that are gathered, at most.
const MOST_AHEAD: usize = 1 << 20;
/// The room for their values, in bytes.
const MOST_VALUES: usize = 64 << 20;

/// Emits the calls that `query` selects.
pub fn replay(
    recording: &Recording,
    query: &Query,
    lines: &mut impl Lines,
) -> Result<Coverage, ExportError> {
    replay_within(recording, query, lines, (MOST_AHEAD, MOST_VALUES))
}

pub(super) fn replay_within(
    recording: &Recording,
    query: &Query,
    lines: &mut impl Lines,
    most: (usize, usize),
) -> Result<Coverage, ExportError> {
    let export = Export { recording, query, options: Options::default(), progress: &|_| () };
    let excerpt = Excerpt::new(&export, true);
    let scene = Scene { recording, nodes: excerpt.nodes() };
    lines.define(&scene);
    let mut ahead = Ahead::gather(&excerpt, |function| lines.wants(function), most)?;
    let (mut crossing, mut now, mut lost) = (0, Vec::new(), LostSoFar::default());
    let told = excerpt.chunks(|step| {
        let (from, to) = (step.chunk.from, step.chunk.to);
        each_row(
            &step,
            scene.nodes,
            |function| lines.wants(function),
            |thread, row| {
                let mut part = CallPart::Whole;
                if row.start < from.0 {
                    crossing += 1;
                    if crossing <= ahead.gathered {
                        return;
                    }
                    part = CallPart::Resumed;
                }
                let call = CallLine::new(part, scene.nodes, thread, &row);
                now.push(Waiting::call(call, values(&step, &call)));
            },
        );
        now.extend(ahead.take(to));
        now.extend(lost.add(from, to, &step.chunk.loss, step.lost_payloads).map(Waiting::lost));
        now.sort_unstable();
        now.drain(..).try_for_each(|waiting| lines.line(&scene, &waiting.line()))?;
        Ok(lines.flush()?)
    })?;
    // Some are left if the last chunk cannot be read.
    ahead.take(Nanos::MAX).try_for_each(|waiting| lines.line(&scene, &waiting.line()))?;
    lines.flush()?;
    Ok(told)
}

/// Passes on the calls whose functions are wanted.
fn each_row(
    step: &Step<'_>,
    nodes: &[Node],
    wants: impl Fn(FuncId) -> bool,
    mut each: impl FnMut(ThreadId, CallRow),
) {
    for (thread, rows) in step.rows() {
        let wanted = rows.filter(|row| wants(nodes[row.path as usize].func));
        wanted.for_each(|row| each(thread, row));
    }
}

fn values(step: &Step<'_>, call: &CallLine) -> Option<Box<CallValues>> {
    step.call_values(call.thread, call.start.0, call.function)
        .map(|values| Box::new(values.clone()))
}

/// Calls that began before the chunk in which they ended.
struct Ahead {
    /// Latest first.
    calls: Vec<Waiting>,
    gathered: usize,
}

impl Ahead {
    fn gather(
        excerpt: &Excerpt<'_>,
        wants: impl Fn(FuncId) -> bool,
        (most, most_values): (usize, usize),
    ) -> Result<Self, ExportError> {
        let (mut calls, mut room, mut is_full) = (Vec::new(), most_values, false);
        excerpt.chunks(|step| {
            each_row(&step, excerpt.nodes(), &wants, |thread, row| {
                if row.start >= step.chunk.from.0 || is_full {
                    return;
                }
                let call = CallLine::new(CallPart::Whole, excerpt.nodes(), thread, &row);
                let values = values(&step, &call);
                let left = room.checked_sub(values.as_deref().map_or(0, size));
                match left.filter(|_| calls.len() < most) {
                    Some(left) => {
                        room = left;
                        calls.push(Waiting::call(call, values));
                    }
                    None => is_full = true,
                }
            });
            Ok(())
        })?;
        let gathered = calls.len();
        calls.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Self { calls, gathered })
    }

    /// Takes those that began up to this time.
    fn take(&mut self, to: Nanos) -> impl Iterator<Item = Waiting> {
        let later = self.calls.partition_point(|call| call.time() > to);
        self.calls.drain(later..).rev()
    }
}

/// Returns about the memory that the values of a call take.
fn size(values: &CallValues) -> usize {
    let of_text = |value: &Option<Value>| match value {
        Some(Value::Text(text)) => text.bytes().len(),
        _ => 0,
    };
    let each = values.named.0.iter().map(|(_, value)| 48 + of_text(value));
    each.sum::<usize>() + size_of::<CallValues>()
}
