//! Runtimes that walk their own stacks and read return addresses of native frames there.
//!
//! Their garbage collectors and deoptimizers look each return address up in a table of their own.
//! A return probe's trampoline is not in that table, and no unwinder is entered that a guard could
//! sit on. So a process with such a runtime is not guarded.

use std::fmt;

const V8: &str = "V8";
const JAVA: &str = "a Java virtual machine";

/// A runtime, and what it is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    name: &'static str,
    /// A symbol that it defines, as it is written in the source. Files are known by their names.
    symbol: Option<&'static str>,
}

impl Runtime {
    pub(crate) const GO: Self = Self { name: "Go", symbol: None };
}

impl fmt::Display for Runtime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)?;
        self.symbol.map_or(Ok(()), |symbol| write!(out, ", by its symbol {symbol}"))
    }
}

/// The runtimes by the symbols that they define.
const BY_SYMBOL: [(&str, &[&str]); 6] = [
    (JAVA, &["JNI_CreateJavaVM"]),
    ("GraalVM", &["graal_create_isolate", "__svm_code_section"]),
    ("Mono", &["mono_jit_init", "mono_main"]),
    (".NET", &["coreclr_initialize", "DotNetRuntimeInfo", "DotNetRuntimeDebugHeader"]),
    ("OCaml", &["caml_startup", "caml_call_gc", "caml_frametable"]),
    ("Dart", &["Dart_Initialize", "_kDartVmSnapshotInstructions"]),
];

/// The same by how mangled symbols begin, with what they mean.
const BY_PREFIX: [(&str, &str, &str); 2] =
    [(V8, "_ZN2v88internal", "v8::internal"), (V8, "_ZN2v87Isolate", "v8::Isolate")];

/// Returns the runtime that contains a definition of this name.
pub(crate) fn defined_by(name: &str) -> Option<Runtime> {
    if name.starts_with("_Z") {
        let found = BY_PREFIX.iter().find(|(_, prefix, _)| name.starts_with(prefix));
        return found.map(|&(name, _, symbol)| Runtime { name, symbol: Some(symbol) });
    }
    BY_SYMBOL.iter().find_map(|&(runtime, symbols)| {
        let symbol = *symbols.iter().find(|symbol| **symbol == name)?;
        Some(Runtime { name: runtime, symbol: Some(symbol) })
    })
}

/// Returns the runtime that a file with this name contains. Browsers come without symbols.
pub(crate) fn in_file(name: &str) -> Option<Runtime> {
    let runtime = match name {
        "chrome" | "chromium" | "electron" => V8,
        _ if name.starts_with("libjvm.so") || name.starts_with("libj9vm") => JAVA,
        _ => return None,
    };
    Some(Runtime { name: runtime, symbol: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_symbols_and_files() {
        for (symbol, told) in [
            ("_ZN2v88internal7Isolate3NewEv", "V8, by its symbol v8::internal"),
            ("_ZN2v87Isolate3NewEv", "V8, by its symbol v8::Isolate"),
            ("JNI_CreateJavaVM", "a Java virtual machine, by its symbol JNI_CreateJavaVM"),
            ("caml_frametable", "OCaml, by its symbol caml_frametable"),
        ] {
            assert_eq!(defined_by(symbol).map(|it| it.to_string()).as_deref(), Some(told));
        }
        let of_file = in_file("libjvm.so").map(|it| it.to_string());
        assert_eq!(of_file.as_deref(), Some("a Java virtual machine"));
        for other in ["main", "_ZN2v9Isolate", "JNI_OnLoad", "caml"] {
            assert_eq!((defined_by(other), in_file(other)), (None, None), "{other}");
        }
    }
}
