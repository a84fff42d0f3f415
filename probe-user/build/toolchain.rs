//! Finds a toolchain for eBPF programs on this machine, and builds them with it.
//!
//! The object does not depend on where the sources, the toolchain and cargo's folders lie: the
//! same compiler and linker make the same bytes everywhere. A check of the gate compares them.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

const TARGET: &str = "bpfel-unknown-none";
/// The first cargo and rustc that know the 2024 edition.
const OLDEST_CARGO: (u32, u32) = (1, 85);
/// The LLVM that bpf-linker loads must be as new as the compiler's.
const LLVM: &str = "22";

pub(crate) const OVERRIDE: &str = "CTRACE_BPF_CARGO";

/// Returns whether a build without the programs is asked for.
pub(crate) fn is_unwanted() -> bool {
    env::var_os(OVERRIDE).is_some_and(|value| value == "none")
}

/// A cargo that can build for [`TARGET`], and the linker.
pub(crate) struct Toolchain {
    cargo: PathBuf,
    /// True if `core` must be compiled as well, false if it lies in the sysroot.
    build_core: bool,
    linker: PathBuf,
    llvm: Option<PathBuf>,
}

impl Toolchain {
    pub(crate) fn find() -> Result<Self, String> {
        let (cargo, build_core) = Self::find_cargo()?;
        let linker = find_linker().ok_or("bpf-linker is not installed")?;
        Ok(Self { llvm: find_llvm(&cargo), cargo, build_core, linker })
    }

    fn find_cargo() -> Result<(PathBuf, bool), String> {
        if is_unwanted() {
            return Err(format!("{OVERRIDE}=none"));
        }
        if let Some(cargo) = env::var_os(OVERRIDE).filter(|value| !value.is_empty()) {
            let cargo = PathBuf::from(cargo);
            return match core_of(&cargo) {
                Some(build_core) => Ok((cargo, build_core)),
                None => Err(format!("{} has no core for {TARGET}", cargo.display())),
            };
        }
        let system = [PathBuf::from("/usr/bin/cargo"), PathBuf::from("/usr/local/bin/cargo")];
        rustup_cargos()
            .into_iter()
            .chain(system)
            .filter(|cargo| cargo.is_file())
            .find_map(|cargo| Some((core_of(&cargo)?, cargo)))
            .map(|(build_core, cargo)| (cargo, build_core))
            .ok_or_else(|| format!("no Rust toolchain has core for {TARGET}, or its source"))
    }

    /// Names the compiler, without its place: binaries are for other machines.
    pub(crate) fn name(&self) -> String {
        let core = if self.build_core { "core built from source" } else { "prebuilt core" };
        format!("{}, {core}", version(&self.rustc()).unwrap_or_default())
    }

    fn rustc(&self) -> PathBuf {
        self.cargo.with_file_name("rustc")
    }

    /// Returns the folders of sources on this machine, and what the object calls them.
    fn places(&self, source: &Path) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let sysroot = sysroot(&self.rustc()).unwrap_or_default();
        let registry = home("CARGO_HOME", ".cargo").unwrap_or_default().join("registry/src");
        let registries = fs::read_dir(registry).into_iter().flatten().flatten();
        let registries = registries.map(|registry| (registry.path(), "registry"));
        let own = [(source.to_owned(), "probe-ebpf"), (sysroot, "rust")];
        registries.chain(own).filter(|(place, _)| place.is_absolute())
    }

    /// Builds the programs in `out`. Returns the path of the object.
    pub(crate) fn build(&self, source: &Path, out: &Path) -> PathBuf {
        let target_dir = out.join("ebpf");
        let mut command = Command::new(&self.cargo);
        command
            .current_dir(source)
            .args(["build", "--release", "--locked", "--target", TARGET, "--target-dir"])
            .arg(&target_dir);
        if self.build_core {
            command.args(["-Z", "build-std=core"]);
        }
        // The outer cargo's settings are for another compiler and another target.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let keep = ["CARGO_HOME", "RUSTUP_HOME"].contains(&&*text)
                || text.starts_with("CARGO_HTTP_")
                || text.starts_with("CARGO_NET_")
                || text.starts_with("CARGO_REGISTR");
            let foreign = ["CARGO", "RUST", "DEP_"].iter().any(|prefix| text.starts_with(prefix))
                || ["TARGET", "HOST", "OUT_DIR", "PROFILE", "DEBUG", "OPT_LEVEL", "NUM_JOBS"]
                    .contains(&&*text)
                || ["MAKEFLAGS", "MFLAGS", "LD_LIBRARY_PATH"].contains(&&*text);
            if foreign && !keep {
                command.env_remove(&name);
            }
        }
        let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
        let mut flags = vec![
            format!("--cfg=bpf_target_arch=\"{arch}\""),
            "-Cdebuginfo=2".into(),
            "-Clink-arg=--btf".into(),
            format!("-Clinker={}", self.linker.display()),
        ];
        flags.extend(
            self.places(source)
                .map(|(place, name)| format!("--remap-path-prefix={}={name}", place.display())),
        );
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        // Distributions ship a stable compiler; nightly ones ignore this.
        command.env("RUSTC_BOOTSTRAP", "1");
        // Before rustup's shims, which would choose another compiler than this cargo's.
        let mut path = vec![self.cargo.parent().expect("a file").to_owned()];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        command.env("PATH", env::join_paths(path).expect("it was a PATH before"));
        if let Some(llvm) = &self.llvm {
            command.env("LD_LIBRARY_PATH", folder_of_one(llvm, &out.join("llvm")));
        }
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => panic!("{} does not run: {error}", self.cargo.display()),
        };
        assert!(
            output.status.success(),
            "the eBPF programs do not build with {} ({OVERRIDE}=none builds without them):\n{}",
            self.cargo.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        target_dir.join(TARGET).join("release/ctrace-ebpf")
    }
}

