//! Collects output in a buffer, and writes it when the buffer is full.

use std::io::{self, Write};

const FULL: usize = 256 << 10;

pub(super) struct Out<'a> {
    to: &'a mut (dyn Write + Send),
    buffer: Vec<u8>,
}

impl<'a> Out<'a> {
    pub(super) fn new(to: &'a mut (dyn Write + Send)) -> Self {
        Self { to, buffer: Vec::with_capacity(FULL + (FULL >> 2)) }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the buffer, to append to.
    #[inline]
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(super) fn text(&mut self, text: &str) {
        self.put(text.as_bytes());
    }

    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        self.put(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends nanoseconds as microseconds with three decimals.
    #[inline]
    pub(super) fn micros(&mut self, nanos: u64) {
        self.number(nanos / 1_000);
        let rest = nanos % 1_000;
        let digit = |n: u64| b'0' + (n % 10) as u8;
        self.put(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
    }

    /// Writes a full buffer. To be called after each piece.
    #[inline]
    pub(super) fn relieve(&mut self) -> io::Result<()> {
        if self.buffer.len() < FULL { Ok(()) } else { self.pass_on() }
    }

    #[cold]
    fn pass_on(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.pass_on()?;
        self.to.flush()
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        self.relieve()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on()?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_have_three_decimals() {
        let mut bytes = Vec::new();
        let mut out = Out::new(&mut bytes);
        for nanos in [0, 7, 999, 1_000, 12_345_678, u64::MAX] {
            out.micros(nanos);
            out.text(" ");
        }
        out.finish().expect("memory takes all");
        let text = String::from_utf8(bytes).expect("digits");
        assert_eq!(text, "0.000 0.007 0.999 1.000 12345.678 18446744073709551.615 ");
    }

    #[test]
    fn everything_arrives_in_order() {
        let mut bytes = Vec::new();
        let mut out = Out::new(&mut bytes);
        for number in 0..200_000 {
            out.number(number);
            out.relieve().expect("memory takes all");
        }
        out.finish().expect("memory takes all");
        assert_eq!(
            bytes,
            (0..200_000).map(|n: u64| n.to_string()).collect::<String>().into_bytes()
        );
    }
}
