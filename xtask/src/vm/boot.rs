//! Boots a kernel under qemu's own emulation and reads its console.

use crate::progress;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The result of a machine's run.
pub(super) struct Ended {
    /// Exit code of its script; `None` if the machine did not get to its end.
    pub code: Option<i32>,
    /// The console's output, with newlines alone at line ends.
    pub output: String,
    pub log: PathBuf,
}

/// Boots, and waits up to `limit` for the power to go off.
pub(super) fn boot(stage: &str, kernel: &Path, initramfs: &Path, limit: Duration) -> Result<Ended> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &limit.as_secs().to_string(), "qemu-system-x86_64"]);
    // KVM may exist and hang, but emulation works everywhere. Both CPUs share one thread. With two
    // threads, one CPU may run code that the other has just replaced, such as a kernel breakpoint
    // that nobody owns any more, and the kernel dies of it.
    command.args(["-accel", "tcg,thread=single", "-cpu", "max", "-m", "1G", "-smp", "2"]);
    command.args(["-display", "none", "-serial", "stdio", "-monitor", "none", "-nic", "none"]);
    command.arg("-no-reboot").arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
    // A CPU that takes interrupts but is stuck for 120 s ends the machine, with all stacks printed.
    let lockup = "watchdog_thresh=60 softlockup_panic=1 panic_print=0x60";
    command.args(["-append", &format!("console=ttyS0 quiet panic=-1 loglevel=3 {lockup}")]);
    let done = progress::run(stage, &mut command)?;
    if done.status.code() == Some(125) || done.status.code() == Some(127) {
        bail!("qemu did not start: {}", progress::tail(&done.output));
    }
    let output = done.output.replace('\r', "");
    let code = end_code(&output);
    Ok(Ended { code, output, log: done.log })
}

impl Ended {
    /// Returns whether the kernel found a stuck CPU.
    pub(super) fn locked_up(&self) -> bool {
        self.code.is_none() && self.output.contains("Kernel panic - not syncing: softlockup")
    }
}

fn end_code(output: &str) -> Option<i32> {
    output.lines().rev().find_map(|line| line.strip_prefix("vm: end "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_among_the_kernels_messages() {
        let output = "vm: begin 6.1\nok counts\nvm: end 1\n[    4.5] reboot: Power down\n";
        assert_eq!(end_code(output), Some(1));
        assert_eq!(end_code("Kernel panic\n"), None);
    }
}
