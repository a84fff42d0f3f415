//! Hostile files: small ones that claim far more than they hold.

use super::block::{Block, BlockKind};
use super::chunk::Chunk;
use super::index::{Entry, Index};
use super::replay::{Query, meta_of, report_with};
use super::varint::put;
use super::{ChunkLoss, End, Harvest, ReadAt, Recording, Start, Writer};
use crate::formats::{Export, Format, Options};
use crate::function::{FunctionInfo, FunctionKind, ValueInfo, ValueKind};
use crate::report::{Extras, ReportMeta};
use ctrace_common::MAX_VALUES;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn writer() -> Writer<Vec<u8>> {
    Writer::new(Vec::new(), &Start::default()).expect("memory takes all")
}

fn names(text: &str) -> Block {
    Block::new(BlockKind::Names, text.as_bytes().to_vec())
}

fn one_function() -> Block {
    names(
        r#"{"functions":[{"name":"f","aliases":[],"object":"a","kind":"function","exit":"never",
        "entry_is_loop_head":false,"may_tail_jump":false}]}"#,
    )
}

#[test]
fn names_that_are_little_more_than_zeros_are_not_unpacked_without_end() {
    let mut writer = writer();
    let large = " ".repeat(40 << 20) + "{}";
    for block in [names(&large), names(&large), one_function()] {
        writer.write(&block).expect("memory takes all");
    }
    let bytes = writer.into_inner();
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    let recording = Recording::open(bytes).expect("as far as it goes");
    assert!(recording.functions().is_empty() && recording.unreadable() > 0);
}

#[test]
fn a_value_with_a_long_name_or_unit_is_refused() {
    let is_read = |name: usize, unit: usize| {
        let info = FunctionInfo {
            kind: FunctionKind::Marker,
            values: vec![ValueInfo {
                unit: Some("u".repeat(unit).into()),
                ..ValueInfo::new("n".repeat(name), ValueKind::Float)
            }],
            ..FunctionInfo::new("queue", "program")
        };
        let text = serde_json::json!({ "functions": [info] }).to_string();
        let mut writer = writer();
        writer.write(&names(&text)).expect("memory takes all");
        let recording = Recording::open(writer.into_inner()).expect("as far as it goes");
        recording.functions().len() == 1
    };
    assert_eq!([(256, 256), (257, 3), (3, 257)].map(|(n, u)| is_read(n, u)), [true, false, false]);
}

#[test]
fn an_index_cannot_name_a_block_twice() {
    let mut writer = writer();
    let offset = writer.written();
    writer.write(&one_function()).expect("memory takes all");
    let mut bytes = writer.into_inner();
    let at = bytes.len() as u64;
    let start = Entry { kind: BlockKind::Start, offset: 16, window: 0..0, calls: 0 };
    let again = Entry { kind: BlockKind::Names, offset, ..start.clone() };
    let mut index = Index(vec![again; 1_000]);
    index.0.insert(0, start);
    bytes.extend(index.to_block().to_bytes(true));
    bytes.extend(Index::tail(at));
    let recording = Recording::open(bytes).expect("its blocks are sound");
    assert_eq!(recording.functions().len(), 1);
}

#[test]
fn paths_cannot_be_too_deep_or_too_many() {
    let paths = |count: u64, deep: bool| {
        let mut contents = Vec::new();
        for node in 0..count {
            put(&mut contents, if deep { node } else { 0 });
            put(&mut contents, 0);
        }
        Block::new(BlockKind::Paths, contents)
    };
    let nodes = |block: Block| {
        let mut writer = writer();
        writer.write(&one_function()).expect("memory takes all");
        writer.write(&block).expect("memory takes all");
        let recording = Recording::open(writer.into_inner()).expect("as far as it goes");
        (recording.nodes().len(), recording.unreadable() > 0)
    };
    assert_eq!(nodes(paths(1_000, true)), (1_001, false));
    let (read, cut) = nodes(paths(20_000, true));
    assert!(read < 10_000 && cut, "{read}");
    let (read, cut) = nodes(paths(1 << 19, false));
    assert!(read <= (1 << 18) + 2 && cut, "{read}");
}

