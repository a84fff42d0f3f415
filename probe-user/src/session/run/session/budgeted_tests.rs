use super::*;
use ctrace_core::{
    engine::{Engine, EngineConfig, ReportMeta},
    function::{ExitSeen, FunctionInfo},
    report::SampledReport,
};

const SECOND: u64 = 1_000_000_000;
/// A window of 20 ms begins here.
const OPENED: u64 = 10 * SECOND;
const DISARMED: u64 = OPENED + SECOND / 50;

/// Returns the totals of a target that always runs. `spent`: the cost of its events.
fn now(at: u64, events: &[u64], spent: u64) -> Now<'_> {
    let own = Nanos(at - spent);
    Now { events, spent: Nanos(spent), time: Time { at: Nanos(at), own } }
}

/// Returns the budget of one function that took a whole second of the first two, and had a window
/// that settles now.
fn settling() -> Budgeted {
    let mut budgeted = Budgeted::new(1.0);
    let (functions, start) = (vec![FuncId(0)], Time::default());
    budgeted.add(LinkGroup::without_sites(functions), start);
    budgeted.begin(Nanos::ZERO, Nanos::ZERO);
    let (at, cpu, spent) = (Nanos(2 * SECOND), Nanos(2 * SECOND), vec![Nanos(SECOND)]);
    assert_eq!(budgeted.control.look(Reading { at, cpu, spent: &spent }), [0]);
    let shed = now(at.0, &[1_000], SECOND);
    budgeted.books.armed_throughout(0, shed.time, shed.events);
    let since = now(OPENED, &[1_000], SECOND).time;
    let plan = budgeted.control.window().cloned().expect("one");
    let window = Window {
        plan,
        begun: since.at,
        before: spent,
        groups: vec![0],
        since,
        spent: Nanos(SECOND),
    };
    let (at, cpu) = (Nanos(DISARMED), Nanos(DISARMED));
    budgeted.phase = Phase::Settling { at, cpu, window: Some(window), shed: Vec::new() };
    budgeted
}

/// Makes a report that begins a new interval, and returns its row.
fn report(budgeted: &mut Budgeted, now: &Now<'_>) -> SampledReport {
    let mut engine = Engine::new(EngineConfig::default());
    engine.add_function(FunctionInfo {
        exit: ExitSeen::Never,
        ..FunctionInfo::new("costly", "program")
    });
    let mut report = engine.report(now.time.at, ReportMeta::default());
    budgeted.add_samples(&mut report, now, true);
    report.functions[0].sampled.expect("armed in a window")
}

/// Lets the window settle, in which 100 events took 5 ms, with an interval's end here before.
fn settle(interval: Option<u64>) -> (Budgeted, Option<SampledReport>) {
    const SPENT: u64 = SECOND + SECOND / 200;
    let mut budgeted = settling();
    let report = interval.map(|at| report(&mut budgeted, &now(at, &[1_100], SPENT)));
    let back = budgeted.settled(&now(DISARMED, &[1_100], SPENT), &[Nanos(SPENT)]);
    assert!(back.is_empty());
    (budgeted, report)
}

/// The interval may end before the window does, or while its last events are on their way.
#[test]
fn an_interval_that_ends_in_a_window_does_not_change_what_it_shows() {
    let (whole, _) = settle(None);
    let want = format!("{:?}", whole.control);
    // It was 0.5 before, and a quarter in the window.
    assert!(want.contains("InWindows { cost: 0.3,"), "{want}");
    for interval in [OPENED + SECOND / 100, DISARMED, DISARMED + SECOND / 100] {
        let (budgeted, _) = settle(Some(interval));
        assert_eq!(format!("{:?}", budgeted.control), want, "{interval}");
    }
}

#[test]
fn an_interval_that_ends_after_a_window_has_all_of_it() {
    let (mut budgeted, first) = settle(Some(DISARMED + SECOND / 100));
    let first = first.expect("a report");
    assert_eq!((first.windows, first.armed_ns), (1, Nanos(2 * SECOND + SECOND / 50)));
    let second = report(&mut budgeted, &now(12 * SECOND, &[1_100], SECOND + SECOND / 200));
    assert_eq!((second.windows, second.armed_ns), (0, Nanos::ZERO));
}
