//! Reads entries with what comes before them: values and texts.

use super::{Event, Page, hook, list};
use ctrace_common::{BUFFER_SLOTS, HEADER_LEN, MARK_LEN, Mark};

/// An entry and all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) event: Event,
    pub(crate) values: Vec<u64>,
    pub(crate) text: Option<String>,
}

/// The slots of a page, read in order.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) entries: Vec<Entry>,
    pub(crate) fillers: usize,
    /// The entries whose value is in their own slot.
    pub(crate) samples: usize,
}

impl Read {
    /// Returns the values of the entries of these sites.
    pub(crate) fn values(&self, sites: &[u64]) -> Vec<&[u64]> {
        let of = self.entries.iter().filter(|entry| sites.contains(&entry.event.site));
        of.map(|entry| &entry.values[..]).collect()
    }

    /// Returns the texts of the entries of these sites.
    pub(crate) fn texts(&self, sites: &[u64]) -> Vec<&str> {
        let of = self.entries.iter().filter(|entry| sites.contains(&entry.event.site));
        of.map(|entry| entry.text.as_deref().unwrap()).collect()
    }

    /// Reads a page. What comes before an entry is complete and in the same page.
    pub(crate) fn page(&mut self, page: &Page) {
        let mut values: Vec<(u64, u64)> = Vec::new();
        let mut text: Option<Vec<u8>> = None;
        for index in 0..BUFFER_SLOTS {
            let at = (HEADER_LEN + MARK_LEN * index) / 8;
            let mark = Mark { time: page.0[at], tag: page.0[at + 1] };
            if mark.tag == 0 {
                continue;
            }
            let time = mark.time & ((1 << Mark::TIME_BITS) - 1);
            assert!(if mark.has_time() { time } else { mark.time } != 0, "slot {index}");
            let kind = mark.tag & Mark::KIND;
            if kind != 0 {
                assert_eq!(mark.tag & (Mark::EXIT | Mark::WHOLE), 0);
            }
            match kind {
                0 if mark.tag & Mark::EXIT == 0 => {
                    let event = page.slot(index).next().unwrap();
                    let times = values.iter().map(|value| value.0);
                    assert!(times.into_iter().all(|time| time <= event.time));
                    let text = text.take().map(|text| String::from_utf8(text).unwrap());
                    let values = std::mem::take(&mut values).into_iter().map(|value| value.1);
                    self.entries.push(Entry { event, values: values.collect(), text });
                }
                0 | Mark::FILLER => {
                    assert!(values.is_empty() && text.is_none(), "slot {index}");
                    self.fillers += usize::from(kind != 0);
                }
                Mark::SAMPLE => {
                    assert!(values.is_empty() && text.is_none(), "slot {index}");
                    let event = Event { kind: 0, ..page.slot(index).next().unwrap() };
                    let value = match mark.sample() {
                        (integer, false) => i64::from(integer) as u64,
                        (integer, true) => f64::from(integer).to_bits(),
                    };
                    self.samples += 1;
                    self.entries.push(Entry { event, values: vec![value], text: None });
                }
                Mark::VALUE => {
                    assert!(text.is_none(), "values come before the text");
                    assert_eq!(mark.tag & 0xffe0, 0);
                    values.push((time, mark.value()));
                    assert!(values.len() <= Mark::MOST_VALUES);
                }
                Mark::NAME_BEGINS
                | Mark::NAME_GOES_ON
                | Mark::LONG_NAME_BEGINS
                | Mark::LONG_NAME_GOES_ON => {
                    let (bytes, length) = mark.piece();
                    let is_first = matches!(kind, Mark::NAME_BEGINS | Mark::LONG_NAME_BEGINS);
                    assert_eq!(text.is_none(), is_first);
                    let text = text.get_or_insert_default();
                    let is_whole = text.len().is_multiple_of(Mark::LONGEST_PIECE);
                    assert!(is_whole, "only the last piece is short");
                    text.extend(&bytes[..length]);
                    assert!(text.len() <= Mark::LONGEST_TEXT);
                }
                _ => panic!("kind {kind}"),
            }
        }
        assert!(values.is_empty() && text.is_none(), "no entry comes behind");
    }
}

/// Returns what a thread has written, delivered or still in buffers.
pub(crate) fn written_by(tid: u32) -> Read {
    let mut read = Read::default();
    hook::flushed(0, |of| of == tid).iter().for_each(|page| read.page(page));
    let waiting = list().into_iter().filter(|(_, page)| page.tid() == tid);
    waiting.for_each(|(_, page)| read.page(&page));
    read
}