/// True if a chunk of so many threads, calls and open calls is accepted. All are of path 1.
fn is_taken(threads: u64, calls: u64, open: u64) -> bool {
    let mut chunk = vec![0, 1, 0, 0, 0, 0, 0];
    put(&mut chunk, threads);
    for thread in 0..threads {
        put(&mut chunk, thread);
        put(&mut chunk, calls);
        put(&mut chunk, open);
        (0..open).for_each(|_| chunk.extend([0, 1]));
    }
    for number in [0, 0, 2] {
        put(&mut chunk, threads * calls);
        chunk.resize(chunk.len() + (threads * calls) as usize, number);
    }
    let mut path = Vec::new();
    [0, 0].iter().for_each(|&number| put(&mut path, number));
    let mut chunk = Block::new(BlockKind::Calls, chunk);
    (chunk.window, chunk.calls) = (0..1, threads * calls);
    let blocks = [one_function(), Block::new(BlockKind::Paths, path), chunk];
    let [by_index, by_search] = [true, false].map(|ended| {
        let mut writer = writer();
        blocks.iter().for_each(|block| writer.write(block).expect("memory takes all"));
        let bytes = match ended {
            true => writer.finish(&End::default()).expect("memory takes all"),
            false => writer.into_inner(),
        };
        let recording = Recording::open_up_to(bytes, u64::MAX).expect("as far as it goes");
        recording.chunks().iter().any(|entry| recording.chunk(entry).is_ok())
    });
    assert_eq!(by_index, by_search);
    by_index
}

#[test]
fn a_chunk_takes_little_memory() {
    for (threads, calls, open) in [(1, 1 << 17, 0), (2, 0, 1 << 15), (1 << 16, 1, 1)] {
        assert!(is_taken(threads, calls, open), "{threads} threads, {calls} calls, {open} open");
    }
    for (threads, calls, open) in [
        (1, 150_000, 0),
        (1, 3 << 20, 0),
        (1, 20 << 20, 0),
        (2, 0, 1 << 18),
        (5, 0, 1 << 20),
        (1 << 19, 1, 0),
    ] {
        assert!(!is_taken(threads, calls, open), "{threads} threads, {calls} calls, {open} open");
    }
}

/// Returns the chunk from this time on with as many equal calls as it may have.
fn alike(from: u64) -> Block {
    let calls = 2 * super::CHUNK_CALLS as u64;
    let mut contents = Vec::new();
    for number in [from, 1, 0, 0, 0, 0, 0, 1, 0, calls] {
        put(&mut contents, number);
    }
    contents.push(0);
    for number in [0, 0, 2] {
        put(&mut contents, calls);
        contents.resize(contents.len() + calls as usize, number);
    }
    let mut chunk = Block::new(BlockKind::Calls, contents);
    (chunk.window, chunk.calls) = (from..from + 1, calls);
    chunk
}

#[test]
fn a_small_file_does_not_tell_of_calls_without_end() {
    let file = |chunks: u64, ended: bool| {
        let mut writer = writer();
        writer.write(&one_function()).expect("memory takes all");
        writer.write(&Block::new(BlockKind::Paths, vec![0, 0])).expect("memory takes all");
        (0..chunks).for_each(|nth| writer.write(&alike(nth)).expect("memory takes all"));
        match ended {
            true => writer.finish(&End::default()).expect("memory takes all"),
            false => writer.into_inner(),
        }
    };
    for ended in [true, false] {
        let calls = |recording: Recording| -> u64 {
            recording
                .chunks()
                .iter()
                .map(|chunk| recording.chunk(chunk).map_or(0, |c| c.len() as u64))
                .sum()
        };
        let bytes = file(60, ended);
        let (told, length) = (60 * 2 * super::CHUNK_CALLS as u64, bytes.len());
        assert!(length < 100_000, "{length} bytes");
        let refused = Recording::open(bytes.clone()).err().expect("too many").to_string();
        assert!(refused.contains("--max-calls"), "{refused}");
        let read = Recording::open_up_to(bytes, told).expect("as was asked for");
        assert_eq!(calls(read), told);
        let few = Recording::open(file(30, ended)).expect("few enough");
        assert_eq!(calls(few), told / 2);
    }
}

/// Counts the bytes that are read.
struct Counted(Vec<u8>, Arc<AtomicU64>);

impl ReadAt for Counted {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(bytes, offset)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        ReadAt::len(&self.0)
    }
}

#[test]
fn many_short_gaps_are_not_looked_through_far() {
    let mut bytes = writer().into_inner();
    let mut block = names("{}").to_bytes(true);
    for number in 0..20_000 {
        bytes.push(b'x');
        super::block::tell(&mut block, number);
        bytes.extend(&block);
    }
    let (size, read) = (bytes.len() as u64, Arc::<AtomicU64>::default());
    let recording = Recording::open(Counted(bytes, Arc::clone(&read))).expect("as far as it goes");
    assert_eq!(recording.unreadable(), 20_000);
    let read = read.load(Ordering::Relaxed);
    assert!(read < 50 * size, "{read} bytes of {size}");
}

