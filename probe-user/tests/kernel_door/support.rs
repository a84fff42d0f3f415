//! The program under trace and the session that traces it.

#[path = "../../../tests/src/install.rs"]
mod install;

pub(crate) use install::install;

use ctrace_common::{CONTROL_LEN, Change, Comm, Cookie, Kind, NO_INDEX, RECORD_LEN, Record};
use ctrace_core::{
    ingest::decode::{Decoded, decode},
    units::Pid,
    values::RingPayload,
};
use ctrace_user::testing::bpf::{
    Attachment, BpfError, Config, Kernel, LinkChoice, Lost, LostCounter, Rings, Role, Site,
};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

/// The compiled target and where its symbols are.
pub(crate) struct Binary {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
    /// Address and offset in the file.
    symbols: HashMap<String, (u64, u64)>,
}

impl Binary {
    pub(crate) fn offset(&self, symbol: &str) -> u64 {
        self.symbols[symbol].1
    }

    pub(crate) fn address(&self, symbol: &str) -> u64 {
        self.symbols[symbol].0
    }
}

/// Names a target compiled before, for machines without a compiler.
const COMPILED: &str = "CTRACE_TEST_TARGET";

pub(crate) static BINARY: LazyLock<Binary> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target");
    if let Some(compiled) = std::env::var_os(COMPILED) {
        install(&fs::read(compiled).unwrap(), &path);
    } else {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_door");
        let status = Command::new("gcc")
            .args(["-O1", "-g", "-pthread", "-o"])
            .args([&path, &source.join("target.c")])
            .args([source.join("jumps.S"), source.join("values.S")])
            .status()
            .expect("gcc is installed");
        assert!(status.success());
    }
    let bytes = fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let offset = |address: u64| {
        file.segments().find_map(|segment| {
            let (start, _) = segment.file_range();
            let within = address.checked_sub(segment.address())?;
            (within < segment.size()).then_some(start + within)
        })
    };
    let symbols = file
        .symbols()
        .filter_map(|symbol| {
            let place = (symbol.address(), offset(symbol.address())?);
            Some((symbol.name().ok()?.to_owned(), place))
        })
        .collect();
    Binary { _folder: folder, path, symbols }
});

/// The target, running.
pub(crate) struct Target {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Target {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(&BINARY.path);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        // It has passed its exec and sits in its read: wait until it sleeps there.
        let target = Self { child, stdin, stdout: BufReader::new(stdout) };
        let stat = format!("/proc/{}/stat", target.pid().0);
        while !fs::read_to_string(&stat).unwrap().contains("(target) S") {
            std::thread::yield_now();
        }
        target
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// The first bytes of a function, as they are in memory.
    pub(crate) fn code_of(&self, symbol: &str) -> [u8; 4] {
        let memory = fs::File::open(format!("/proc/{}/mem", self.pid().0)).unwrap();
        let mut code = [0; 4];
        memory.read_exact_at(&mut code, self.address_of(symbol)).unwrap();
        code
    }

    /// Returns the address at which the symbol's place in the file is mapped.
    pub(crate) fn address_of(&self, symbol: &str) -> u64 {
        let place = BINARY.offset(symbol);
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid().0)).unwrap();
        let hex = |text| u64::from_str_radix(text, 16).unwrap();
        maps.lines()
            .filter(|line| line.ends_with("/target"))
            .find_map(|line| {
                let fields: Vec<_> = line.split_ascii_whitespace().collect();
                let (start, end) = fields[0].split_once('-').unwrap();
                let (start, end, offset) = (hex(start), hex(end), hex(fields[2]));
                (offset..offset + end - start).contains(&place).then(|| start + place - offset)
            })
            .unwrap()
    }

    pub(crate) fn go(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Lets it run to its end; what it printed.
    pub(crate) fn finish(mut self) -> String {
        drop(self.stdin);
        let mut output = String::new();
        self.stdout.read_to_string(&mut output).unwrap();
        assert!(self.child.wait().unwrap().success());
        output
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Waits for what others may delay for a moment.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A record, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) ts: u64,
    pub(crate) sp: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) probe: u32,
    pub(crate) kind: Kind,
    pub(crate) lost_before: u16,
    pub(crate) change: Option<Change>,
}

