//! Finds this machine's tools, rights and BPF toolchains.

use crate::paths;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Finds a program on the PATH or where cargo installs.
pub(crate) fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([cargo_bin(), "/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

fn cargo_bin() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.unwrap_or_default().join("bin")
}

/// Returns whether this process may install packages and load BPF programs.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
    })
}

/// Returns the standard output of a command that succeeds.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the version of the C library, if that is glibc.
pub(crate) fn glibc() -> Option<(u32, u32)> {
    let version = output_of("getconf", &["GNU_LIBC_VERSION"])?;
    let (major, minor) = version.strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns true if the linker takes this option of rustc. Variables and files of cargo may choose another
/// one than rustc does, so cargo builds an empty program.
pub(crate) fn linker_takes(option: &str) -> bool {
    const PACKAGE: &str = "[package]\nname = \"empty\"\nedition = \"2024\"\n[workspace]\n";
    let above = paths::target().join("xtask");
    let write = || {
        std::fs::create_dir_all(&above)?;
        let folder = tempfile::tempdir_in(&above)?;
        std::fs::write(folder.path().join("Cargo.toml"), PACKAGE)?;
        std::fs::create_dir(folder.path().join("src"))?;
        std::fs::write(folder.path().join("src/main.rs"), "fn main() {}")?;
        Ok::<_, std::io::Error>(folder)
    };
    let Ok(folder) = write() else { return false };
    let mut cargo = paths::cargo();
    cargo.args(["rustc", "--quiet", "--offline", "--", option]).current_dir(folder.path());
    cargo.env("CARGO_TARGET_DIR", folder.path().join("target")).stderr(Stdio::null());
    cargo.status().is_ok_and(|status| status.success())
}

/// Returns the kernel's line on the last crash of a program: the thread, which has a test's name, and
/// the place.
pub(crate) fn last_fault() -> Option<String> {
    let log = output_of("dmesg", &[])?;
    let is_fault =
        |line: &&str| line.contains(" segfault at ") || line.contains(" general protection");
    log.lines().rfind(is_fault).map(str::to_owned)
}

/// A compiler that can build for the BPF machine. The build script of the `ctrace` package finds
/// the same ones by itself. This search only decides what to install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BpfCompiler {
    /// A rustup toolchain with rust-src: builds `core` itself.
    Rustup(String),
    /// A compiler with a prebuilt `core`, such as Debian's rustc-web.
    System(PathBuf),
    /// The compiler that CTRACE_BPF_CARGO names.
    Given(PathBuf),
}

pub(crate) fn bpf_compiler() -> Option<BpfCompiler> {
    if let Some(given) = std::env::var_os("CTRACE_BPF_CARGO").filter(|value| value != "none") {
        return Some(BpfCompiler::Given(given.into()));
    }
    if let Some(list) = output_of("rustup", &["toolchain", "list"]) {
        for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
            if !name.starts_with("nightly") {
                continue;
            }
            let sysroot = output_of("rustup", &["run", name, "rustc", "--print", "sysroot"]);
            let core = |root: String| Path::new(&root).join("lib/rustlib/src/rust/library/core");
            if sysroot.is_some_and(|root| core(root).is_dir()) {
                return Some(BpfCompiler::Rustup(name.into()));
            }
        }
    }
    ["/usr/bin", "/usr/local/bin"].into_iter().map(Path::new).find_map(|bin| {
        let rustc = bin.join("rustc");
        let sysroot = output_of(rustc.to_str()?, &["--print", "sysroot"])?;
        let core = Path::new(&sysroot).join("lib/rustlib/bpfel-unknown-none");
        (core.is_dir() && bin.join("cargo").is_file())
            .then(|| BpfCompiler::System(bin.join("cargo")))
    })
}

/// Returns whether the compiler that builds this repository has a library for static programs.
pub(crate) fn builds_static() -> bool {
    let library = output_of("rustc", &["--print", "target-libdir", "--target", paths::MUSL]);
    library.is_some_and(|folder| Path::new(&folder).is_dir())
}

/// Returns whether a build of ctrace contains its eBPF programs: they have a mark there, which
/// `probe-user/build/main.rs` writes.
pub(crate) fn holds_bpf_object(file: &Path) -> bool {
    const MARK: &[u8; 8] = b"\x7fpackBPF";
    std::fs::read(file).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|at| at == MARK))
}

/// Returns why nothing can be traced on this machine, if so.
pub(crate) fn no_live_tests() -> Option<&'static str> {
    if !is_root() {
        Some("not root")
    } else if !Path::new("/proc/sys/kernel/unprivileged_bpf_disabled").exists() {
        Some("this kernel has no bpf system call")
    } else if !Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        Some("this kernel has no uprobes")
    } else {
        None
    }
}

/// Returns the average number of tasks that wanted a CPU in the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Describes the machine in a line, for tables of measurements.
pub(crate) fn description() -> String {
    let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu_info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown CPU", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let virtual_machine = cpu_info.lines().any(|line| line.contains(" hypervisor"));
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let major_minor = release.trim().split('-').next().unwrap_or("?").to_owned();
    format!(
        "{model}, {cores} cores{}, Linux {major_minor}",
        if virtual_machine { " of a virtual machine" } else { "" }
    )
}
