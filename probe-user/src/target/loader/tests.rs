use super::environment::Environment;
use super::oracle::{self, Listed};
use super::*;
use crate::target::fixtures::{Built, compile};
use crate::target::object::Object;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const GLIBC: &str = "/lib64/ld-linux-x86-64.so.2";
const MUSL: &str = "/lib/ld-musl-x86_64.so.1";

fn environment(variables: &[(&str, &str)], directory: &Path) -> Environment {
    let value = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    };
    Environment {
        library_path: value("LD_LIBRARY_PATH"),
        preload: value("LD_PRELOAD"),
        directory: directory.to_owned(),
        secure: false,
    }
}

fn ours(exe: &Path, loader: &str, variables: &[(&str, &str)], directory: &Path) -> Libraries {
    let root = Root::ours().unwrap();
    let environment = environment(variables, directory);
    find(exe, loader.as_bytes(), &root, environment, Processor::ours()).unwrap()
}

/// Compares our answer with the loader's.
#[track_caller]
fn agrees(exe: &Path, loader: &str, variables: &[(&str, &str)], directory: &Path) -> Libraries {
    let listed = oracle::ask(loader, exe, variables, directory);
    let libraries = ours(exe, loader, variables, directory);
    assert_same(&listed, &libraries, loader, directory, &format!("{variables:?}"));
    libraries
}

#[track_caller]
fn assert_same(listed: &Listed, ours: &Libraries, loader: &str, directory: &Path, what: &str) {
    // glibc names only the first missing library, and of a broken one the file.
    let told = format!("{what}: {listed:?}\n{ours:?}");
    assert_eq!(listed.missing.is_empty(), ours.missing.is_empty(), "{told}");
    if listed.missing.is_empty() {
        let canonical = |path: &Path| {
            let path = directory.join(path);
            path.canonicalize().unwrap_or(path)
        };
        let listed = listed.files.iter().map(PathBuf::as_path).chain([Path::new(loader)]);
        let listed: BTreeSet<PathBuf> = listed.map(canonical).collect();
        let ours: BTreeSet<PathBuf> = ours.paths.iter().map(|path| canonical(path)).collect();
        assert_eq!(listed, ours, "{told}");
    }
}

/// Builds a directory with libraries, each given by name and linker flags.
fn libraries_of(compiler: &str, libraries: &[(&str, &str)]) -> Built {
    let built = compile(compiler, "c", "int main() { return 0; }");
    for (path, flags) in libraries {
        let path = Path::new(path);
        let name = path.file_name().unwrap().to_str().unwrap();
        let directory = path.parent().unwrap().to_str().unwrap();
        built.run(&format!("mkdir -p ./{directory}"));
        let out = path.display();
        built.run(&format!(
            "{compiler} -shared -Wl,--no-as-needed -Wl,-soname,{name} -o {out} input.c {flags}"
        ));
    }
    built
}

fn link(built: &Built, compiler: &str, flags: &str) {
    built.run(&format!("{compiler} -Wl,--no-as-needed -o program input.c {flags}"));
}

