//! The process of `ctrace-store`: its rights, its environment, its end.

use super::{Order, Wanted, lines};
use crate::{inherited::descriptors, user::rights::keep_no_capabilities};
use std::{
    ffi::{OsStr, OsString},
    io::{self, BufReader},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

/// The variables that are about stores, by their beginnings.
const PREFIXES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
/// Others that the crate `object_store` asks for, and those of HTTPS.
const NAMES: [&str; 15] = [
    "SERVICE_ACCOUNT",
    "GCE_METADATA_HOST",
    "GCE_METADATA_ROOT",
    "GCE_METADATA_IP",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    // Below it Google's tools leave the credentials of an account.
    "HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// A child that runs. Without this, it ends by itself.
pub(super) struct Running {
    pub(super) number: u64,
    /// At its end the child sends what is there, and ends.
    input: Option<ChildStdin>,
    child: Arc<Mutex<Child>>,
}

impl Running {
    /// Starts the program. Its lines and its end become orders with this number.
    pub(super) fn start(
        program: &Path,
        wanted: &Wanted,
        number: u64,
        orders: SyncSender<Order>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("ship").arg(&wanted.folder).arg(&wanted.store);
        command.arg("--until-eof").arg("--host").arg(&wanted.host);
        command.env_clear().envs(environment(std::env::vars_os())).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C at a terminal is for the daemon.
        command.process_group(0);
        let (tell, started) = sync_channel(1);
        // Rights belong to a thread, and this one gives up its own before it starts the child.
        thread::Builder::new().name("store".into()).spawn(move || {
            match start_without_rights(command) {
                Ok(mut child) => {
                    let (input, output) = (child.stdin.take(), child.stdout.take());
                    let child = Arc::new(Mutex::new(child));
                    let _ = tell.send(Ok((input, Arc::clone(&child))));
                    let ended = output.map_or(Ok(()), |output| {
                        pass_on(&mut BufReader::new(output), number, &orders)
                    });
                    let ended = ended.and(end(&child));
                    let _ = orders.send(Order::Ended(number, ended));
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        })?;
        let (input, child) = started.recv().map_err(io::Error::other)??;
        Ok(Self { number, input, child })
    }

    /// Lets the child send what is there and end.
    pub(super) fn finish(&mut self) {
        self.input = None;
    }

    pub(super) fn kill(&self) {
        // It may have ended by itself.
        let _ = lock(&self.child).kill();
    }
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_without_rights(mut command: Command) -> io::Result<Child> {
    keep_no_capabilities()?;
    // What the daemon itself was started with is not for the child.
    descriptors::close_on_exec()?;
    command.spawn()
}

/// Passes on lines until the last one.
fn pass_on(
    output: &mut impl io::BufRead,
    number: u64,
    orders: &SyncSender<Order>,
) -> io::Result<()> {
    while let Some(line) = lines::read(output)? {
        if orders.send(Order::Told(number, line)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Ends a child that tells nothing more.
fn end(child: &Mutex<Child>) -> io::Result<ExitStatus> {
    let mut child = lock(child);
    // One that ended by itself keeps its status.
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    child.kill()?;
    child.wait()
}

/// Returns the variables that the child may know.
fn environment(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let is_known = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    };
    all.filter(move |(name, _)| is_known(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a script in the place of the program. Returns what it tells, and how it ends.
    fn told(script: &str) -> (Vec<lines::Line>, io::Result<ExitStatus>) {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("script");
        std::fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let wanted = Wanted {
            folder: "/spool".into(),
            host: "h".to_owned(),
            store: "s3://bucket".to_owned(),
        };
        let (orders, coming) = sync_channel(super::super::MOST_ORDERS);
        let mut running = Running::start(&program, &wanted, 7, orders).unwrap();
        running.finish();
        let mut lines = Vec::new();
        loop {
            match coming.recv().unwrap() {
                Order::Told(7, line) => lines.push(line),
                Order::Ended(7, ended) => return (lines, ended),
                _ => panic!("an order of another child"),
            }
        }
    }

    #[test]
    fn the_child_has_no_capability_and_gets_none() {
        let script = "cat >/dev/null\n\
            echo failed $(grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNewPrivs' /proc/self/status)\n\
            echo failed $*\nexit 3\n";
        let (lines, ended) = told(script);
        let rights =
            ["CapInh", "CapPrm", "CapEff", "CapAmb"].map(|set| format!("{set}: {:016x} ", 0));
        let rights = rights.concat() + "NoNewPrivs: 1";
        let arguments = "ship /spool s3://bucket --until-eof --host h".to_owned();
        assert_eq!(lines, [rights, arguments].map(lines::Line::Failed));
        assert_eq!(ended.unwrap().code(), Some(3));
    }

    #[test]
    fn files_that_the_daemon_was_started_with_are_not_the_childs() {
        use rustix::fs::{Mode, OFlags, open};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inherited");
        // As by a shell: it stays open in the next program.
        let kept = open(&path, OFlags::CREATE | OFlags::RDWR, Mode::RUSR).unwrap();
        let (lines, _) = told("cat >/dev/null\necho failed $(ls -l /proc/$$/fd)\n");
        let [lines::Line::Failed(files)] = &lines[..] else { panic!("{lines:?}") };
        assert!(files.contains("pipe:") && !files.contains("inherited"), "{files}");
        drop(kept);
    }

    #[test]
    fn a_child_that_speaks_otherwise_is_ended() {
        let (lines, ended) = told("echo waiting 1 1; echo what is this; exec sleep 1000\n");
        assert_eq!(lines, [lines::Line::Waiting(1)]);
        assert!(ended.unwrap_err().to_string().contains("does not know"));
    }

    #[test]
    fn only_variables_about_stores_are_handed_on() {
        let all = [
            "AWS_SECRET_ACCESS_KEY",
            "AZURE_X",
            "GOOGLE_X",
            "NO_PROXY",
            "PATH",
            "LD_PRELOAD",
            "MY_AWS_",
        ];
        let all = all.map(|name| (OsString::from(name), OsString::from("x")));
        let names: Vec<_> = environment(all.into_iter()).map(|(name, _)| name).collect();
        assert_eq!(names, ["AWS_SECRET_ACCESS_KEY", "AZURE_X", "GOOGLE_X", "NO_PROXY"]);
    }
}
