//! Tests what is told beside the numbers of a report: which functions ran already, and in CSV which
//! interval a row is about.

use super::{FILE, fixture};
use ctrace_core::report::{ProcessorTimes, RunningBefore};
use ctrace_core::units::{Nanos, Pid};
use ctrace_core::waits::WaitClass;
use ctrace_user::testing::ui::{Style, ViewOptions, render_csv, render_interval_csv, render_table};

#[test]
fn what_ran_already_is_not_said_to_be_idle() {
    let mut report = fixture::empty();
    let row = |name: &str, calls| fixture::function(name, calls, 700, Nanos::from_millis(900));
    report.functions = vec![row("main", 0), row("idle", 0), row("work", 12)];
    let main = &report.functions[0];
    let (name, object) = (main.name.clone(), main.object.clone());
    report.target.already_running = vec![RunningBefore { name, object }];
    let text = render_table(&report, &ViewOptions::default(), &FILE).expect("it can be shown");
    let told = "1 selected function seems to have been running already when tracing began, and has \
                no counted call since: main.";
    let is_told = |text: &str| text.replace('\n', " ").contains(told);
    assert!(is_told(&text), "{text}");
    assert!(text.contains("1 selected function was not called while traced: idle."), "{text}");
    // A filter may have taken its calls.
    report.filtered_calls = 37;
    let text = render_table(&report, &ViewOptions::default(), &FILE).expect("it can be shown");
    let told = "2 selected functions have no call that came through the filters: main, idle.";
    assert!(!is_told(&text) && text.contains(told), "{text}");
    report.filtered_calls = 0;
    report.functions.truncate(2);
    let text = render_table(&report, &ViewOptions::default(), &FILE).expect("it can be shown");
    assert!(is_told(&text), "{text}");
}

/// As redis does, to have room for a longer one.
#[test]
fn a_title_that_is_padded_with_blanks_is_cut() {
    let mut report = fixture::empty();
    report.target.command = vec!["cache *:7391      ".into(), String::new(), "   ".into()];
    let text = render_table(&report, &ViewOptions::default(), &FILE).expect("it can be shown");
    let head = text.lines().next().expect("a line");
    assert!(head == "cache *:7391" || head.starts_with("cache *:7391 · "), "{head}");
}

/// A link may have started the program. What it leads to stands beside the command line.
#[test]
fn the_file_behind_a_link_is_told() {
    let mut report = fixture::typical();
    let head = |report: &ctrace_core::report::Report| {
        let text = render_table(report, &ViewOptions::default(), &FILE).expect("it can be shown");
        text.lines().next().map(str::to_owned)
    };
    let plain = "./server --port 8080 · pid 4711 · exited with 0".to_owned();
    for (program, exe) in [("server", "/srv/bin/server"), ("server-2", "/srv/bin/server-2")] {
        report.target.program = Some(program.to_owned());
        report.target.exe = Some(exe.to_owned());
        assert_eq!(head(&report), Some(plain.clone()), "{exe}");
    }
    report.target.program = Some("server".to_owned());
    let beside = "./server --port 8080 · /srv/bin/server-2 · pid 4711 · exited with 0".to_owned();
    assert_eq!(head(&report), Some(beside));
}

/// The heading names the first process, and counts those whose threads are in the report with it.
#[test]
fn the_heading_counts_the_other_processes() {
    let mut report = fixture::typical();
    let head = |report: &ctrace_core::report::Report| {
        let text = render_table(report, &ViewOptions::default(), &FILE).expect("it can be shown");
        text.lines().next().map(str::to_owned)
    };
    let thread = report.threads[0].clone();
    for (pid, told) in [
        (4800, "pid 4711 and 1 other process with calls ·"),
        (4801, "pid 4711 and 2 other processes with calls ·"),
        (4801, "pid 4711 and 2 other processes with calls ·"),
    ] {
        report.threads.push(ctrace_core::report::ThreadReport { pid: Pid(pid), ..thread.clone() });
        let head = head(&report).expect("a line");
        assert!(head.contains(told), "{head}");
    }
    report.notes.push("7 more threads are not listed".to_owned());
    let head = head(&report).expect("a line");
    assert!(head.contains("pid 4711 and at least 2 other processes with calls ·"), "{head}");
}

