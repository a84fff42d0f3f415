//! The recordings with which the formats are tested, and their exports.

use crate::support::{Event, PID, enter, function, point, recorded, ret};
use ctrace_core::formats::{Coverage, Export, Format, Options};
use ctrace_core::function::{FunctionInfo, FunctionKind};
use ctrace_core::recording::replay::Query;
use ctrace_core::recording::{Host, Recording, Start};
use ctrace_core::report::TargetReport;
use ctrace_core::units::{Nanos, Pid};

pub(crate) type Bytes = Recording;

/// The calls of a thread over three chunks, and of a second thread:
///
/// ```text
/// main  outer 1000 ─────────────────────────────────── 10000
///         inner 2000─2500   mark 2700  inner 4000─7000
/// 7                                                     outer 11000 … open at 12000
/// ```
pub(crate) fn groups() -> Vec<Vec<Event>> {
    vec![
        vec![enter(0, 900, 1_000), enter(1, 800, 2_000), ret(1, 800, 2_500), point(2, 850, 2_700)],
        vec![enter(1, 800, 4_000), ret(1, 800, 7_000)],
        vec![ret(0, 900, 10_000), enter(0, 900, 11_000).on(7), point(2, 850, 12_000).on(7)],
    ]
}

pub(crate) fn functions() -> Vec<FunctionInfo> {
    let mark =
        FunctionInfo { kind: FunctionKind::Marker, group: Some("prod".into()), ..function("mark") };
    let outer = FunctionInfo { file: Some("app.c".into()), line: Some(7), ..function("outer") };
    vec![outer, function("inner"), mark]
}

pub(crate) fn start() -> Start {
    Start {
        ctrace: "0.1.0".into(),
        host: Host { name: "host".into(), kernel: "6.18".into(), ..Host::default() },
        epoch_offset_ns: 1_700_000_000_000_000_000,
        zone_ns: 3_600_000_000_000,
        start_ns: Nanos(500),
        target: TargetReport {
            pid: Some(Pid(PID)),
            exe: Some("/usr/bin/app".into()),
            command: vec!["app".into(), "-x".into()],
            ..TargetReport::default()
        },
        ..Start::default()
    }
}

pub(crate) fn bytes_of(functions: &[FunctionInfo], groups: &[Vec<Event>]) -> Vec<u8> {
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    recorded::record(functions, &start(), &groups, true)
}

pub(crate) fn typical() -> Bytes {
    open(bytes_of(&functions(), &groups()))
}

/// The same without the second thread, so that all calls have ended.
pub(crate) fn ended() -> Bytes {
    let mut groups = groups();
    groups[2].truncate(1);
    open(bytes_of(&functions(), &groups))
}

/// Is part of all texts of [`hostile`] except names of functions.
pub(crate) const TEXT: &str = "\u{9b}5m\u{85}\u{202e}\x1b[2J";

/// A recording with names that formats could mistake for syntax.
pub(crate) fn hostile() -> Bytes {
    let names = [
        "a;b \"c\",d 12",
        "</text><script>alert(1)</script>&amp;\u{0}",
        "\n\r\t\x1b[2J\\\u{202e}rtl\u{2028}",
    ];
    let mut infos = functions();
    for (info, name) in infos.iter_mut().zip(names) {
        info.name = name.into();
    }
    infos[2].group = Some("gr\"oup;".into());
    let mut start = start();
    let texts = [&mut start.host.name, &mut start.host.kernel];
    for text in texts.into_iter().chain(&mut start.target.command) {
        text.push_str(TEXT);
    }
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    open(recorded::record(&infos, &start, &groups, true))
}

/// A recording of calls of which an exception ended several at once, the innermost one at its very
/// beginning or after it returned.
pub(crate) fn thrown() -> Bytes {
    turns(|turn, events, after| {
        events.extend([enter(0, 900, after(101)), enter(1, 800, after(13))]);
        events.extend([enter(1, 700, after(57)), enter(1, 600, after(31))]);
        if turn % 2 == 0 {
            events.push(ret(1, 600, after(7)));
        }
        events.push(ret(0, 900, after(401)));
    })
}

