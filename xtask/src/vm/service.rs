//! Tests ctrace as a service: in a virtual machine with systemd as its first process, the unit file
//! starts the daemon, and a script checks what it can do with its rights there.

use super::initramfs::{SETTING_UP, Tree, stripped};
use super::{alone, boot, kernel, lacking};
use crate::summary::{Counts, Outcome};
use crate::{paths, progress};
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time limit of the machine.
const LIMIT: Duration = Duration::from_secs(900);
const KERNEL: &str = "6.12";
const SYSTEMD: &str = "/lib/systemd/systemd";
const UNITS: &str = "/lib/systemd/system";

/// The units of systemd that a machine with services needs. There are no disks.
const WANTED: &[&str] = &[
    "basic.target",
    "sysinit.target",
    "sockets.target",
    "timers.target",
    "paths.target",
    "slices.target",
    "shutdown.target",
    "multi-user.target",
    "network.target",
    "systemd-journald.service",
    "systemd-journald.socket",
    "systemd-journald-dev-log.socket",
];

/// systemd needs a root that it can switch, which an initramfs is not.
const INIT: &str = "mkdir -p /new\n\
    mount -t tmpfs -o mode=755,size=600m tmpfs /new\n\
    for each in bin etc lib lib64 root srv usr; do cp -a /$each /new/ 2>/dev/null; done\n\
    mkdir -p /new/proc /new/sys /new/dev /new/run /new/tmp /new/var/log /new/var/lib /new/home\n\
    chmod 1777 /new/tmp\n\
    umount /tmp /sys\n\
    mount --move /dev /new/dev\n\
    exec switch_root /new /lib/systemd/systemd --unit=check.service\n";

/// The script's output goes to the console, where the host reads it.
const CHECK: &str = "[Unit]\nRequires=multi-user.target\nAfter=multi-user.target\n\
    [Service]\nType=oneshot\nExecStart=/bin/check\nStandardOutput=tty\nStandardError=tty\n\
    TTYPath=/dev/console\n";

const SPIN: &str = "[Service]\nUser=nobody\nExecStart=/srv/spin 0 200\n";
const SCOPES: &str = "[Service]\nUser=nobody\nExecStart=/srv/scopes rate 1 200 100000\n";

pub(crate) fn run() -> Result<(Outcome, Counts)> {
    if let Some(skipped) = lacking("systemctl") {
        return Ok(skipped);
    }
    if !Path::new(SYSTEMD).exists() {
        return Ok((Outcome::Skipped("systemd is not installed".into()), Counts::default()));
    }
    let (image, initramfs) = alone(|| Ok((kernel::fetch(KERNEL)?, tree()?.finish("service")?)))?;
    let ended = boot::boot("virtual machine with systemd", &image, &initramfs, LIMIT)?;
    let counts = Counts::of_cases(&ended.output);
    for line in ended.output.lines().filter(|line| line.starts_with("failed ")) {
        eprintln!("{line}");
    }
    let outcome = match ended.code {
        Some(0) if counts.passed > 0 => Outcome::Passed,
        code => {
            if code.is_none() {
                eprintln!("{}", progress::tail(&ended.output));
            }
            Outcome::Failed(format!("it ended with {code:?}; see {}", ended.log.display()))
        }
    };
    Ok((outcome, counts))
}

fn tree() -> Result<Tree> {
    let mut tree = Tree::new(&format!("{SETTING_UP}{INIT}"))?;
    for program in [SYSTEMD, "/lib/systemd/systemd-journald", "/bin/systemctl"] {
        tree.program(Path::new(program), program)?;
    }
    // Later versions start programs through this one.
    let executor = "/lib/systemd/systemd-executor";
    if Path::new(executor).exists() {
        tree.program(Path::new(executor), executor)?;
    }
    for unit in WANTED {
        tree.file(&Path::new(UNITS).join(unit), &format!("{UNITS}/{unit}"))?;
    }
    tree.program(&stripped(&paths::tested(), "ctrace")?, "/usr/local/bin/ctrace")?;
    for (source, name) in [("spin.c", "/srv/spin"), ("scopes.c", "/srv/scopes")] {
        tree.program(&target(source)?, name)?;
    }
    tree.file(&paths::root().join("docs/ctrace.service"), "/etc/systemd/system/ctrace.service")?;
    for (name, content) in [("check", CHECK), ("spin", SPIN), ("scopes", SCOPES)] {
        tree.text(&format!("/etc/systemd/system/{name}.service"), content)?;
    }
    tree.text("/etc/passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")?;
    tree.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")?;
    tree.text("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")?;
    tree.text("/bin/check", include_str!("service.sh"))?;
    Ok(tree)
}

fn target(source: &str) -> Result<std::path::PathBuf> {
    let program = super::dir().join(source.trim_end_matches(".c"));
    let mut command = Command::new("gcc");
    command.args(["-O2", "-g", "-D_GNU_SOURCE", "-pthread", "-I"]);
    command.arg(paths::root().join("marker-crate/include"));
    command.arg(paths::root().join("tests/targets").join(source)).arg("-o").arg(&program);
    progress::must("build a target", &mut command)?;
    Ok(program)
}
