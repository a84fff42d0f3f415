//! Reads from /proc what ctrace itself uses of the machine.

use super::{
    catalog,
    family::{Families, Labels},
};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};
use std::fs;

/// Adds the metrics that can be read now.
pub(super) fn tell(families: &mut Families) {
    let values = Process::read();
    for (metric, value) in catalog::PROCESS.iter().zip(values.in_order()) {
        if let Some(value) = value {
            families.push(metric, Labels::new(), value);
        }
    }
    let version = vec![("version", env!("CARGO_PKG_VERSION").into())];
    families.push(&catalog::BUILD, version, 1.0);
}

#[derive(Debug, Default)]
struct Process {
    cpu: Option<f64>,
    resident: Option<f64>,
    virtual_size: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
    threads: Option<f64>,
    start: Option<f64>,
}

impl Process {
    fn read() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let mut process = Self::parse(&stat);
        // One descriptor is that of the folder itself.
        let open = fs::read_dir("/proc/self/fd").map(|fds| fds.count().saturating_sub(1));
        process.open_fds = open.ok().map(|open| open as f64);
        process.max_fds = getrlimit(Resource::Nofile).current.map(|most| most as f64);
        let boot = fs::read_to_string("/proc/stat").unwrap_or_default();
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        process.start = process.start.zip(boot).map(|(start, boot): (f64, f64)| start + boot);
        process
    }

    /// Parses /proc/self/stat. `start` counts from the boot.
    fn parse(stat: &str) -> Self {
        // The name before it may contain anything.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // proc(5) numbers the fields from 1; ours begin with the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let ticks = clock_ticks_per_second() as f64;
        Self {
            cpu: field(14).zip(field(15)).map(|(user, system)| (user + system) / ticks),
            resident: field(24).map(|pages| pages * page_size() as f64),
            virtual_size: field(23),
            threads: field(20),
            start: field(22).map(|start| start / ticks),
            ..Self::default()
        }
    }

    /// Returns the values in the order of the catalogue.
    fn in_order(&self) -> [Option<f64>; catalog::PROCESS.len()] {
        [
            self.cpu,
            self.resident,
            self.virtual_size,
            self.open_fds,
            self.max_fds,
            self.threads,
            self.start,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn everything_is_known_of_this_process() {
        let process = Process::read();
        assert!(process.in_order().iter().all(Option::is_some), "{process:?}");
        assert!(process.resident < process.virtual_size && process.threads >= Some(1.0));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
        let start = process.start.expect("it is known");
        assert!(start <= now + 2.0 && start > now - 3600.0, "{start} {now}");
    }

    #[test]
    fn a_name_may_look_like_anything() {
        let fields: Vec<String> = (3..30).map(|field| field.to_string()).collect();
        let process = Process::parse(&format!("7 (a) R 1 (b) {}", fields.join(" ")));
        assert_eq!((process.threads, process.virtual_size), (Some(20.0), Some(23.0)));
        assert_eq!(Process::parse("nonsense").cpu, None);
    }
}
