//! Writes the tables of a simulated fleet into a folder, as daemons would.
//!
//! `cargo run --release -p ctrace-core --features parquet --example fleet FOLDER [HOSTS] [HOURS] [FUNCTIONS] [FACTOR]`

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
    let (mut rows, mut bytes) = (0, 0);
    for number in 0..simulation.hosts {
        let mut host = simulation.host(number);
        rows += host.functions.len();
        let file = encode::functions(&mut host.functions)?;
        bytes += file.len();
        write(&root, Table::Functions, &host.name, &file)?;
        write(&root, Table::Targets, &host.name, &encode::targets(&host.targets)?)?;
    }
    println!("rows: {rows}, {:.1} bytes a row", bytes as f64 / rows as f64);
    println!("slower: {}", slower());
    Ok(())
}

fn write(root: &Path, table: Table, host: &str, file: &[u8]) -> std::io::Result<()> {
    let day = day_of(START_NS);
    let place = Partition { table, host: host.to_owned(), day, unit: "app.service".to_owned() };
    let folder = root.join(place.folders().iter().collect::<PathBuf>());
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("part-0.parquet"), file)
}
