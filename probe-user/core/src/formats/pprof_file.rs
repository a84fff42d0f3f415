//! The parts of a file of pprof: gzipped protocol buffers. Strings are numbered, and come last.

use super::protobuf::Message;
use flate2::{Compression, write::GzEncoder};
use std::collections::HashMap;
use std::io::{self, Write};

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
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// The name and the unit of a value.
pub type ValueType<'a> = (&'a str, &'a str);

/// A label of samples, ready to be written.
#[derive(Clone, Debug)]
pub struct SampleLabel(Message);

/// A file that is being written. Texts must be harmless: they are written as they are.
pub struct PprofFile<W: Write> {
    out: GzEncoder<W>,
    message: Message,
    strings: HashMap<String, u64>,
    in_order: Vec<String>,
}

impl<W: Write> PprofFile<W> {
    pub fn new(out: W) -> Self {
        let mut file = Self {
            out: GzEncoder::new(out, Compression::default()),
            message: Message::default(),
            strings: HashMap::new(),
            in_order: Vec::new(),
        };
        // The format requires that the first string is empty.
        file.string("");
        file
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

    fn relieve(&mut self) -> io::Result<()> {
        self.out.write_all(&self.message.0)?;
        self.message.0.clear();
        Ok(())
    }

    fn value_type(&mut self, (name, unit): ValueType<'_>) -> Message {
        let (name, unit) = (self.string(name), self.string(unit));
        let mut message = Message::default();
        message.number(1, name).number(2, unit);
        message
    }

    /// Says what the values of each sample are. Viewers show the last one first.
    pub fn types(&mut self, types: &[ValueType<'_>]) {
        for one in types {
            let one = self.value_type(*one);
            self.message.message(field::SAMPLE_TYPE, &one);
        }
        if let Some((usual, _)) = types.last() {
            let usual = self.string(usual);
            self.message.number(field::DEFAULT_SAMPLE_TYPE, usual);
        }
    }

    /// Says that there is a sample for so many of these.
    pub fn period(&mut self, of: ValueType<'_>, period: u64) {
        let of = self.value_type(of);
        self.message.message(field::PERIOD_TYPE, &of).number(field::PERIOD, period);
    }

    /// Writes an object. Ids begin at 1.
    pub fn mapping(&mut self, id: u64, path: &str, build_id: &str) {
        let (path, build_id) = (self.string(path), self.string(build_id));
        let mut mapping = Message::default();
        mapping.number(1, id).number(5, path).number(6, build_id);
        // These fields say that the mapping has functions, files and lines.
        mapping.number(7, 1).number(8, 1).number(9, 1);
        self.message.message(field::MAPPING, &mapping);
    }

    /// Writes a function and its location, which have the same id. Ids begin at 1. A mapping of 0 is
    /// none.
    pub fn function(
        &mut self,
        id: u64,
        name: &str,
        file: &str,
        line: u64,
        mapping: u64,
    ) -> io::Result<()> {
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
        self.relieve()
    }

    /// Writes the beginning, in nanoseconds since 1970, and the duration.
    pub fn time(&mut self, begun_ns: u64, duration_ns: u64) {
        self.message.number(field::TIME, begun_ns);
        self.message.number(field::DURATION, duration_ns);
    }

    /// Makes a label with a text.
    pub fn text_label(&mut self, key: &str, text: &str) -> SampleLabel {
        let mut label = Message::default();
        label.number(1, self.string(key)).number(2, self.string(text));
        SampleLabel(label)
    }

    /// Makes a label with a number.
    pub fn number_label(&mut self, key: &str, number: u64) -> SampleLabel {
        let mut label = Message::default();
        label.number(1, self.string(key)).number(3, number);
        SampleLabel(label)
    }

    /// Writes the values of a stack, whose innermost location comes first.
    pub fn sample(
        &mut self,
        locations: impl IntoIterator<Item = u64>,
        values: impl IntoIterator<Item = u64>,
        labels: &[SampleLabel],
    ) -> io::Result<()> {
        let mut sample = Message::default();
        sample.numbers(1, locations).numbers(2, values);
        labels.iter().for_each(|label| _ = sample.message(3, &label.0));
        self.message.message(field::SAMPLE, &sample);
        self.relieve()
    }

    /// Writes a comment. Each view of pprof begins with the comments, so this should be one line.
    pub fn comment(&mut self, text: &str) {
        let comment = self.string(text);
        self.message.number(field::COMMENT, comment);
    }

    pub fn finish(mut self) -> io::Result<W> {
        for text in std::mem::take(&mut self.in_order) {
            self.message.text(field::STRING, &text);
            self.relieve()?;
        }
        self.out.finish()
    }
}
