//! The lines of `ctrace-store`. They are hostile until checked: the program talks with servers.

use std::io::{self, BufRead, Read as _};

/// The limit of a line, in bytes.
const LONGEST: u64 = 2048;
/// The number that both sides of the lines agree on.
const LINES: &str = "1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It has started, and speaks as we do.
    Begun,
    Uploaded,
    Failed(String),
    Waiting(u64),
}

/// Reads a line. Returns `None` at the end, and an error for what is no line of ours.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    if from.take(LONGEST).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let line = bytes.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
    let line = line.and_then(parse);
    line.map(Some).ok_or_else(|| io::Error::other("it tells what this version does not know"))
}

fn parse(line: &str) -> Option<Line> {
    let (word, rest) = line.split_once(' ')?;
    let first = rest.split(' ').next()?;
    match word {
        "ctrace-store" => (first == LINES).then_some(Line::Begun),
        "uploaded" => first.parse::<u64>().ok().map(|_| Line::Uploaded),
        "failed" => Some(Line::Failed(rest.to_owned())),
        "waiting" => first.parse().ok().map(Line::Waiting),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<Result<Line, ()>> {
        let mut from = io::BufReader::new(text);
        let mut lines = Vec::new();
        while let Some(line) = read(&mut from).map_err(drop).transpose() {
            let is_over = line.is_err();
            lines.push(line);
            if is_over {
                break;
            }
        }
        lines
    }

    #[test]
    fn lines_are_read_and_all_else_is_refused() {
        let text = b"ctrace-store 1 0.1.0\nwaiting 2 77\nuploaded 70 functions/x\nfailed a b\n";
        let failed = Line::Failed("a b".to_owned());
        let told = [Line::Begun, Line::Waiting(2), Line::Uploaded, failed].map(Ok);
        assert_eq!(all(text), told);
        let endless = [b'x'; 3 * LONGEST as usize];
        let wrong: [&[u8]; 9] = [
            b"ctrace-store 2 0.2.0\n",
            b"waiting x 1\n",
            b"waiting -1 1\n",
            b"uploaded\n",
            b"removed 1\n",
            b"\n",
            b"failed \xff\n",
            b"waiting 1 1",
            &endless,
        ];
        for text in wrong {
            assert_eq!(all(text), [Err(())], "{}", String::from_utf8_lossy(text));
        }
    }
}
