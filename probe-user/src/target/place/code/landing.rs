//! Finds landing pads: code of a function that only the unwinder jumps to.
//!
//! They are listed in the function's language-specific data (LSDA) in `.gcc_except_table`. A
//! `catch` may return from the function, so its `ret` is a way out like any other. The format is
//! that of the C++ ABI, which gcc, clang and rustc share.

use crate::target::place::code::CodeMap;

/// Returns the landing pads that the data at `lsda` list for the code at `start`, or `None` where
/// the data make no sense.
pub(crate) fn landing_pads(map: &CodeMap<'_>, lsda: u64, start: u64) -> Option<Vec<u64>> {
    let mut reader = Reader { bytes: map.bytes(lsda)?, address: lsda };
    let base = match reader.byte()? {
        OMITTED => start,
        encoding => reader.encoded(encoding)?,
    };
    if reader.byte()? != OMITTED {
        reader.uleb()?;
    }
    let encoding = reader.byte()?;
    let length = usize::try_from(reader.uleb()?).ok().filter(|length| *length <= LONGEST)?;
    let mut sites = Reader { bytes: reader.bytes.get(..length)?, address: reader.address };
    let mut pads = Vec::new();
    while !sites.bytes.is_empty() {
        sites.encoded(encoding)?;
        sites.encoded(encoding)?;
        let pad = sites.encoded(encoding)?;
        sites.uleb()?;
        if pad != 0 {
            pads.push(base.wrapping_add(pad));
        }
    }
    pads.sort_unstable();
    pads.dedup();
    Some(pads)
}

const OMITTED: u8 = 0xff;
/// Limit for a function's table, in bytes. No compiler writes longer ones.
const LONGEST: usize = 1 << 20;

struct Reader<'data> {
    bytes: &'data [u8],
    address: u64,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        self.address += 1;
        Some(first)
    }

    fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn fixed(&mut self, size: usize) -> Option<u64> {
        let mut word = [0; 8];
        for slot in &mut word[..size] {
            *slot = self.byte()?;
        }
        Some(u64::from_le_bytes(word))
    }

    /// Reads a value in a DWARF exception header encoding, as far as compilers use it here.
    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        let at = self.address;
        let value = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.fixed(8)?,
            0x01 => self.uleb()?,
            0x02 => self.fixed(2)?,
            0x03 => self.fixed(4)?,
            0x0a => sign_extend(self.fixed(2)?, 16),
            0x0b => sign_extend(self.fixed(4)?, 32),
            _ => return None,
        };
        match encoding & 0xf0 {
            0x00 => Some(value),
            0x10 => Some(at.wrapping_add(value)),
            _ => None,
        }
    }
}

fn sign_extend(value: u64, bits: u32) -> u64 {
    let shift = 64 - bits;
    (((value << shift) as i64) >> shift) as u64
}
