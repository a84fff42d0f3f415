//! The form of a target's reports: that of `ctrace attach`, plus the daemon's data.

use crate::{
    daemon::{
        config::{ReportKind, Reports},
        ids::{SessionId, TargetName},
        totals::Counts,
    },
    session::keep::live::Snapshot,
    ui::{self, ViewOptions, text::units},
};
use chrono::{DateTime, Local, SecondsFormat, TimeDelta};
use ctrace_core::{
    report::{
        Extras, FunctionReport, Report,
        render::{clean::clean, json},
    },
    units::Nanos,
};
use serde::Serialize;

/// The style, checked when the configuration is read.
#[derive(Default)]
pub(crate) struct Style {
    kind: ReportKind,
    views: ViewOptions,
}

/// Data of a report that its session does not know.
pub(crate) struct ReportHeader<'a> {
    pub target: &'a TargetName,
    pub session: SessionId,
    pub totals: Counts,
    /// The number of lost reports of all targets since the daemon began.
    pub reports_lost: u64,
}

/// A line of JSON: the report of `--format json`, plus the key `daemon`.
#[derive(Serialize)]
struct Line<'a> {
    daemon: Facts<'a>,
    #[serde(flatten)]
    report: &'a Report,
}

#[derive(Serialize)]
struct Facts<'a> {
    schema: &'static str,
    target: &'a str,
    session: u64,
    /// The times of day of the interval, by the current clock.
    from: String,
    to: String,
    cost_ns: Nanos,
    since_start: Counts,
    reports_lost: u64,
    #[serde(flatten)]
    full: Option<Full<'a>>,
}

/// Data for clients that subtract one report from another.
#[derive(Serialize)]
struct Full<'a> {
    /// CPU time of the process up to the end of the report.
    cpu_ns: Option<Nanos>,
    /// The probes' cost for each function.
    spent_ns: &'a [Nanos],
    /// The number of open calls on each path.
    paths_open: Vec<u64>,
    /// Sums of each function's timed durations and of their squares, which the report rounds.
    timed_ns: Vec<u64>,
    timed_squares: Vec<String>,
}

impl Style {
    pub(crate) fn of(reports: &Reports) -> anyhow::Result<Self> {
        Ok(Self { kind: reports.kind, views: reports.view_options()? })
    }

    /// Returns `None` if no reports are wanted.
    pub(crate) fn unless_none(self) -> Option<Self> {
        (self.kind != ReportKind::None).then_some(self)
    }

    /// Returns the optional data that a report must hold.
    pub(crate) fn extras(&self) -> Extras {
        match self.kind {
            ReportKind::Table => self.views.extras(None),
            ReportKind::Json | ReportKind::None => Extras::default(),
        }
    }

    /// Returns whole lines.
    pub(crate) fn render(
        &self,
        header: &ReportHeader<'_>,
        snapshot: &Snapshot,
    ) -> anyhow::Result<String> {
        match self.kind {
            ReportKind::Table => self.table(header, snapshot),
            ReportKind::Json | ReportKind::None => Ok(json::line(&line(header, snapshot, false))),
        }
    }

    /// Returns a table for people.
    pub(crate) fn table(
        &self,
        header: &ReportHeader<'_>,
        snapshot: &Snapshot,
    ) -> anyhow::Result<String> {
        let report = &snapshot.report;
        let (from, to) = times_of_day(report);
        let views = ViewOptions {
            epoch_offset_ns: Some(ui::output::wall::epoch_offset_ns()),
            ..self.views.clone()
        };
        let pid = report.target.pid.map_or(0, |pid| pid.0);
        let program = report.target.exe.as_deref().map(clean).unwrap_or_default();
        let form = "%Y-%m-%d %H:%M:%S%.3f";
        Ok(format!(
            "=== target {}: process {pid}, {program}: {} to {}, {:.3} s; since the daemon began: {} \
             calls, {} lost\n{}\n",
            header.target,
            from.format(form),
            to.format(form),
            report.duration_ns.0 as f64 / 1e9,
            units::count(header.totals.sums.calls),
            units::count(header.totals.sums.lost),
            ui::render_table(report, &views, &ui::Style::default())?,
        ))
    }
}

/// Returns a value for an answer.
pub(crate) fn value(
    header: &ReportHeader<'_>,
    snapshot: &Snapshot,
    full: bool,
) -> serde_json::Value {
    serde_json::to_value(line(header, snapshot, full)).unwrap_or_default()
}

fn line<'a>(header: &ReportHeader<'a>, snapshot: &'a Snapshot, full: bool) -> Line<'a> {
    let (from, to) = times_of_day(&snapshot.report);
    let time = |time: DateTime<Local>| time.to_rfc3339_opts(SecondsFormat::Millis, false);
    Line {
        daemon: Facts {
            schema: "ctrace.daemon.v1",
            target: &header.target.0,
            session: header.session.0,
            from: time(from),
            to: time(to),
            cost_ns: snapshot.cost(),
            since_start: header.totals,
            reports_lost: header.reports_lost,
            full: full.then(|| full_of(snapshot)),
        },
        report: &snapshot.report,
    }
}

fn full_of(snapshot: &Snapshot) -> Full<'_> {
    let report = &snapshot.report;
    let tallies = report.functions.iter().map(FunctionReport::tally);
    let (timed_ns, timed_squares) =
        tallies.map(|tally| (tally.timed_ns, tally.squares.to_string())).unzip();
    Full {
        cpu_ns: snapshot.cpu,
        spent_ns: &snapshot.spent,
        paths_open: report.paths.iter().map(|path| path.open).collect(),
        timed_ns,
        timed_squares,
    }
}

/// Returns the times of a report's start and end.
fn times_of_day(report: &Report) -> (DateTime<Local>, DateTime<Local>) {
    let now = Local::now();
    let ago = |time: Nanos| {
        let ns = crate::bpf::now().since(time).0;
        now - TimeDelta::nanoseconds(i64::try_from(ns).unwrap_or(i64::MAX))
    };
    (ago(report.start_ns), ago(report.end_ns))
}
