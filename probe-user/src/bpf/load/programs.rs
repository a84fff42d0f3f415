//! The programs, loaded into the kernel when they are first needed.
//!
//! A program loaded for one type of link is refused by the others, and aya loads for one type only.
//! So the instructions come from `aya_obj`, tied to the maps that aya created, and are loaded here,
//! once for each type of link in use.

use crate::bpf::{
    BpfError,
    load::turns::without_turns,
    machine::{btf::Offsets, release::Release},
    sys::{self, AttachType, Insn, ProgramSpec, ProgramType},
};
use std::{
    collections::{HashMap, HashSet},
    ffi::CString,
    os::fd::{OwnedFd, RawFd},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

/// The size of the buffer for the verifier's reasons.
const LOG_BYTES: usize = 4 << 20;

/// One of the programs in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BpfProgram {
    Session,
    SessionWithValues,
    SessionWithCondition,
    SessionByValue,
    Entry,
    EntryWithValues,
    EntryWithCondition,
    EntryByValue,
    Return,
    ReturnWithValues,
    GoEntry,
    ExitSite,
    GoExitSite,
    RetSiteWithValues,
    Point,
    PointWithValues,
    PointWithTexts,
    Flush,
    FlushWaiting,
    Register,
    Nothing,
    Fork,
    Exec,
    PrepareExec,
    Exit,
    Rename,
    Start,
    Birth,
    GuardUnwind,
    GuardSwitch,
    GuardLoad,
    GuardSignal,
    ListHijacked,
    Switch,
    Wakeup,
    Waking,
}

impl BpfProgram {
    const ALL: [Self; 36] = [
        Self::Session,
        Self::SessionWithValues,
        Self::SessionWithCondition,
        Self::SessionByValue,
        Self::Entry,
        Self::EntryWithValues,
        Self::EntryWithCondition,
        Self::EntryByValue,
        Self::Return,
        Self::ReturnWithValues,
        Self::GoEntry,
        Self::ExitSite,
        Self::GoExitSite,
        Self::RetSiteWithValues,
        Self::Point,
        Self::PointWithValues,
        Self::PointWithTexts,
        Self::Flush,
        Self::FlushWaiting,
        Self::Register,
        Self::Nothing,
        Self::Fork,
        Self::Exec,
        Self::PrepareExec,
        Self::Exit,
        Self::Rename,
        Self::Start,
        Self::Birth,
        Self::GuardUnwind,
        Self::GuardSwitch,
        Self::GuardLoad,
        Self::GuardSignal,
        Self::ListHijacked,
        Self::Switch,
        Self::Wakeup,
        Self::Waking,
    ];

    /// Returns its name in the object.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::SessionWithValues => "session_with_values",
            Self::SessionWithCondition => "session_with_condition",
            Self::SessionByValue => "session_by_value",
            Self::Entry => "entry",
            Self::EntryWithValues => "entry_with_values",
            Self::EntryWithCondition => "entry_with_condition",
            Self::EntryByValue => "entry_by_value",
            Self::Return => "ret",
            Self::ReturnWithValues => "ret_with_values",
            Self::GoEntry => "go_entry",
            Self::ExitSite => "exit_site",
            Self::GoExitSite => "go_exit_site",
            Self::RetSiteWithValues => "ret_site_with_values",
            Self::Point => "point",
            Self::PointWithValues => "point_with_values",
            Self::PointWithTexts => "point_with_texts",
            Self::Flush => "flush",
            Self::FlushWaiting => "flush_waiting",
            Self::Register => "register",
            Self::Nothing => "nothing",
            Self::Fork => "on_fork",
            Self::Exec => "on_exec",
            Self::PrepareExec => "on_prepare_exec",
            Self::Exit => "on_exit",
            Self::Rename => "on_rename",
            Self::Start => "on_start",
            Self::Birth => "on_birth",
            Self::GuardUnwind => "guard_unwind",
            Self::GuardSwitch => "guard_switch",
            Self::GuardLoad => "guard_load",
            Self::GuardSignal => "guard_signal",
            Self::ListHijacked => "list_hijacked",
            Self::Switch => "on_switch",
            Self::Wakeup => "on_wakeup",
            Self::Waking => "on_waking",
        }
    }

    /// Returns true if it runs at returns only.
    pub(crate) const fn is_at_return(self) -> bool {
        matches!(self, Self::Return | Self::ReturnWithValues)
    }

    const fn kind(self) -> ProgramType {
        match self {
            Self::Fork
            | Self::Exec
            | Self::PrepareExec
            | Self::Exit
            | Self::Rename
            | Self::Start
            | Self::Birth
            | Self::GuardSignal
            | Self::Switch
            | Self::Wakeup
            | Self::Waking => ProgramType::RawTracepoint,
            Self::ListHijacked => ProgramType::Tracing,
            _ => ProgramType::Kprobe,
        }
    }
}

