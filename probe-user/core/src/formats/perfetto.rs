//! Perfetto's own format, for ui.perfetto.dev and its trace processor: compact protocol buffers
//! with every call.
//!
//! Each thread is a sequence of packets with its own defaults: the track, and a clock that counts
//! from the preceding packet. Names are interned, and so are files and lines. Some thousand packets are compressed at a time.
//! Times are CLOCK_MONOTONIC; the file relates them to the wall clock. The end of a call has its
//! values and is marked if the call is `untimed` or `open`. A message is an instant with its text as
//! the name, and a plot is a track of a counter for each process. So is the number of threads that wait
//! for a lock. An instant on a track called ctrace lists what is missing from the recording.

mod locks;
mod points;

use super::edges::{Edge, Edges, What};
use super::excerpt::{Ended, Excerpt, Step};
use super::labels::{self, Labels};
use super::out::Out;
use super::protobuf::Message;
use super::{Coverage, ExportError};
use crate::calls::paths::Node;
use crate::function::FunctionInfo;
use crate::hash::{IntMap, pair};
use crate::points::PointShape;
use crate::recording::Recording;
use crate::report::render::clean::clean;
use crate::report::{NamedValues, UNREADABLE};
use crate::units::{FuncId, ThreadId};
use crate::values::Value;
use flate2::{Compression, write::ZlibEncoder};
use std::collections::{HashMap, HashSet};
use std::io::Write;

/// Bytes of packets that are compressed together.
const BATCH: usize = 1 << 20;
/// Field numbers of Perfetto's trace_packet.proto and the files that it imports.
mod field {
    pub(super) const PACKET: u32 = 1;

    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const COMPRESSED: u32 = 50;
    pub(super) const CLOCK: u32 = 58;
    pub(super) const DEFAULTS: u32 = 59;
    pub(super) const TRACK: u32 = 60;

    pub(super) const EVENT_ANNOTATION: u32 = 4;
    pub(super) const EVENT_TYPE: u32 = 9;
    pub(super) const EVENT_NAME: u32 = 10;
    pub(super) const EVENT_TRACK: u32 = 11;
    pub(super) const EVENT_OWN_NAME: u32 = 23;
    pub(super) const EVENT_COUNT: u32 = 30;
    pub(super) const EVENT_SOURCE: u32 = 34;
    pub(super) const EVENT_REAL_COUNT: u32 = 44;

