//! Checks what the pages of a file may unpack to, before anything unpacks them.
//!
//! A page says how large it is when unpacked and how many values it has, and its reader allocates
//! what it says. So the headers, which are small structures of Thrift, are walked first.

use super::decode::PartError;
use bytes::Bytes;
use parquet::file::metadata::ColumnChunkMetaData;

/// Limit of an unpacked page, in bytes. Those of ctrace have about 1 MiB.
const MOST_BYTES: u64 = 64 << 20;
/// Limit of the values of a column in a row group.
const MOST_VALUES: u64 = 16 << 20;
/// Limit of the pages of a column in a row group.
const MOST_PAGES: usize = 1 << 16;
/// Limit of nested structures in a header.
const DEPTH: u32 = 8;

/// Checks all pages of a column in a row group.
pub(super) fn check(file: &Bytes, column: &ColumnChunkMetaData) -> Result<(), PartError> {
    let broken = PartError::Broken("a column is not where the file says");
    let number = |number: i64| usize::try_from(number).ok();
    let data = number(column.data_page_offset());
    let dictionary = column.dictionary_page_offset().map(number);
    let start = match (data, dictionary) {
        (Some(data), None) => data,
        (Some(data), Some(Some(dictionary))) => data.min(dictionary),
        _ => return Err(broken),
    };
    let end = number(column.compressed_size()).and_then(|size| start.checked_add(size));
    let Some(mut left) = end.and_then(|end| file.get(start..end)) else { return Err(broken) };
    let mut values: u64 = 0;
    for _ in 0..MOST_PAGES {
        if left.is_empty() {
            return Ok(());
        }
        let mut reader = Reader(left);
        let page = reader.page().ok_or(PartError::Broken("a page has no header"))?;
        values = values.saturating_add(page.values);
        if page.unpacked > MOST_BYTES || values > MOST_VALUES {
            return Err(PartError::TooLarge);
        }
        let packed = usize::try_from(page.packed).ok();
        let rest = packed.and_then(|packed| reader.0.get(packed..));
        left = rest.ok_or(PartError::Broken("a page is cut off"))?;
    }
    Err(PartError::TooLarge)
}

#[derive(Default)]
struct Page {
    unpacked: u64,
    packed: u64,
    values: u64,
}

/// Reads Thrift's compact protocol.
struct Reader<'a>(&'a [u8]);

const BYTE: u8 = 3;
const INTEGERS: std::ops::RangeInclusive<u8> = 4..=6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

impl Reader<'_> {
    fn page(&mut self) -> Option<Page> {
        let mut page = Page::default();
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (2, 5) => page.unpacked = self.size()?,
                (3, 5) => page.packed = self.size()?,
                // The headers of pages of data and of dictionaries begin with their number of values.
                (5 | 7 | 8, STRUCT) => page.values = page.values.max(self.values()?),
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Some(page)
    }

    fn values(&mut self) -> Option<u64> {
        let (mut id, mut values) = (0, 0);
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (1, 5) => values = self.size()?,
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Some(values)
    }

    /// Reads the head of a field. Returns its type, or nothing at the end of the structure.
    fn field(&mut self, id: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        match head >> 4 {
            0 => *id = self.integer()?,
            more => *id = id.checked_add(i64::from(more))?,
        }
        Some(Some(head & 15))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // True and false.
            1 | 2 => {}
            BYTE => drop(self.byte()?),
            kind if INTEGERS.contains(&kind) => drop(self.varint()?),
            DOUBLE => self.pass(8)?,
            BINARY => {
                let length = self.varint()?;
                self.pass(length)?;
            }
            LIST | SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // Each element has a byte at least: truths as well, in lists.
                if length > self.0.len() as u64 {
                    return None;
                }
                let kind = if head & 15 <= 2 { BYTE } else { head & 15 };
                (0..length).try_for_each(|_| self.skip(kind, depth))?;
            }
            STRUCT => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
            }
            // Headers of pages have no maps.
            _ => return None,
        }
        Some(())
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let coded = self.varint()?;
        Some((coded >> 1) as i64 ^ -((coded & 1) as i64))
    }

    fn size(&mut self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_what_else_is_in_them_skipped() {
        // type 0, unpacked 300, packed 20, a data page of 5 values with statistics.
        let header = [
            0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x2c, 0x15, 0x0a, 0x15, 0x00, 0x15, 0x06,
            0x15, 0x06, 0x1c, 0x18, 0x01, 0x61, 0x11, 0x19, 0x25, 0x02, 0x04, 0x00, 0x00, 0x00,
            0xee,
        ];
        let mut reader = Reader(&header);
        let page = reader.page().expect("a header");
        assert_eq!((page.unpacked, page.packed, page.values), (300, 20, 5));
        assert_eq!(reader.0, [0xee]);
        for end in 0..header.len() - 1 {
            assert!(Reader(&header[..end]).page().is_none(), "{end}");
        }
    }

    #[test]
    fn nonsense_ends() {
        assert!(Reader(&[0x1c; 4_000]).page().is_none(), "too deep");
        assert!(Reader(&[0xff; 40]).page().is_none());
        assert!(
            Reader(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x7f]).page().is_none(),
            "a long list"
        );
    }
}
