//! Floating-point numbers and texts beside calls: what the target wrote is shown as it is, and
//! cannot do harm.

use super::*;
use ctrace_common::{MAX_TEXT, SINGLES, SLOT_LEN, SLOT_VALUES, TEXT_SLOTS, TEXTS};
use ctrace_core::ingest::{
    decode::{Decoded, decode},
    error::DecodeError,
};
use ctrace_core::recording::{Definitions, Framed};
use ctrace_core::values::{Float, Text};

/// The id of the function that [`traced`] adds.
const QUERY: u32 = 3;

/// A value as a program writes it.
#[derive(Clone, Debug)]
enum Written {
    Word(u64),
    Single(f32),
    Text(Vec<u8>),
}

use Written::{Single, Word};

fn double(number: f64) -> Written {
    Word(number.to_bits())
}

fn text(text: &[u8]) -> Written {
    Written::Text(text.to_vec())
}

/// Makes the record that an eBPF program writes after the event.
fn record(event: &Event, values: &[Written], unread: u64) -> Vec<u8> {
    let (mut forms, mut fields) = (unread, Vec::new());
    let words = values.iter().enumerate().map(|(at, value)| match value {
        Word(word) => *word,
        Single(number) => {
            forms |= 1 << (SINGLES as usize + at);
            number.to_bits().into()
        }
        Written::Text(text) => {
            forms |= 1 << (TEXTS as usize + at);
            // What is behind the text counts for nothing.
            let mut field = [0xa5; MAX_TEXT];
            field[..text.len()].copy_from_slice(text);
            fields.extend(field);
            text.len() as u64
        }
    });
    let mut words: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    words.resize(words.len().next_multiple_of(SLOT_LEN), 0);
    let slots = 1 + (words.len() + fields.len()) / SLOT_LEN;
    let head = Event { kind: Kind::Payload, sp: forms, lost: slots as u16, ..*event };
    [&head.bytes()[..], &words, &fields].concat()
}

fn info(values: &[(&str, ValueKind)]) -> FunctionInfo {
    let value = |&(name, kind): &(&str, _)| ValueInfo::new(name, kind);
    FunctionInfo { values: values.iter().map(value).collect(), ..function("query") }
}

/// Begins a trace with the function [`QUERY`], which has these values.
fn traced(values: &[(&str, ValueKind)]) -> Trace {
    let mut trace = Trace::new(Filter::default());
    assert_eq!(trace.engine.add_function(info(values)).0, QUERY);
    trace
}

impl Trace {
    /// Pushes a point of [`QUERY`] and its values.
    fn query(&mut self, time: u64, values: &[Written], unread: u64) -> &mut Self {
        let event = point(QUERY, 800, time);
        self.push(event);
        self.engine.push(0, &record(&event, values, unread));
        self
    }
}

/// Records three points with an integer, a number and a text.
pub(crate) fn recording() -> Vec<u8> {
    let mut trace = traced(&[
        ("size", ValueKind::Signed),
        ("ratio", ValueKind::Float),
        ("key", ValueKind::Text),
    ]);
    trace.query(20, &[Word(7), double(0.25), text(b"GET \"/a\"")], 0);
    trace.query(30, &[Word(-3_i64 as u64), double(f64::NAN), text(b"\x1b[2J\xff")], 0);
    trace.query(40, &[Word(0), double(1.0), text(b"lost")], 0b111);
    trace.end(50)
}

#[test]
fn a_report_shows_them_without_harm() {
    let report = report(&open(recording()), &Query::default());
    let expected = [
        r#"size=7 ratio=0.25 key="GET \"/a\"""#,
        "size=-3 ratio=NaN key=\"\\u{1b}[2J\\xff\"",
        "size=<unreadable> ratio=<unreadable> key=<unreadable>",
    ];
    assert_eq!(points(&report).into_iter().map(|(_, values)| values).collect::<Vec<_>>(), expected);
    let json = serde_json::to_value(&report).expect("a report is JSON");
    let values = |at: usize| &json["points"]["first"][at]["values"];
    let first = serde_json::json!({"size": 7, "ratio": 0.25, "key": "GET \"/a\""});
    let second = serde_json::json!({"size": -3, "ratio": "NaN", "key": "\u{1b}[2J\\xff"});
    let third = serde_json::json!({"size": null, "ratio": null, "key": null});
    assert_eq!([values(0), values(1), values(2)], [&first, &second, &third]);
}

