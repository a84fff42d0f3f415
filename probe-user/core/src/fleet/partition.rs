//! The folders of the files: `TABLE/host=HOST/day=YYYY-MM-DD/unit=UNIT`, as Hive lays them out and
//! Spark, Trino, ClickHouse and DuckDB find them.
//!
//! Hosts and units may have any name. What would be special in a path is escaped as Hive does it, by
//! `%` and two hexadecimal digits.

use super::Table;
use crate::calendar::civil;
use std::fmt::Write as _;

/// Hive's name for no value.
const NOTHING: &str = "__HIVE_DEFAULT_PARTITION__";
/// The limit of a folder's name on the usual file systems, in bytes.
const LONGEST: usize = 255;

/// The place of a file among all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    pub table: Table,
    pub host: String,
    /// The day of the beginning of its intervals, in UTC: days since 1970.
    pub day: i64,
    pub unit: String,
}

impl Partition {
    /// Returns the names of the folders, one in the other.
    pub fn folders(&self) -> [String; 4] {
        [
            self.table.name().to_owned(),
            folder("host", &self.host),
            format!("day={}", day_name(self.day)),
            folder("unit", &self.unit),
        ]
    }
}

/// Returns the folder's name of a value.
pub fn folder(key: &str, value: &str) -> String {
    let mut name = format!("{key}=");
    if value.is_empty() {
        return name + NOTHING;
    }
    for character in value.chars() {
        let special = character.is_control() || "\"#%'*/:=?\\{}[]^<>|".contains(character);
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes);
        let more: String = match special {
            true => bytes.bytes().fold(String::new(), |mut all, byte| {
                // Writing to a String cannot fail.
                let _ = write!(all, "%{byte:02X}");
                all
            }),
            false => bytes.to_owned(),
        };
        if name.len() + more.len() > LONGEST - 12 {
            // A checksum tells apart what is cut.
            let _ = write!(name, "~{:08x}", crc32fast::hash(value.as_bytes()));
            break;
        }
        name += &more;
    }
    name
}

/// Returns the value in a folder's name, if it is one of this key.
pub fn value(key: &str, folder: &str) -> Option<String> {
    let escaped = folder.strip_prefix(key)?.strip_prefix('=')?;
    if escaped == NOTHING {
        return Some(String::new());
    }
    let (mut bytes, mut rest) = (Vec::new(), escaped.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Nanoseconds of a day.
pub const NANOS_A_DAY: i64 = 86_400_000_000_000;

/// Returns the day of a time since 1970.
pub fn day_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(NANOS_A_DAY)
}

/// Returns the date of a day since 1970, such as `2026-11-28`.
pub fn day_name(day: i64) -> String {
    let (year, month, date) = civil(day);
    format!("{year:04}-{month:02}-{date:02}")
}

/// Returns the day of a date such as `2026-11-28`.
pub fn day_named(name: &str) -> Option<i64> {
    let mut parts = name.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, date) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&date) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + date - 1;
    let day = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    let day = year.div_euclid(400) * 146_097 + day - 719_468;
    // A date that is not in the calendar has another name.
    (day_name(day) == name).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_one_folder_and_come_back() {
        for name in [
            "redis-server.service",
            "..",
            ".",
            "a/b",
            "../../etc",
            "unit=x",
            "100%",
            "%2F",
            "a\u{1b}[2J\n\0b",
            "räksmörgås 東京",
            "",
            "x*?{}[]",
        ] {
            let folder = folder("unit", name);
            assert!(!folder.contains(['/', '\0', '\n', '\u{1b}']), "{folder}");
            assert_eq!(folder.matches('=').count(), 1, "{folder}");
            assert_eq!(value("unit", &folder).as_deref(), Some(name), "{folder}");
            assert_eq!(value("host", &folder), None);
        }
        assert_eq!(folder("unit", "a/b=c"), "unit=a%2Fb%3Dc");
    }

    #[test]
    fn long_names_are_cut_and_remain_two() {
        let (one, two) = ("é".repeat(300) + "1", "é".repeat(300) + "2");
        let (one, two) = (folder("unit", &one), folder("unit", &two));
        assert!(one.len() <= LONGEST && two.len() <= LONGEST);
        assert_ne!(one, two);
    }

    #[test]
    fn days_have_dates() {
        for (day, name) in [(0, "1970-01-01"), (-1, "1969-12-31"), (20_785, "2026-11-28")] {
            assert_eq!((day_name(day), day_named(name)), (name.to_owned(), Some(day)));
        }
        for day in (-200_000..800_000).step_by(97) {
            assert_eq!(day_named(&day_name(day)), Some(day));
        }
        for wrong in ["2026-02-30", "2026-13-01", "2026-1-1", "x", "", "2026-11-28T", "99999-01-01"]
        {
            assert_eq!(day_named(wrong), None, "{wrong}");
        }
        assert_eq!((day_of(-1), day_of(86_400_000_000_000)), (-1, 1));
    }
}
