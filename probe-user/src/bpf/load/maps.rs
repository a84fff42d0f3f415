//! The maps of the programs, with the settings of user space filled in.
//!
//! aya's own loader reads all types of the running kernel before it does anything, which takes tens of
//! milliseconds and megabytes, and ctrace needs none of them. So each map is made alone, by the part of
//! aya that does only that. What is left for the loader is the case in which it alone can hand the
//! programs' messages to aya-log: see [`Logs`].

use super::{loader, object};
use crate::bpf::{
    BpfError,
    machine::{btf::Offsets, capabilities::may_look_up_programs},
    sys,
};
use aya::maps::{Map, MapData, RingBuf};
use aya_obj::{EbpfSectionKind, Object};
use std::{
    collections::HashMap,
    error::Error,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd},
    sync::Arc,
    thread,
};

const RING: u32 = aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_RINGBUF as u32;

/// The number of elements of each map that does not keep the one in the object, and the bytes of the
/// programs' globals.
pub(super) struct MapSettings {
    pub(super) sizes: Vec<(&'static str, u32)>,
    pub(super) globals: Vec<(&'static str, Vec<u8>)>,
}

/// The maps by their names.
pub(crate) struct Maps {
    all: HashMap<String, MapData>,
    pub(super) logs: Logs,
}

/// The way to the programs' messages. aya-log finds them by the number of a program, which takes the
/// right to look up any program (CAP_SYS_ADMIN), or in what aya's loader has made.
pub(super) enum Logs {
    OfProgram,
    OfLoader(Box<aya::Ebpf>),
    /// Somebody reads them.
    Taken,
}

/// Begins on a thread of its own what takes long. Where none starts, [`load`] does it.
pub(crate) fn begin() {
    let prepare = || {
        if may_look_up_programs() {
            // An error comes again where it can be told.
            let _ = Offsets::of_running_kernel();
            aya::features();
        } else {
            loader::make();
        }
    };
    if let Err(error) = thread::Builder::new().name("ctrace-loader".into()).spawn(prepare) {
        tracing::debug!("cannot start a thread for the loader: {error}");
    }
}

pub(super) fn load(settings: &MapSettings) -> Result<Maps, BpfError> {
    let bytes = object::bytes()?;
    if !may_look_up_programs() {
        let (all, loaded) = loader::load(bytes, settings)?;
        return Ok(Maps { all, logs: Logs::OfLoader(Box::new(loaded)) });
    }
    let damaged = |error: &dyn Error| BpfError::Object { reason: error.to_string() };
    let mut object = Object::parse(bytes).map_err(|error| damaged(&error))?;
    let globals = settings.globals.iter().map(|(name, value)| (*name, (&value[..], true)));
    object.patch_map_data(globals.collect()).map_err(|error| damaged(&error))?;
    let mut all = HashMap::new();
    for (name, mut map) in object.maps.drain() {
        if let Some((_, size)) = settings.sizes.iter().find(|(of, _)| *of == name) {
            map.set_max_entries(*size);
        }
        if map.map_type() == RING {
            map.set_value_size(0);
        }
        // The kernel does not know the object's types: they are of no use to the programs.
        if let aya_obj::Map::Btf(map) = &mut map {
            (map.def.btf_key_type_id, map.def.btf_value_type_id) = (0, 0);
        }
        let (data, kind) = (map.data().to_vec(), map.section_kind());
        let made = MapData::create(map, &name, None).map_err(|error| cannot_create(&error))?;
        fill(made.fd().as_fd(), &data, kind)
            .map_err(|source| BpfError::Create { what: format!("the eBPF map {name}"), source })?;
        all.insert(name, made);
    }
    Ok(Maps { all, logs: Logs::OfProgram })
}

/// Fills a map that holds globals. The verifier knows the values of a map that nobody can change.
fn fill(map: BorrowedFd<'_>, data: &[u8], kind: EbpfSectionKind) -> io::Result<()> {
    if !data.is_empty() {
        sys::map_update(map, 0_u32, data)?;
    }
    if kind == EbpfSectionKind::Rodata { sys::map_freeze(map) } else { Ok(()) }
}

/// Returns the error of a map that could not be created.
pub(super) fn cannot_create(error: &(dyn Error + 'static)) -> BpfError {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(source) = inner.downcast_ref::<io::Error>() {
            let source = match source.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::new(source.kind(), source.to_string()),
            };
            return BpfError::permission("create eBPF maps", &source)
                .unwrap_or(BpfError::Create { what: "the eBPF maps".into(), source });
        }
        cause = inner.source();
    }
    BpfError::Object { reason: error.to_string() }
}

impl Maps {
    /// Returns the descriptors by their names.
    pub(crate) fn fds(&self) -> Vec<(String, RawFd)> {
        let fds = self.all.iter().map(|(name, map)| (name.clone(), map.fd().as_fd().as_raw_fd()));
        let logs = match &self.logs {
            Logs::OfProgram | Logs::Taken => None,
            Logs::OfLoader(loaded) => loader::logs(loaded),
        };
        fds.chain(logs).collect()
    }

    /// Returns a descriptor of our own for one of the maps.
    pub(crate) fn fd(&self, name: &str) -> Result<Arc<OwnedFd>, BpfError> {
        let map = self.all.get(name).ok_or_else(|| missing(name))?;
        map.fd()
            .as_fd()
            .try_clone_to_owned()
            .map(Arc::new)
            .map_err(|source| BpfError::Create { what: "a file descriptor".into(), source })
    }

    /// Takes a map that is a ring of the kernel's own kind.
    pub(crate) fn take_ring(&mut self, name: &str) -> Result<RingBuf<MapData>, BpfError> {
        let map = self.all.remove(name).ok_or_else(|| missing(name))?;
        RingBuf::try_from(Map::RingBuf(map))
            .map_err(|error| BpfError::Object { reason: error.to_string() })
    }
}

fn missing(name: &str) -> BpfError {
    BpfError::Object { reason: format!("it has no map `{name}`") }
}
