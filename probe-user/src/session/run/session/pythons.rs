//! Tells the programs where each traced process keeps its Python functions. The kernel does it by itself for
//! children that begin with the memory of a known process.

use super::Session;
use crate::target::process::maps::MappedObject;
use ctrace_core::units::Pid;

impl Session {
    /// Does so for a process that has mapped these objects. It may have none that interprets Python, or not yet.
    pub(super) fn locate_python(&mut self, pid: Pid, objects: &[MappedObject]) {
        if !self.arming.planner.reads_python() {
            return;
        }
        let places = self.arming.planner.python_of(objects);
        if let Err(error) = self.kernel.locate_python(pid, places.as_ref()) {
            self.note(format!("the Python functions of process {} are not read: {error}", pid.0));
        }
    }
}