    pub(super) const INTERNED_NAME: u32 = 2;
    pub(super) const INTERNED_SOURCE: u32 = 4;
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
/// The first number that a sequence may give to a clock of its own.
const INCREMENTAL: u64 = 64;

/// The sequence of packets that belong to no thread.
const GLOBAL: u64 = 1;
/// The high bits of track numbers. They are above process and thread ids, so tracks stay distinct.
const PROCESS_TRACK: u64 = 1 << 32;
const THREAD_TRACK: u64 = 2 << 32;
const OWN_TRACK: u64 = 3 << 32;
const COUNTER_TRACK: u64 = 4 << 32;
const LOCK_TRACK: u64 = 5 << 32;

pub(super) fn write(excerpt: &Excerpt<'_>, out: Out<'_>) -> Result<Coverage, ExportError> {
    let mut trace = Trace::new(excerpt, out);
    trace.begin();
    let mut edges = Edges::new(excerpt.nodes(), excerpt.folds_recursion());
    let mut end = None;
    let told = excerpt.chunks(|step| {
        end = step.end;
        edges.chunk(step.chunk, |thread, edges| trace.edges(thread, edges, Some(&step)))
    })?;
    edges.finish(end, |thread, edges| trace.edges(thread, edges, None))?;
    let waits = excerpt.lock_waits();
    trace.lock_waits(&waits)?;
    let missing = waits.told.iter().map(|(key, value)| ((*key).to_owned(), value.to_string()));
    let missing = told.pairs().into_iter().chain(missing);
    trace.tell(missing, excerpt.period().1.0);
    trace.compress()?;
    trace.out.finish()?;
    Ok(told)
}

/// Makes the place of a function in its source. `id` is that of its name.
fn source((function, id): (&FunctionInfo, u64)) -> Option<Message> {
    let file = function.file.as_deref()?;
    let mut source = Message::default();
    source.number(1, id).text(2, &labels::text(file));
    if let Some(line) = function.line {
        source.number(4, line.into());
    }
    Some(source)
}

/// Makes a name and a value that viewers show with a call.
fn annotation(name: &str, value: Option<&Value>) -> Message {
    let mut annotation = Message::default();
    annotation.text(10, &clean(name));
    match value {
        Some(Value::Signed(value)) => annotation.number(4, *value as u64),
        Some(Value::Unsigned(value)) => annotation.number(3, *value),
        Some(Value::Bool(value)) => annotation.number(2, (*value).into()),
        Some(Value::Pointer(value)) => annotation.number(7, *value),
        Some(value @ (Value::Char(_) | Value::Enumerator(_))) => {
            annotation.text(6, &value.to_string())
        }
        Some(Value::Float(value)) => annotation.double(5, value.get()),
        Some(Value::Text(value)) => annotation.text(6, &clean(&value.to_string())),
        None => annotation.text(6, UNREADABLE),
    };
    annotation
}

/// The kind of an edge.
enum Turn<'a> {
    /// The beginning of a call, or its end with its values.
    Call(Option<&'a NamedValues>),
    /// The point of a marker comes next.
    PointBegins,
    Point(FuncId, Option<&'a NamedValues>),
}

/// A thread's sequence.
#[derive(Clone, Copy)]
struct Sequence {
    id: u64,
    /// Time of the last packet.
    last: u64,
}

struct Trace<'a, 'o> {
    recording: &'a Recording,
    nodes: &'a [Node],
    labels: Labels,
    /// The file and line of each function, if its file is known.
    sources: Vec<Option<Message>>,
    sequences: HashMap<ThreadId, Sequence>,
    processes: HashSet<u32>,
    /// Pairs of thread and function: the thread's sequence has the function's name.
    interned: IntMap<()>,
    /// The tracks of plots, by process and function.
    counters: HashMap<(u32, FuncId), u64>,
    /// The open calls of each thread, outermost first; `None` if no call can have values and there
    /// are no points.
    begun: Option<HashMap<ThreadId, Vec<(u64, FuncId)>>>,
    packets: Vec<u8>,
    packet: Message,
    event: Message,
    out: Out<'o>,
}

impl<'a, 'o> Trace<'a, 'o> {
    fn new(excerpt: &'a Excerpt<'a>, out: Out<'o>) -> Self {
        let recording = excerpt.recording;
        Self {
            recording,
            nodes: excerpt.nodes(),
            labels: Labels::of(recording),
            sources: recording.functions().iter().zip(1..).map(source).collect(),
            sequences: HashMap::new(),
            processes: HashSet::new(),
            interned: IntMap::default(),
            counters: HashMap::new(),
            begun: (recording.has_values() || points::are_in(recording)).then(HashMap::new),
            packets: Vec::with_capacity(BATCH + (BATCH >> 2)),
            packet: Message::default(),
            event: Message::default(),
            out,
        }
    }

    /// Writes the trace's clock and its relation to the wall clock.
    fn begin(&mut self) {
        let start = self.recording.start();
        let wall = start.start_ns.0.saturating_add_signed(start.epoch_offset_ns);
        let mut clocks = Message::default();
        for (clock, time) in [(MONOTONIC, start.start_ns.0), (REALTIME, wall)] {
            clocks.message(1, Message::default().number(1, clock).number(2, time));
        }
        clocks.number(2, MONOTONIC);
        self.packet.number(field::SEQUENCE, GLOBAL).message(field::CLOCK_SNAPSHOT, &clocks);
        self.end_packet();
    }

    fn edges(
        &mut self,
        thread: ThreadId,
        edges: &[Edge],
        step: Option<&Step<'_>>,
    ) -> Result<(), ExportError> {
        let Some(first) = edges.first() else { return Ok(()) };
        let mut sequence = match self.sequences.get(&thread) {
            Some(sequence) => *sequence,
            None => self.begin_thread(thread, first.at),
        };
        for edge in edges {
            match self.turn(thread, edge, step) {
                Turn::Call(values) => self.edge(thread, &mut sequence, edge, values),
                Turn::Point(function, values) => {
                    self.point(thread, &mut sequence, edge.at, function, values);
                }
                Turn::PointBegins => {}
            }
            self.make_room()?;
        }
        self.sequences.insert(thread, sequence);
        Ok(())
    }

    /// Returns what this edge is, with the values of the call that ends there.
    #[inline]
    fn turn<'s>(&mut self, thread: ThreadId, edge: &Edge, step: Option<&Step<'s>>) -> Turn<'s> {
        let Some(begun) = &mut self.begun else { return Turn::Call(None) };
        let begun = begun.entry(thread).or_default();
        match edge.what {
            What::Begin { path, start } => {
                let function = self.nodes[path as usize].func;
                begun.push((start, function));
                match PointShape::of(self.recording.functions(), function) {
                    Some(_) => Turn::PointBegins,
                    None => Turn::Call(None),
                }
            }
            What::End(_) => {
                let Some((start, function)) = begun.pop() else { return Turn::Call(None) };
                let values = step.and_then(|step| step.values(thread, start, function));
                match PointShape::of(self.recording.functions(), function) {
                    Some(_) => Turn::Point(function, values),
                    None => Turn::Call(values),
                }
            }
        }
    }

