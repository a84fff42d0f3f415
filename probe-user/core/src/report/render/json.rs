//! JSON of reports (`ctrace.report.v1`, described by `docs/report.schema.json`) and of all other
//! JSON interfaces.
//!
//! Names come from the target and the text may be printed on a terminal. So characters that would
//! drive a terminal are written as `\u` escapes. A JSON reader decodes them, so nothing is lost.

use super::clean::is_harmful;
use crate::report::Report;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::io::{self, Write};

/// Returns one object over several lines, with a line feed at the end.
pub fn to_pretty(value: &impl Serialize) -> String {
    serialise(value, Safe(PrettyFormatter::new()))
}

/// Writes the same text piece by piece, for values too large for a string.
pub fn write_pretty(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    write(value, Safe(PrettyFormatter::new()), out)
}

/// Returns one object on one line, with a line feed at the end: a report of `--interval`.
pub fn to_line(report: &Report) -> String {
    line(report)
}

/// Returns anything with string keys as one line, with a line feed at the end.
pub fn line(value: &(impl Serialize + ?Sized)) -> String {
    serialise(value, Safe(CompactFormatter))
}

/// Returns anything with string keys as JSON on one line, without a line feed.
pub(crate) fn compact(value: &(impl Serialize + ?Sized)) -> String {
    let mut line = serialise(value, Safe(CompactFormatter));
    line.pop();
    line
}

fn serialise(value: &(impl Serialize + ?Sized), formatter: impl Formatter) -> String {
    let mut bytes = Vec::with_capacity(256);
    // All our values have string keys only, and a Vec accepts every write.
    let done = write(value, formatter, &mut bytes);
    debug_assert!(done.is_ok(), "values are always JSON: {done:?}");
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn write(
    value: &(impl Serialize + ?Sized),
    formatter: impl Formatter,
    out: &mut impl Write,
) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, formatter))?;
    out.write_all(b"\n")
}

/// A formatter that also escapes characters that would drive a terminal.
struct Safe<F>(F);

macro_rules! forward {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, w: &mut W $(, $arg: $type)*) -> io::Result<()> {
            self.0.$name(w $(, $arg)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Safe<F> {
    forward! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        w: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, c)) = rest.char_indices().find(|&(_, c)| is_harmful(c)) {
            w.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(w, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        w.write_all(rest.as_bytes())
    }
}