pub(crate) struct Programs {
    license: CString,
    code: HashMap<BpfProgram, Vec<Insn>>,
    loaded: Mutex<HashMap<(BpfProgram, AttachType), Arc<OwnedFd>>>,
}

impl Programs {
    /// Parses the programs of `object`, tied to maps that exist already.
    pub(crate) fn parse(object: &[u8], maps: &[(String, RawFd)]) -> Result<Self, BpfError> {
        let damaged = |reason: String| BpfError::Object { reason };
        let mut object =
            aya_obj::Object::parse(object).map_err(|error| damaged(error.to_string()))?;
        let parsed: HashMap<_, _> = object.maps.drain().collect();
        let sections: HashSet<_> = object.functions.keys().map(|(section, _)| *section).collect();
        let known =
            maps.iter().filter_map(|(name, fd)| Some((name.as_str(), *fd, parsed.get(name)?)));
        object
            .relocate_maps(known, &sections)
            .and_then(|()| object.relocate_calls(&sections))
            .map_err(|error| damaged(error.to_string()))?;
        let mut code = HashMap::new();
        let mut license = CString::default();
        for program in BpfProgram::ALL {
            let missing = || damaged(format!("it has no program `{}`", program.name()));
            let found = object.programs.get(program.name()).ok_or_else(missing)?;
            let function = object.functions.get(&found.function_key()).ok_or_else(missing)?;
            let mut instructions = function.instructions.clone();
            if !Release::running().compares_turns() {
                without_turns(&mut instructions);
            }
            code.insert(program, instructions);
            license.clone_from(&found.license);
        }
        Ok(Self { license, code, loaded: Mutex::default() })
    }

