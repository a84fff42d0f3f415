//! pprof's format: gzipped protocol buffers. Each call path of a thread has a sample with its
//! calls, its calls without a known end, and its own time.
//!
//! The profile's comment says in one line what is missing.

use super::excerpt::Excerpt;
use super::labels::{self, Labels, UNKNOWN_FRAMES};
use super::out::Out;
use super::path_sums::{PathSum, PathSums};
use super::protobuf::Message;
use super::{Coverage, ExportError};
use crate::units::ThreadId;
use flate2::{Compression, write::GzEncoder};
use std::collections::HashMap;
use std::io::Write;

/// Field numbers of pprof's profile.proto.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING: u32 = 6;
    pub(super) const TIME: u32 = 9;
    pub(super) const DURATION: u32 = 10;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// The values of a sample and their units.
const TYPES: [(&str, &str); 3] =
    [("calls", "count"), ("untimed", "count"), ("time", "nanoseconds")];

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
    let (all, told) = PathSums::of(excerpt)?;
    let mut profile = Profile::new(&mut out);
    profile.head(excerpt)?;
    for (thread, sums) in all.threads() {
        profile.thread(excerpt, thread, &sums)?;
    }
    // Each view of pprof begins with the comments, so this is one line.
    let comment = profile.string(&told.in_short());
    profile.message.number(field::COMMENT, comment);
    profile.finish()?;
    out.finish()?;
    Ok(told)
}

struct Profile<W: Write> {
    out: GzEncoder<W>,
    message: Message,
    strings: HashMap<String, u64>,
    in_order: Vec<String>,
}

impl<W: Write> Profile<W> {
    fn new(out: W) -> Self {
        let mut profile = Self {
            out: GzEncoder::new(out, Compression::default()),
            message: Message::default(),
            strings: HashMap::new(),
            in_order: Vec::new(),
        };
        // Strings are numbered, and the format requires that the first is empty.
        profile.string("");
        profile
    }

    fn string(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.strings.get(text) {
            return number;
        }
        let number = self.in_order.len() as u64;
        self.strings.insert(text.to_owned(), number);
        self.in_order.push(text.to_owned());
        number
    }

    fn relieve(&mut self) -> Result<(), ExportError> {
        self.out.write_all(&self.message.0)?;
        self.message.0.clear();
        Ok(())
    }

    /// Writes everything but samples. The numbers of functions and their locations are the
    /// functions' ids plus 1. One more is for unknown frames.
    fn head(&mut self, excerpt: &Excerpt<'_>) -> Result<(), ExportError> {
        let recording = excerpt.recording;
        for (name, unit) in TYPES {
            let (name, unit) = (self.string(name), self.string(unit));
            self.message
                .message(field::SAMPLE_TYPE, Message::default().number(1, name).number(2, unit));
        }
        let (time, _) = TYPES[TYPES.len() - 1];
        let time = self.string(time);
        self.message.number(field::DEFAULT_SAMPLE_TYPE, time);
        let mut mappings = HashMap::new();
        for (object, id) in recording.objects().iter().zip(1..) {
            let path = self.string(&labels::text(&object.path));
            let build_id =
                self.string(&labels::text(object.build_id.as_deref().unwrap_or_default()));
            let mut mapping = Message::default();
            mapping.number(1, id).number(5, path).number(6, build_id);
            // These fields say that the mapping has functions, files and lines.
            mapping.number(7, 1).number(8, 1).number(9, 1);
            self.message.message(field::MAPPING, &mapping);
            mappings.insert(object.name.clone(), id);
        }
        let labels = Labels::of(recording);
        for ((label, info), id) in labels.all().iter().zip(recording.functions()).zip(1..) {
            let mapping = mappings.get(&info.object).copied().unwrap_or_default();
            let file = labels::text(info.file.as_deref().unwrap_or_default());
            self.function(id, label, &file, info.line.unwrap_or_default().into(), mapping);
            self.relieve()?;
        }
        self.function(labels.all().len() as u64 + 1, UNKNOWN_FRAMES, "", 0, 0);
        let (from, to) = excerpt.period();
        let begun = from.0.saturating_add_signed(recording.start().epoch_offset_ns);
        self.message.number(field::TIME, begun);
        self.message.number(field::DURATION, to.since(from).0);
        Ok(())
    }

    fn function(&mut self, id: u64, name: &str, file: &str, line: u64, mapping: u64) {
        let (name, file) = (self.string(name), self.string(file));
        let mut function = Message::default();
        // Without a name of the system (field 3). pprof takes a name that is equal to it for one that
        // is to be demangled, and removes parameters and arguments of templates.
        function.number(1, id).number(2, name).number(4, file).number(5, line);
        self.message.message(field::FUNCTION, &function);
        let mut location = Message::default();
        location.number(1, id).number(2, mapping);
        location.message(4, Message::default().number(1, id).number(2, line));
        self.message.message(field::LOCATION, &location);
    }

    fn thread(
        &mut self,
        excerpt: &Excerpt<'_>,
        thread: ThreadId,
        sums: &[(u32, PathSum)],
    ) -> Result<(), ExportError> {
        let label = labels::thread(excerpt.recording, thread);
        let (key, name) = (self.string("thread"), self.string(&label.name));
        let (mut of_name, mut of_tid) = (Message::default(), Message::default());
        of_name.number(1, key).number(2, name);
        of_tid.number(1, self.string("thread_id")).number(3, label.tid.into());
        for (path, sum) in sums {
            let (frames, is_whole) = labels::frames(excerpt.nodes(), *path);
            let unknown = (!is_whole).then_some(excerpt.recording.functions().len() as u64 + 1);
            let frames = frames.into_iter().rev().map(|function| u64::from(function.0) + 1);
            let mut sample = Message::default();
            sample.numbers(1, frames.chain(unknown));
            sample.numbers(2, [sum.calls, sum.untimed.saturating_add(sum.open), sum.own]);
            sample.message(3, &of_name).message(3, &of_tid);
            self.message.message(field::SAMPLE, &sample);
            self.relieve()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), ExportError> {
        for text in std::mem::take(&mut self.in_order) {
            self.message.text(field::STRING, &text);
            self.relieve()?;
        }
        self.out.finish()?;
        Ok(())
    }
}
