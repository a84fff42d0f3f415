//! Machines of a fleet, all on this one: each has a name and a network of its own, in which nothing
//! but itself is reached. Its processes and files are this machine's.

use crate::process::Running;
use crate::proxy::{Delay, hand_on};
use crate::tools::has;
use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{ChildStdin, Command};

/// Names the machine, has its loopback work, and stays until the test ends.
const HOLD: &str =
    "echo \"$0\" > /proc/sys/kernel/hostname && ip link set lo up && echo ready && exec cat";

#[derive(Debug)]
pub struct Machine {
    holder: Running,
    /// The holder ends with it, also with a killed test.
    _input: ChildStdin,
}

impl Machine {
    /// Checks that there can be machines.
    pub fn check() -> Result<(), String> {
        ["unshare", "nsenter", "ip"].into_iter().try_for_each(has)?;
        match Machine::start("machine") {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("no network namespace can be made: {error:#}")),
        }
    }

    pub fn start(name: &str) -> Result<Machine> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--uts", "sh", "-c", HOLD, name]);
        let (holder, input, output) = Running::start_piped(&mut command)?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line == "ready\n", "{}", holder.said());
        Ok(Machine { holder, _input: input })
    }

    /// Returns a command that runs the program there, as the same process.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.pid().to_string());
        command.args(["--net", "--uts", "--"]).arg(program);
        command
    }

    /// Connects to a port of its loopback.
    pub fn connect(&self, port: u16) -> Result<TcpStream> {
        self.inside(move || TcpStream::connect((Ipv4Addr::LOCALHOST, port)))
    }

    /// Has a port of its loopback lead to a port of the test's own. It does so until the test ends.
    pub fn forward(&self, port: u16, to: u16) -> Result<()> {
        let listener = self.inside(move || TcpListener::bind((Ipv4Addr::LOCALHOST, port)))?;
        hand_on(listener, to, Delay::default());
        Ok(())
    }

    /// Runs it in the machine's network. Sockets made there stay in it.
    fn inside<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let network = File::open(format!("/proc/{}/ns/net", self.holder.pid()))?;
        // The thread ends there: it cannot come back.
        let made = std::thread::spawn(move || {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            make()
        });
        made.join().ok().context("the thread panicked")?.context("in the machine's network")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gate, or_skip};
    use std::io::{Read as _, Write as _};

    #[test]
    fn a_machine_has_a_name_and_a_network() {
        or_skip!(gate::root_and_bpf().and_then(|()| Machine::check()));
        let machine = Machine::start("one").expect("starts");
        let named = machine.command(Path::new("uname")).arg("-n").output().expect("runs");
        assert_eq!(named.stdout, b"one\n");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = server.local_addr().expect("an address").port();
        assert!(machine.connect(port).is_err(), "it reaches the test's own network");
        machine.forward(7, port).expect("a port");
        let mut client = machine.connect(7).expect("it listens");
        let (mut served, _) = server.accept().expect("somebody came");
        client.write_all(b"x").expect("written");
        served.read_exact(&mut [0]).expect("read");
        drop(served);
        assert_eq!(client.read(&mut [0]).expect("the end"), 0);
    }
}