/// Returns whether `core` must be built for this cargo (`true`) or is there (`false`); `None` if it
/// can be neither.
fn core_of(cargo: &Path) -> Option<bool> {
    let rustc = cargo.with_file_name("rustc");
    let version = version(&rustc)?;
    let mut numbers = version.split(' ').nth(1)?.split('.').map(|number| number.parse().ok());
    if (numbers.next()??, numbers.next()??) < OLDEST_CARGO {
        return None;
    }
    let sysroot = sysroot(&rustc)?;
    let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    let prebuilt = fs::read_dir(library).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    });
    if prebuilt {
        return Some(false);
    }
    sysroot.join("lib/rustlib/src/rust/library/core").is_dir().then_some(true)
}

fn version(rustc: &Path) -> Option<String> {
    stdout(Command::new(rustc).arg("--version"))
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    stdout(Command::new(rustc).args(["--print", "sysroot"])).map(PathBuf::from)
}

fn stdout(command: &mut Command) -> Option<String> {
    let output = command
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The cargos of rustup's toolchains: nightlies first, then the newest.
fn rustup_cargos() -> Vec<PathBuf> {
    let mut toolchains: Vec<_> =
        rustup_toolchains().map(|toolchain| toolchain.join("bin/cargo")).collect();
    toolchains
        .sort_by_key(|cargo| (cargo.to_string_lossy().contains("/nightly"), cargo.to_owned()));
    toolchains.reverse();
    toolchains
}

fn rustup_toolchains() -> impl Iterator<Item = PathBuf> {
    let rustup = home("RUSTUP_HOME", ".rustup").map(|rustup| rustup.join("toolchains"));
    rustup
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .map(|toolchain| toolchain.path())
}

fn home(variable: &str, folder: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(folder)))
}

fn find_linker() -> Option<PathBuf> {
    let cargo_bin = home("CARGO_HOME", ".cargo").map(|cargo| cargo.join("bin"));
    env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .chain(cargo_bin)
        .map(|folder| folder.join("bpf-linker"))
        .find(|linker| linker.is_file())
}

/// The LLVM library for the linker: the compiler's own, another toolchain's, the system's.
fn find_llvm(cargo: &Path) -> Option<PathBuf> {
    let own = cargo.parent().and_then(Path::parent).map(|toolchain| toolchain.join("lib"));
    let system = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|e| e.path());
    let system_llvm = PathBuf::from(format!("/usr/lib/llvm-{LLVM}/lib"));
    own.into_iter()
        .chain(rustup_toolchains().map(|toolchain| toolchain.join("lib")))
        .chain([system_llvm])
        .chain(system.filter(|path| path.to_string_lossy().ends_with("-linux-gnu")))
        .find_map(|folder| llvm_in(&folder))
}

fn llvm_in(folder: &Path) -> Option<PathBuf> {
    let prefixes = [format!("libLLVM-{LLVM}"), format!("libLLVM.so.{LLVM}")];
    fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
            && fs::metadata(path).is_ok_and(|metadata| metadata.len() > 1 << 20)
    })
}

/// A folder that holds nothing but a link to this library: bpf-linker takes the first LLVM it
/// meets, and the library's own folder may hold older ones.
fn folder_of_one(library: &Path, folder: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("OUT_DIR is writable");
    symlink(library, folder.join(format!("libLLVM-{LLVM}.so"))).expect("OUT_DIR takes links");
    folder.to_owned()
}

/// Runs this script again when a toolchain appears. Only paths that exist: one that does not
/// would run it on every build.
pub(crate) fn watch() {
    let linker = home("CARGO_HOME", ".cargo").map(|cargo| cargo.join("bin"));
    let components = rustup_toolchains().map(|toolchain| toolchain.join("lib/rustlib/components"));
    let system = ["/usr/lib/rustlib", "/usr/local/bin"].map(PathBuf::from);
    let usr = if system[0].exists() { None } else { Some(PathBuf::from("/usr/bin")) };
    for path in linker.into_iter().chain(components).chain(system).chain(usr) {
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}
