//! The events that have come, in order of time or not. Whoever limits the cost of probes cannot wait for the
//! others to come.

use super::Engine;

impl Engine {
    /// Returns the number of events by function, those that still wait for older ones included. Events of
    /// scopes count once their buffers have been looked at.
    pub fn arrived(&self) -> Vec<u64> {
        let mut hits = self.tracker.hits.clone();
        for event in self.order.held() {
            // Events of waits have no function.
            if let Some(hits) = hits.get_mut(event.func().index()) {
                *hits += 1;
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Engine, EngineConfig};
    use crate::function::FunctionInfo;
    use crate::units::Nanos;
    use ctrace_common::{Kind, Record};

    #[test]
    fn events_count_as_they_come() {
        let mut engine = Engine::new(EngineConfig::default());
        for name in ["f", "g"] {
            engine.add_function(FunctionInfo::new(name, "app"));
        }
        let event = |ts_ns, probe| {
            let kind = Kind::Enter as u8;
            Record { ts_ns, sp: 800, pid: 1, tid: 1, probe, kind, ..Record::default() }.into()
        };
        engine.push_events(0, &[event(10, 1), event(20, 0), event(30, 1)]);
        assert_eq!((engine.arrived(), engine.counters().hits), (vec![1, 2], &[0, 0][..]));
        engine.advance(Nanos(20));
        assert_eq!((engine.arrived(), engine.counters().hits), (vec![1, 2], &[1, 1][..]));
    }
}
