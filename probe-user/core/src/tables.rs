//! The file in which a program asks for CTRACK's tables of its own calls, and in which it gets them.
//!
//! docs/marker-format.md specifies the format. `marker-crate/include/ctrack_tables.hpp` is the program's end.
//! The program may write anything there, so a request is checked. The answer holds whole numbers and the
//! program's own names.

use crate::engine::ReportMeta;
use crate::marker::Request;
use crate::recording::Recording;
use crate::recording::replay::{Query, report_with};
use crate::report::{CtrackRow, Report};
use crate::units::{Nanos, Pid};
use std::cmp::Reverse;

/// The bytes of a request, at the beginning of the file.
pub const REQUEST_LEN: usize = 64;
/// The place of the word that says what the file holds. It is written last.
pub const STATE_AT: usize = 8;
/// The place of everything else that is written.
pub const ANSWER_AT: usize = 64;
/// The least and the greatest number of bytes of a file.
pub const LEAST_LEN: u64 = 4096;
pub const MOST_LEN: u64 = 16 << 20;

/// The limit of requests that wait for an answer, and of those of one process. Others get none.
pub const MOST_WAITING: usize = 16;
const MOST_OF_PROCESS: usize = 4;

/// Returns whether a further request of a process may wait beside those of these processes.
pub fn may_wait(pid: Pid, waiting: impl Iterator<Item = Pid>) -> bool {
    let (all, of_process) = waiting
        .fold((0, 0), |(all, of_process), other| (all + 1, of_process + usize::from(other == pid)));
    all < MOST_WAITING && of_process < MOST_OF_PROCESS
}

/// "ctracet" 1
const MAGIC: u64 = 0x0174_6563_6172_7463;
/// Bytes before the first row, from [`ANSWER_AT`] on.
const HEAD_LEN: usize = 64;
/// Words of a row before its texts.
const ROW_WORDS: usize = 20;
/// The longest name, and the longest path of a source file. A program has no longer ones.
const LONGEST_TEXT: usize = 4096;

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Asked = 1,
    Tables = 2,
    /// There are no tables, for a [`Reason`].
    Nothing = 3,
    /// They are being made: the program may wait longer.
    Making = 4,
}

/// Why a program gets no tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Programs ask more often than ctrace can answer without harm to its own work.
    TooOften = 1,
    /// Not all calls are there: there was no room for them.
    NoCalls = 2,
    /// The tables so far have taken as much memory as they may.
    TooMuch = 3,
}

/// The request of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TablesRequest {
    /// The end of the tables before, on the clock of ctrace.
    since: Option<Nanos>,
    /// How long ago the program cleared its results, if that was later.
    age: Option<Nanos>,
    /// How long the program waited for the tables before.
    waited: Nanos,
    /// The percentage of calls cut off each end for the center's numbers.
    pub center_cut: f64,
}

impl TablesRequest {
    /// Reads a request. Returns `None` if the file does not hold one, or holds one that was answered.
    pub fn read(bytes: &[u8; REQUEST_LEN]) -> Option<Self> {
        if !holds(bytes, State::Asked) {
            return None;
        }
        let word = |index| word(bytes, index);
        let some = |word| Some(Nanos(word)).filter(|time| *time != Nanos::ZERO);
        // As for `--center`.
        let center_cut = word(4).min(50) as f64;
        let waited = Nanos(word(5));
        Some(Self { since: some(word(2)), age: some(word(3)), waited, center_cut })
    }

    /// Returns the query for the calls of the process that ended from the beginning of its period on, and
    /// until it asked.
    pub fn query(&self, recording: &Recording, asked: &Request) -> Query {
        // The age is known less exactly, but of any time.
        let cleared = asked.cleared.or(self.age.map(|age| asked.time.since(age)));
        let from = cleared.or(self.since).unwrap_or_default().min(asked.time);
        let threads = recording.threads().filter(|thread| thread.pid == asked.pid);
        let all = Query {
            window: Some(from..asked.time),
            threads: Some(threads.map(|thread| thread.id).collect()),
            ..Query::default()
        };
        let resumed = Nanos(from.0.saturating_add(self.waited.0)).min(asked.time);
        let wait = Query { window: Some(from..resumed), ..all.clone() };
        if cleared.is_some() || resumed == from || has_calls(recording, &wait) {
            return all;
        }
        // The time in which the program did nothing but wait for tables is not its own.
        Query { window: Some(resumed..asked.time), ..all }
    }
}

fn has_calls(recording: &Recording, query: &Query) -> bool {
    let report = report_with(recording, query, ReportMeta::default());
    report.functions.iter().any(|function| function.ended() > 0)
}

/// Returns whether a file of this beginning is in this state. The program ends the waiting by another one.
pub fn holds(bytes: &[u8; REQUEST_LEN], state: State) -> bool {
    word(bytes, 0) == MAGIC && word(bytes, 1) == state as u64
}

fn word(bytes: &[u8; REQUEST_LEN], index: usize) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.get(index).copied().map_or(0, u64::from_le_bytes)
}

/// Returns the bytes of the answer for a file that has room for so many. Rows that do not fit are left out,
/// and counted.
pub fn tables(report: &Report, asked: Nanos, room: usize) -> Vec<u8> {
    let (mut tracked, mut rows) = (Nanos::ZERO, Vec::new());
    if let Some(ctrack) = &report.ctrack {
        tracked = ctrack.tracked_ns;
        let known = |numbers: &CtrackRow| {
            let function = numbers.of(&report.functions)?;
            let file = function.file.as_deref().unwrap_or_default();
            Some(Row { numbers: *numbers, name: &function.name, file, line: function.line })
        };
        rows.extend(ctrack.functions.iter().filter_map(known));
    }
    answer([report.start_ns, asked, tracked], rows, room)
}

