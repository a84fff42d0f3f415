//! Builds programs with markers as users do: CMake, pkg-config and Meson find the headers.

use super::skipped;
use crate::dist::{self, Parts, Programs, VERSION, Way};
use crate::setup::{self, Need};
use crate::summary::{Counts, Outcome};
use crate::{artifacts, build, machine, paths, progress, store};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

const C: &str = "#include <ctrace.h>\nint main(void) { CTRACE_SCOPE(\"a phase\"); return 0; }\n";
const CXX: &str = "#include \"ctrack.hpp\"\nint main() { CTRACK_NAME(\"a phase\"); return 0; }\n";
const CMAKE: &str = "cmake_minimum_required(VERSION 3.15)\nproject(shop C CXX)\n\
    find_package(ctrace 0.1 REQUIRED CONFIG)\n\
    add_executable(c_program c.c)\ntarget_link_libraries(c_program ctrace::ctrace)\n\
    add_executable(cxx_program cxx.cpp)\ntarget_link_libraries(cxx_program ctrace::ctrack)\n";
const MESON: &str = "project('shop', 'c', 'cpp', version: '1', default_options: ['cpp_std=c++17'])\n\
    executable('c_program', 'c.c', dependencies: dependency('ctrace'))\n\
    executable('cxx_program', 'cxx.cpp', dependencies: dependency('ctrack'))\n";

/// The packages, and a folder with sources that use them.
struct Shop {
    /// The prefix below which they are installed.
    prefix: PathBuf,
    dist: PathBuf,
    folder: PathBuf,
}

type Check = (&'static str, fn(&Shop) -> Result<()>);

const CHECKS: &[Check] = &[
    ("find_package", find_package),
    ("cmake --install", cmake_install),
    ("pkg-config", pkg_config),
    ("a Meson wrap", wrap),
];

pub(super) fn run(_: &super::Options) -> Result<(Outcome, Counts)> {
    if !machine::is_root() {
        return skipped("not root");
    }
    setup::ensure(&[Need::Compilers, Need::Peers, Need::Packing, Need::Containers], false)?;
    let folder = paths::target().join("build-systems");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let ebpf = artifacts::ebpf(&mut build::tests())?;
    store::build_for_tests()?;
    let built = || Programs { ctrace: paths::tested(), store: store::tested() };
    let parts = Parts { alone: built(), shared: built(), ebpf };
    let dist = folder.join("dist");
    dist::assemble(&parts, &Way { url: "https://example.org", fast: true }, &dist)?;
    let prefix = dist.join("work/archive").join(dist::archive_name());
    let shop = Shop { prefix, dist, folder };
    std::fs::write(shop.folder.join("c.c"), C)?;
    std::fs::write(shop.folder.join("cxx.cpp"), CXX)?;
    std::fs::write(shop.folder.join("CMakeLists.txt"), CMAKE)?;
    std::fs::write(shop.folder.join("meson.build"), MESON)?;
    let mut failed = Vec::new();
    let mut counts = Counts::default();
    for (name, check) in CHECKS {
        match check(&shop) {
            Ok(()) => counts.passed += 1,
            Err(error) => {
                counts.failed += 1;
                failed.push(format!("{name}: {error:#}"));
            }
        }
    }
    let failed = (!failed.is_empty()).then(|| Outcome::Failed(failed.join("; ")));
    Ok((failed.unwrap_or(Outcome::Passed), counts))
}

fn find_package(shop: &Shop) -> Result<()> {
    let build = shop.folder.join("cmake");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&shop.folder).arg("-B").arg(&build);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", shop.prefix.display()));
    progress::must("cmake", &mut configure)?;
    progress::must("cmake --build", Command::new("cmake").arg("--build").arg(&build))?;
    have_markers(&build)
}

/// Installs the headers' archive with CMake, which must give the files of the packages.
fn cmake_install(shop: &Shop) -> Result<()> {
    let source = shop.folder.join("headers");
    unpack_headers(shop, &source)?;
    let source = source.join(format!("ctrace-headers-{VERSION}"));
    let (build, installed) = (shop.folder.join("cmake-headers"), shop.folder.join("installed"));
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(source).arg("-B").arg(&build);
    configure.arg(format!("-DCMAKE_INSTALL_PREFIX={}", installed.display()));
    progress::must("cmake", &mut configure)?;
    progress::must("cmake --install", Command::new("cmake").arg("--install").arg(&build))?;
    for place in ["include", "share/cmake", "share/pkgconfig"] {
        let mut compare = Command::new("diff");
        compare.arg("-r").arg(shop.prefix.join(place)).arg(installed.join(place));
        progress::must(&format!("compare {place}"), &mut compare)?;
    }
    Ok(())
}

fn pkg_config(shop: &Shop) -> Result<()> {
    let build = shop.folder.join("pkg-config");
    std::fs::create_dir_all(&build)?;
    let ask = |options: &[&str]| -> Result<String> {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", shop.prefix.join("share/pkgconfig"));
        let output = command.args(options).arg("ctrace").output()?;
        let text = String::from_utf8(output.stdout)?.trim().to_owned();
        ensure!(!text.is_empty(), "pkg-config: {}", String::from_utf8_lossy(&output.stderr));
        Ok(text)
    };
    let (flags, ctrack) = (ask(&["--cflags"])?, ask(&["--variable=ctrackdir"])?);
    let mut c = Command::new("gcc");
    c.args(flags.split(' ')).arg(shop.folder.join("c.c")).arg("-o").arg(build.join("c_program"));
    progress::must("gcc", &mut c)?;
    let mut cxx = Command::new("g++");
    cxx.args(flags.split(' ')).arg("-I").arg(ctrack).arg(shop.folder.join("cxx.cpp"));
    progress::must("g++", cxx.arg("-o").arg(build.join("cxx_program")))?;
    have_markers(&build)
}

fn wrap(shop: &Shop) -> Result<()> {
    let projects = shop.folder.join("subprojects");
    std::fs::create_dir_all(projects.join("packagecache"))?;
    std::fs::copy(shop.dist.join("recipes/ctrace.wrap"), projects.join("ctrace.wrap"))?;
    // Meson takes it from here, if it has the checksum that the wrap names.
    let archive = format!("ctrace-headers-{VERSION}.tar.gz");
    std::fs::copy(shop.dist.join(&archive), projects.join("packagecache").join(&archive))?;
    let build = shop.folder.join("meson");
    let mut setup = Command::new("meson");
    progress::must("meson setup", setup.arg("setup").arg(&build).arg(&shop.folder))?;
    progress::must("meson compile", Command::new("meson").args(["compile", "-C"]).arg(&build))?;
    have_markers(&build)
}

fn unpack_headers(shop: &Shop, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf")
        .arg(shop.dist.join(format!("ctrace-headers-{VERSION}.tar.gz")))
        .arg("-C")
        .arg(to);
    progress::must("unpack the headers", &mut tar).map(drop)
}

/// Both programs have a scope that ctrace finds.
fn have_markers(build: &Path) -> Result<()> {
    for program in ["c_program", "cxx_program"] {
        let program = build.join(program).display().to_string();
        let ctrace = paths::tested().display().to_string();
        let list = machine::output_of(&ctrace, &["list", "-m", "*", &program]);
        let list = list.with_context(|| format!("ctrace list of {program} failed"))?;
        ensure!(list.contains("a phase"), "{program} has no scope: {list}");
    }
    Ok(())
}