/// Returns the chunk of one call from this time on.
fn one_call(from: u8) -> Block {
    let contents = vec![from, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2];
    let mut chunk = Block::new(BlockKind::Calls, contents);
    (chunk.window, chunk.calls) = (u64::from(from)..u64::from(from) + 1, 1);
    chunk
}

#[test]
fn a_chunk_cannot_have_others_inside() {
    let inner = one_call(1).to_bytes(false);
    let outer = Block::new(BlockKind::Calls, [&*one_call(0).contents(), &inner].concat());
    let mut file = Writer::uncompressed(Vec::new(), &Start::default()).expect("memory takes all");
    let mut index = Index::default();
    index.0.push(Entry { kind: BlockKind::Start, offset: 16, window: 0..0, calls: 0 });
    for block in [one_function(), Block::new(BlockKind::Paths, vec![0, 0]), outer] {
        let window = if block.kind == BlockKind::Calls { 0..1 } else { 0..0 };
        let (kind, offset, calls) = (block.kind, file.written(), window.end);
        index.0.push(Entry { kind, offset, window, calls });
        file.write(&block).expect("memory takes all");
    }
    let (end, last) = (file.written(), index.0.last().cloned().expect("the outer chunk"));
    index.0.push(Entry { offset: end - inner.len() as u64, window: 1..2, ..last });
    let mut bytes = file.into_inner();
    bytes.extend(index.to_block().to_bytes(true));
    bytes.extend(Index::tail(end));
    let recording = Recording::open(bytes).expect("its blocks are sound");
    let read = |entry| recording.chunk(entry).map_err(|error| error.to_string());
    let [outer, inner] = recording.chunks() else { panic!("two chunks") };
    assert_eq!(read(inner).map(|chunk| chunk.len()), Ok(1));
    let why = "is broken: a block does not end before the next one";
    assert_eq!(read(outer).map(|chunk| chunk.len()), Err(why.to_owned()));
}

#[test]
fn a_chunk_cannot_have_more_than_it_says() {
    let chunk = one_call(0).contents().into_owned();
    assert!(Chunk::decode(&chunk, 2, 1).is_ok());
    for column in [11, 13, 15] {
        let mut longer = chunk.clone();
        longer[column] += 1;
        longer.insert(column + 1, 0);
        assert!(Chunk::decode(&longer, 2, 1).is_err(), "{column}");
    }
    assert!(Chunk::decode(&[&*chunk, &[0]].concat(), 2, 1).is_err());
}

/// Returns a file whose chunk has this block of payloads. Its function has one value.
fn with_payloads(payloads: &[u8]) -> Recording {
    with_values(r#"{"name":"v","kind":"unsigned"}"#, BlockKind::Payloads, payloads)
}

/// The same for a function with these values and a block of this kind.
fn with_values(values: &str, kind: BlockKind, payloads: &[u8]) -> Recording {
    let function = names(&format!(
        r#"{{"functions":[{{"name":"f","aliases":[],"object":"a","kind":"function","exit":"never",
        "entry_is_loop_head":false,"may_tail_jump":false,"values":[{values}]}}]}}"#
    ));
    let chunk = Harvest::new(0..10, ChunkLoss::default());
    let payloads = Block::new(kind, payloads.to_vec());
    let mut writer = writer();
    for block in [function, Block::of_calls(chunk, Vec::new(), Some(payloads))] {
        writer.write(&block).expect("memory takes all");
    }
    let file = writer.finish(&End::default()).expect("memory takes all");
    Recording::open(file).expect("a recording")
}

#[test]
fn payloads_cannot_be_more_than_they_say() {
    let payloads = |bytes: &[u8]| {
        let recording = with_payloads(bytes);
        recording.payloads(&recording.chunks()[0]).map(|read| (read.each.len(), read.lost)).ok()
    };
    assert_eq!(payloads(&[10, 3, 1, 7, 1, 2, 0, 0, 9]), Some((1, 3)));
    assert_eq!(payloads(&[10, 3, 1, 7, 1, 2, 0, 0, 9, 0]), None);
}

const TEXT: &str = r#"{"name":"t","kind":"unsigned","form":"text"}"#;

