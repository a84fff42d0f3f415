//! `cargo xtask setup`: finds out what is missing for building, testing and benchmarking, shows
//! what it will install, and installs it. It starts no service.

use crate::machine::{self, BpfCompiler, which};
use crate::packages::{self, Step};
use crate::{paths, peers};
use anyhow::Result;
use clap::Args;
use std::path::Path;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Print the commands instead of running them
    #[arg(long)]
    pub no_install: bool,
}

/// A kind of requirement of a chore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// eBPF programs can be built.
    Bpf,
    /// C and C++ programs can be built.
    Compilers,
    /// Peers, servers and headers that tests and benchmarks use.
    Peers,
    /// Kernels can be booted.
    Machines,
    /// Servers and loads of the benchmark on real programs.
    Real,
    /// Packages of a release can be made.
    Packing,
    /// Packages can be installed where nothing else is, and used by build systems.
    Containers,
}

/// The needs of a build.
pub(crate) const COMPILERS: &[Need] = &[Need::Bpf, Need::Compilers];

/// The needs of a build, of all tests, and of most benchmarks.
pub(crate) const EVERYTHING: &[Need] = &[Need::Bpf, Need::Compilers, Need::Peers, Need::Machines];

/// A Debian package, and the sign that it is installed.
struct Package {
    /// The needs that it is one of.
    needs: &'static [Need],
    name: &'static str,
    brings: Brings,
}