    #[inline]
    fn edge(
        &mut self,
        thread: ThreadId,
        sequence: &mut Sequence,
        edge: &Edge,
        values: Option<&NamedValues>,
    ) {
        let (packet, event) = (&mut self.packet, &mut self.event);
        packet.number(field::TIMESTAMP, edge.at.saturating_sub(sequence.last));
        packet.number(field::SEQUENCE, sequence.id);
        sequence.last = edge.at;
        match edge.what {
            What::Begin { path, .. } => {
                let function = self.nodes[path as usize].func;
                let name = u64::from(function.0) + 1;
                event.number(field::EVENT_TYPE, BEGIN).number(field::EVENT_NAME, name);
                let source = self.sources.get(function.index()).and_then(Option::as_ref);
                if source.is_some() {
                    event.number(field::EVENT_SOURCE, name);
                }
                if self.interned.insert(pair(thread.0, function.0), ()).is_none() {
                    let (mut interned, mut entry) = (Message::default(), Message::default());
                    entry.number(1, name).text(2, self.labels.function(function));
                    interned.message(field::INTERNED_NAME, &entry);
                    if let Some(source) = source {
                        interned.message(field::INTERNED_SOURCE, source);
                    }
                    packet.message(field::INTERNED, &interned);
                }
            }
            What::End(ended) => {
                event.number(field::EVENT_TYPE, END);
                let remark = match ended {
                    Ended::Timed => None,
                    Ended::Untimed => Some("untimed"),
                    Ended::Open => Some("open"),
                };
                if let Some(remark) = remark {
                    let mut annotation = Message::default();
                    annotation.text(10, remark).number(2, 1);
                    event.message(field::EVENT_ANNOTATION, &annotation);
                }
                for (name, value) in values.iter().flat_map(|values| &values.0) {
                    event.message(field::EVENT_ANNOTATION, &annotation(name, value.as_ref()));
                }
            }
        }
        packet.message(field::TRACK_EVENT, event);
        event.0.clear();
        self.end_packet();
    }

    /// Introduces a thread, its process, and its sequence with the clock at `at`.
    fn begin_thread(&mut self, thread: ThreadId, at: u64) -> Sequence {
        let label = labels::thread(self.recording, thread);
        let (pid, tid) = (u64::from(label.pid), u64::from(label.tid));
        self.process(label.pid);
        let track = THREAD_TRACK | u64::from(thread.0);
        let mut descriptor = Message::default();
        descriptor.number(1, track);
        if self.recording.thread(thread).is_some_and(|record| record.beside.is_some()) {
            // On the track of its thread they would overlap.
            let id = label.id_beside_name().map(|id| format!(" {id}")).unwrap_or_default();
            let name = format!("{}{id}, pairs of USDT probes", label.name);
            descriptor.text(2, &name).number(5, PROCESS_TRACK | pid);
        } else {
            let mut of_thread = Message::default();
            of_thread.number(1, pid).number(2, tid).text(5, &label.name);
            descriptor.message(4, &of_thread);
        }
        self.track(&descriptor);

        let id = GLOBAL + 1 + self.sequences.len() as u64;
        self.begin_sequence(id, at, Message::default().number(field::EVENT_TRACK, track));
        Sequence { id, last: at }
    }

