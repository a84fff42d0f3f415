//! Converts the texts of a scope to numbers, so that inline assembly can emit any bytes.
//!
//! A `sym` operand on a static would work for most programs. But a static in a generic or inlined
//! function of a `dylib` crate is exported, and the linker refuses self-relative references to it.
//! A template string would fail on braces, quotes and backslashes.

/// Name, list of values, file and group, each with a zero byte behind it, and a colour, as 32 numbers of
/// 16 bytes.
pub struct Texts {
    pub chunks: [u128; 32],
    /// The number of used chunks.
    pub used: u32,
    pub named: u8,
    pub grouped: u8,
    /// The flag of an entry whose group is followed by a colour, or 0.
    pub coloured: u8,
    pub file_at: u32,
    pub group_at: u32,
}

const NAME: usize = 255;
const FILE: usize = 191;
const GROUP: usize = 63;
/// The list of values lies in the room of the name.
const LIST: usize = 127;
/// The colour lies in the room of the file.
const COLOUR: usize = 4;
/// The flag of an entry whose group is followed by a colour.
const COLOURED: u8 = 16;

struct Bytes {
    bytes: [u8; 512],
    length: usize,
}

impl Bytes {
    /// Appends the text, or as much of its end as `most` bytes hold.
    const fn push(mut self, text: &str, most: usize) -> Bytes {
        let text = text.as_bytes();
        let mut from = text.len().saturating_sub(most);
        // A character is never split.
        while from < text.len() && text[from] & 0xc0 == 0x80 {
            from += 1;
        }
        while from < text.len() {
            // A zero byte would end the text.
            self.bytes[self.length] = if text[from] == 0 { b'?' } else { text[from] };
            self.length += 1;
            from += 1;
        }
        self.length += 1;
        self
    }

    /// Appends the list of values.
    const fn push_list(mut self, values: &[(&str, &str)], types: &[&str]) -> Bytes {
        let from = self.length;
        let mut at = 0;
        while at < values.len() {
            let (name, unit) = values[at];
            let mut other = 0;
            while other < at {
                assert!(!is_same(values[other].0, name), "the names of the values must differ");
                other += 1;
            }
            if at > 0 {
                self = self.append(",");
            }
            self = self.append(name);
            if !unit.is_empty() {
                assert!(is_unit(unit), "a unit has none of the characters ,:[]");
                self = self.append("[").append(unit).append("]");
            }
            self = self.append(":").append(types[at]);
            at += 1;
        }
        assert!(self.length - from <= LIST, "the names of the values are too long");
        self.length += 1;
        self
    }

