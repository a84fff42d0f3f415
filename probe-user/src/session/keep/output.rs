//! The destination of a session's results: reports, a watcher, a recording, a timeline, or lines of
//! single calls.

use super::{
    live::Live,
    live_calls::LiveCalls,
    recording::Recording,
    sink::{Default, Sink, check_counted, check_intervals},
    spill::Spill,
    stream::Stream,
};
use crate::session::spec::ReportSpec;
use ctrace_core::{recording::replay::start_threads, report::By};
use std::time::Duration;

pub(crate) enum Output {
    Reports(Box<Reports>),
    Live(Live),
    Recording(Box<Recording>),
    Calls(Box<LiveCalls>),
    Stream(Box<Stream>),
}

/// Reports, and the means to make them.
pub(crate) struct Reports {
    pub sink: Sink,
    /// All calls, if there is one report only.
    pub spill: Option<Spill>,
    pub center_cut: f64,
    pub interval: Option<Duration>,
    pub cumulative: bool,
    /// The function whose calls are frames, or the mark between frames.
    pub frame: Option<String>,
    /// The rule for parts that have reports of their own.
    pub by: Option<By>,
}

impl Reports {
    /// Checks the specification, before anything is attached. `spool`: bytes of memory for calls.
    pub(crate) fn open(spec: &ReportSpec, spool: u64, default: Default) -> anyhow::Result<Self> {
        if spec.aggregate {
            check_counted(spec)?;
        }
        match spec.interval {
            Some(_) => check_intervals(spec)?,
            // These threads read the calls in the end; there may be no room for threads by then.
            None if spec.aggregate => {}
            None => start_threads()?,
        }
        Ok(Self {
            sink: Sink::open(spec, default)?,
            spill: (spec.interval.is_none() && !spec.aggregate).then(|| Spill::new(spool)),
            center_cut: spec.center_cut,
            interval: spec.interval,
            cumulative: spec.cumulative,
            frame: spec.frame.clone(),
            by: spec.by.clone(),
        })
    }
}

impl Output {
    /// True if calls are kept as in a recording, and not in the engine.
    pub(crate) fn records(&self) -> bool {
        match self {
            Self::Reports(reports) => reports.spill.is_some(),
            Self::Live(_) => false,
            Self::Recording(_) | Self::Calls(_) | Self::Stream(_) => true,
        }
    }

    /// True if values beside single calls can be seen there.
    pub(crate) fn shows_values(&self) -> bool {
        match self {
            Self::Reports(reports) => {
                let extras = reports.sink.extras();
                let by_value = matches!(reports.by, Some(By::Value { .. }));
                let shows = extras.slowest_calls.is_some()
                    || extras.values.is_some()
                    || extras.plots
                    || extras.locks;
                by_value || reports.spill.is_some() && shows
            }
            Self::Live(_) => false,
            Self::Recording(_) | Self::Calls(_) | Self::Stream(_) => true,
        }
    }

    /// True if a program can have the tables that it asks for: all of its calls are kept, to be read.
    pub(crate) fn gives_tables(&self) -> bool {
        matches!(self, Self::Reports(reports) if reports.spill.is_some())
    }

    /// Returns the rule by which reports are divided into parts.
    pub(crate) fn by(&self) -> Option<&By> {
        match self {
            Self::Reports(reports) => reports.by.as_ref(),
            _ => None,
        }
    }

    /// True if locks can be seen there of which markers tell.
    pub(crate) fn shows_locks(&self) -> bool {
        match self {
            Self::Reports(reports) => {
                let sink = &reports.sink;
                reports.spill.is_some() && (sink.extras().locks || sink.shows_found_locks())
            }
            Self::Live(_) => false,
            Self::Recording(_) | Self::Calls(_) | Self::Stream(_) => true,
        }
    }

    /// Returns the time between reports.
    pub(crate) fn interval(&self) -> Option<Duration> {
        match self {
            Self::Reports(reports) => reports.interval,
            Self::Live(live) => Some(live.interval),
            Self::Recording(_) | Self::Calls(_) | Self::Stream(_) => None,
        }
    }

    /// Returns the bytes of the recording so far, if it is one.
    pub(crate) fn written(&self) -> Option<u64> {
        match self {
            Self::Reports(_) | Self::Live(_) | Self::Calls(_) | Self::Stream(_) => None,
            Self::Recording(recording) => Some(recording.written()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::spec::ReportFormat;

    #[test]
    fn only_a_view_of_single_calls_shows_values() {
        let output = |views: &[&str], spill: Option<Spill>, by: Option<By>| {
            let spec = ReportSpec {
                format: ReportFormat::Table,
                views: views.iter().map(|&name| name.to_owned()).collect(),
                sort: None,
                top: None,
                center_cut: 1.0,
                min_percent: None,
                interval: None,
                cumulative: false,
                raw: false,
                frame: None,
                by: None,
                aggregate: false,
                named: Vec::new(),
                output: None,
            };
            let sink = Sink::open(&spec, Default::Stderr).expect("stderr is there");
            let reports = Reports {
                sink,
                spill,
                center_cut: 1.0,
                interval: None,
                cumulative: false,
                frame: None,
                by,
            };
            Output::Reports(Box::new(reports))
        };
        let shows_by = |views: &[&str], spill, by| output(views, spill, by).shows_values();
        let shows = |views: &[&str], spill| shows_by(views, spill, None);
        let value = By::Value { function: "handle".into(), argument: "key".into() };
        assert!(shows_by(&[], Some(Spill::new(0)), Some(value)));
        assert!(!shows_by(&[], Some(Spill::new(0)), Some(By::Thread)));
        assert!(shows(&["summary", "calls"], Some(Spill::new(0))));
        assert!(!shows(&[], Some(Spill::new(0))));
        assert!(!shows(&["timeline"], Some(Spill::new(0))));
        assert!(!shows(&["calls"], None));
        let live = Live {
            interval: Duration::from_secs(1),
            extras: Box::new(|| unreachable!()),
            center_cut: 1.0,
            deliver: Box::new(|_| true),
        };
        assert!(!Output::Live(live).shows_values());
        let shows_locks = |views: &[&str], spill| output(views, spill, None).shows_locks();
        assert!(shows_locks(&[], Some(Spill::new(0))));
        assert!(shows_locks(&["tree", "locks"], Some(Spill::new(0))));
        assert!(!shows_locks(&["tree"], Some(Spill::new(0))));
        assert!(!shows_locks(&[], None));
    }
}