enum Brings {
    Tool(&'static str),
    File(&'static str),
}

const PACKAGES: &[Package] = &[
    Package { needs: &[Need::Compilers], name: "gcc", brings: Brings::Tool("gcc") },
    Package {
        needs: &[Need::Compilers],
        name: "libc6-dev",
        brings: Brings::File("/usr/include/stdio.h"),
    },
    Package { needs: &[Need::Peers], name: "g++", brings: Brings::Tool("g++") },
    Package { needs: &[Need::Peers], name: "clang", brings: Brings::Tool("clang++") },
    Package {
        needs: &[Need::Peers, Need::Packing],
        name: "musl-tools",
        brings: Brings::Tool("musl-gcc"),
    },
    // A reader of exports: pprof is Go's, flame graphs are XML.
    Package { needs: &[Need::Peers], name: "golang-go", brings: Brings::Tool("go") },
    Package { needs: &[Need::Peers], name: "libxml2-utils", brings: Brings::Tool("xmllint") },
    Package { needs: &[Need::Peers], name: "bpftrace", brings: Brings::Tool("bpftrace") },
    Package { needs: &[Need::Peers], name: "linux-perf", brings: Brings::Tool("perf") },
    Package { needs: &[Need::Peers], name: "gdb", brings: Brings::Tool("gdb") },
    Package { needs: &[Need::Peers], name: "lld", brings: Brings::Tool("ld.lld") },
    Package { needs: &[Need::Peers], name: "uftrace", brings: Brings::Tool("uftrace") },
    Package {
        needs: &[Need::Peers],
        name: "systemtap-sdt-dev",
        brings: Brings::File("/usr/include/x86_64-linux-gnu/sys/sdt.h"),
    },
    // redis-server would start a service. This package has its binary under another name.
    Package { needs: &[Need::Peers], name: "redis-tools", brings: Brings::Tool("redis-benchmark") },
    // A browser for flame graphs.
    Package { needs: &[Need::Peers], name: "chromium", brings: Brings::Tool("chromium") },
    // A terminal for the tests of `ctrace top`.
    Package { needs: &[Need::Peers], name: "tmux", brings: Brings::Tool("tmux") },
    Package { needs: &[Need::Peers], name: "util-linux", brings: Brings::Tool("setpriv") },
    Package {
        needs: &[Need::Machines],
        name: "qemu-system-x86",
        brings: Brings::Tool("qemu-system-x86_64"),
    },
    Package { needs: &[Need::Machines], name: "busybox-static", brings: Brings::Tool("busybox") },
    Package { needs: &[Need::Machines], name: "xz-utils", brings: Brings::Tool("xz") },
    Package {
        needs: &[Need::Machines, Need::Packing],
        name: "dpkg",
        brings: Brings::Tool("dpkg-deb"),
    },
    Package { needs: &[Need::Packing], name: "binutils", brings: Brings::Tool("objcopy") },
    Package {
        needs: &[Need::Containers],
        name: "debootstrap",
        brings: Brings::Tool("debootstrap"),
    },
    Package { needs: &[Need::Containers], name: "cmake", brings: Brings::Tool("cmake") },
    Package { needs: &[Need::Containers], name: "meson", brings: Brings::Tool("meson") },
    Package { needs: &[Need::Containers], name: "pkg-config", brings: Brings::Tool("pkg-config") },
    Package { needs: &[Need::Real], name: "python3", brings: Brings::File("/usr/bin/python3") },
];

/// Packages that would start a service, or that come with one, and the tool that each brings.
const UNPACKED: &[(&str, &str)] = &[("postgresql", "postgres"), ("nginx", "nginx"), ("wrk", "wrk")];

/// A Debian compiler with `core` for the BPF machine, and the LLVM that bpf-linker loads.
const BPF_PACKAGES: &[&str] =
    &["rustc-web", "cargo-web", "libstd-rust-web-dev-bpf", "rust-web-llvm", "libllvm22"];

impl Package {
    fn is_there(&self) -> bool {
        match self.brings {
            Brings::Tool(tool) => which(tool).is_some(),
            Brings::File(file) => {
                Path::new(file).exists()
                    || Path::new(&file.replace("/x86_64-linux-gnu", "")).exists()
            }
        }
    }
}

/// Returns the steps that install what these needs lack.
pub(crate) fn missing(needs: &[Need]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut packages: Vec<&str> = PACKAGES
        .iter()
        .filter(|package| {
            package.needs.iter().any(|need| needs.contains(need)) && !package.is_there()
        })
        .map(|package| package.name)
        .collect();
    let mut linker = false;
    let mut why = Vec::new();
    if !packages.is_empty() {
        why.push(format!("{}: used by tests and benchmarks", packages.join(", ")));
    }
    let compiler = machine::bpf_compiler();
    // Debian packs its clippy separately.
    let debians = matches!(compiler, None | Some(BpfCompiler::System(_)));
    if needs.contains(&Need::Peers) && debians && !Path::new("/usr/bin/cargo-clippy").exists() {
        packages.push("rust-web-clippy");
        why.push("rust-web-clippy: lints the eBPF programs".into());
    }
    if needs.contains(&Need::Bpf) {
        if compiler.is_none() {
            packages.extend(BPF_PACKAGES);
            why.push("rustc-web and kin: a Rust compiler for eBPF programs, beside yours".into());
        }
        linker = which("bpf-linker").is_none();
        if linker && !packages.contains(&"gcc") && which("gcc").is_none() {
            packages.push("gcc");
        }
    }
    if !packages.is_empty() {
        steps.push(Step::apt(why.join("; "), &packages));
    }
    let prometheus = paths::target().join("peers/prometheus");
    let there = which("promtool").is_some() || prometheus.join("usr/bin/promtool").exists();
    if needs.contains(&Need::Peers) && !there {
        let why = "prometheus: scrapes the daemon in a test".into();
        steps.push(Step::unpacked(why, "prometheus", &prometheus));
    }
    if needs.contains(&Need::Real) {
        let absent: Vec<&str> = UNPACKED
            .iter()
            .filter(|(_, tool)| peers::find(tool).is_none())
            .map(|(name, _)| *name)
            .collect();
        if !absent.is_empty() {
            let why = format!("{}: programs that a benchmark traces", absent.join(", "));
            steps.push(Step::unpacked_with_libraries(why, &absent, &peers::unpacked()));
        }
    }
    if linker {
        steps.push(Step::bpf_linker());
    }
    if needs.contains(&Need::Packing) && !machine::builds_static() {
        steps.push(Step::musl());
    }
    steps
}

/// Installs what these needs lack, or with `no_install` shows the commands.
pub(crate) fn ensure(needs: &[Need], no_install: bool) -> Result<()> {
    packages::carry_out(missing(needs), no_install)
}

pub(crate) fn main(options: &Options) -> Result<()> {
    ensure(EVERYTHING, options.no_install)?;
    match machine::bpf_compiler() {
        Some(BpfCompiler::Rustup(name)) => {
            eprintln!("eBPF compiler: rustup's {name} with rust-src")
        }
        Some(BpfCompiler::System(cargo)) => eprintln!("eBPF compiler: {}", cargo.display()),
        Some(BpfCompiler::Given(cargo)) => {
            eprintln!("eBPF compiler: {} (CTRACE_BPF_CARGO)", cargo.display());
        }
        None => eprintln!("eBPF compiler: none"),
    }
    for tool in ["bpf-linker", "gcc", "g++", "bpftrace", "redis-benchmark", "qemu-system-x86_64"] {
        match which(tool) {
            Some(path) => eprintln!("{tool}: {}", path.display()),
            None => eprintln!("{tool}: missing"),
        }
    }
    let left = missing(EVERYTHING);
    if left.is_empty() {
        eprintln!("Everything is here.");
    } else if !options.no_install {
        let names: Vec<String> = left.iter().map(Step::shown).collect();
        anyhow::bail!("still missing after installing: {}", names.join("; "));
    }
    Ok(())
}