    /// Returns the program, loaded for this type of link.
    pub(crate) fn get(
        &self,
        program: BpfProgram,
        attach: AttachType,
    ) -> Result<Arc<OwnedFd>, BpfError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = loaded.get(&(program, attach)) {
            return Ok(Arc::clone(fd));
        }
        let fd = Arc::new(self.load(program, attach)?);
        loaded.insert((program, attach), Arc::clone(&fd));
        Ok(fd)
    }

    /// Loads programs that will be needed, side by side: the verifier takes milliseconds for some.
    /// One that it refuses is loaded again by [`Self::get`], which tells why.
    pub(crate) fn load_ahead(&self, wanted: &[(BpfProgram, AttachType)]) {
        let queue = Mutex::new(wanted.iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let load = || {
            while let Some(&(program, attach)) = next() {
                if let Ok(fd) = self.load(program, attach) {
                    let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
                    loaded.insert((program, attach), Arc::new(fd));
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..thread::available_parallelism().map_or(1, usize::from).min(wanted.len()) {
                // Without another thread, this one loads all.
                let _ = thread::Builder::new().spawn_scoped(scope, load);
            }
            load();
        });
    }

    fn load(&self, program: BpfProgram, attach: AttachType) -> Result<OwnedFd, BpfError> {
        let attach_function = match attach {
            AttachType::Iterator => Offsets::of_running_kernel()?
                .task_iterator()
                .map_err(|field| BpfError::NoField { field })?,
            _ => 0,
        };
        let spec = ProgramSpec {
            name: program.name(),
            kind: program.kind(),
            attach,
            instructions: &self.code[&program],
            license: &self.license,
            attach_function,
        };
        let source = match sys::load_program(&spec, None) {
            Ok(fd) => return Ok(fd),
            Err(source) => source,
        };
        let action = format!("load the eBPF program `{}`", program.name());
        // EACCES can also be the verifier's verdict: only EPERM is about rights.
        if source.raw_os_error() == Some(libc::EPERM)
            && let Some(error) = BpfError::permission(action, &source)
        {
            return Err(error);
        }
        let mut log = vec![0; LOG_BYTES];
        // The verifier writes its reasons only on request, and that costs time.
        if let Ok(fd) = sys::load_program(&spec, Some(&mut log)) {
            return Ok(fd);
        }
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]).into_owned();
        Err(BpfError::Rejected { program: program.name(), source, log })
    }

    /// Returns programs without instructions, for a fake kernel.
    #[cfg(test)]
    pub(crate) fn fake() -> Self {
        let code = BpfProgram::ALL.into_iter().map(|program| (program, Vec::new())).collect();
        Self { license: c"Dual MIT/GPL".into(), code, loaded: Mutex::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::{cell::Cell, rc::Rc};

    #[test]
    fn a_program_is_loaded_once_for_each_type_of_link() {
        let calls = Rc::new(Cell::new(0));
        let seen = Rc::clone(&calls);
        let _fake = fake::Fake::new(move |_| {
            seen.set(seen.get() + 1);
            fake::fd()
        });
        let programs = Programs::fake();
        for _ in 0..3 {
            programs.get(BpfProgram::Entry, AttachType::Any).unwrap();
            programs.get(BpfProgram::Entry, AttachType::UprobeMulti).unwrap();
        }
        assert_eq!(calls.get(), 2);
    }

    #[test]
    fn missing_rights_are_no_verdict() {
        let _fake = fake::Fake::failing(libc::EPERM);
        let error = Programs::fake().get(BpfProgram::Entry, AttachType::Any).unwrap_err();
        assert!(matches!(error, BpfError::Permission { .. }), "{error}");
    }

    #[test]
    fn a_verdict_comes_with_its_reasons() {
        for errno in [libc::EINVAL, libc::EACCES, libc::E2BIG, libc::ENOSPC, libc::ENOMEM] {
            let _fake = fake::Fake::new(move |call| {
                if let Syscall::Bpf { attr, .. } = call
                    && attr.get_u32(24) == 1
                {
                    let log = attr.get_u64(32) as *mut u8;
                    // SAFETY: the caller gave us this buffer, longer than the text.
                    unsafe { std::ptr::copy_nonoverlapping(b"bad insn".as_ptr(), log, 8) };
                }
                fake::error(errno)
            });
            let error = Programs::fake().get(BpfProgram::Session, AttachType::Any).unwrap_err();
            assert!(matches!(error, BpfError::Rejected { program: "session", .. }), "{error}");
            assert!(error.to_string().ends_with("the verifier says:\nbad insn"), "{error}");
        }
    }

    #[test]
    fn a_pending_signal_is_no_verdict() {
        let mut refusals = 3;
        let _fake = fake::Fake::new(move |_| {
            if refusals == 0 {
                return fake::fd();
            }
            refusals -= 1;
            fake::error(libc::EAGAIN)
        });
        Programs::fake().get(BpfProgram::Entry, AttachType::Any).unwrap();
    }

    #[test]
    fn a_damaged_object_is_told() {
        let error = Programs::parse(b"no ELF file", &[]).err().unwrap();
        assert!(matches!(error, BpfError::Object { .. }), "{error}");
    }
}