/// Many notes would push the table away: on a terminal, long ones end after a line. None is left out.
#[test]
fn long_notes_are_whole_unless_a_terminal_has_many() {
    let long = |at: usize| format!("fact {at} of {at}: {}", "and so on ".repeat(20).trim_end());
    let narrow = Style { width: Some(80), terminal: true, ..FILE };
    let pipe = Style { terminal: false, ..narrow };
    let render = |report: &mut ctrace_core::report::Report, views: &[&str], style: &Style| {
        report.notes = (0..30).map(long).collect();
        let views = views.iter().map(|view| view.parse().expect("a view")).collect();
        let options = ViewOptions { views, ..ViewOptions::default() };
        let text = render_table(report, &options, style).expect("it can be shown");
        assert!(
            (0..30).all(|at| text.contains(&format!("fact {at} of {at}: and so on"))),
            "{text}"
        );
        let whole = text.replace("\n  ", " ").matches(&long(0)["fact 0 of 0: ".len()..]).count();
        let lines = text.lines().filter(|line| line.starts_with("fact") && line.ends_with('…'));
        (whole, lines.count(), text.contains("notes that end in … are whole with --view detail"))
    };
    let called = &mut fixture::typical();
    let (whole, cut, is_told) = render(called, &["summary"], &narrow);
    assert!((1..3).contains(&whole) && whole + cut == 30 && is_told, "{whole} {cut}");
    assert_eq!(render(called, &["summary", "detail"], &narrow), (30, 0, false));
    assert_eq!(render(called, &["summary"], &pipe), (30, 0, false));
    // Where nothing was called, the notes say why.
    assert_eq!(render(&mut fixture::nothing_called(), &["summary"], &narrow), (30, 0, false));
    let ascii = render_table(called, &ViewOptions::default(), &Style { ascii: true, ..narrow });
    assert!(ascii.expect("it can be shown").contains("notes that end in ~ are whole"));
}

/// Where a wildcard chose many, what the user named stands before them.
#[test]
fn of_those_that_were_not_called_the_named_ones_come_first() {
    let mut report = fixture::empty();
    let names = ["work", "idle_a", "idle_b", "idle_c", "app::Reader::parse(int)", "idle_d"];
    let row = |(at, name): (usize, &&str)| {
        fixture::function(name, u64::from(at == 0), 700, Nanos::from_millis(900))
    };
    report.functions = names.iter().enumerate().map(row).collect();
    let named = |names: &[&str]| {
        let named = names.iter().map(|&name| name.to_owned()).collect();
        let options = ViewOptions { named, ..ViewOptions::default() };
        render_table(&report, &options, &FILE).expect("it can be shown").replace('\n', " ")
    };
    let told = "5 selected functions were not called while traced: ";
    for name in ["parse", "Reader::parse", "app::Reader::parse(int)"] {
        let text = named(&["idle_d", name, "work"]);
        let first = "app::Reader::parse(int), idle_d, idle_a, and 2 more.";
        assert!(text.contains(&format!("{told}{first}")), "{name}: {text}");
    }
    for names in [&[][..], &["arse", "idle"]] {
        let first = "idle_a, idle_b, idle_c, and 2 more.";
        assert!(named(names).contains(&format!("{told}{first}")), "{names:?}: {}", named(names));
    }
}

#[test]
fn rows_of_an_interval_say_which() {
    let options = ViewOptions { epoch_offset_ns: Some(0), ..ViewOptions::default() };
    let mut report = fixture::typical();
    (report.start_ns, report.end_ns) = (Nanos::from_millis(1_500), Nanos::from_millis(62_250));
    let one = render_csv(&report, &options).expect("it can be written");
    let each = render_interval_csv(&report, &options).expect("it can be written");
    let (one, each): (Vec<_>, Vec<_>) = (one.lines().collect(), each.lines().collect());
    let heading = "interval_start_ns,interval_end_ns,interval_start,interval_end";
    assert_eq!(each[0], format!("{},{heading}", one[0]));
    let cells = "1500000000,62250000000,1970-01-01 00:00:01.500,1970-01-01 00:01:02.250";
    assert_eq!((each.len(), each[2].to_owned()), (one.len(), format!("{},{cells}", one[2])));
}

/// The times of a report contain waits for processors. Few of them are usual.
#[test]
fn waits_for_processors_are_told_with_the_remedy() {
    let ms = Nanos::from_millis;
    let mut report = fixture::typical();
    let mut told = |used, waited| {
        report.target.processor = Some(ProcessorTimes { used_ns: ms(used), waited_ns: ms(waited) });
        let text = render_table(&report, &ViewOptions::default(), &FILE).expect("it can be shown");
        text.lines().find(|line| line.contains("for a processor")).map(str::to_owned)
    };
    let line = "The target's threads ran for 4.00 s and waited 1.20 s for a processor. Times contain \
                these waits; --cpu shows where they are.";
    assert_eq!(told(4_000, 1_200).as_deref(), Some(line));
    assert_eq!(told(4_000, 900), None, "less than a quarter");
    assert_eq!(told(10, 90), None, "less than a tenth of a second");
    report.functions[0].wait = Some(WaitClass::Runnable);
    report.target.processor = Some(ProcessorTimes { used_ns: ms(4_000), waited_ns: ms(1_200) });
    let text = render_table(&report, &ViewOptions::default(), &FILE).expect("it can be shown");
    assert!(!text.contains("for a processor."), "--cpu was given: {text}");
}
