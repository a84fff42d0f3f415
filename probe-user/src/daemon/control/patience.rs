//! Bounds the time of a connection, however slowly its peer reads or writes. A time-out of the
//! socket itself would restart with each byte.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

pub(super) struct Until<'a> {
    pub(super) stream: &'a UnixStream,
    pub(super) end: Instant,
}

impl<'a> Until<'a> {
    pub(super) fn after(patience: Duration, stream: &'a UnixStream) -> Self {
        Self { stream, end: Instant::now() + patience }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Until<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_does_not_prolong_it() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let drip = std::thread::spawn(move || {
            let pause = || std::thread::sleep(Duration::from_millis(20));
            (0..500).take_while(|_| theirs.write_all(b"x").is_ok()).for_each(|_| pause());
        });
        let mut until = Until::after(Duration::from_millis(200), &ours);
        let mut bytes = Vec::new();
        assert!(until.read_to_end(&mut bytes).is_err(), "it is over before the bytes are");
        assert!((1..500).contains(&bytes.len()), "{}", bytes.len());
        drop(ours);
        drip.join().expect("it ends");
    }

    #[test]
    fn an_answer_that_nobody_takes_ends() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let mut until = Until::after(Duration::from_millis(50), &ours);
        assert!(until.write_all(&vec![0; 64 << 20]).is_err());
    }
}
