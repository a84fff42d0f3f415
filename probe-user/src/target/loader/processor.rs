//! Tells which variants of libraries this CPU may run, by glibc's names.

use std::arch::is_x86_feature_detected as has;
use std::io::Read;

/// The properties of a CPU that decide between variants of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Processor {
    /// The psABI level: 1 for any, 4 for x86-64-v4.
    pub(super) level: u32,
    /// A property that older versions of glibc check, on Intel's CPUs only.
    pub(super) haswell: bool,
    pub(super) avx512: bool,
}

impl Processor {
    pub(super) fn ours() -> Self {
        let second = has!("cmpxchg16b")
            && has!("popcnt")
            && has!("sse3")
            && has!("ssse3")
            && has!("sse4.1")
            && has!("sse4.2");
        let wide = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("movbe");
        let third = second && wide && has!("avx") && has!("f16c") && has!("fma");
        let dense = has!("avx512cd") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        let fourth = third && dense && has!("avx512f");
        let intel = is_intel();
        Self {
            level: 1 + [second, third, fourth].into_iter().filter(|it| *it).count() as u32,
            haswell: intel && wide && has!("popcnt") && has!("fma"),
            avx512: intel && dense,
        }
    }

    /// Returns the value of `$PLATFORM`.
    pub(super) fn platform(self) -> &'static str {
        if self.haswell { "haswell" } else { "x86_64" }
    }

    /// Returns the level of a subdirectory of `glibc-hwcaps`, if this CPU has it.
    pub(super) fn level_of(self, name: &[u8]) -> Option<u32> {
        let level = match name {
            b"x86-64-v2" => 2,
            b"x86-64-v3" => 3,
            b"x86-64-v4" => 4,
            _ => return None,
        };
        (level <= self.level).then_some(level)
    }

    /// Returns the subdirectories that glibc 2.`version` searches in each directory, best first.
    /// The directory itself is the last.
    pub(super) fn subdirectories(self, version: u32) -> Vec<String> {
        let mut names = Vec::new();
        if version >= FIRST_WITH_LEVELS {
            let levels = (2..=self.level).rev();
            names.extend(levels.map(|level| format!("glibc-hwcaps/x86-64-v{level}")));
        }
        if version < FIRST_WITHOUT_LEGACY {
            let parts: Vec<&str> =
                [("tls", true), ("haswell", self.haswell), ("avx512_1", self.avx512)]
                    .into_iter()
                    .chain([("x86_64", true)])
                    .filter_map(|(name, has)| has.then_some(name))
                    .collect();
            // Each number is a subset. The first part is the highest bit.
            for choice in (1..1usize << parts.len()).rev() {
                let chosen = |at: &usize| choice >> (parts.len() - 1 - at) & 1 == 1;
                let path: Vec<&str> = (0..parts.len()).filter(chosen).map(|at| parts[at]).collect();
                names.push(path.join("/"));
            }
        }
        names.push(String::new());
        names
    }

    /// Returns the bits of cache entries that older versions of glibc accept.
    pub(super) fn legacy_bits(self) -> u64 {
        const X86_64: u64 = 1 << 1;
        const AVX512: u64 = 1 << 2;
        const HASWELL: u64 = 1 << 50;
        const TLS: u64 = 1 << 63;
        let has = |bit: u64, has: bool| if has { bit } else { 0 };
        TLS | X86_64 | has(AVX512, self.avx512) | has(HASWELL, self.haswell)
    }
}

/// The first version of glibc with `glibc-hwcaps`, and the first without `tls`, `haswell` etc.
const FIRST_WITH_LEVELS: u32 = 33;
pub(super) const FIRST_WITHOUT_LEGACY: u32 = 37;

fn is_intel() -> bool {
    let mut start = Vec::new();
    let read = std::fs::File::open("/proc/cpuinfo")
        .and_then(|file| file.take(1024).read_to_end(&mut start));
    read.is_ok() && memchr::memmem::find(&start, b"GenuineIntel").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdirectories_as_glibc_tries_them() {
        let processor = Processor { level: 3, haswell: true, avx512: false };
        assert_eq!(
            processor.subdirectories(36),
            [
                "glibc-hwcaps/x86-64-v3",
                "glibc-hwcaps/x86-64-v2",
                "tls/haswell/x86_64",
                "tls/haswell",
                "tls/x86_64",
                "tls",
                "haswell/x86_64",
                "haswell",
                "x86_64",
                ""
            ]
        );
        assert_eq!(processor.subdirectories(37).len(), 3);
        let plain = Processor { level: 1, haswell: false, avx512: false };
        assert_eq!(plain.subdirectories(31), ["tls/x86_64", "tls", "x86_64", ""]);
        assert_eq!(plain.subdirectories(40), [""]);
    }

    #[test]
    fn levels_of_this_processor_only() {
        let processor = Processor { level: 3, haswell: false, avx512: false };
        assert_eq!(processor.level_of(b"x86-64-v2"), Some(2));
        assert_eq!(processor.level_of(b"x86-64-v3"), Some(3));
        assert_eq!(processor.level_of(b"x86-64-v4"), None);
        assert_eq!(processor.level_of(b"x86-64-v1"), None);
        assert!((1..=4).contains(&Processor::ours().level));
    }
}
