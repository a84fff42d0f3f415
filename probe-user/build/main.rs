//! Chooses the eBPF object inside the binary.
//!
//! The programs need a compiler for `bpfel-unknown-none` and bpf-linker. The stable toolchain that
//! builds everything else has neither. So the object is, in this order:
//!
//! 1. built from `probe-ebpf`, where that lies beside this package and a toolchain can build it;
//! 2. `ctrace.bpf.o` in this package, which published packages have, with `ctrace.bpf.txt` to say
//!    what built it;
//! 3. empty. The program says so as soon as it would need it. A package without sources does not
//!    build then, so that it cannot be published without its object.
//!
//! - `CTRACE_BPF_CARGO=PATH` names the cargo to use;
//! - `CTRACE_BPF_CARGO=none` builds without the programs;
//! - `CTRACE_BPF_AFTER=FILE` waits for a toolchain that is being installed while that file exists.

mod strip;
mod toolchain;

use flate2::{Compression, write::DeflateEncoder};
use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use toolchain::{OVERRIDE, Toolchain};

const OBJECT: &str = "ctrace.bpf.o";
/// The file that the binary includes.
const PACKED: &str = "ctrace.bpf.packed";
const MARK: &[u8; 8] = b"\x7fpackBPF";
/// The name of the file beside the shipped object that says with what it was built.
const BUILT_BY: &str = "ctrace.bpf.txt";
/// The longest wait for a toolchain that is being installed.
const MOST_WAIT: Duration = Duration::from_secs(600);

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=build");
    for name in [OVERRIDE, "RUSTUP_HOME", "CARGO_HOME"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let source = package.parent().map(|folder| folder.join("probe-ebpf"));
    let source = source.filter(|source| source.join("Cargo.toml").is_file());
    for file in ["src", "Cargo.toml", "Cargo.lock", "common/src", "common/Cargo.toml"] {
        if let Some(source) = &source {
            println!("cargo:rerun-if-changed={}", source.join(file).display());
        }
    }
    let (toolchain, object) = object(source.as_deref(), &package.join(OBJECT), &out);
    println!("cargo:rustc-env=CTRACE_BPF_TOOLCHAIN={toolchain}");
    fs::write(out.join(PACKED), packed(&object)).expect("OUT_DIR is writable");
    fs::write(out.join(OBJECT), object).expect("OUT_DIR is writable");
}

/// Returns the object as the binary has it: a mark by which others find it there, its length, and the object
/// packed. Empty if there is none.
fn packed(object: &[u8]) -> Vec<u8> {
    if object.is_empty() {
        return Vec::new();
    }
    let length = (object.len() as u64).to_le_bytes();
    let mut packed = DeflateEncoder::new([&MARK[..], &length].concat(), Compression::best());
    packed.write_all(object).and_then(|()| packed.finish()).expect("memory takes all")
}

/// Finds a toolchain, also one that is being installed.
fn find() -> Result<Toolchain, String> {
    let Some(installing) = env::var_os("CTRACE_BPF_AFTER").map(PathBuf::from) else {
        return Toolchain::find();
    };
    let start = Instant::now();
    while installing.exists() && start.elapsed() < MOST_WAIT {
        thread::sleep(Duration::from_millis(100));
    }
    // Whoever installs it would rather have no binary than one without programs.
    Ok(Toolchain::find().unwrap_or_else(|reason| panic!("no toolchain was installed: {reason}")))
}

/// Returns the object, and what built it or why it is empty.
fn object(source: Option<&Path>, shipped: &Path, out: &Path) -> (String, Vec<u8>) {
    let found = match source {
        Some(source) => find().map(|toolchain| (toolchain, source)),
        None => Err("its sources are not here".into()),
    };
    let reason = match found {
        Ok((toolchain, source)) => {
            let built = toolchain.build(source, out);
            let object = fs::read(built).expect("it was built");
            return (toolchain.name(), strip::without_debug_information(&object));
        }
        Err(reason) => reason,
    };
    if !toolchain::is_unwanted() && shipped.is_file() {
        println!("cargo:rerun-if-changed={}", shipped.display());
        let built_by = fs::read_to_string(shipped.with_file_name(BUILT_BY));
        let built_by = built_by.expect("whoever ships an object says what built it");
        return (built_by.trim().to_owned(), fs::read(shipped).expect("it is there"));
    }
    assert!(
        source.is_some() || toolchain::is_unwanted(),
        "this package lacks {OBJECT}: `cargo xtask dist` makes packages that have it"
    );
    println!(
        "cargo:warning=built without the eBPF programs ({reason}): `cargo xtask setup` installs \
         what is missing"
    );
    toolchain::watch();
    (format!("none: {reason}"), Vec::new())
}
