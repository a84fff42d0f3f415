//! The places where processes keep their Python functions, in the kernel's map.

use super::Kernel;
use crate::bpf::{BpfError, sys};
use ctrace_common::PythonPlaces;
use ctrace_core::units::Pid;
use std::os::fd::AsFd as _;

impl Kernel {
    /// Tells where a process keeps its Python functions. A process that has ended is forgotten.
    pub(crate) fn locate_python(&self, pid: Pid, places: &PythonPlaces) -> Result<(), BpfError> {
        let pythons = self.maps.fd("PYTHONS")?;
        sys::map_update(pythons.as_fd(), pid.0, &places.to_bytes())
            .map_err(|source| BpfError::Map { what: "interpreters of Python", source })?;
        if !self.traced().has(pid) {
            let _ = sys::map_delete(pythons.as_fd(), pid.0);
        }
        Ok(())
    }
}
