//! Writes the tables of a simulated fleet into a folder, as daemons would.
//!
//! `cargo run --release -p ctrace-core --features parquet --example fleet FOLDER [HOSTS] [HOURS] [FUNCTIONS] [FACTOR] [FILES]`
//!
//! FILES: so many files a host and table, as with short intervals.

#[path = "../tests/fixture/fleet.rs"]
mod simulation;

use ctrace_core::fleet::partition::{Partition, day_of};
use ctrace_core::fleet::{Table, encode};
use simulation::{START_NS, Simulation, slower};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("give a folder")?);
    let mut number = |default: f64| {
        arguments.next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(default)
    };
    let simulation = Simulation {
        hosts: number(1_000.0) as usize,
        intervals: number(24.0) as usize,
        interval_ns: 3_600_000_000_000,
        functions: number(200.0) as usize,
        calls: 20,
        seed: 1,
        factor: number(1.07),
    };
    let files = number(1.0) as usize;
    let mut sizes = [("rows", 0, 0), ("paths", 0, 0), ("slow calls", 0, 0)];
    for number in 0..simulation.hosts {
        let mut host = simulation.host(number);
        let mut write = |table: Table, part: usize, rows: usize, file: &[u8]| {
            let place = [Table::Functions, Table::Paths, Table::SlowCalls];
            if let Some(place) = place.iter().position(|known| *known == table) {
                (sizes[place].1, sizes[place].2) =
                    (sizes[place].1 + rows, sizes[place].2 + file.len());
            }
            write(&root, table, &host.name, part, file)
        };
        for (part, rows) in parts(&mut host.functions, files) {
            write(Table::Functions, part, rows.len(), &encode::functions(rows)?)?;
        }
        for (part, rows) in parts(&mut host.targets, files) {
            write(Table::Targets, part, rows.len(), &encode::targets(rows)?)?;
        }
        // A few tell how large they are.
        if number >= WITH_ALL {
            continue;
        }
        for (part, rows) in parts(&mut host.paths, files) {
            write(Table::Paths, part, rows.len(), &encode::paths(rows)?)?;
        }
        for (part, rows) in parts(&mut host.slow_calls, files) {
            write(Table::SlowCalls, part, rows.len(), &encode::slow_calls(rows)?)?;
        }
    }
    for (name, rows, bytes) in sizes {
        println!("{name}: {rows}, {:.1} bytes a row", bytes as f64 / rows as f64);
    }
    println!("slower: {}", slower());
    Ok(())
}

/// The hosts that have all tables.
const WITH_ALL: usize = 20;

/// Divides rows into so many parts, which have numbers.
fn parts<R>(rows: &mut [R], files: usize) -> impl Iterator<Item = (usize, &mut [R])> {
    let some = rows.len().div_ceil(files).max(1);
    rows.chunks_mut(some).enumerate()
}

fn write(root: &Path, table: Table, host: &str, part: usize, file: &[u8]) -> std::io::Result<()> {
    let day = day_of(START_NS);
    let place = Partition { table, host: host.to_owned(), day, unit: "app.service".to_owned() };
    let folder = root.join(place.folders().iter().collect::<PathBuf>());
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("part-{part}-0.parquet")), file)
}
