//! The eBPF object inside this binary.

use crate::bpf::BpfError;

/// Empty if the build found no toolchain.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ctrace.bpf.o"));

/// Returns the toolchain of the eBPF programs in this binary, or why there are none.
pub(crate) fn toolchain() -> &'static str {
    env!("CTRACE_BPF_TOOLCHAIN")
}

pub(crate) fn is_there() -> bool {
    !OBJECT.is_empty()
}

/// Checks that tracing is possible at all, and begins what takes long. It fails in a binary without
/// the programs, and where process ids are not the kernel's.
pub(crate) fn require() -> Result<(), BpfError> {
    bytes()?;
    crate::bpf::machine::pid_namespace::require_initial()?;
    super::maps::begin();
    Ok(())
}

pub(crate) fn bytes() -> Result<&'static [u8], BpfError> {
    if_built(OBJECT)
}

fn if_built(object: &[u8]) -> Result<&[u8], BpfError> {
    if object.is_empty() { Err(BpfError::NoProgram { reason: toolchain() }) } else { Ok(object) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole binary may have 20 MB. Debug information, which the kernel does not need, would be
    /// two of them.
    #[test]
    fn the_object_has_no_debug_information() {
        assert!(OBJECT.len() < 640 << 10, "{}", OBJECT.len());
    }

    #[test]
    fn a_binary_without_programs_says_what_to_do() {
        assert_eq!(if_built(&[7]).unwrap(), [7]);
        let error = if_built(&[]).unwrap_err().to_string();
        assert!(error.contains("cargo xtask setup"), "{error}");
    }
}
