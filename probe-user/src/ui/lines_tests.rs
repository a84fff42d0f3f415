//! Lines of text of calls that an engine has seen.

use super::lines::TextLines;
use crate::ui::output::style::Style;
use ctrace_common::{Kind, MAX_TEXT, RECORD_LEN, RESULT, Record, SLOT_LEN, TEXTS};
use ctrace_core::{
    colour::Colour,
    engine::{Engine, EngineConfig},
    formats::stream::{Lines, Live, Scene, StreamLine},
    function::{ByOrder, ExitSeen, FunctionInfo, FunctionKind, ValueInfo, ValueKind},
    points::{Level, PointShape},
    recording::{Block, Start},
    units::{Nanos, Pid, Tid},
};
use std::{io, sync::Arc};

const MS: u64 = 1_000_000;
/// The functions of [`engine`].
pub(super) const HANDLE: u32 = 0;
const FIND: u32 = 1;
const PLAIN: u32 = 2;
const POINT: u32 = 3;
const SCOPE: u32 = 4;
const HOSTILE: u32 = 5;
const PAIR: u32 = 6;
/// The first one that a test may add.
pub(crate) const OTHER: u32 = 7;

/// Prints lines of text into memory.
struct Printed(TextLines, Vec<u8>);

impl Lines for Printed {
    fn define(&mut self, scene: &Scene<'_>) {
        self.0.define(scene);
    }

    fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>) -> io::Result<()> {
        self.0.line(scene, line, &mut self.1);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn engine() -> Engine {
    let config = EngineConfig { record: true, open_values: true, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    let value = |name: &str, kind| ValueInfo::new(name, kind);
    let result = ValueInfo { is_result: true, ..value("retval", ValueKind::Signed) };
    let named = |name: &str| FunctionInfo::new(name, "program");
    let point = vec![value("arg0", ValueKind::Signed)];
    let group = |group: &str| Some(group.into());
    let hostile = vec![value("a\u{202e}", ValueKind::Text)];
    for info in [
        named("handle"),
        FunctionInfo {
            values: vec![value("size", ValueKind::Unsigned), value("key", ValueKind::Text), result],
            ..named("find")
        },
        FunctionInfo { exit: ExitSeen::Never, ..named("shop::price(int)") },
        FunctionInfo {
            kind: FunctionKind::Usdt,
            group: group("db"),
            values: point,
            ..named("hit")
        },
        FunctionInfo { kind: FunctionKind::Marker, group: group("shop"), ..named("check out") },
        FunctionInfo { values: hostile, ..named("evil\x1b[2J") },
        FunctionInfo {
            kind: FunctionKind::Usdt,
            group: group("db"),
            aliases: ["query__start", "query__done"].map(Arc::from).into(),
            by_order: Some(ByOrder::InTurn),
            ..named("query")
        },
    ] {
        engine.add_function(info);
    }
    engine.begin(Nanos(0));
    engine
}

/// The probes of a thread, and what they see.
pub(crate) struct Probes<'a>(pub(crate) &'a mut Engine, pub(crate) u32);

impl Probes<'_> {
    fn record(&self, time: u64, function: u32, kind: Kind, sp: u64, lost_before: u16) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_LEN];
        bytes[..8].copy_from_slice(&time.to_le_bytes());
        bytes[8..16].copy_from_slice(&sp.to_le_bytes());
        bytes[16..20].copy_from_slice(&7_u32.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.1.to_le_bytes());
        bytes[24..28].copy_from_slice(&function.to_le_bytes());
        bytes[28] = kind as u8;
        bytes[LOST_AT..LOST_AT + 2].copy_from_slice(&lost_before.to_le_bytes());
        bytes
    }

    pub(crate) fn event(&mut self, time: u64, function: u32, kind: Kind) -> &mut Self {
        let record = self.record(time, function, kind, sp(function), 0);
        self.0.push(0, &record);
        self
    }

    /// The values of the last event, with the text behind the words.
    pub(crate) fn values(
        &mut self,
        (time, function): (u64, u32),
        words: &[u64],
        text: Option<&[u8]>,
        forms: u64,
    ) -> &mut Self {
        let mut fields: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fields.resize(fields.len().next_multiple_of(SLOT_LEN), 0);
        if let Some(text) = text {
            let mut field = [0; MAX_TEXT];
            field[..text.len()].copy_from_slice(text);
            fields.extend(field);
        }
        let slots = 1 + fields.len() / SLOT_LEN;
        let mut record = self.record(time, function, Kind::Payload, forms, slots as u16);
        record.extend(fields);
        self.0.push(0, &record);
        self
    }
}