impl Event {
    fn decode(bytes: &[u8]) -> Self {
        let (head, slot) = bytes.split_first_chunk().expect("a record");
        let Record { ts_ns: ts, sp, pid, tid, probe, kind, reserved, lost_before } =
            Record::from_bytes(head);
        let kind = Kind::from_wire(kind).expect("a known kind");
        assert_eq!(bytes.len(), if kind.is_change() { CONTROL_LEN } else { RECORD_LEN });
        assert_eq!(reserved, 0);
        let change = slot
            .first_chunk()
            .map(|slot| Change::from_bytes(kind, slot).expect("a change without reserved bits"));
        Self { ts, sp, pid, tid, probe, kind, lost_before, change }
    }

    /// The process and the thread that a fork made.
    pub(crate) fn child(&self) -> Option<(u32, u32)> {
        match self.change {
            Some(Change::Fork { child, child_tid, .. }) => Some((child, child_tid)),
            _ => None,
        }
    }

    /// The wait status that the end of a process tells.
    pub(crate) fn status(&self) -> Option<u32> {
        match self.change {
            Some(Change::ProcessExit { status, .. }) => Some(status),
            _ => None,
        }
    }
}

/// The text of a thread's name.
pub(crate) fn name(comm: &Comm) -> String {
    String::from_utf8_lossy(comm).trim_end_matches('\0').to_owned()
}

/// A kernel with its rings and all that has come out of them.
pub(crate) struct Session {
    pub(crate) kernel: Kernel,
    rings: Rings,
    lost: LostCounter,
    pub(crate) events: Vec<Event>,
    pub(crate) payloads: Vec<RingPayload>,
}

impl Session {
    /// `None`, with the reason on stderr, where this machine cannot trace.
    pub(crate) fn start(follow: bool) -> Option<Self> {
        Self::with_rings(4 << 20, follow)
    }

    pub(crate) fn with_rings(ring_bytes: u32, follow: bool) -> Option<Self> {
        Self::load(&Config {
            ring_bytes,
            follow,
            admits: 0,
            launches: false,
            markers: false,
            values: true,
            python: false,
            conditions: true,
            guards: false,
            waits: false,
            wakers: false,
            counted: None,
            thrift: None,
        })
    }

    pub(crate) fn load(config: &Config) -> Option<Self> {
        match Kernel::load(config) {
            Ok(kernel) => {
                let (rings, lost) = (kernel.rings().unwrap(), kernel.lost());
                Some(Self { kernel, rings, lost, events: Vec::new(), payloads: Vec::new() })
            }
            Err(error @ (BpfError::NoProgram { .. } | BpfError::Permission { .. })) => {
                eprintln!("skipped: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Attaches to plain sites at the given symbols, numbered from 0.
    pub(crate) fn attach(
        &self,
        pid: Option<Pid>,
        role: Role,
        symbols: &[&str],
        choice: LinkChoice,
    ) -> Result<Attachment, BpfError> {
        let cookie = |probe| match role {
            Role::Point => Cookie::usdt(probe, Kind::Point as u8, NO_INDEX),
            _ => Cookie::plain(probe),
        };
        let symbols = symbols.iter().zip(0..);
        let sites: Vec<_> = symbols.map(|(symbol, probe)| site(symbol, cookie(probe))).collect();
        self.kernel.attach(&BINARY.path, pid, role, &sites, choice, false)
    }

    pub(crate) fn drain(&mut self) {
        let Self { events, payloads, .. } = self;
        self.rings.drain(|_, bytes| match decode(bytes) {
            Ok(Decoded::Payload(payload)) => payloads.push(payload),
            _ => events.push(Event::decode(bytes)),
        });
    }

    pub(crate) fn lost(&self) -> Lost {
        self.lost.read().unwrap()
    }

    pub(crate) fn count(&self, kind: Kind, probe: u32) -> usize {
        self.events.iter().filter(|e| e.kind == kind && e.probe == probe).count()
    }

    pub(crate) fn of(&self, kind: Kind) -> Vec<Event> {
        self.events.iter().filter(|event| event.kind == kind).copied().collect()
    }
}

pub(crate) fn site(symbol: &str, cookie: Cookie) -> Site {
    Site { offset: BINARY.offset(symbol), ref_ctr_offset: 0, cookie }
}
