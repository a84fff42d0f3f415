//! Tests the first screen where waits are told apart.

use super::{NARROW, WIDE, check, fixture, sound};
use ctrace_core::function::ProbeCost;
use ctrace_core::report::{ProbeTimes, Report, SplitReport, WakerReport, WakersReport, WokenWaits};
use ctrace_core::units::Nanos;
use ctrace_core::waits::WaitClass;
use ctrace_user::testing::ui::{Style, ViewOptions};

/// A server that mostly waits for requests and for a lock.
fn with_waits() -> Report {
    let mut report = fixture::empty();
    let rows: [(&str, u64, u64, [u64; 3]); 5] = [
        ("serve", 40, 200_000_000, [1_200, 300, 6_500]),
        ("checksum", 900, 1_400_000, [1_150, 110, 0]),
        ("[runnable]", 700, 585_000, [0, 410, 0]),
        ("[blocked: futex]", 35, 60_000_000, [0, 0, 2_100]),
        ("[blocked: poll]", 40, 110_000_000, [0, 0, 4_400]),
    ];
    for (name, calls, typical, parts) in rows {
        let mut row = fixture::function(name, calls, typical, report.duration_ns);
        let [running, runnable, blocked] = parts.map(|ms| Some(Nanos(ms * fixture::MILLI)));
        row.split = SplitReport { running_ns: running, runnable_ns: runnable, blocked_ns: blocked };
        row.total_ns = Nanos(parts.iter().sum::<u64>() * fixture::MILLI);
        if name.starts_with('[') {
            let class = if runnable.is_some_and(|ns| ns.0 > 0) {
                WaitClass::Runnable
            } else {
                WaitClass::Blocked
            };
            (row.wait, row.object, row.file) = (Some(class), "kernel".into(), None);
        }
        report.functions.push(row);
    }
    report
}

/// Functions that work come first, and waits last.
#[test]
fn waits_have_columns_and_rows() {
    let options = ViewOptions::default();
    let narrow = check("waits_80", &with_waits(), &options, &NARROW);
    let missing =
        |text: &str| text.lines().find(|line| line.starts_with("No room for ")).map(str::to_owned);
    let line = missing(&narrow).expect("a line names the columns left out");
    let heading = narrow.lines().find(|line| line.contains(" calls ")).expect("headings");
    assert!(line.contains("mean, p50, max") && !heading.contains(" mean "), "{narrow}");
    let all = Style { width: Some(200), ..NARROW };
    assert_eq!(missing(&sound(&with_waits(), &options, &all)), None);
    let text = check("waits_120", &with_waits(), &options, &WIDE);
    let place = |name: &str| text.find(name).expect("a row");
    assert!(place("serve") < place("checksum") && place("checksum") < place("[blocked: poll]"));
    let by_blocked = ViewOptions { sort: Some("blocked".into()), ..ViewOptions::default() };
    let text = sound(&with_waits(), &by_blocked, &WIDE);
    let place = |name: &str| text.find(name).expect("a row");
    assert!(place("[blocked: poll]") < place("checksum"), "{text}");
}

/// Who asks for such an order hears why there is none.
#[test]
fn an_order_by_waits_needs_waits() {
    let told = |sort: &str| {
        let options = ViewOptions { sort: Some(sort.into()), ..ViewOptions::default() };
        let mut without = with_waits();
        without.functions.retain(|row| row.wait.is_none());
        without.functions.iter_mut().for_each(|row| row.split = SplitReport::default());
        let text = |report: &Report| sound(report, &options, &WIDE);
        [text(&without), text(&with_waits())].map(|text| text.contains("No waits are known"))
    };
    assert_eq!(told("blocked"), [true, false]);
    assert_eq!(told("running"), [true, false]);
    assert_eq!(told("total"), [false, false]);
}

/// The first line counts calls of functions, and waits beside them.
#[test]
fn waits_are_counted_beside_calls() {
    let text = sound(&with_waits(), &ViewOptions::default(), &WIDE);
    assert!(text.contains(" · 940 calls of 2 functions, 775 waits\n"), "{text}");
}

