//! Lines of text of messages that an engine has seen, live and from its recording.

use super::lines_tests::{HANDLE, OTHER, PLAIN_STYLE, Probes, blocks, engine};
use super::messages::TextMessages;
use crate::ui::output::style::Style;
use ctrace_common::{Kind, TEXTS};
use ctrace_core::{
    colour::Colour,
    engine::Engine,
    formats::{
        JsonLines, JsonMessages,
        stream::{Lines, Live, Messages, Scene, StreamLine, replay},
    },
    function::{FunctionInfo, FunctionKind, ValueInfo, ValueKind},
    points::PointShape,
    recording::{Block, End, Recording, Start, Writer, replay::Query},
    units::{FuncId, Nanos, Pid, Tid},
};
use std::io;

const MS: u64 = 1_000_000;
const WARN: u32 = OTHER;
const PLAIN: u32 = OTHER + 1;

struct Printed(Messages, TextMessages, Vec<u8>);

impl Printed {
    fn new(style: Style) -> Self {
        Self(Messages::default(), TextMessages::new(style), Vec::new())
    }

    fn text(self) -> String {
        String::from_utf8(self.2).expect("text")
    }
}

impl Lines for Printed {
    fn define(&mut self, scene: &Scene<'_>) {
        self.0.define(scene.recording.functions());
        self.1.define(scene);
    }

    fn wants(&self, function: FuncId) -> bool {
        self.0.has(function)
    }

    fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>) -> io::Result<()> {
        if let StreamLine::Lost(lost) = line {
            self.1.lost(lost, &mut self.2);
        }
        if let Some(message) = self.0.of(line) {
            self.1.line(scene, &message, self.0.have_levels(), &mut self.2);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Two threads say things, one of them within a call that does not end.
fn said() -> Vec<Block> {
    let mut engine = engine();
    let text = ValueInfo::new("arg1", ValueKind::Text);
    let number = ValueInfo::new("n", ValueKind::Signed);
    let point = |name: &str, values| FunctionInfo {
        kind: FunctionKind::Usdt,
        group: Some("app".into()),
        values,
        ..FunctionInfo::new(name, "program")
    };
    engine.add_function(point("log__warn", vec![number, text.clone()]));
    engine.add_function(point("say", vec![text]));
    engine.name_thread(Pid(7), Tid(7), "main");
    engine.name_thread(Pid(7), Tid(1_234), "wor\x1bker");
    let say = |engine: &mut Engine, tid: u32, time: u64, text: &[u8]| {
        let mut probes = Probes(engine, tid);
        probes.event(time, PLAIN, Kind::Point);
        probes.values((time, PLAIN), &[text.len() as u64], Some(text), 1 << TEXTS);
    };
    Probes(&mut engine, 7).event(2 * MS, HANDLE, Kind::Enter);
    say(&mut engine, 1_234, 3 * MS, b"first\n");
    let mut probes = Probes(&mut engine, 7);
    probes.event(4 * MS, WARN, Kind::Point);
    probes.values((4 * MS, WARN), &[-3_i64 as u64, 8], Some(b"a \"b\"\n\tc"), 1 << (TEXTS + 1));
    // Its values are lost.
    probes.event(6 * MS, WARN, Kind::Point);
    let mut all = blocks(&mut engine, &[10 * MS]);
    engine.set_lost_events(5, 0);
    engine.set_lost_payloads(2);
    say(&mut engine, 1_234, 13 * MS, b"last");
    all.extend(blocks(&mut engine, &[20 * MS]));
    all
}

const EXPECTED: &str = "   0.003000  7/1234 wor\\u{1b}ker         app:say: first
   0.004000  7/7 main             WARN   handle > app:log__warn: a \"b\"\\n\\tc  n=-3
   0.006000  7/7 main             WARN   handle > app:log__warn: <lost>
   0.013000  7/1234 wor\\u{1b}ker         app:say: last
   0.020000  -- 5 events lost; 2 calls without their values since 0.010000 --
";

#[test]
fn a_message_has_its_thread_level_surroundings_and_text() {
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let mut printed = Printed::new(PLAIN_STYLE);
    let mut known = Vec::new();
    let said = said();
    for block in &said {
        live.take(block, &mut printed).expect("blocks of an engine are sound");
        known.push(printed.2.iter().filter(|byte| **byte == b'\n').count());
    }
    assert_eq!(known.last(), Some(&5), "the call around waits for nothing");
    assert!(known.contains(&3), "{known:?}");
    live.end(Nanos(20 * MS), &mut printed).expect("memory takes all");
    assert_eq!(printed.text(), EXPECTED);
}

#[test]
fn a_recording_has_the_same_lines() {
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    said().iter().for_each(|block| writer.write(block).expect("memory takes all"));
    let bytes = writer.finish(&End { end_ns: Nanos(20 * MS), ..End::default() });
    let recording = Recording::open(bytes.expect("memory takes all")).expect("a recording");
    let mut printed = Printed::new(PLAIN_STYLE);
    replay(&recording, &Query::default(), &mut printed).expect("sound");
    assert_eq!(printed.text(), EXPECTED);
    let mut coloured = Printed::new(Style { colour: true, ..PLAIN_STYLE });
    replay(&recording, &Query::default(), &mut coloured).expect("sound");
    let coloured = coloured.text();
    assert!(coloured.contains("\x1b[1;33mWARN\x1b[0m   \x1b[2mhandle > \x1b[0m"), "{coloured:?}");
}

/// Messages and calls as JSON.
#[derive(Default)]
struct Json(Messages, JsonMessages, JsonLines, Vec<u8>);

impl Lines for Json {
    fn define(&mut self, scene: &Scene<'_>) {
        self.0.define(scene.recording.functions());
        self.1.define(scene);
        self.2.define(scene);
    }

    fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>) -> io::Result<()> {
        if let Some(message) = self.0.of(line) {
            self.1.line(scene, &message, &mut self.3);
        }
        self.2.line(scene, line, &mut self.3);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn json_has_the_names_of_threads_as_they_are() {
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let mut json = Json::default();
    for block in &said() {
        live.take(block, &mut json).expect("blocks of an engine are sound");
    }
    live.end(Nanos(20 * MS), &mut json).expect("memory takes all");
    let text = String::from_utf8(json.3).expect("text");
    let of_worker = text.lines().filter(|line| line.contains("\"tid\":1234,"));
    let of_worker: Vec<&str> = of_worker.collect();
    assert_eq!(of_worker.len(), 4, "two messages, each also a call: {text}");
    for line in of_worker {
        assert!(line.contains(r#""thread":"wor\u001bker""#), "{line}");
    }
}

/// A name without arguments is its own text, and the two are escaped in different ways.
#[test]
fn a_message_that_is_its_own_name_is_said_once() {
    let mut engine = engine();
    let said = "one\r\n\x1b[2Jline";
    let info = FunctionInfo {
        kind: FunctionKind::Marker,
        point: Some(PointShape::Message { level: None }),
        values: vec![ValueInfo::new("message", ValueKind::LongText)],
        group: Some("net".into()),
        ..FunctionInfo::new(said, "program")
    };
    let function = engine.add_function(info).0;
    let mut probes = Probes(&mut engine, 7);
    probes.event(MS, function, Kind::Point);
    probes.values((MS, function), &[said.len() as u64], Some(said.as_bytes()), 1 << TEXTS);
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let mut printed = Printed::new(PLAIN_STYLE);
    for block in blocks(&mut engine, &[10 * MS]) {
        live.take(&block, &mut printed).expect("blocks of an engine are sound");
    }
    live.end(Nanos(20 * MS), &mut printed).expect("memory takes all");
    let text = printed.text();
    assert!(text.ends_with(" net: one\\r\\n\\u{1b}[2Jline\n"), "{text:?}");
    assert_eq!(text.matches("one").count(), 1, "{text:?}");
}

#[test]
fn a_message_has_the_colour_that_the_program_gave_it() {
    let mut engine = engine();
    let info = FunctionInfo {
        kind: FunctionKind::Marker,
        point: Some(PointShape::Message { level: None }),
        colour: Colour::from_rgb(0x00_aa_ff),
        values: vec![ValueInfo::new("message", ValueKind::LongText)],
        group: Some("net".into()),
        ..FunctionInfo::new("up", "program")
    };
    let function = engine.add_function(info).0;
    let mut probes = Probes(&mut engine, 7);
    probes.event(MS, function, Kind::Point);
    probes.values((MS, function), &[2], Some(b"up"), 1 << TEXTS);
    let mut live = Live::new(Start::default(), Nanos::ZERO);
    let style = Style { colour: true, truecolour: true, ..PLAIN_STYLE };
    let mut printed = Printed::new(style);
    for block in blocks(&mut engine, &[10 * MS]) {
        live.take(&block, &mut printed).expect("blocks of an engine are sound");
    }
    live.end(Nanos(20 * MS), &mut printed).expect("memory takes all");
    let (text, sea) = (printed.text(), "\x1b[38;2;0;170;255m");
    assert!(text.ends_with(&format!("{sea}net\x1b[0m: {sea}up\x1b[0m\n")), "{text:?}");
}