/// A recording of calls that end when the one inside them does, as a tail call and its caller do.
pub(crate) fn tail_called() -> Bytes {
    turns(|_, events, after| {
        events.extend([enter(0, 900, after(101)), enter(1, 800, after(13))]);
        let end = after(721);
        events.extend([ret(1, 800, end), ret(0, 900, end)]);
    })
}

/// A recording of many turns. Each adds events, with times so many nanoseconds after the one before and a little more.
fn turns(add: impl Fn(u64, &mut Vec<Event>, &mut dyn FnMut(u64) -> u64)) -> Bytes {
    let (mut events, mut now) = (Vec::new(), 1_000);
    for turn in 0..2_000_u64 {
        let mut after = |nanos: u64| {
            now += nanos + turn * turn % 977;
            now
        };
        add(turn, &mut events, &mut after);
    }
    open(bytes_of(&functions(), &[events]))
}

/// A recording without calls.
pub(crate) fn empty() -> Bytes {
    open(bytes_of(&functions(), &[Vec::new()]))
}

/// A recording of a ctrace that was killed while it wrote its second chunk.
pub(crate) fn cut_off() -> Bytes {
    let whole = bytes_of(&functions(), &groups()[..1]);
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    let mut bytes = recorded::record(&functions(), &start(), &groups, false);
    bytes.truncate(whole.len().min(bytes.len() - 40));
    open(bytes)
}

/// A recording with paths deeper than the bound.
pub(crate) fn deep() -> Bytes {
    let depth = 600_u64;
    let down = (0..depth).map(|n| enter(0, 100_000 - n, 1_000 + n));
    let up = (0..depth).rev().map(|n| ret(0, 100_000 - n, 5_000 - n));
    let (down, up) = (down.collect(), up.collect());
    open(bytes_of(&functions(), &[down, up]))
}

pub(crate) fn open(bytes: Vec<u8>) -> Bytes {
    Recording::open(bytes).expect("a recording")
}

/// Exports the recording in a format.
pub(crate) fn export(format: &str, recording: &Bytes) -> (Vec<u8>, Coverage) {
    export_with(format, recording, Options::default())
}

pub(crate) fn export_with(
    format: &str,
    recording: &Bytes,
    options: Options<'_>,
) -> (Vec<u8>, Coverage) {
    export_part(format, recording, &Query::default(), options)
}

/// Exports the part of it that a query selects.
pub(crate) fn export_part(
    format: &str,
    recording: &Bytes,
    query: &Query,
    options: Options<'_>,
) -> (Vec<u8>, Coverage) {
    let format = Format::find(format).expect("a format of the registry");
    let mut bytes = Vec::new();
    let told = format.write(&Export { recording, query, options, progress: &|_| {} }, &mut bytes);
    (bytes, told.expect("an export"))
}

pub(crate) fn text(format: &str, recording: &Bytes) -> String {
    String::from_utf8(export(format, recording).0).expect("UTF-8")
}

/// A recording of some thousands of calls of two functions in several chunks, with varied
/// durations.
pub(crate) fn many_calls() -> Bytes {
    let (mut random, mut now) = (7_u64, 1_000);
    let mut step = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now += 1 + (random >> 40) % (1 << ((random >> 33) % 17));
        now
    };
    let mut groups = Vec::new();
    for _ in 0..5 {
        let mut group = Vec::new();
        for _ in 0..700 {
            group.extend([enter(0, 900, step()), enter(1, 800, step())]);
            group.extend([ret(1, 800, step()), ret(0, 900, step())]);
        }
        groups.push(group);
    }
    open(bytes_of(&functions(), &groups))
}
