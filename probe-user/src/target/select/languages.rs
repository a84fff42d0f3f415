//! Languages whose functions are in no file: what is missing where somebody asks for one of them, and how
//! the interpreter is made to tell of them.

use crate::target::object::Object;
use crate::target::usdt::UsdtProbe;

/// The interpreters with USDT probes, by the provider of these and one of them, and what shows the functions.
const BY_PROVIDER: [(&str, &str, &str); 4] = [
    (
        "ruby",
        "method__entry",
        "methods of Ruby are in no file. `-u ruby:method` times each under its class and name. Ruby tells of them once the program has run `TracePoint.new(:call, :return) { \
         }.enable`, as from a file for its option -r",
    ),
    (
        "php",
        "function__entry",
        "functions of PHP are in no file. `-u php:function --arg 'php:function: 0:str, 3:str'` times them by \
         name and class, if PHP was started with USE_ZEND_DTRACE=1 in its environment",
    ),
    (
        "python",
        "function__entry",
        "functions of Python are in no file. `-u python:function` times each under its file and \
         name (CPython 3.11 tells only of those that C code calls). --arg 'FUNCTION: python' tells around each \
         call of a C function, such as read@libc*, which Python function makes it",
    ),
    (
        JAVA,
        "method__entry",
        "methods of Java are in no file. `-u hotspot:method` times each under its class and name, if Java was started with -XX:+DTraceMethodProbes \
         -XX:-Inline",
    ),
];

/// The provider of HotSpot.
const JAVA: &str = "hotspot";
/// How the names of V8's own functions begin.
const V8: &str = "v8::internal::";
const JAVASCRIPT: &str = "functions of JavaScript are in no file, V8 makes them while the program runs: ctrace \
    traces only what is compiled into the program and its addons";

/// Explains what a program of another language lacks, if one of the objects interprets it.
pub(super) fn hint(objects: &[Object]) -> Option<String> {
    let of_provider = |(provider, name, hint): &(&str, &str, &'static str)| {
        let mut probes = objects.iter().flat_map(Object::usdt_probes);
        let is_it = |probe: &UsdtProbe| (&*probe.provider, &*probe.name) == (*provider, *name);
        probes.any(is_it).then(|| (*hint).to_owned())
    };
    let of_launcher = || {
        let later = loaded_later(objects)?;
        let java = BY_PROVIDER.iter().find(|(provider, ..)| *provider == JAVA)?;
        Some(format!("{}; {later}", java.2))
    };
    let has_v8 = || {
        let mut functions = objects.iter().flat_map(Object::functions);
        functions.any(|function| function.name().starts_with(V8))
    };
    let found = BY_PROVIDER.iter().find_map(of_provider).or_else(of_launcher);
    found.or_else(|| has_v8().then(|| JAVASCRIPT.to_owned()))
}

/// Explains why a program has no USDT probes yet, if it loads the interpreter with these later.
pub(super) fn loaded_later(objects: &[Object]) -> Option<&'static str> {
    let has = |name: &str| objects.iter().any(|object| object.name().starts_with(name));
    (has("libjli.so") && !has("libjvm.so")).then_some(
        "java loads libjvm.so, which has its probes, after its start: add --wait, or attach to the process",
    )
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::{compile, has_sdt_header};
    use crate::target::select::{Patterns, Selector};

    /// Returns what is said of a method in a program with this source.
    fn told(compiler: &str, language: &str, source: &str) -> String {
        let objects = [compile(compiler, language, source).object()];
        let functions = ["Srv.hash".to_owned()];
        let patterns = Patterns { functions: &functions, ..Patterns::default() };
        let selector = Selector::parse(patterns).expect("a pattern");
        selector.select(&objects, 9).expect_err("it has no method").to_string()
    }

    #[test]
    fn a_method_of_another_language_is_told_how_to_be_seen() {
        let v8 = "namespace v8 { namespace internal { __attribute__((noinline)) int run() { return 7; } } }
            int main() { return v8::internal::run(); }";
        let line = told("g++", "cc", v8);
        assert!(line.contains("JavaScript"), "{line}");
        let line = told("gcc", "c", "int main(void) { return 7; }");
        assert!(!line.contains("in no file"), "{line}");
        if !has_sdt_header() {
            return;
        }
        for (provider, name, switch) in [
            ("ruby", "method__entry", "TracePoint.new(:call, :return)"),
            ("php", "function__entry", "USE_ZEND_DTRACE=1"),
            ("python", "function__entry", "-u python:function"),
            ("hotspot", "method__entry", "-XX:+DTraceMethodProbes"),
        ] {
            let source = format!(
                "#include <sys/sdt.h>\nint main(void) {{ DTRACE_PROBE1({provider}, {name}, 7); }}"
            );
            let line = told("gcc", "c", &source);
            assert!(line.contains(switch), "{line}");
        }
    }
}
