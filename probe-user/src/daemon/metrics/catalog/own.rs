//! The metrics of ctrace itself: its work for others, and its process.

use crate::daemon::metrics::metric::Metric;

pub(crate) const OWN: usize = 21;

/// The metrics of ctrace's own work, by [`Own`].
pub(crate) static OF_OWN: [Metric; OWN] = [
    Metric::counter(
        "ctrace_report_write_failures_total",
        &[],
        "Reports that could not be written.",
    ),
    Metric::counter("ctrace_scrapes_total", &[], "Requests for metrics that were answered."),
    Metric::counter(
        "ctrace_http_refused_total",
        &[],
        "Connections that were closed because there were too many.",
    ),
    Metric::counter(
        "ctrace_http_errors_total",
        &[],
        "Connections that ended in an error or took too long.",
    ),
    Metric::counter(
        "ctrace_looks_unanswered_total",
        &[],
        "Sessions that did not tell in time what they had, so that a scrape shows their last state.",
    ),
    Metric::counter(
        "ctrace_otlp_exports_total",
        &[],
        "Exports of metrics, slow calls and profiles that a receiver took.",
    ),
    Metric::counter(
        "ctrace_otlp_failures_total",
        &[],
        "Attempts to export metrics, slow calls or profiles that failed.",
    ),
    Metric::counter(
        "ctrace_otlp_given_up_total",
        &[],
        "Exports of metrics that were given up; the next one has their numbers in it.",
    ),
    Metric::counter(
        "ctrace_otlp_slow_calls_total",
        &[],
        "Slow calls that a receiver took as spans.",
    ),
    Metric::counter(
        "ctrace_otlp_slow_calls_dropped_total",
        &[],
        "Slow calls that were not exported as spans: there were too many, or the receiver did not take them.",
    ),
    Metric::counter(
        "ctrace_otlp_profiles_total",
        &[],
        "Profiles of intervals that a receiver of OTLP took.",
    ),
    Metric::counter(
        "ctrace_otlp_profiles_dropped_total",
        &[],
        "Profiles that were not exported by OTLP: there were too many, or the receiver did not take them.",
    ),
    Metric::counter(
        "ctrace_pprof_profiles_total",
        &[],
        "Profiles of intervals that Pyroscope or Parca took.",
    ),
    Metric::counter(
        "ctrace_pprof_profiles_dropped_total",
        &[],
        "Profiles that were not pushed: there were too many, or Pyroscope or Parca did not take them.",
    ),
    Metric::counter("ctrace_pprof_failures_total", &[], "Attempts to push a profile that failed."),
    Metric::counter(
        "ctrace_fleet_files_total",
        &[],
        "Files of the fleet's tables that were written.",
    ),
    Metric::counter(
        "ctrace_fleet_failures_total",
        &[],
        "Attempts to write files of the fleet's tables that failed.",
    ),
    Metric::counter(
        "ctrace_fleet_rows_lost_total",
        &[],
        "Rows of the fleet's tables that were lost: nothing could be written, and memory was full; or their file was removed before it was sent to the store.",
    ),
    Metric::counter(
        "ctrace_fleet_uploads_total",
        &[],
        "Files of the fleet's tables that were sent to the store.",
    ),
    Metric::counter(
        "ctrace_fleet_upload_failures_total",
        &[],
        "Attempts to send files of the fleet's tables to the store that failed.",
    ),
    Metric::gauge(
        "ctrace_fleet_files_waiting",
        &[],
        "Files of the fleet's tables that wait for the store, as ctrace-store told last; at most 10,000.",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    ReportsLost,
    Scrapes,
    Refused,
    HttpErrors,
    Unanswered,
    OtlpExports,
    OtlpFailures,
    OtlpGivenUp,
    SlowCalls,
    SlowCallsDropped,
    OtlpProfiles,
    OtlpProfilesDropped,
    PprofProfiles,
    PprofProfilesDropped,
    PprofFailures,
    FleetFiles,
    FleetFailures,
    FleetRowsLost,
    FleetUploads,
    FleetUploadFailures,
    FleetFilesWaiting,
}

pub(crate) static SCRAPE_DURATION: Metric = Metric::gauge(
    "ctrace_scrape_duration_seconds",
    &[],
    "How long it took to answer the last scrape, the looks into sessions included.",
);

/// The metrics of ctrace's process, under the names that all exporters use.
pub(crate) static PROCESS: [Metric; 7] = [
    Metric::counter("process_cpu_seconds_total", &[], "CPU time of ctrace."),
    Metric::gauge("process_resident_memory_bytes", &[], "Memory of ctrace that is resident."),
    Metric::gauge("process_virtual_memory_bytes", &[], "Address space of ctrace."),
    Metric::gauge("process_open_fds", &[], "Open file descriptors of ctrace."),
    Metric::gauge("process_max_fds", &[], "The limit on open file descriptors."),
    Metric::gauge("process_threads", &[], "Threads of ctrace."),
    Metric::gauge("process_start_time_seconds", &[], "When ctrace started, in seconds since 1970."),
];