    /// Introduces a process, unless that is done.
    fn process(&mut self, pid: u32) {
        if self.processes.insert(pid) {
            let id = u64::from(pid);
            let mut process = Message::default();
            process.number(1, id).text(6, &labels::process(self.recording, pid));
            self.track(Message::default().number(1, PROCESS_TRACK | id).message(3, &process));
        }
    }

    /// Introduces a sequence with its clock at `at`, and what its events have in common.
    fn begin_sequence(&mut self, id: u64, at: u64, of_events: &Message) {
        let mut clocks = Message::default();
        clocks.message(1, Message::default().number(1, INCREMENTAL).number(2, at).number(3, 1));
        clocks.message(1, Message::default().number(1, MONOTONIC).number(2, at));
        let mut defaults = Message::default();
        defaults.number(field::CLOCK, INCREMENTAL);
        defaults.message(field::TRACK_EVENT, of_events);
        let packet = &mut self.packet;
        packet.number(field::SEQUENCE, id).number(field::SEQUENCE_FLAGS, 1);
        packet.message(field::DEFAULTS, &defaults).message(field::CLOCK_SNAPSHOT, &clocks);
        self.end_packet();
    }

    /// Introduces the track of a counter of a process.
    fn counter_track(&mut self, track: u64, pid: u32, name: &str, unit: Option<&str>) {
        let mut counter = Message::default();
        if let Some(unit) = unit {
            counter.text(6, &labels::text(unit));
        }
        let mut descriptor = Message::default();
        descriptor.number(1, track).text(2, name);
        descriptor.number(5, PROCESS_TRACK | u64::from(pid)).message(8, &counter);
        self.track(&descriptor);
    }

    fn track(&mut self, track: &Message) {
        self.packet.number(field::SEQUENCE, GLOBAL).message(field::TRACK, track);
        self.end_packet();
    }

    /// Writes the instant that lists what is missing.
    fn tell(&mut self, missing: impl Iterator<Item = (String, String)>, at: u64) {
        self.track(Message::default().number(1, OWN_TRACK).text(2, "ctrace"));
        let mut event = Message::default();
        event.number(field::EVENT_TYPE, INSTANT).number(field::EVENT_TRACK, OWN_TRACK);
        event.text(field::EVENT_OWN_NAME, "what is missing");
        for (key, value) in missing {
            event.message(
                field::EVENT_ANNOTATION,
                Message::default().text(10, &key).text(6, &value),
            );
        }
        let packet = &mut self.packet;
        packet.number(field::TIMESTAMP, at).number(field::CLOCK, MONOTONIC);
        packet.number(field::SEQUENCE, GLOBAL).message(field::TRACK_EVENT, &event);
        self.end_packet();
    }

    #[inline]
    fn end_packet(&mut self) {
        let mut packets = Message(std::mem::take(&mut self.packets));
        packets.message(field::PACKET, &self.packet);
        self.packets = packets.0;
        self.packet.0.clear();
    }

    /// Writes the packets so far if there are many.
    #[inline]
    fn make_room(&mut self) -> Result<(), ExportError> {
        if self.packets.len() < BATCH { Ok(()) } else { self.compress() }
    }

    /// Writes the packets so far as one compressed packet.
    fn compress(&mut self) -> Result<(), ExportError> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(4));
        encoder.write_all(&self.packets)?;
        let compressed = encoder.finish()?;
        self.packets.clear();
        let mut packet = Message::default();
        packet.bytes(field::COMPRESSED, &compressed);
        let mut trace = Message::default();
        trace.message(field::PACKET, &packet);
        self.out.put(&trace.0);
        self.out.relieve()?;
        Ok(())
    }
}