#[test]
fn texts_and_numbers_cannot_be_more_than_they_say() {
    let values = [TEXT, r#"{"name":"f","kind":"unsigned","form":"float"}"#].join(",");
    let read = |of_payload: &[&[u8]]| {
        // A thread with one payload, nothing of it unread.
        let block = [&[10, 0, 1, 7, 1, 2, 0, 0][..], &of_payload.concat()].concat();
        let recording = with_values(&values, BlockKind::TypedPayloads, &block);
        let read = recording.payloads(&recording.chunks()[0]);
        read.map(|read| read.each.len()).map_err(|error| error.to_string())
    };
    let float = 1.5f64.to_le_bytes();
    let broken = |why: &str| Err(format!("is broken: {why}"));
    let cut_off = broken("there is less than it says");
    assert_eq!(read(&[&[3], b"abc", &float]), Ok(1));
    assert_eq!(read(&[&[0], &float]), Ok(1));
    assert_eq!(read(&[&[3], b"abc", &float[1..]]), cut_off);
    assert_eq!(read(&[&[12], b"abc", &float]), cut_off);
    assert_eq!(read(&[&[255; 9], &[1], &float]), cut_off);
    assert_eq!(read(&[&[2], b"abc", &float]), broken("there are more values than it says"));
    assert_eq!(read(&[&[64], &[b'x'; 64], &float]), Ok(1));
    let too_long = broken("a text is longer than any should be");
    assert_eq!(read(&[&[65], &[b'x'; 65], &float]), too_long);
}

#[test]
fn texts_of_a_chunk_are_bounded() {
    let values = [TEXT; MAX_VALUES].join(",");
    let read = |payloads: usize| {
        let mut block = vec![10, 0, 1, 7];
        put(&mut block, payloads as u64);
        // Times that do not compress, so that only the texts can be too many.
        let mut random = 1u64;
        for _ in 0..payloads {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            put(&mut block, random);
            block.extend([0, 0]);
            (0..MAX_VALUES).for_each(|_| block.extend([&[64][..], &[b'x'; 64]].concat()));
        }
        let recording = with_values(&values, BlockKind::TypedPayloads, &block);
        recording.payloads(&recording.chunks()[0]).map(|read| read.each.len()).ok()
    };
    // Each takes 12 × 80 bytes of 12 MiB.
    assert_eq!([13_107, 13_108].map(read), [Some(13_107), None]);
}

#[test]
fn lost_payloads_are_counted_without_decoding_the_others() {
    let recording = with_payloads(&[10, 3, 1, 7, 1, 2, 9, 0, 9]);
    let report = |slowest_calls| {
        let extras = Extras { slowest_calls, ..Extras::default() };
        let meta = ReportMeta { extras, ..meta_of(&recording, 1.0) };
        report_with(&recording, &Query::default(), meta).loss.payloads
    };
    // There is no function 9.
    assert_eq!((report(None), report(Some(1))), (3, 1));
    let export = |name: &str| {
        let (query, options) = (&Query::default(), Options::default());
        let export = Export { recording: &recording, query, options, progress: &|_| {} };
        let format = Format::find(name).expect("there is one");
        format.write(&export, &mut Vec::new()).expect("memory takes all").lost.payloads
    };
    assert_eq!(["folded", "speedscope", "jsonl", "csv"].map(export), [3, 3, 1, 1]);
}

/// Writes the files anew: run it with `-- --ignored`.
#[test]
#[ignore = "writes the files of tests/attacks"]
fn the_files_of_the_attacks() {
    let write = |name: &str, bytes: Vec<u8>| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/attacks");
        std::fs::write(format!("{folder}/{name}.ctrace"), bytes).expect("the folder is there");
    };
    let with_chunks = |function: Block, chunks: u64| {
        let mut writer = writer();
        let thread = names(r#"{"threads":[{"id":0,"pid":1,"tid":1,"name":"t"}]}"#);
        let blocks = [function, thread, Block::new(BlockKind::Paths, vec![0, 0])];
        blocks.iter().for_each(|block| writer.write(block).expect("memory takes all"));
        (0..chunks).for_each(|nth| writer.write(&alike(nth)).expect("memory takes all"));
        writer.finish(&End::default()).expect("memory takes all")
    };
    // 100 million calls.
    write("many_calls", with_chunks(one_function(), 760));
    // Half a million calls, each a line of 200 KB.
    let long = format!(
        r#"{{"functions":[{{"name":"{}","aliases":[],"object":"a","kind":"function","exit":"never",
        "entry_is_loop_head":false,"may_tail_jump":false}}]}}"#,
        "long".repeat(50_000)
    );
    write("long_names", with_chunks(names(&long), 4));
    let mut writer = writer();
    writer.write(&one_function()).expect("memory takes all");
    let end = End { end_ns: crate::units::Nanos::MAX, ..End::default() };
    write("late_end", writer.finish(&end).expect("memory takes all"));
}
