//! The chores of this repository, each a subcommand: `cargo xtask setup`, `build`, `demo`, `dist`,
//! `test`, `vm-test`, `bench`. Each has its own file. They share `progress` (showing work), `machine`
//! (what is installed), `packages` (installing it) and `artifacts` (what cargo has built).

mod artifacts;
mod bench;
mod browser;
mod build;
mod demo;
mod dist;
mod fuzz;
mod machine;
mod packages;
mod paths;
mod peers;
mod picture;
mod progress;
mod setup;
mod skips;
mod store;
mod summary;
mod symbols;
mod test;
mod timeline;
mod vm;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The chores of this repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what building, testing and benchmarking need
    Setup(setup::Options),
    /// Build target/release/ctrace with the eBPF programs inside
    Build,
    /// Build, trace a small demo program, show the tables
    Demo(demo::Options),
    /// Make the packages of a release in target/dist
    Dist(dist::Options),
    /// Run all tests, those on the live kernel and in virtual machines included
    Test(test::Options),
    /// Run the checks under Debian's kernels in virtual machines
    VmTest(vm::Options),
    /// Draw docs/screen.svg and docs/timeline.svg, the pictures in the README
    Picture(picture::Options),
    /// Measure what tracing costs, beside other tools
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Setup(options) => setup::main(&options),
        Chore::Build => build::main(),
        Chore::Demo(options) => demo::main(&options),
        Chore::Dist(options) => dist::main(&options),
        Chore::Test(options) => test::main(&options),
        Chore::VmTest(options) => vm::main(&options),
        Chore::Picture(options) => picture::main(&options),
        Chore::Bench(options) => bench::main(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
