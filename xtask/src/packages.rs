//! Installs Debian packages through apt-get, bpf-linker through cargo, and a library through rustup.
//! Every command is shown before it runs; with `--no-install` it is only shown.

use crate::machine;
use crate::paths;
use crate::progress;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Package lists older than this are fetched again.
const LISTS_KEEP: Duration = Duration::from_secs(7 * 24 * 3600);

/// The pinned linker: later versions need LLVM's headers. Without optimization and debug
/// information, its build takes 40 % of the time; LLVM does the work.
pub(crate) const BPF_LINKER: &[&str] = &[
    "install",
    "bpf-linker",
    "--version",
    "0.10.3",
    "--locked",
    "--profile",
    "dev",
    "--config",
    "profile.dev.debug=0",
];

/// A command that installs something, and why.
#[derive(Debug)]
pub(crate) struct Step {
    pub why: String,
    pub program: &'static str,
    pub arguments: Vec<String>,
    /// If true, a failure is only a warning.
    pub optional: bool,
}

impl Step {
    /// One apt-get run for several packages.
    pub(crate) fn apt(why: String, packages: &[&str]) -> Step {
        let mut arguments =
            vec!["install".into(), "--yes".into(), "--no-install-recommends".into()];
        arguments.extend(packages.iter().map(|&package| package.to_owned()));
        Step { why, program: "apt-get", arguments, optional: false }
    }

    /// Unpacks a package for its programs, without the service that installing it would start.
    pub(crate) fn unpacked(why: String, package: &str, to: &Path) -> Step {
        let to = to.display();
        let script = format!(
            "mkdir -p '{to}' && cd '{to}' && apt-get download {package} && dpkg-deb -x {package}_*.deb . \
             && rm {package}_*.deb"
        );
        Step { why, program: "sh", arguments: vec!["-c".into(), script], optional: false }
    }

    /// Unpacks packages with all they need that is not installed, without the services that
    /// installing them would start. Apt says what it would install, and installs nothing.
    pub(crate) fn unpacked_with_libraries(why: String, packages: &[&str], to: &Path) -> Step {
        let (to, packages) = (to.display(), packages.join(" "));
        let script = format!(
            "set -e; mkdir -p '{to}'; cd '{to}'; \
             lacks=$(apt-get --simulate --no-install-recommends install {packages} \
             | sed -n 's/^Inst \\([^ ]*\\).*/\\1/p'); apt-get download $lacks; \
             for package in *.deb; do dpkg-deb -x \"$package\" .; done; rm ./*.deb"
        );
        Step { why, program: "sh", arguments: vec!["-c".into(), script], optional: false }
    }

    pub(crate) fn bpf_linker() -> Step {
        Step {
            why: "bpf-linker, which links eBPF programs (builds for about a minute)".into(),
            program: "cargo",
            arguments: BPF_LINKER.iter().map(|&word| word.to_owned()).collect(),
            optional: false,
        }
    }

    /// The standard library for programs that need no library of the host.
    pub(crate) fn musl() -> Step {
        Step {
            why: "Rust's standard library for static programs".into(),
            program: "rustup",
            arguments: vec!["target".into(), "add".into(), paths::MUSL.into()],
            optional: false,
        }
    }

    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.program, self.arguments.join(" "))
    }

    fn uses_apt(&self) -> bool {
        !["cargo", "rustup"].contains(&self.program)
    }

    fn command(&self) -> Command {
        let mut command = match self.program {
            "cargo" => {
                let mut command = paths::cargo();
                // The repository's own target directory and lock file stay out of it.
                command.env_remove("CARGO_TARGET_DIR").current_dir("/");
                command
            }
            program => Command::new(program),
        };
        command.args(&self.arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

/// Returns whether apt's lists should be fetched before anything is installed.
pub(crate) fn lists_are_old() -> bool {
    let lists = Path::new("/var/lib/apt/lists");
    let mut newest = None;
    for entry in std::fs::read_dir(lists).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains("_Packages") {
            newest = newest.max(entry.metadata().and_then(|metadata| metadata.modified()).ok());
        }
    }
    let fetched = std::fs::metadata(lists).and_then(|metadata| metadata.modified()).ok();
    match newest {
        None => true,
        // A package list's own time is the archive's. The directory's time is the last update.
        Some(newest) => {
            let fetched = fetched.map_or(newest, |fetched| fetched.max(newest));
            SystemTime::now().duration_since(fetched).is_ok_and(|age| age > LISTS_KEEP)
        }
    }
}

/// `apt-get update`.
pub(crate) fn update_step() -> Step {
    Step {
        why: "apt's package lists are missing or old".into(),
        program: "apt-get",
        arguments: vec!["update".into()],
        // One unreachable third-party source must not stop everything.
        optional: true,
    }
}

/// Runs the steps. With `dry` only shows them.
pub(crate) fn carry_out(mut steps: Vec<Step>, dry: bool) -> Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let uses_apt = steps.iter().any(Step::uses_apt);
    if uses_apt && lists_are_old() {
        steps.insert(0, update_step());
    }
    let verb = if dry { "Missing here; to install it" } else { "About to install" };
    eprintln!("{verb}:");
    for step in &steps {
        eprintln!("  {}\n      # {}", step.shown(), step.why);
    }
    if dry {
        return Ok(());
    }
    if uses_apt && machine::which("apt-get").is_none() {
        bail!(
            "there is no apt-get here: install the packages above in this system's own way, then \
             run this again with --no-install"
        );
    }
    if uses_apt && !machine::is_root() {
        bail!("installing needs root: run the commands above with sudo, then this again");
    }
    for step in &steps {
        if let Err(error) = one(step) {
            if !step.optional {
                return Err(error);
            }
            eprintln!("going on without: {error:#}");
        }
    }
    Ok(())
}

fn one(step: &Step) -> Result<()> {
    let what = match step.program {
        "cargo" => "install bpf-linker",
        "rustup" => "install Rust's library",
        _ => "apt-get",
    };
    let is_install = step.arguments.first().is_some_and(|word| word == "install");
    if step.program != "apt-get" || !is_install {
        return progress::must(what, &mut step.command()).map(drop);
    }
    if progress::run(what, &mut step.command())?.status.success() {
        return Ok(());
    }
    // The lists name versions that the archive no longer has: fetch them once.
    eprintln!("fetching apt's package lists and trying again");
    progress::run("apt-get update", &mut update_step().command())?;
    progress::must(what, &mut step.command()).map(drop)
}
