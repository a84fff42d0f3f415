//! The places where processes keep their Python functions, in the kernel's map.

use super::Kernel;
use crate::bpf::{BpfError, sys};
use ctrace_common::PythonPlaces;
use ctrace_core::units::Pid;
use std::os::fd::AsFd as _;

impl Kernel {
    /// Tells where a process keeps its Python functions, if it has any. A process that has ended is forgotten.
    pub(crate) fn locate_python(
        &self,
        pid: Pid,
        places: Option<&PythonPlaces>,
    ) -> Result<(), BpfError> {
        let pythons = self.maps.fd("PYTHONS")?;
        if let Some(places) = places {
            sys::map_update(pythons.as_fd(), pid.0, &places.to_bytes())
                .map_err(|source| BpfError::Map { what: "interpreters of Python", source })?;
        }
        if places.is_none() || !self.traced().has(pid) {
            let _ = sys::map_delete(pythons.as_fd(), pid.0);
        }
        Ok(())
    }
}
