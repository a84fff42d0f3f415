//! The order of scopes of one thread at the same nanosecond in several buffers.
//!
//! A thread has a buffer for each runtime. On CPUs whose time stamp counter advances in steps of
//! ten nanoseconds, calls in both often have the same time. The stack tells which call was inside
//! which.

use crate::ingest::event::Event;
use ctrace_common::Kind;

/// A running program does not write more than this at one time. More events stay as they are.
const MOST: usize = 64;

/// Orders `events`, each with its lane. They are sorted by time, then by lane and arrival.
pub(super) fn settle(events: &mut [(usize, Event)]) {
    let groups = events.chunk_by_mut(|(_, a), (_, b)| a.ts() == b.ts());
    for group in groups.filter(|group| (2..=MOST).contains(&group.len())) {
        let lane = group[0].0;
        if group.iter().all(|(other, _)| *other == lane) || !group.iter().all(|(_, e)| is_scope(e))
        {
            continue;
        }
        group.sort_by_key(|(_, event)| event.who());
        group.chunk_by_mut(|(_, a), (_, b)| a.who() == b.who()).for_each(merge);
    }
}

fn is_scope(event: &Event) -> bool {
    matches!(event.kind(), Some(Kind::ScopeEnter | Kind::ScopeExit))
}

fn is_enter(event: &Event) -> bool {
    event.kind() == Some(Kind::ScopeEnter)
}

/// Merges events of one thread. Each lane keeps its order.
fn merge(events: &mut [(usize, Event)]) {
    let as_they_came = events.to_vec();
    let mut lanes: Vec<_> = as_they_came.chunk_by(|(a, _), (b, _)| a == b).collect();
    for place in events {
        let waiting = lanes.iter_mut().filter(|lane| !lane.is_empty());
        let next =
            waiting.reduce(|best, other| if comes_before(other, best) { other } else { best });
        if let Some(lane) = next
            && let [first, rest @ ..] = *lane
        {
            (*place, *lane) = (*first, rest);
        }
    }
}

/// Returns true if the first event of one lane comes before that of the other.
fn comes_before(one: &[(usize, Event)], other: &[(usize, Event)]) -> bool {
    let ((_, a), (_, b)) = (&one[0], &other[0]);
    match (is_enter(a), is_enter(b)) {
        (true, true) => a.sp() > b.sp(),
        (false, false) => a.sp() < b.sp(),
        (true, false) => is_inside(one, b),
        (false, true) => !is_inside(other, a),
    }
}

/// Returns true if a lane's first event begins a call that is over before this exit of a call
/// around it.
fn is_inside(lane: &[(usize, Event)], exit: &Event) -> bool {
    let (_, enter) = &lane[0];
    let is_its_end = |event: &Event| {
        !is_enter(event) && event.sp() == enter.sp() && event.func() == enter.func()
    };
    enter.sp() < exit.sp() && lane[1..].iter().any(|(_, event)| is_its_end(event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{FuncId, Pid, Tid};

    /// Words are like `1+a` and `1-a`: lane, entry or exit, and scope; `a` is the outermost one.
    /// All are at the same time.
    #[track_caller]
    fn check(came: &str, expected: &str) {
        let event = |word: &str| {
            let bytes = word.as_bytes();
            let depth = u64::from(bytes[2] - b'a');
            let kind = if bytes[1] == b'+' { Kind::ScopeEnter } else { Kind::ScopeExit };
            let place = Event::place(FuncId(depth as u32), 0);
            let who = Event::who_is(Pid(1), Tid(1));
            (usize::from(bytes[0] - b'0'), Event::of_scope(kind, 7, 1000 - depth, who, place))
        };
        let mut events: Vec<_> = came.split(' ').map(event).collect();
        settle(&mut events);
        let told = events.iter().map(|(lane, event)| {
            let sign = if is_enter(event) { '+' } else { '-' };
            format!("{lane}{sign}{}", char::from(b'a' + event.func().0 as u8))
        });
        assert_eq!(told.collect::<Vec<_>>().join(" "), expected, "{came}");
    }

    #[test]
    fn the_stack_tells_what_was_first() {
        // The caller is in the first lane, or in the second.
        check("1-a 2-b", "2-b 1-a");
        check("1-b 2-a", "1-b 2-a");
        check("1+a 2+b", "1+a 2+b");
        check("1+b 2+a", "2+a 1+b");
        // A call ends, and the next one begins.
        check("1-a 1+a 2-b", "2-b 1-a 1+a");
        check("1-a 1+a 2-b 2+b", "2-b 1-a 1+a 2+b");
        // The inner call takes no time.
        check("1-a 2+b 2-b", "2+b 2-b 1-a");
        check("1-a 2+b 2+c 2-c 2-b", "2+b 2+c 2-c 2-b 1-a");
        check("1+a 1-a 2+b 2-b", "1+a 2+b 2-b 1-a");
        // The next call takes time.
        check("1-a 2+b", "1-a 2+b");
    }
}