#[test]
fn a_text_of_unreadable_length_is_unreadable() {
    let mut trace = Trace::new(Filter::default());
    let key = ValueInfo { length_at: Some(1), ..ValueInfo::new("key", ValueKind::Text) };
    trace.engine.add_function(FunctionInfo { values: vec![key], ..function("query") });
    trace.query(20, &[text(b"GET and what lies behind"), Word(3)], 0);
    trace.query(30, &[text(b"GET and what lies behind"), Word(3)], 0b10);
    let report = report(&open(trace.end(40)), &Query::default());
    let shown: Vec<_> = points(&report).into_iter().map(|(_, values)| values).collect();
    assert_eq!(shown, [r#"key="GET""#, "key=<unreadable>"]);
}

#[test]
fn addresses_truths_and_characters_are_integers_to_other_readers() {
    let mut trace =
        traced(&[("p", ValueKind::Pointer), ("b", ValueKind::Bool), ("c", ValueKind::Char)]);
    let quote = u64::from(b'\'');
    trace.query(20, &[Word(0x7fff_0000_1234), Word(1), Word(quote)], 0);
    trace.query(30, &[Word(0), Word(0), Word(0x1b)], 0);
    trace.query(40, &[Word(u64::MAX), Word(0x80), Word(b'x'.into())], 0);
    let bytes = trace.end(50);
    let block = bytes.windows(6).position(|six| six == b"CTRB\x07\0").expect("one of integers");
    // The latest one: the words of the truths and characters are in it.
    assert_eq!(bytes[block + 24 + 5..][..3], [10, 3, 0]);
    let recording = open(bytes);
    let report = report(&recording, &Query::default());
    let shown: Vec<_> = points(&report).into_iter().map(|(_, values)| values).collect();
    let expected = [
        "p=0x7fff00001234 b=true c='\\''",
        "p=0x0 b=false c='\\x1b'",
        "p=0xffffffffffffffff b=true c='x'",
    ];
    assert_eq!(shown, expected);
    let json = serde_json::to_value(&report.points.first[1].values).expect("JSON");
    assert_eq!(json, serde_json::json!({"p": "0x0", "b": false, "c": "\\x1b"}));
}

#[test]
fn numbers_keep_every_bit() {
    let mut trace = traced(&[("a", ValueKind::Float), ("b", ValueKind::Float)]);
    let numbers =
        [0.1, -0.0, 3.0, 1e300, f64::MIN_POSITIVE / 3.0, f64::INFINITY, f64::NEG_INFINITY];
    for (time, number) in (20..).zip(numbers) {
        trace.query(time, &[double(number), Single(number as f32)], 0);
    }
    let recording = open(trace.end(50));
    let expected = numbers.map(|number| [number, f64::from(number as f32)].map(Float::from));
    let mut seen = all(&recording);
    seen.reverse();
    for (payload, expected) in seen.iter().zip(expected) {
        assert_eq!(payload.values, expected.map(|number| Some(Value::Float(number))));
    }
    let shown: Vec<_> = points(&report(&recording, &Query::default())).into_iter().collect();
    let shown: Vec<_> = shown.iter().map(|(_, values)| values.as_str()).collect();
    assert_eq!(shown, ["a=0.1 b=0.10000000149011612", "a=-0.0 b=-0.0", "a=3.0 b=3.0"]);
    let jsonl = String::from_utf8(export(&recording, "jsonl")).expect("text");
    for expected in [r#"{"a":1e+300,"b":"Infinity"}"#, r#"{"a":"-Infinity","b":"-Infinity"}"#] {
        assert!(jsonl.contains(expected), "{jsonl}");
    }
}

#[test]
fn a_text_that_was_cut_says_so() {
    let mut trace = traced(&[("key", ValueKind::Text)]);
    trace.query(20, &[text(&[b'a'; MAX_TEXT])], 0);
    trace.query(30, &[text(&[b'a'; MAX_TEXT - 1])], 0);
    trace.query(40, &[text(b"")], 0);
    let shown = points(&report(&open(trace.end(50)), &Query::default()));
    let shown: Vec<_> = shown.iter().map(|(_, values)| values.as_str()).collect();
    let (long, short) = ("a".repeat(MAX_TEXT), "a".repeat(MAX_TEXT - 1));
    assert_eq!(shown, [&format!("key=\"{long}…\""), &format!("key=\"{short}\""), "key=\"\""]);
}

#[test]
fn exports_have_them() {
    let recording = open(recording());
    let text = |format| String::from_utf8(export(&recording, format)).expect("text");
    let csv = text("csv");
    let expected = r#","size=7 ratio=0.25 key=""GET \""/a\""""""#;
    assert!(csv.contains(expected), "{csv}");
    for format in ["jsonl", "chrome"] {
        let (text, expected) = (text(format), r#""size":-3,"ratio":"NaN","key":"\u001b[2J"#);
        assert!(text.contains(expected), "{text}");
        serde_json::from_str::<serde_json::Value>(
            text.lines().next().filter(|_| format == "jsonl").unwrap_or(&text),
        )
        .expect("JSON");
    }
}

/// Returns the kinds of the blocks of values.
fn blocks(bytes: &[u8]) -> Vec<u8> {
    let blocks = bytes.windows(6).filter(|six| six.starts_with(b"CTRB") && six[5] == 0);
    blocks.map(|six| six[4]).filter(|kind| [7, 8].contains(kind)).collect()
}

#[test]
fn a_reader_that_does_not_know_them_passes_over_them() {
    let mut trace = traced(&[("ratio", ValueKind::Float)]);
    trace.push_with(point(STAGE, 800, 15), 0, &[7, 1], 0).chunk(20);
    trace.query(30, &[double(0.5)], 0);
    let bytes = trace.end(50);
    assert_eq!(blocks(&bytes), [7, 8]);
    // For such a reader its kind is as unknown as this one.
    let mut unknown = bytes.clone();
    let kind = [b"CTRB".as_slice(), &[8, 0]].concat();
    let at = bytes.windows(6).position(|six| six == kind).expect("a block of values");
    unknown[at + 4] = 99;
    let sum = crc32fast::hash(&unknown[at..at + 20]);
    unknown[at + 20..at + 24].copy_from_slice(&sum.to_le_bytes());
    let report = report(&open(unknown), &Query::default());
    assert_eq!(points(&report), [(15, "arg0=7 arg1=1".to_owned())]);
    assert_eq!((report.functions[QUERY as usize].calls, report.loss.payloads), (1, 0));
}

#[test]
fn a_copy_of_a_chunk_and_a_file_that_was_not_ended_have_them() {
    let mut trace = traced(&[("ratio", ValueKind::Float), ("key", ValueKind::Text)]);
    trace.query(20, &[double(0.5), text(b"abc")], 0);
    trace.engine.advance(Nanos(30));
    trace.engine.end_chunk(Nanos(30));
    let mut definitions = Definitions::default();
    for block in trace.engine.take_blocks() {
        definitions.note(&block);
        trace.writer.write(&block).expect("memory takes all");
    }
    let bytes = trace.writer.into_inner();
    let killed = open(bytes.clone());
    let chunk = Framed::read(&bytes, &killed.chunks()[0]).expect("the chunk is whole");
    let mut copy = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    definitions.write(&mut copy).expect("memory takes all");
    copy.add(chunk).expect("memory takes all");
    for recording in [killed, open(copy.into_inner())] {
        let shown = points(&report(&recording, &Query::default()));
        assert_eq!(shown, [(20, r#"ratio=0.5 key="abc""#.to_owned())]);
    }
}

#[test]
fn definitions_have_a_kind_that_every_reader_knows() {
    let infos = [
        (ValueKind::Signed, r#"{"name":"v","kind":"signed"}"#),
        (ValueKind::Unsigned, r#"{"name":"v","kind":"unsigned"}"#),
        (ValueKind::Pointer, r#"{"name":"v","kind":"unsigned","form":"pointer"}"#),
        (ValueKind::Bool, r#"{"name":"v","kind":"unsigned","form":"bool"}"#),
        (ValueKind::Char, r#"{"name":"v","kind":"unsigned","form":"char"}"#),
        (ValueKind::Float, r#"{"name":"v","kind":"unsigned","form":"float"}"#),
        (ValueKind::Text, r#"{"name":"v","kind":"unsigned","form":"text"}"#),
    ];
    for (kind, json) in infos {
        let info = ValueInfo::new("v", kind);
        assert_eq!(serde_json::to_string(&info).expect("JSON"), json);
        assert_eq!(serde_json::from_str::<ValueInfo>(json).expect("a value"), info);
    }
    let later = r#"{"name":"v","kind":"signed","form":"of a later ctrace"}"#;
    let later: ValueInfo = serde_json::from_str(later).expect("a value");
    assert_eq!(later.kind, ValueKind::Signed);
}

#[test]
fn values_of_another_kind_are_not_shown() {
    use ValueKind::{Float, Signed, Text, Unsigned};
    let values = [("a", Text), ("b", Signed), ("c", Float), ("d", Unsigned), ("e", Text)];
    let mut trace = traced(&values);
    let written = [Word(3), text(b"no"), text(b"no"), Single(1.0), text(b"yes")];
    trace.query(20, &written, 0);
    let shown = points(&report(&open(trace.end(50)), &Query::default()));
    assert_eq!(
        shown,
        [(20, "a=<unreadable> b=<unreadable> c=<unreadable> d=<unreadable> e=\"yes\"".to_owned())]
    );
}

/// Changes a record of an integer, a number of 4 bytes and a text, and decodes it.
#[track_caller]
fn check(what: &str, change: impl Fn(&mut Vec<u8>), expected: DecodeError) {
    let event = point(QUERY, 800, 20);
    let mut bytes = record(&event, &[Word(7), Single(0.5), text(b"abc")], 0);
    assert!(matches!(decode(&bytes), Ok(Decoded::Payload(_))));
    change(&mut bytes);
    assert_eq!(decode(&bytes), Err(expected), "{what}");
    let mut trace = traced(&[("a", ValueKind::Signed); 3]);
    trace.push(event).engine.push(0, &bytes);
    let report = report(&open(trace.end(50)), &Query::default());
    assert_eq!((report.loss.decode_errors, report.points.first.len()), (1, 0), "{what}");
}

#[test]
fn a_record_that_contradicts_itself_is_counted() {
    const WORDS: usize = SLOT_LEN;
    check("a long text", |it| it[WORDS + 16] = MAX_TEXT as u8 + 1, DecodeError::Values);
    check("a huge text", |it| it[WORDS + 23] = 0x80, DecodeError::Values);
    check("a wide single", |it| it[WORDS + 12] = 1, DecodeError::Values);
    check("a single that is a text", |it| it[8 + 4] |= 0b100, DecodeError::Values);
    check("a single without a word", |it| it[8 + 4] |= 1 << SLOT_VALUES, DecodeError::Values);
    check("unread without a word", |it| it[8] = 1 << SLOT_VALUES, DecodeError::Values);
    let length = SLOT_LEN * (2 + TEXT_SLOTS);
    // The fields of two texts leave no slot for words.
    check("a text more", |it| it[8 + 2] |= 1, DecodeError::Length(length));
    let no_text = |it: &mut Vec<u8>| {
        it[8 + 2] = 0;
        it.extend([0; SLOT_LEN]);
        it[30] += 1;
    };
    check("words of 16 values", no_text, DecodeError::Length(length + SLOT_LEN));
    check("another length", |it| it[30] += 1, DecodeError::Length(length));
    let reserved = DecodeError::Reserved(Kind::Payload as u8);
    check("bit 12", |it| it[8 + 1] = 0x10, reserved);
    check("bit 28", |it| it[8 + 3] = 0x10, reserved);
    check("bit 63", |it| it[8 + 7] = 0x80, reserved);
}

#[test]
fn texts_of_many_calls_make_a_chunk() {
    let kinds: [(&str, ValueKind); MAX_VALUES] = [("key", ValueKind::Text); MAX_VALUES];
    let mut trace = traced(&kinds);
    let values = vec![text(&[b'x'; MAX_TEXT]); MAX_VALUES];
    // Each takes 12 × 80 bytes of the 12 MiB of a chunk.
    let all = 20_000;
    for nth in 0..all {
        trace.query(100 + nth * 20 + nth * nth % 19, &values, 0);
    }
    let recording = open(trace.end(500_000));
    let report = report(&recording, &Query::default());
    assert_eq!((report.loss.payloads, report.points.more), (0, all - 3));
    assert!(recording.chunks().len() > 2);
}

#[test]
fn texts_of_open_calls_are_held_up_to_a_limit() {
    let kinds: [(&str, ValueKind); MAX_VALUES] = [("key", ValueKind::Text); MAX_VALUES];
    let mut trace = traced(&kinds);
    let values = vec![text(&[b'x'; MAX_TEXT]); MAX_VALUES];
    // Each takes 12 × 80 bytes of 12 MiB. Threads have a call each.
    let fit = 13_107;
    for nth in 0..fit + 5 {
        let event = enter(QUERY, 800, 100 + u64::from(nth) * 20).on(100 + nth);
        trace.push(event);
        trace.engine.push(0, &record(&event, &values, 0));
    }
    trace.chunk(300_000);
    let recording = open(trace.end(300_002));
    let report = report(&recording, &Query::default());
    assert_eq!(report.loss.payloads, 5);
}

/// A kind, and a value of that kind as a program writes it and as it comes out.
fn value() -> impl Strategy<Value = (ValueKind, Written, Value)> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..=MAX_TEXT),
        ".{0,16}".prop_map(String::into_bytes),
    ];
    prop_oneof![
        any::<i64>().prop_map(|it| (ValueKind::Signed, Word(it as u64), Value::Signed(it))),
        any::<u64>().prop_map(|it| (ValueKind::Unsigned, Word(it), Value::Unsigned(it))),
        any::<u64>().prop_map(|it| (
            ValueKind::Float,
            Word(it),
            Value::Float(Float::from_bits(it))
        )),
        any::<f32>()
            .prop_map(|it| { (ValueKind::Float, Single(it), Value::Float(f64::from(it).into())) }),
        bytes.prop_map(|it| {
            let value = Value::Text(Text::new(&it).expect("it is short"));
            (ValueKind::Text, Written::Text(it), value)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_of_all_kinds_come_out_as_they_went_in(
        each in prop::collection::vec((value(), any::<bool>()), 1..=MAX_VALUES),
        hits in 1u64..20,
        edge in 0u64..40,
    ) {
        let (values, read): (Vec<_>, Vec<bool>) = each.into_iter().unzip();
        let kinds: Vec<_> = values.iter().map(|(kind, ..)| ("v", *kind)).collect();
        let written: Vec<_> = values.iter().map(|(_, written, _)| written.clone()).collect();
        let unread = (0..).zip(&read).fold(0, |bits, (at, read)| bits | u64::from(!read) << at);
        let mut trace = traced(&kinds);
        for hit in 0..hits {
            if hit * 2 == edge {
                trace.chunk(100 + hit * 10 - 5);
            }
            trace.query(100 + hit * 10, &written, unread);
        }
        let bytes = trace.end(3_000);
        let of_integers = kinds.iter().all(|(_, kind)| kind.is_integer());
        let expected = if of_integers { 7 } else { 8 };
        prop_assert!(blocks(&bytes).iter().all(|kind| *kind == expected));
        let recording = open(bytes);
        let expected: Vec<_> = values
            .into_iter()
            .zip(read)
            .map(|((.., value), read)| read.then_some(value))
            .collect();
        let seen = all(&recording);
        prop_assert_eq!(seen.len() as u64, hits);
        for payload in seen {
            prop_assert_eq!(&payload.values, &expected);
        }
        for format in ["csv", "jsonl", "chrome", "perfetto"] {
            let out = export(&recording, format);
            let harm = format != "perfetto"
                && String::from_utf8(out).expect("text").chars().any(|c| c != '\n' && c.is_control());
            prop_assert!(!harm, "{}", format);
        }
    }

    #[test]
    fn any_record_is_read_or_refused(
        forms in any::<u64>(),
        mask in any::<u64>(),
        slots in 1usize..32,
        rest in prop::collection::vec(any::<u8>(), 31 * SLOT_LEN),
        small in any::<bool>(),
        kinds in prop::collection::vec(value().prop_map(|(kind, ..)| kind), MAX_VALUES),
    ) {
        let sp = forms & mask & 0x0fff_0fff_0fff;
        let head = Event { kind: Kind::Payload, sp, lost: slots as u16, ..point(QUERY, 800, 20) };
        let mut bytes = [&head.bytes()[..], &rest].concat();
        bytes.truncate(slots * SLOT_LEN);
        if small {
            // Words may be lengths.
            for word in bytes[SLOT_LEN..].as_chunks_mut::<8>().0 {
                *word = (u64::from(word[0]) % 80).to_le_bytes();
            }
        }
        if let Ok(Decoded::Payload(payload)) = decode(&bytes) {
            let values: Vec<_> = payload.values(kinds.iter().copied()).collect();
            prop_assert!(values.len() <= MAX_VALUES);
        }
    }
}
