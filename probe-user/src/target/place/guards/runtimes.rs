//! Runtimes that walk their own stacks and read return addresses of native frames there.
//!
//! Their garbage collectors and deoptimizers look each return address up in a table of their own.
//! A return probe's trampoline is not in that table, and no unwinder is entered that a guard could
//! sit on. So a process with such a runtime is not guarded.

/// Returns the runtime that contains a definition of this name.
pub(crate) fn defined_by(name: &str) -> Option<&'static str> {
    if name.starts_with("_ZN2v88internal") || name.starts_with("_ZN2v87Isolate") {
        return Some("V8");
    }
    match name {
        "JNI_CreateJavaVM" => Some("a Java virtual machine"),
        "graal_create_isolate" | "__svm_code_section" => Some("GraalVM"),
        "mono_jit_init" | "mono_main" => Some("Mono"),
        "coreclr_initialize" | "DotNetRuntimeInfo" | "DotNetRuntimeDebugHeader" => Some(".NET"),
        "caml_startup" | "caml_call_gc" | "caml_frametable" => Some("OCaml"),
        "Dart_Initialize" | "_kDartVmSnapshotInstructions" => Some("Dart"),
        _ => None,
    }
}

/// Returns the runtime that a file with this name contains. Browsers come without symbols.
pub(crate) fn in_file(name: &str) -> Option<&'static str> {
    match name {
        "chrome" | "chromium" | "electron" => Some("V8"),
        _ if name.starts_with("libjvm.so") || name.starts_with("libj9vm") => {
            Some("a Java virtual machine")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_symbols_and_files() {
        assert_eq!(defined_by("_ZN2v88internal7Isolate3NewEv"), Some("V8"));
        assert_eq!(defined_by("JNI_CreateJavaVM"), Some("a Java virtual machine"));
        assert_eq!(defined_by("caml_frametable"), Some("OCaml"));
        assert_eq!(in_file("libjvm.so"), Some("a Java virtual machine"));
        for other in ["main", "_ZN2v9Isolate", "JNI_OnLoad", "caml"] {
            assert_eq!((defined_by(other), in_file(other)), (None, None), "{other}");
        }
    }
}