/// What is subtracted from a total is subtracted from its part with a processor, where probes work.
#[test]
fn parts_add_up_without_the_cost_of_probes() {
    let mut report = with_waits();
    let cost = ProbeCost {
        call_ns: Nanos(800),
        inside_ns: Nanos(500),
        error_ns: Nanos(80),
        measured: true,
    };
    for (row, total) in
        report.functions.iter_mut().zip([200, 100].map(|ms| Nanos(ms * fixture::MILLI)))
    {
        let error = Nanos(total.0 / 100);
        row.probes = Some(ProbeTimes {
            cost,
            total_ns: total,
            self_ns: total,
            total_error_ns: error,
            self_error_ns: error,
            queue_error_ns: Nanos::ZERO,
            usual_ns: Nanos::ZERO,
        });
    }
    let cells = |name: &str, options: &ViewOptions| {
        let text = sound(&report, options, &WIDE);
        let row = text.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
        let cells: Vec<_> = row.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
        cells[2..6].join(" | ")
    };
    let usual = ViewOptions::default();
    assert_eq!(cells("serve", &usual), "7.80 s | 1.00 s | 300 ms | 6.50 s");
    assert_eq!(cells("checksum", &usual), "1.16 s | 1.05 s | 110 ms | 0 ns");
    let raw = ViewOptions { raw: true, ..ViewOptions::default() };
    // Total and running are as seen, and beside each is the time without probes.
    assert_eq!(cells("serve", &raw), "8.00 s | 7.80 s | 1.20 s | 1.00 s");
    // The most work without probes is first.
    let text = sound(&report, &usual, &WIDE);
    assert!(text.find("checksum") < text.find("serve"), "{text}");
}

/// No selected function of these is called, and waits are none.
#[test]
fn waits_are_no_selected_functions() {
    let mut report = with_waits();
    for row in &mut report.functions {
        *row = ctrace_core::report::FunctionReport {
            wait: row.wait,
            split: row.split,
            ..fixture::function(&row.name.clone(), 0, 0, report.duration_ns)
        };
    }
    let text = sound(&report, &ViewOptions::default(), &WIDE);
    assert!(text.contains("None of the 2 selected functions was called"), "{text}");
    assert!(!text.contains("[blocked"), "{text}");
}

/// Names give way on a narrow terminal, but what a function waited for does not.
#[test]
fn wakers_have_a_table() {
    let mut report = with_waits();
    let of = |waits: u64, millis: u64| WokenWaits {
        waits,
        timed: waits,
        total_ns: Nanos(millis * fixture::MILLI),
        mean_ns: Some(Nanos(millis * fixture::MILLI / waits)),
        max_ns: Some(Nanos(millis * fixture::MILLI / waits * 3)),
    };
    let row =
        |function, wait, waker: &str, of| WakerReport { function, wait, waker: waker.into(), of };
    let place = |name: &str| report.functions.iter().position(|row| &*row.name == name);
    let [serve, futex, poll] = ["serve", "[blocked: futex]", "[blocked: poll]"].map(place);
    let (futex, poll) = (futex.expect("a row"), poll.expect("a row"));
    let long = "shop::orders::Queue::push_all_that_have_come_since_the_last_time (importer-17)";
    report.wakers = Some(WakersReport {
        rows: vec![
            row(serve, poll, "- (haproxy, process 812)", of(31, 4_100)),
            row(serve, futex, long, of(27, 1_900)),
            row(None, poll, "[interrupt]", of(5, 170)),
            row(serve, futex, "evil \u{1b}[31m (x)", of(3, 61)),
        ],
        others: Some(of(9, 53)),
        unsure: true,
    });
    let views = vec!["wakers".parse().expect("a view")];
    let options = ViewOptions { views, ..ViewOptions::default() };
    let narrow = check("woken_80", &report, &options, &NARROW);
    assert!(narrow.contains("[blocked: futex]") && !narrow.contains(long), "{narrow}");
    assert!(check("woken_120", &report, &options, &WIDE).contains("other waits"));
}
