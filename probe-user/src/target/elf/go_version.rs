//! The version of Go that built a program, by its build information (`.go.buildinfo`). From Go 1.18 on it is
//! a text in that section.

use super::ElfLayout;
use crate::target::read::source::Source;

const SECTION: &str = ".go.buildinfo";
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// The place of the bits that say how the texts are kept, and the one for texts behind the header.
const FLAGS: usize = 15;
const TEXTS_FOLLOW: u8 = 2;
/// The header, and the length of the version in one byte: the first text.
const LENGTH: usize = 32;
/// Longer versions are not those of releases.
const LONGEST: usize = 64;

/// Returns N of Go 1.N, if a release of it built the program.
pub(crate) fn minor(source: &Source, layout: &ElfLayout) -> Option<u32> {
    let section = layout.section(SECTION).filter(|section| section.in_file)?;
    let size = section.size().min((LENGTH + 1 + LONGEST) as u64);
    let bytes = source.part(section.offset, size)?;
    if !bytes.starts_with(MAGIC) || bytes.get(FLAGS)? & TEXTS_FOLLOW == 0 {
        return None;
    }
    let length = usize::from(*bytes.get(LENGTH)?);
    let version = bytes.get(LENGTH + 1..LENGTH + 1 + length)?;
    release(std::str::from_utf8(version).ok()?)
}

/// Returns N of `go1.N` and of its patches. Others than releases may differ from them.
fn release(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("go1.")?;
    let digits = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
    let (minor, behind) = rest.split_at(digits);
    let is_release = behind.is_empty() || behind.starts_with(['.', ' ']);
    is_release.then(|| minor.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::elf::Section;
    use crate::target::read::budget::ObjectLimits;

    fn minor_of(bytes: &[u8]) -> Option<u32> {
        let section = Section {
            name: SECTION.into(),
            addresses: 0x9000..0x9000 + bytes.len() as u64,
            offset: 0,
            in_file: true,
            executable: false,
            writable: true,
        };
        let layout = ElfLayout { sections: vec![section], ..ElfLayout::default() };
        minor(&Source::of_bytes(bytes, ObjectLimits::DEFAULT), &layout)
    }

    #[test]
    fn releases_are_told_by_their_texts() {
        let with = |flags: u8, version: &str| {
            let mut bytes = [MAGIC, &[8, flags]].concat();
            bytes.resize(LENGTH, 0);
            bytes.push(version.len() as u8);
            bytes.extend(version.as_bytes());
            bytes
        };
        assert_eq!(minor_of(&with(2, "go1.19.8")), Some(19));
        assert_eq!(minor_of(&with(2, "go1.27")), Some(27));
        assert_eq!(minor_of(&with(2, "go1.22.5 X:boringcrypto")), Some(22));
        for no_release in ["go1.23rc1", "devel go1.24-1a2b", "go2.1", "go1.", "", "go1.99999999999"]
        {
            assert_eq!(minor_of(&with(2, no_release)), None, "{no_release}");
        }
        assert_eq!(minor_of(&with(0, "go1.19.8")), None, "Go 1.17 has addresses of texts");
        let whole = with(2, "go1.19.8");
        for length in 0..whole.len() {
            assert_eq!(minor_of(&whole[..length]), None, "{length}");
        }
    }
}
