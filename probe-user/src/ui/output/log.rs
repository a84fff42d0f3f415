//! Writes the log to stderr, one line for each event, with cleaned names. A target chooses the
//! paths of its files, and a line feed in one could forge our lines.

use crate::ui::output::live;
use crate::writing;
use ctrace_core::report::render::clean::clean;
use std::io::{self, Write};

/// A writer that takes one event with each write, as `tracing_subscriber` delivers them.
pub(crate) struct Log<W>(pub W);

impl<W: Write> Write for Log<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = clean(text.strip_suffix('\n').unwrap_or(&text));
        let write = || self.0.write_all(format!("{line}\n").as_bytes());
        writing::during(|| live::without(write))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_harmless_line() {
        let mut out = Vec::new();
        let mut log = Log(&mut out);
        log.write_all(b"WARN /x\nctrace: all is well\x1b[2J\xc2\x9b is left out\n").unwrap();
        log.write_all(b"WARN next\n").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "WARN /x\\u{a}ctrace: all is well\\u{1b}[2J\\u{9b} is left out\nWARN next\n"
        );
    }
}
