use super::super::fixtures::{install, loader_takeover::takes_over_the_loader};
use super::*;

fn script(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn finds_program_and_libraries() {
    let launch = resolve(OsStr::new("ls")).unwrap();
    assert!(launch.command.is_absolute());
    assert!(launch.scripts.is_empty());
    assert!(launch.objects[0].is_main);
    assert!(launch.objects[1..].iter().all(|object| !object.is_main));
    assert!(launch.objects.iter().any(|object| object.name == "libc.so.6"));
    assert!(launch.objects.iter().any(|object| object.name.starts_with("ld-linux")));
    assert!(launch.objects.iter().all(|object| !object.path.starts_with("/proc")));
    assert!(launch.remarks().is_empty());
}

#[test]
fn follows_scripts() {
    let dir = tempfile::tempdir().unwrap();
    let first = script(dir.path(), "first", "#! /bin/sh -e\necho\n", 0o755);
    let text = format!("#!{} arg\n", first.display());
    let second = script(dir.path(), "second", &text, 0o755);
    let launch = resolve(second.as_os_str()).unwrap();
    assert_eq!(launch.scripts, [second, first]);
    assert_eq!(launch.exe, Path::new("/bin/sh"));
    assert!(launch.remarks()[0].contains("is a script"), "{:?}", launch.remarks());
}

#[test]
fn refuses_what_cannot_run() {
    let dir = tempfile::tempdir().unwrap();
    let looped = dir.path().join("loop");
    let text = format!("#!{}\n", looped.display());
    let cases: [(PathBuf, u8); 8] = [
        ("surely-no-such-command".into(), 127),
        ("".into(), 127),
        ("/no/such/file".into(), 127),
        (dir.path().to_owned(), 126),
        (script(dir.path(), "noexec", "#!/bin/sh\n", 0o644), 126),
        (script(dir.path(), "text", "hello\n", 0o755), 126),
        (script(dir.path(), "lost", "#!/no/such/interpreter\n", 0o755), 127),
        (script(dir.path(), "loop", &text, 0o755), 126),
    ];
    for (command, code) in cases {
        let error = resolve(command.as_os_str()).unwrap_err();
        assert_eq!(error.exit_code(), code, "{}: {error}", command.display());
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn looks_in_path_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let refused = script(&one, "tool", "#!/bin/sh\n", 0o644);
    let path = Some(std::env::join_paths([&one, &two]).unwrap());
    let error = find(OsStr::new("tool"), path.clone()).unwrap_err();
    assert!(matches!(error, LaunchError::NotExecutable { path, .. } if path == refused));
    let good = script(&two, "tool", "#!/bin/sh\n", 0o755);
    assert_eq!(find(OsStr::new("tool"), path).unwrap(), good);
}

#[test]
fn the_libraries_of_an_unknown_loader_are_not_known() {
    let compiler = "gcc -Wl,--dynamic-linker=/lib64/ld-own-x86-64.so.2";
    let built = super::super::fixtures::compile(compiler, "c", "int main() { return 0; }");
    let launch = resolve(built.program.as_os_str()).unwrap();
    assert_eq!(launch.objects.len(), 1);
    assert!(launch.remarks()[0].contains("none that ctrace knows"), "{:?}", launch.remarks());
}

#[test]
fn nothing_of_a_file_that_takes_over_the_loader_runs() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made");
    let program = dir.path().join("program");
    install(&takes_over_the_loader(made.as_os_str()), &program);
    let launch = resolve(program.as_os_str()).unwrap();
    assert!(!made.exists(), "its code ran");
    assert_eq!(launch.objects.len(), 2, "{:?}", launch.objects);
    assert!(launch.objects[1].name.starts_with("ld-linux"));
}

#[test]
fn the_libraries_of_a_program_with_auditors_are_not_known() {
    for flag in ["--audit", "--depaudit"] {
        let compiler = format!("gcc -Wl,{flag}=/nonexistent/audit.so");
        let built = super::super::fixtures::compile(&compiler, "c", "int main() { return 0; }");
        let launch = resolve(built.program.as_os_str()).unwrap();
        assert_eq!(launch.objects.len(), 1);
        assert!(launch.remarks()[0].contains("DT_AUDIT"), "{:?}", launch.remarks());
    }
}

#[test]
fn tells_of_a_missing_library() {
    let built = super::super::fixtures::compile("gcc", "c", "int main() { return 0; }");
    built.run("gcc -shared -o libgone.so input.c");
    built.run("gcc -Wl,--no-as-needed -o program input.c libgone.so");
    built.run("rm libgone.so");
    let launch = resolve(built.program.as_os_str()).unwrap();
    assert!(launch.remarks()[0].contains("does not find libgone.so"), "{:?}", launch.remarks());
}

#[test]
fn libraries_are_beside_what_a_link_leads_to() {
    let built = super::super::fixtures::compile("gcc", "c", "int main() { return 0; }");
    built.run("gcc -shared -o libbeside.so input.c");
    built.run("gcc -Wl,--no-as-needed -Wl,-rpath,$ORIGIN -o program input.c libbeside.so");
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(&built.program, &link).unwrap();
    for command in [&built.program, &link] {
        let launch = resolve(command.as_os_str()).unwrap();
        assert!(launch.remarks().is_empty(), "{:?}", launch.remarks());
        assert!(launch.objects.iter().any(|object| object.name == "libbeside.so"));
    }
}
