//! Lines on standard output. The daemon reads them (`daemon/fleet/shipping/lines.rs` of ctrace).

use std::io::Write;

/// The number that both sides of the lines agree on.
const LINES: u32 = 1;
/// The limit of a text in a line, in characters.
const LONGEST: usize = 600;

pub(crate) struct Teller<W>(pub(crate) W);

impl<W: Write> Teller<W> {
    pub(crate) fn begin(&mut self) {
        self.line(&format!("ctrace-store {LINES} {}", env!("CARGO_PKG_VERSION")));
    }

    pub(crate) fn uploaded(&mut self, bytes: u64, name: &str) {
        self.line(&format!("uploaded {bytes} {}", harmless(name)));
    }

    pub(crate) fn failed(&mut self, why: &str) {
        self.line(&format!("failed {}", harmless(why)));
    }

    pub(crate) fn waiting(&mut self, files: usize, bytes: u64) {
        self.line(&format!("waiting {files} {bytes}"));
    }

    /// Nobody may read it, which is no reason to stop.
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.0, "{line}").and_then(|()| self.0.flush());
    }
}

/// Returns a text in one line of printable ASCII, cut if it is long.
fn harmless(text: &str) -> String {
    let one = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => c.escape_default().to_string(),
    };
    text.chars().flat_map(|c| one(c).into_bytes()).take(LONGEST).map(char::from).collect()
}