/// The place of the count of lost events in a record.
const LOST_AT: usize = std::mem::offset_of!(Record, lost_before);

/// Functions lie deeper on the stack the later they were added.
fn sp(function: u32) -> u64 {
    0x7fff_0000 - 64 * u64::from(function)
}

/// Returns the blocks of an engine whose chunks end at these times.
pub(crate) fn blocks(engine: &mut Engine, ends: &[u64]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for &end in ends {
        engine.advance(Nanos(end));
        engine.end_chunk(Nanos(end));
        blocks.extend(engine.take_blocks());
    }
    blocks
}

/// Returns the lines of an engine whose chunks end at these times, the last one at the end.
fn lines(style: Style, mut engine: Engine, ends: &[u64]) -> String {
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let mut printed = Printed(TextLines::new(style), Vec::new());
    for block in blocks(&mut engine, ends) {
        live.take(&block, &mut printed).expect("blocks of an engine are sound");
    }
    live.end(Nanos(ends[ends.len() - 1]), &mut printed).expect("memory takes all");
    String::from_utf8(printed.1).expect("text")
}

pub(super) const PLAIN_STYLE: Style =
    Style { width: None, colour: false, truecolour: false, ascii: false, terminal: false };

#[test]
fn calls_have_arguments_results_and_durations() {
    let mut engine = engine();
    let mut probes = Probes(&mut engine, 7);
    probes.event(2 * MS, HANDLE, Kind::Enter);
    let text = 1 << (TEXTS + 1);
    probes.event(3 * MS, FIND, Kind::Enter);
    probes.values((3 * MS, FIND), &[41, 5], Some(b"a \"b\""), text);
    probes.event(3 * MS + 1_500, FIND, Kind::Return);
    probes.values((3 * MS + 1_500, FIND), &[-7_i64 as u64], None, 1 << RESULT);
    probes.event(4 * MS, POINT, Kind::Point).values((4 * MS, POINT), &[12], None, 0);
    // Its values are lost.
    probes.event(5 * MS, FIND, Kind::Enter).event(5 * MS + 830, FIND, Kind::Return);
    probes.event(6 * MS, SCOPE, Kind::Enter).event(6 * MS + 20, SCOPE, Kind::Return);
    probes.event(6 * MS + 100, PAIR, Kind::PairEnter).event(6 * MS + 940, PAIR, Kind::PairExit);
    probes.event(7 * MS, PLAIN, Kind::Enter);
    probes.event(8 * MS, POINT, Kind::Point).values((8 * MS, POINT), &[13], None, 0);
    probes.event(9 * MS, HANDLE, Kind::Return);
    probes.event(11 * MS, HANDLE, Kind::Enter);
    let expected = "   0.002000  handle(…) <7.00 ms>
   0.003000    find(size=41, key=\"a \\\"b\\\"\") = -7 <1.50 µs>
   0.004000    db:hit(arg0=12)
   0.005000    find(?) = ? <830 ns>
   0.006000    shop/check out <20 ns>
   0.006000  db:query <840 ns>
   0.007000    shop::price(int) <end not seen, 1.00 ms or more>
   0.008000      db:hit(arg0=13)
   0.011000  handle(…) <still running after 9.00 ms>
";
    assert_eq!(lines(PLAIN_STYLE, engine, &[20 * MS]), expected);
}

#[test]
fn a_call_that_stays_open_has_two_lines_and_threads_are_named() {
    let mut engine = engine();
    engine.name_thread(Pid(7), Tid(7), "main");
    engine.name_thread(Pid(7), Tid(1_234), "wor\x1bker");
    let mut probes = Probes(&mut engine, 1_234);
    let text = 1 << (TEXTS + 1);
    probes.event(10 * MS, FIND, Kind::Enter);
    probes.values((10 * MS, FIND), &[3, 2], Some(b"no"), text);
    Probes(&mut engine, 7).event(20 * MS, HANDLE, Kind::Enter).event(30 * MS, HANDLE, Kind::Return);
    engine.advance(Nanos(100 * MS));
    engine.end_chunk(Nanos(100 * MS));
    engine.set_lost_events(1_312, 0);
    engine.advance(Nanos(600 * MS));
    engine.end_chunk(Nanos(600 * MS));
    let mut probes = Probes(&mut engine, 1_234);
    probes.event(1_210 * MS, FIND, Kind::Return);
    probes.values((1_210 * MS, FIND), &[0], None, 1 << RESULT);
    let expected = "   0.010000  wor\\u{1b}ker/1234  find(size=3, key=\"no\") … still running
   0.020000  main/7             handle(…) <10.00 ms>
   0.600000  -- 1,312 events lost since 0.100000 --
   1.210000  wor\\u{1b}ker/1234  … find resumed = 0 <1.20 s>
";
    assert_eq!(lines(PLAIN_STYLE, engine, &[1_300 * MS]), expected);
}

/// A program that prints a hostile name and a hostile text.
fn hostile() -> Engine {
    let mut engine = engine();
    let mut probes = Probes(&mut engine, 7);
    probes.event(2 * MS, HOSTILE, Kind::Enter);
    let bytes = b"\x1b]0;pwned\x07\xff\n0.1 forged()";
    probes.values((2 * MS, HOSTILE), &[bytes.len() as u64], Some(bytes), 1 << TEXTS);
    probes.event(3 * MS, HOSTILE, Kind::Return);
    engine
}

#[test]
fn a_target_can_drive_no_terminal() {
    let shown = lines(PLAIN_STYLE, hostile(), &[9 * MS]);
    let expected = "   0.002000  evil\\u{1b}[2J(a\\u{202e}=\"\\u{1b}]0;pwned\\u{7}\\xff\\n0.1 forged()\") \
        <1.00 ms>\n";
    assert_eq!(shown, expected);
    let coloured = lines(Style { colour: true, ..PLAIN_STYLE }, hostile(), &[9 * MS]);
    assert!(coloured.contains("\x1b[2m<1.00 ms>\x1b[0m\n"), "{coloured:?}");
    assert_eq!(coloured.matches('\x1b').count(), 4, "the name and the duration: {coloured:?}");
    let ascii = lines(Style { ascii: true, ..PLAIN_STYLE }, hostile(), &[9 * MS]);
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn a_terminal_gets_no_line_that_wraps() {
    for width in [12, 40, 60] {
        let style = Style { width: Some(width), colour: true, ..PLAIN_STYLE };
        let shown = lines(style, hostile(), &[9 * MS]);
        let mut bare = shown.clone();
        while let Some(from) = bare.find('\x1b') {
            let to = from + bare[from..].find('m').expect("it ends");
            bare.replace_range(from..=to, "");
        }
        let columns = crate::ui::text::names::width(bare.trim_end_matches('\n'));
        assert!(columns <= width, "{columns} columns: {bare}");
        assert!(width < 40 || bare.ends_with("… <1.00 ms>\n"), "{bare}");
        let last = shown.rfind("\x1b[").map_or("\x1b[0m", |last| &shown[last..]);
        assert!(last.starts_with("\x1b[0m"), "{shown:?}");
    }
}

#[test]
fn messages_and_plots_read_as_what_they_are() {
    let mut engine = engine();
    let level = Some(Level::Warn);
    let text = vec![ValueInfo::new("message", ValueKind::LongText)];
    let jobs =
        ValueInfo { unit: Some("jobs".into()), ..ValueInfo::new("value", ValueKind::Signed) };
    let point = |name: &str, point, values: &[ValueInfo]| FunctionInfo {
        kind: FunctionKind::Marker,
        point: Some(point),
        values: values.to_vec(),
        ..FunctionInfo::new(name, "program")
    };
    let message = |name: &str, level| point(name, PointShape::Message { level }, &text);
    let grouped = |info| FunctionInfo { group: Some("cache".into()), ..info };
    let [format, plain, named, unnamed, plot, frame] = [
        grouped(message("miss for {}", level)),
        message("it begins", None),
        grouped(message("state", Some(Level::Info))),
        message("{} of %d", None),
        point("queue", PointShape::Plot, &[jobs]),
        point("frame", PointShape::Frame, &[]),
    ]
    .map(|info| engine.add_function(info).0);
    let mut probes = Probes(&mut engine, 7);
    let mut at = 0;
    for (function, text) in [
        (format, "miss for 41"),
        (plain, "it begins"),
        (named, "re\x1b[31mady"),
        (unnamed, "1 of 2"),
    ] {
        at += MS;
        probes.event(at, function, Kind::Point);
        probes.values((at, function), &[text.len() as u64], Some(text.as_bytes()), 1 << TEXTS);
    }
    probes.event(5 * MS, plot, Kind::Point).values((5 * MS, plot), &[-17_i64 as u64], None, 0);
    probes.event(6 * MS, frame, Kind::Point);
    // Their values are lost.
    probes.event(7 * MS, format, Kind::Point).event(8 * MS, plot, Kind::Point);
    let expected = "   0.001000  [warn] cache: miss for 41
   0.002000  it begins
   0.003000  [info] cache/state: re\\u{1b}[31mady
   0.004000  1 of 2
   0.005000  queue = -17 jobs
   0.006000  frame
   0.007000  [warn] cache/miss for {}: ?
   0.008000  queue = ?
";
    assert_eq!(lines(PLAIN_STYLE, engine, &[20 * MS]), expected);
}

/// A text in true colours, as the program asked for them.
const SEA: &str = "\x1b[38;2;0;170;255m";
const ALL_COLOURS: Style = Style { colour: true, truecolour: true, ..PLAIN_STYLE };

#[test]
fn points_have_the_colours_that_the_program_gave_them() {
    let mut engine = engine();
    let point = |name: &str, shape, kind| FunctionInfo {
        kind: FunctionKind::Marker,
        point: Some(shape),
        colour: Colour::from_rgb(0x00_aa_ff),
        values: vec![ValueInfo::new("value", kind)],
        ..FunctionInfo::new(name, "program")
    };
    let message = PointShape::Message { level: None };
    let [message, plot] = [
        point("it begins", message, ValueKind::LongText),
        point("queue", PointShape::Plot, ValueKind::Signed),
    ]
    .map(|info| engine.add_function(info).0);
    let mut probes = Probes(&mut engine, 7);
    probes.event(MS, message, Kind::Point);
    probes.values((MS, message), &[9], Some(b"it begins"), 1 << TEXTS);
    probes.event(2 * MS, plot, Kind::Point).values((2 * MS, plot), &[3], None, 0);
    let shown = lines(ALL_COLOURS, engine, &[20 * MS]);
    let expected =
        format!("   0.001000  {SEA}it begins\x1b[0m\n   0.002000  {SEA}queue\x1b[0m = 3\n");
    assert_eq!(shown, expected);
}
