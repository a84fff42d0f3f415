//! Functions for calls whose values are their names: methods of a language, which its runtime announces
//! by one pair of USDT probes for all.
//!
//! Values come beside events, before these are in order. So a call's name is known when its event is applied.

use crate::engine::names::LateNames;
use crate::engine::tracker::Tracker;
use crate::ingest::event::Event;
use crate::recording::payloads::value_of;
use crate::units::{FuncId, Nanos, Pid, Tid};
use crate::values::{RingPayload, Value};
use std::collections::HashMap;

/// The event that begins a call.
type Start = (Pid, Tid, Nanos, FuncId);

/// The functions of calls whose values are not released yet, and whether their events were applied.
#[derive(Debug, Default)]
pub(crate) struct CallNames(HashMap<Start, (FuncId, bool)>);

impl CallNames {
    /// Returns the function of a call that begins with this event, if its values have named it.
    pub(super) fn of(&mut self, event: &Event) -> Option<FuncId> {
        let start = (event.pid(), event.tid(), Nanos(event.ts()), event.func());
        let (function, is_used) = self.0.get_mut(&start)?;
        *is_used = true;
        Some(*function)
    }

    /// Forgets the name of a call, if these values are one. Returns whether the call has it: its event may have
    /// been applied before they came.
    pub(super) fn forget(&mut self, payload: &RingPayload) -> Option<bool> {
        if self.0.is_empty() {
            return None;
        }
        self.0.remove(&start(payload)).map(|(_, is_used)| is_used)
    }
}

/// Notes the name of a call, if these values are one.
pub(super) fn note(payload: &RingPayload, names: &mut LateNames, tracker: &mut Tracker) {
    let info = tracker.functions.get(payload.function.index());
    let Some((info, between)) = info.and_then(|info| Some((info, info.named_by?))) else { return };
    let kinds = info.values.iter().map(|value| value.kind);
    let read = payload.values(kinds).zip(&info.values);
    let texts = read.map(|(read, info)| match value_of(info, payload, read) {
        Some(Value::Text(text)) => Some(text.to_string()),
        _ => None,
    });
    // A part that could not be read would make it the name of another one.
    let Some(parts) = texts.collect::<Option<Vec<String>>>() else { return };
    let name = parts.join(between);
    if let Some(function) = names.of(payload.function, name.as_bytes(), tracker) {
        tracker.call_names.0.insert(start(payload), (function, false));
    }
}

fn start(payload: &RingPayload) -> Start {
    (payload.pid, payload.tid, payload.time, payload.function)
}

#[cfg(test)]
mod tests {
    use crate::engine::{Engine, EngineConfig, ReportMeta};
    use crate::function::{ByOrder, FunctionInfo, FunctionKind, ValueInfo, ValueKind};
    use crate::ingest::event::Event;
    use crate::units::Nanos;
    use crate::values::RingPayload;
    use ctrace_common::{Kind, Record};

    #[test]
    fn a_call_has_the_name_that_its_values_are() {
        let mut engine = Engine::new(EngineConfig::default());
        engine.add_function(FunctionInfo {
            kind: FunctionKind::Usdt,
            aliases: vec!["method__entry".into()],
            by_order: Some(ByOrder::Nested),
            named_by: Some("#"),
            values: vec![ValueInfo::new("name", ValueKind::LongText)],
            ..FunctionInfo::new("method", "ruby")
        });
        let event = |ts_ns, kind| -> Event {
            Record { ts_ns, pid: 1, tid: 1, kind: kind as u8, ..Record::default() }.into()
        };
        let begins = [(10, Some("handle")), (20, Some("parse")), (40, Some("parse")), (60, None)];
        for (time, name) in begins {
            let begin = event(time, Kind::PairEnter);
            engine.push_events(0, &[begin]);
            // The values of one call are lost.
            let text = name.map(str::as_bytes);
            let payload = text.and_then(|text| RingPayload::of_marks(&begin, &[], Some(text)));
            payload.into_iter().for_each(|payload| engine.push_payload(payload));
            if time > 10 {
                engine.push_events(0, &[event(time + 5, Kind::PairExit)]);
            }
        }
        engine.push_events(0, &[event(90, Kind::PairExit), event(95, Kind::PairExit)]);
        engine.advance(Nanos(100));
        let report = engine.report(Nanos(100), ReportMeta::default());
        let rows = report.functions.iter().map(|row| (&*row.name, row.calls, row.total_ns.0));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable();
        assert_eq!(rows, [("handle", 1, 80), ("method", 1, 5), ("parse", 2, 10)]);
        let unmet = |name: &str| report.functions.iter().find(|row| &*row.name == name).unwrap();
        assert_eq!((unmet("method").headless, unmet("parse").headless), (1, 0));
        // The names of the pair and of its probes find it, too.
        assert_eq!(unmet("parse").aliases, ["method__entry", "method"].map(Into::into));
        assert!(engine.tracker.call_names.0.is_empty(), "no name is kept for ever");
    }
}
