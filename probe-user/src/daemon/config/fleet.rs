//! `[fleet]`: the folder of tables that the sums of all targets go to.

use super::{
    keys::{Key, at_least_one},
    store,
};
use crate::values;
use ctrace_core::{report::SlowAsked, units::Nanos};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fleet {
    /// `None` switches it off.
    pub folder: Option<PathBuf>,
    /// The address of an object store, to which the files of the folder move.
    pub store: Option<String>,
    /// This machine's name in the tables; empty: its own.
    pub host: String,
    /// The age at which a file is closed.
    pub interval: Duration,
    pub keep_days: u32,
    pub keep_bytes: u64,
    /// Make few files of those of finished days.
    pub compact: bool,
    /// The number of slow calls of each function and interval; shorter ones are none.
    pub slow_calls: u32,
    pub slow_from: Nanos,
}

impl Fleet {
    /// Returns which slow calls go into tables.
    pub(crate) fn slow_calls(&self) -> SlowAsked {
        let most = if self.folder.is_some() { self.slow_calls as usize } else { 0 };
        SlowAsked { most, from: self.slow_from }
    }

    /// Returns true if finished days become few files. Those that wait for a store keep their names:
    /// it may have them already.
    pub(crate) fn compacts(&self) -> bool {
        self.compact && self.store.is_none()
    }

    /// Checks combinations of keys that are valid one by one.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(store) = &self.store else { return Ok(()) };
        let Some(folder) = &self.folder else {
            return Err("`store` needs `folder`, in which tables wait".to_owned());
        };
        let within = store.strip_prefix("file://").map(Path::new);
        match within.is_some_and(|store| store.starts_with(folder)) {
            true => Err("`store` is in `folder`, from which its files come".to_owned()),
            false => Ok(()),
        }
    }
}

/// The longest name that a host may have in DNS.
const LONGEST_HOST: usize = 253;
/// A file holds a day at most: the day is in its path.
const LONGEST_INTERVAL: Duration = Duration::from_secs(86_400);
const MOST_SLOW_CALLS: u32 = 100;

/// The keys; `docs/fleet/README.md` explains them.
pub(crate) const FLEET: [Key<Fleet>; 9] = [
    Key::new(
        "folder",
        r#""off""#,
        Some(r#""/var/lib/ctrace/fleet""#),
        "Write the sums of each target's intervals as Parquet tables into this folder, or off.",
        |c, v| {
            v.unless_off(|text| match PathBuf::from(text) {
                path if path.is_absolute() => Ok(path),
                _ => Err("a path from the root is needed".to_owned()),
            })
            .map(|folder| c.folder = folder)
        },
    ),
    Key::new(
        "store",
        r#""off""#,
        Some(r#""s3://bucket/prefix""#),
        "Move the files from the folder to this object store (s3, gs, az, abfss), or to a mounted one (file), or off. \
         The environment has its credentials.",
        |c, v| v.unless_off(store::store).map(|store| c.store = store),
    ),
    Key::new(
        "host",
        r#""""#,
        Some(r#""web-1""#),
        "The name of this machine in the tables; none: its own.",
        |c, v| {
            v.parsed(|text| match text.len() {
                0..=LONGEST_HOST => Ok(text.to_owned()),
                _ => Err(format!("at most {LONGEST_HOST} bytes")),
            })
            .map(|host| c.host = host)
        },
    ),
    Key::new(
        "interval",
        r#""15m""#,
        Some(r#""60m""#),
        "Close a file of tables after this time, at most a day. A killed daemon loses what is not yet in a closed file.",
        |c, v| {
            v.parsed(|text| match values::seconds(text)? {
                age if age <= LONGEST_INTERVAL => Ok(age),
                _ => Err("at most a day".to_owned()),
            })
            .map(|age| c.interval = age)
        },
    ),
    Key::new(
        "keep_days",
        "30",
        None,
        "Remove this machine's files of tables after so many days.",
        |c, v| at_least_one(v).map(|days| c.keep_days = days),
    ),
    Key::new(
        "keep_bytes",
        r#""1GiB""#,
        None,
        "Keep this machine's files of tables to this size in all; the oldest are removed.",
        |c, v| v.parsed(values::size).map(|bytes| c.keep_bytes = bytes),
    ),
    Key::new(
        "compact",
        "false",
        Some("true"),
        "Put this machine's files of a finished day together, so that few are left. Not with store.",
        |c, v| v.flag().map(|compact| c.compact = compact),
    ),
    Key::new(
        "slow_calls",
        "3",
        Some("10"),
        "Also write so many of the slowest calls of each function and interval, with what was inside; at most 100, 0: none.",
        |c, v| match v.count()? {
            most if most <= MOST_SLOW_CALLS => Ok(c.slow_calls = most),
            _ => Err(format!("at most {MOST_SLOW_CALLS}")),
        },
    ),
    Key::new(
        "slow_from",
        r#""1ms""#,
        Some(r#""50ms""#),
        "Write no calls among them that were shorter.",
        |c, v| v.parsed(values::nanos).map(|from| c.slow_from = from),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The store may have a file already, and would get its rows again in another one.
    #[test]
    fn what_waits_for_a_store_is_not_compacted() {
        let alone = Fleet { compact: true, ..Fleet::default() };
        let with_store = Fleet { store: Some("s3://bucket".to_owned()), ..alone.clone() };
        assert_eq!(
            [alone, with_store, Fleet::default()].map(|it| it.compacts()),
            [true, false, false]
        );
    }
}