/// A row and its texts.
struct Row<'a> {
    numbers: CtrackRow,
    name: &'a str,
    file: &'a str,
    line: Option<u32>,
}

/// Rows are in order of their *ae*, as in CTRACK.
fn answer(times: [Nanos; 3], mut rows: Vec<Row<'_>>, room: usize) -> Vec<u8> {
    rows.sort_by_key(|row| Reverse(row.numbers.active_exclusive_ns));
    let mut bytes = vec![0; HEAD_LEN];
    let (mut written, mut left_out) = (0_u64, 0_u64);
    for row in rows {
        let encoded = row.encode();
        if left_out == 0 && bytes.len() + encoded.len() <= room {
            bytes.extend(encoded);
            written += 1;
        } else {
            left_out += 1;
        }
    }
    let size = (bytes.len() - HEAD_LEN) as u64;
    let [start, end, tracked] = times.map(|time| time.0);
    put(&mut bytes, 0, &[start, end, tracked, written, size, left_out]);
    bytes
}

/// Returns the bytes of an answer without tables.
pub fn nothing(reason: Reason) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_LEN];
    put(&mut bytes, 3 * size_of::<u64>(), &[reason as u64]);
    bytes
}

impl Row<'_> {
    fn encode(&self) -> Vec<u8> {
        let Self { numbers: row, line, .. } = self;
        let [name, file] = [self.name, self.file].map(|text| shortened(text).as_bytes());
        let center = row.center.unwrap_or_default();
        let ns = |ns: Option<Nanos>| ns.unwrap_or_default().0;
        let len = (ROW_WORDS * size_of::<u64>() + name.len() + file.len()).next_multiple_of(8);
        let words: [u64; ROW_WORDS] = [
            len as u64,
            line.unwrap_or(0).into(),
            name.len() as u64 | (file.len() as u64) << 32,
            row.calls,
            row.threads,
            row.time_acc_ns.0,
            row.sd_ns.0,
            row.cv.unwrap_or(0.0).to_bits(),
            row.active_ns.0,
            row.active_exclusive_ns.0,
            ns(row.fastest_min_ns),
            ns(row.fastest_mean_ns),
            center.min_ns.0,
            center.mean_ns.0,
            center.median_ns.0,
            center.active_ns.0,
            center.active_exclusive_ns.0,
            center.max_ns.0,
            ns(row.slowest_mean_ns),
            ns(row.slowest_max_ns),
        ];
        let mut bytes = vec![0; ROW_WORDS * size_of::<u64>()];
        put(&mut bytes, 0, &words);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(file);
        bytes.resize(len, 0);
        bytes
    }
}

fn shortened(text: &str) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    &text[..ends.take_while(|end| *end <= LONGEST_TEXT).last().unwrap_or(0)]
}

fn put(bytes: &mut [u8], at: usize, words: &[u64]) {
    let (places, _) = bytes[at..].as_chunks_mut();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: [u64; 5]) -> [u8; REQUEST_LEN] {
        let mut bytes = [0; REQUEST_LEN];
        put(&mut bytes, 0, &words);
        bytes
    }

    fn at(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    #[test]
    fn only_a_request_that_waits_is_one() {
        assert!(TablesRequest::read(&request([MAGIC, 1, 0, 0, 1])).is_some());
        for other in [[MAGIC, 2, 0, 0, 1], [MAGIC, 4, 0, 0, 1], [MAGIC + 1, 1, 0, 0, 1], [0; 5]] {
            assert_eq!(TablesRequest::read(&request(other)), None, "{other:?}");
        }
        let hostile = TablesRequest::read(&request([MAGIC, 1, u64::MAX, u64::MAX, u64::MAX]));
        assert_eq!(hostile.expect("a request").center_cut, 50.0);
    }

    #[test]
    fn rows_come_in_order_of_ae_and_none_is_cut() {
        let of_calls = |calls: u64| Row {
            numbers: CtrackRow { calls, active_exclusive_ns: Nanos(calls), ..CtrackRow::default() },
            name: "a name",
            file: "file.cpp",
            line: Some(7),
        };
        let of =
            |room| answer([Nanos(1), Nanos(9), Nanos(5)], [0, 2, 1].map(of_calls).into(), room);
        let all = of(1 << 20);
        assert_eq!([0, 8, 16, 24, 40].map(|place| at(&all, place)), [1, 9, 5, 3, 0]);
        assert_eq!(at(&all, 32) as usize, all.len() - HEAD_LEN);
        let mut row = HEAD_LEN;
        for calls in [2, 1, 0] {
            assert_eq!((at(&all, row + 8), at(&all, row + 24)), (7, calls));
            let texts = &all[row + ROW_WORDS * 8..row + at(&all, row) as usize];
            assert_eq!(&texts[..14], b"a namefile.cpp");
            row += at(&all, row) as usize;
        }
        assert_eq!(row, all.len());
        let some = of(all.len() - 1);
        assert_eq!((at(&some, 24), at(&some, 40), at(&some, HEAD_LEN + 24)), (2, 1, 2));
        let none = of(HEAD_LEN);
        assert_eq!((at(&none, 24), at(&none, 40), none.len()), (0, 3, HEAD_LEN));
    }

    #[test]
    fn a_reason_stands_where_the_rows_are_counted() {
        assert_eq!(at(&nothing(Reason::TooOften), 24), 1);
        assert_eq!(at(&nothing(Reason::NoCalls), 24), 2);
        assert_eq!(at(&nothing(Reason::TooMuch), 24), 3);
    }
}