fn names(libraries: &Libraries, built: &Built) -> Vec<String> {
    let own = libraries.paths.iter().filter_map(|path| path.strip_prefix(built.dir()).ok());
    own.map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn breadth_first_and_each_once() {
    let built = libraries_of(
        "gcc",
        &[
            ("lib/libdeep.so", ""),
            ("lib/libleft.so", "lib/libdeep.so -Wl,-rpath,$ORIGIN"),
            ("lib/libright.so", "lib/libleft.so lib/libdeep.so -Wl,-rpath,$ORIGIN"),
            // The first names the last: a loop.
            ("lib/libdeep.so", "lib/libright.so -Wl,-rpath,$ORIGIN"),
        ],
    );
    link(&built, "gcc", "lib/libleft.so lib/libright.so -Wl,-rpath,$ORIGIN/lib");
    let libraries = agrees(&built.program, GLIBC, &[], built.dir());
    assert_eq!(names(&libraries, &built), ["lib/libleft.so", "lib/libright.so", "lib/libdeep.so"]);
    assert_eq!(libraries.paths.last().unwrap(), Path::new(GLIBC));
}

/// DT_RPATH also applies to all libraries below, DT_RUNPATH to the object alone. An object with
/// DT_RUNPATH ignores any DT_RPATH.
#[test]
fn search_paths_are_handed_on_as_in_glibc() {
    for (program, library, found) in [
        ("--disable-new-dtags", "", true),
        ("--enable-new-dtags", "", false),
        ("--disable-new-dtags", "-Wl,--enable-new-dtags,-rpath,/nonexistent", false),
        ("--enable-new-dtags", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../b", true),
        ("--enable-new-dtags", "-Wl,--enable-new-dtags,-rpath,${ORIGIN}/../b", true),
    ] {
        let first = format!("b/libb.so {library}");
        let built = libraries_of("gcc", &[("b/libb.so", ""), ("a/liba.so", &first)]);
        let path = format!("-Wl,{program},-rpath,$ORIGIN/a:$ORIGIN/b");
        link(
            &built,
            "gcc",
            &format!("a/liba.so {path} -Wl,--allow-shlib-undefined -Wl,-rpath-link,b"),
        );
        let libraries = agrees(&built.program, GLIBC, &[], built.dir());
        assert_eq!(libraries.missing.is_empty(), found, "{program} {library}: {libraries:?}");
    }
}

#[test]
fn variables_come_between_the_two_search_paths() {
    for (flag, expected) in [("--disable-new-dtags", "one"), ("--enable-new-dtags", "two")] {
        let built =
            libraries_of("gcc", &[("one/libx.so", ""), ("two/libx.so", ""), ("pre/libp.so", "")]);
        link(&built, "gcc", &format!("one/libx.so -Wl,{flag},-rpath,$ORIGIN/one"));
        let path = format!("/nonexistent;{}/two//", built.dir().display());
        let preload = format!("{0}/pre/libp.so /no/such.so:{0}/pre/libp.so", built.dir().display());
        let variables = [("LD_LIBRARY_PATH", &path[..]), ("LD_PRELOAD", &preload)];
        let libraries = agrees(&built.program, GLIBC, &variables, built.dir());
        assert_eq!(names(&libraries, &built), ["pre/libp.so", &format!("{expected}/libx.so")]);
        // Paths: relative, empty and with a token.
        for path in ["two", "", ":", "x:", "$ORIGIN/two", "two/../two/"] {
            agrees(&built.program, GLIBC, &[("LD_LIBRARY_PATH", path)], built.dir());
            agrees(&built.program, GLIBC, &[("LD_LIBRARY_PATH", path)], &built.dir().join("two"));
        }
    }
}

#[test]
fn candidates_for_other_machines_are_passed_over() {
    let built = libraries_of("gcc", &[("a/libx.so", ""), ("b/libx.so", ""), ("c/libx.so", "")]);
    link(&built, "gcc", "c/libx.so -Wl,-rpath,$ORIGIN/a:$ORIGIN/b:$ORIGIN/c");
    let change = |path: &str, at: usize, to: u8| {
        let path = built.dir().join(path);
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] = to;
        fs::write(path, bytes).unwrap();
    };
    // 32 bits, then another machine.
    change("a/libx.so", 4, 1);
    change("b/libx.so", 18, 183);
    let libraries = agrees(&built.program, GLIBC, &[], built.dir());
    assert_eq!(names(&libraries, &built), ["c/libx.so"]);
    // A broken file ends the search.
    fs::write(built.dir().join("b/libx.so"), "text").unwrap();
    let libraries = agrees(&built.program, GLIBC, &[], built.dir());
    assert_eq!(libraries.missing, ["libx.so"]);
}

#[test]
fn variants_for_this_processor_come_first() {
    let built = libraries_of("gcc", &[("lib/libx.so", "")]);
    link(&built, "gcc", "lib/libx.so -Wl,-rpath,$ORIGIN/lib");
    let below =
        ["tls", "x86_64", "haswell/x86_64", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v4"];
    for directory in below {
        built.run(&format!("mkdir -p lib/{directory}"));
        built.run(&format!("cp lib/libx.so lib/{directory}/libx.so"));
        let libraries = agrees(&built.program, GLIBC, &[], built.dir());
        assert_eq!(names(&libraries, &built).len(), 1);
    }
}

#[test]
fn names_with_slashes_and_tokens() {
    let built = libraries_of("gcc", &[("lib/libx.so", "")]);
    built.run("gcc -shared -Wl,-soname,$ORIGIN/lib/libx.so -o libtoken.so input.c");
    built.run("gcc -shared -Wl,-soname,lib/libx.so -o librelative.so input.c");
    link(&built, "gcc", "libtoken.so librelative.so");
    let libraries = agrees(&built.program, GLIBC, &[], built.dir());
    assert_eq!(names(&libraries, &built), ["lib/libx.so"]);
    assert_eq!(agrees(&built.program, GLIBC, &[], Path::new("/")).missing, ["lib/libx.so"]);
}

#[test]
fn the_program_itself_is_found_by_its_name() {
    let built = libraries_of("gcc", &[("libx.so", "")]);
    built.run("gcc -shared -Wl,-soname,program.so -o libself.so input.c");
    built.run("gcc -shared -Wl,--no-as-needed,-soname,libx.so -o libx.so input.c libself.so");
    link(&built, "gcc", "-pie -Wl,-soname,program.so libx.so -Wl,-rpath,$ORIGIN");
    let libraries = agrees(&built.program, GLIBC, &[], built.dir());
    assert_eq!(names(&libraries, &built), ["libx.so"]);
}

#[test]
fn not_from_the_default_directories() {
    let built = libraries_of("gcc", &[("libx.so", "")]);
    link(&built, "gcc", "libx.so -Wl,-z,nodefaultlib -Wl,-rpath,$ORIGIN");
    let libraries = agrees(&built.program, GLIBC, &[], built.dir());
    assert_eq!(libraries.missing, ["libc.so.6"]);
}

fn musl() -> bool {
    let there =
        Path::new(MUSL).exists() && Command::new("musl-gcc").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: musl-gcc is missing (Debian: musl-tools)");
    }
    there
}

#[test]
fn search_paths_are_handed_on_as_in_musl() {
    if !musl() {
        return;
    }
    for (program, library) in [
        ("--disable-new-dtags,-rpath,$ORIGIN/a:$ORIGIN/b", ""),
        ("--enable-new-dtags,-rpath,${ORIGIN}/a:$ORIGIN/b", ""),
        ("--enable-new-dtags,-rpath,$ORIGIN/a", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../b"),
        ("--enable-new-dtags,-rpath,$ORIGIN/a:$LIB", "-Wl,-rpath,$ORIGIN/../b"),
    ] {
        let first = format!("b/libb.so {library}");
        let built = libraries_of("musl-gcc", &[("b/libb.so", ""), ("a/liba.so", &first)]);
        let flags = "-Wl,--allow-shlib-undefined -Wl,-rpath-link,b";
        link(&built, "musl-gcc", &format!("a/liba.so -Wl,{program} {flags}"));
        let libraries = agrees(&built.program, MUSL, &[], built.dir());
        assert_eq!(libraries.missing.is_empty(), !program.contains("LIB"), "{libraries:?}");
        for path in ["a:b", "a\nb", ":::b/", "/no;b"] {
            agrees(&built.program, MUSL, &[("LD_LIBRARY_PATH", path)], built.dir());
        }
        let preload = [("LD_PRELOAD", "b/libb.so\t/no/such.so"), ("LD_LIBRARY_PATH", "a:b")];
        agrees(&built.program, MUSL, &preload, built.dir());
    }
}

#[test]
fn libc_and_the_loader_are_one_in_musl() {
    if !musl() {
        return;
    }
    let built = libraries_of("musl-gcc", &[("libm.so.6", ""), ("libcrypt.so", "")]);
    link(&built, "musl-gcc", "libm.so.6 libcrypt.so -Wl,-rpath,$ORIGIN");
    let libraries = agrees(&built.program, MUSL, &[], built.dir());
    assert_eq!(names(&libraries, &built), ["libcrypt.so"]);
    // A file for another machine ends the search.
    built.run("mkdir other");
    let mut bytes = fs::read(built.dir().join("libcrypt.so")).unwrap();
    bytes[16] = 9;
    fs::write(built.dir().join("other/libcrypt.so"), bytes).unwrap();
    let path = [("LD_LIBRARY_PATH", "other")];
    assert_eq!(agrees(&built.program, MUSL, &path, built.dir()).missing, ["libcrypt.so"]);
}

/// Builds a root directory with a program, its loader and the files that decide about libraries.
fn machine(built: &Built, files: &[(&str, &[u8])]) -> Root {
    let put = |path: &str, bytes: &[u8]| {
        let path = built.dir().join(path.strip_prefix('/').unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    put("/bin/program", &fs::read(&built.program).unwrap());
    put(GLIBC, &fs::read(GLIBC).unwrap());
    files.iter().for_each(|(path, bytes)| put(path, bytes));
    Root::at(built.dir()).unwrap()
}

fn on(root: &Root, environment: Environment) -> Libraries {
    let program = Path::new("/bin/program");
    find(program, GLIBC.as_bytes(), root, environment, Processor::ours()).unwrap()
}

/// Tests the machine's files as glibc's loader reads them. The real ones cannot be changed here.
#[test]
fn files_of_the_machine() {
    let built = libraries_of("gcc", &[("libx.so", ""), ("libpre.so", "")]);
    link(&built, "gcc", "-nostdlib -Wl,--entry=main libx.so");
    let library = fs::read(built.dir().join("libx.so")).unwrap();
    let preload = fs::read(built.dir().join("libpre.so")).unwrap();
    let root = machine(&built, &[("/opt/x/libx.so", &library), ("/opt/libpre.so", &preload)]);
    let environment = environment(&[], Path::new("/"));
    // Only ldconfig reads this; the loader does not.
    machine(&built, &[("/etc/ld.so.conf", b"/opt/x\n")]);
    assert_eq!(on(&root, environment.clone()).missing, ["libx.so"]);
    machine(&built, &[("/etc/ld.so.preload", b"# all\n/opt/libpre.so:/no/such.so # one\n")]);
    assert_eq!(on(&root, environment.clone()).paths[0], Path::new("/opt/libpre.so"));
    machine(&built, &[("/usr/lib/libx.so", &library)]);
    assert_eq!(on(&root, environment.clone()).paths[1], Path::new("/usr/lib/libx.so"));
    built.run(&format!("ldconfig -r {} -X -C /etc/ld.so.cache", built.dir().display()));
    assert_eq!(on(&root, environment.clone()).paths[1], Path::new("/opt/x/libx.so"));
    // With another user's rights, a program heeds files of the machine and no variables.
    let variables = [("LD_LIBRARY_PATH", "/opt/y"), ("LD_PRELOAD", "/opt/y/libx.so")];
    machine(&built, &[("/opt/y/libx.so", &library)]);
    let told = super::tests::environment(&variables, Path::new("/"));
    assert_eq!(on(&root, told.clone()).paths[0], Path::new("/opt/y/libx.so"));
    let secure = on(&root, Environment { secure: true, ..told });
    assert_eq!(secure.paths[..2], [Path::new("/opt/libpre.so"), Path::new("/opt/x/libx.so")]);
}

/// Compares all programs of this machine that only root can change with the real loader's answer.
/// The loader runs in a sandbox, because it maps them.
#[test]
fn all_programs_of_this_machine() {
    use std::os::unix::fs::MetadataExt;
    if !rustix::process::getuid().is_root() {
        return eprintln!("skipped: only root can run the loader as nobody");
    }
    let mut programs = Vec::new();
    for directory in
        ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/libexec", "/usr/lib/git-core"]
    {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Ok(meta) = fs::metadata(&path) else { continue };
            let trusted = meta.is_file() && meta.uid() == 0 && meta.mode() & 0o022 == 0;
            let object = trusted.then(|| Object::open(&path, &path).ok()).flatten();
            let loader = object.as_ref().and_then(|object| object.interpreter());
            if loader == Some(GLIBC.as_bytes()) && meta.mode() & 0o005 == 0o005 {
                programs.push(path.canonicalize().unwrap());
            }
        }
    }
    programs.sort();
    programs.dedup();
    let mut sandbox = Command::new("setpriv");
    sandbox.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"]);
    sandbox.args(["--bounding-set=-all", "--inh-caps=-all", "unshare", "--user", "--net", "--"]);
    let each =
        format!("for p; do echo \"== $p\"; timeout -k 1 20 {GLIBC} --list \"$p\"; done 2>&1");
    sandbox.args(["sh", "-c", &each, "sh"]).args(&programs);
    let output = sandbox.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").output();
    let output = match output {
        Ok(output) if output.stdout.starts_with(b"== /") => output.stdout,
        failed => return eprintln!("skipped: no sandbox here: {failed:?}"),
    };
    let output = [b"\n", &output[..]].concat();
    let mut compared = 0;
    for part in memchr::memmem::find_iter(&output, b"\n== ") {
        let part = &output[part + 4..];
        let part = &part[..memchr::memmem::find(part, b"\n== ").unwrap_or(part.len())];
        let (path, listed) = part.split_at(memchr::memchr(b'\n', part).unwrap_or(part.len()));
        let listed = oracle::parse(listed, Path::new("/"));
        let path = Path::new(OsStr::from_bytes(path));
        let ours = ours(path, GLIBC, &[], Path::new("/"));
        assert_same(&listed, &ours, GLIBC, Path::new("/"), &path.display().to_string());
        compared += 1;
    }
    assert_eq!(compared, programs.len());
    eprintln!("{compared} programs compared");
    assert!(compared > 20);
}