    const fn push_colour(mut self, colour: u32) -> Bytes {
        assert!(colour <= 0xff_ff_ff, "a colour is a number such as 0x33aaff");
        let bytes = colour.to_le_bytes();
        let mut at = 0;
        while at < COLOUR {
            self.bytes[self.length] = bytes[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    const fn append(mut self, text: &str) -> Bytes {
        let text = text.as_bytes();
        assert!(text.len() <= LIST, "the name of a value is too long");
        let mut at = 0;
        while at < text.len() {
            self.bytes[self.length] = text[at];
            self.length += 1;
            at += 1;
        }
        self
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const fn is_unit(text: &str) -> bool {
    let text = text.as_bytes();
    let mut at = 0;
    while at < text.len() {
        if matches!(text[at], b',' | b':' | b'[' | b']' | 0) {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns the text, or its first characters in so many bytes.
#[must_use]
pub const fn head(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.split_at(end).0
}

/// Returns the format if it has neither placeholders nor escaped braces: then it is the text.
#[must_use]
pub const fn plain(format: &'static str) -> Option<&'static str> {
    let bytes = format.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if matches!(bytes[at], b'{' | b'}') {
            return None;
        }
        at += 1;
    }
    Some(format)
}

impl Texts {
    #[must_use]
    pub const fn new(name: Option<&str>, file: &str, group: &str, colour: Option<u32>) -> Texts {
        Texts::with_values(name, &[], &[], file, group, colour)
    }

    /// Makes the texts of a site with these values: names with units or empty texts, and types.
    #[must_use]
    pub const fn with_values(
        name: Option<&str>,
        values: &[(&str, &str)],
        types: &[&str],
        file: &str,
        group: &str,
        colour: Option<u32>,
    ) -> Texts {
        let mut bytes = Bytes { bytes: [0; 512], length: 0 };
        if let Some(name) = name {
            bytes = if values.is_empty() {
                bytes.push(name, NAME)
            } else {
                bytes.push(name, NAME - LIST - 1).push_list(values, types)
            };
        }
        let file_at = bytes.length as u32;
        bytes = bytes.push(file, if colour.is_some() { FILE - COLOUR } else { FILE });
        let group_at = bytes.length as u32;
        let is_grouped = !group.is_empty() || colour.is_some();
        if is_grouped {
            bytes = bytes.push(group, GROUP);
        }
        if let Some(colour) = colour {
            bytes = bytes.push_colour(colour);
        }
        let mut chunks = [0; 32];
        let mut at = 0;
        while at < bytes.length {
            chunks[at / 16] |= (bytes.bytes[at] as u128) << (at % 16 * 8);
            at += 1;
        }
        Texts {
            chunks,
            used: bytes.length.div_ceil(16) as u32,
            named: name.is_some() as u8,
            grouped: is_grouped as u8,
            coloured: if colour.is_some() { COLOURED } else { 0 },
            file_at,
            group_at,
        }
    }
}

/// Returns a number for a scope, from all that identifies it. Every copy that the compiler makes
/// has the same, so that the copies in one object share semaphore and texts.
#[must_use]
pub const fn id(texts: &Texts, module: &str, line: u32, column: u32) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < texts.used as usize {
        hash = fnv(hash, texts.chunks[at] as u64);
        hash = fnv(hash, (texts.chunks[at] >> 64) as u64);
        at += 1;
    }
    let module = module.as_bytes();
    at = 0;
    while at < module.len() {
        hash = fnv(hash, module[at] as u64);
        at += 1;
    }
    fnv(hash, (line as u64) << 32 | column as u64)
}

/// Computes FNV-1a by eight bytes.
const fn fnv(mut hash: u64, word: u64) -> u64 {
    let mut shift = 0;
    while shift < 64 {
        hash = (hash ^ (word >> shift & 0xff)).wrapping_mul(0x100_0000_01b3);
        shift += 8;
    }
    hash
}

/// Returns a number for the assembler's `unique` sections, which let the linker drop a scope with
/// its function. (The assembler reserves the last two numbers.)
#[must_use]
pub const fn section(id: u64) -> u32 {
    ((id >> 32) ^ id) as u32 & 0x7fff_ffff
}

#[cfg(test)]
mod tests {
    use super::{Texts, head, plain};

    fn text(texts: &Texts, at: u32) -> ([u8; 512], usize) {
        let mut bytes = [0; 512];
        for (index, chunk) in texts.chunks.iter().enumerate() {
            bytes[index * 16..][..16].copy_from_slice(&chunk.to_le_bytes());
        }
        bytes.rotate_left(at as usize);
        let length = bytes.iter().position(|&byte| byte == 0).unwrap();
        (bytes, length)
    }

    fn check(texts: &Texts, at: u32, want: &str) {
        let (bytes, length) = text(texts, at);
        assert_eq!(core::str::from_utf8(&bytes[..length]), Ok(want));
    }

    #[test]
    fn texts_come_out_as_they_went_in() {
        let texts = Texts::new(Some("a \"{name}\" \\"), "src/ä.rs", "prod", None);
        check(&texts, 0, "a \"{name}\" \\");
        check(&texts, texts.file_at, "src/ä.rs");
        check(&texts, texts.group_at, "prod");
        let texts = Texts::new(None, "f", "", None);
        assert_eq!((texts.named, texts.grouped, texts.file_at, texts.used), (0, 0, 0, 1));
    }

    #[test]
    fn of_a_long_text_the_end_is_kept() {
        let long = "äbcdefghij".repeat(30);
        let texts = Texts::new(Some(&long), &long, &long, None);
        // 255 bytes back lies within an ä or at its start: never half a character.
        let (bytes, length) = text(&texts, 0);
        assert!((254..=255).contains(&length));
        assert!(long.ends_with(core::str::from_utf8(&bytes[..length]).unwrap()));
        let (_, length) = text(&texts, texts.group_at);
        assert!(length <= 63);
    }

    #[test]
    fn the_list_of_values_follows_the_name() {
        let values = &[("a", ""), ("größe", "ms"), ("c", "")];
        let texts =
            Texts::with_values(Some("name"), values, &["i64", "f64", "bool"], "f.rs", "g", None);
        check(&texts, 0, "name");
        check(&texts, 5, "a:i64,größe[ms]:f64,c:bool");
        check(&texts, texts.file_at, "f.rs");
        check(&texts, texts.group_at, "g");
        let long = "n".repeat(300);
        let texts =
            Texts::with_values(Some(&long), &[(&long[..100], "")], &["u64"], &long, &long, None);
        check(&texts, 128, &std::format!("{}:u64", &long[..100]));
        check(&texts, texts.group_at, &long[..63]);
    }

    #[test]
    fn the_colour_follows_the_group() {
        let long = "f".repeat(300);
        for (group, file) in [("prod", &long[..3]), ("", "f.rs"), (&long, &long)] {
            let texts = Texts::new(Some(&long), file, group, Some(0x33_aa_ff));
            let (bytes, length) = text(&texts, texts.group_at);
            assert_eq!(&bytes[..length], &group.as_bytes()[..length]);
            assert_eq!(length, group.len().min(63));
            assert_eq!(bytes[length + 1..][..4], [0xff, 0xaa, 0x33, 0]);
            assert_eq!((texts.grouped, texts.coloured), (1, 16));
        }
        assert_eq!(Texts::new(None, "f", "g", None).coloured, 0);
    }

    #[test]
    #[should_panic = "a colour is a number"]
    fn a_colour_has_24_bits() {
        let _ = Texts::new(None, "f", "g", Some(0xff33_aaff));
    }

    #[test]
    fn names_that_begin_alike_differ() {
        let values = &[("ab", ""), ("a", ""), ("ac", ""), ("abc", "")];
        let texts = Texts::with_values(Some("name"), values, &["u64"; 4], "f.rs", "g", None);
        check(&texts, 5, "ab:u64,a:u64,ac:u64,abc:u64");
    }

    #[test]
    #[should_panic = "the names of the values must differ"]
    fn two_values_of_one_name_are_refused() {
        let values = &[("a", ""), ("b", ""), ("a", "ms")];
        let _ = Texts::with_values(Some("name"), values, &["u64"; 3], "f.rs", "g", None);
    }

    #[test]
    fn a_head_ends_between_characters() {
        assert_eq!((head("text", 4), head("text", 3)), ("text", "tex"));
        assert_eq!((head("aä", 2), head("aä", 3), head("ää", 1)), ("a", "aä", ""));
    }

    #[test]
    fn a_format_without_braces_is_a_text() {
        assert_eq!(plain("a %d \"text\""), Some("a %d \"text\""));
        assert_eq!((plain("{}"), plain("{{"), plain("a}}")), (None, None, None));
    }

    extern crate std;
}
