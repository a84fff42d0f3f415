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
fn parses_what_loaders_print() {
    let loaded = parse_list(
        b"\tlinux-vdso.so.1 (0x00007ffc)\n\tliba b.so => /opt/a b/liba b.so (0x00007f)\n\
          \tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\
          \t/lib/ld-musl-x86_64.so.1 (0x7f)\nlibz.so => /lib/libz.so (0x7f)\n\n\
          Error loading shared library libm.so: No such file (needed by x)\n",
    );
    let paths: Vec<&str> = loaded.paths.iter().filter_map(|path| path.to_str()).collect();
    assert_eq!(
        paths,
        [
            "/opt/a b/liba b.so",
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/ld-musl-x86_64.so.1",
            "/lib/libz.so"
        ]
    );
    assert_eq!(loaded.missing, ["libgone.so", "libm.so"]);
}

#[test]
fn runs_no_loader_that_others_can_change() {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    const EXE: &str = "/bin/ls";
    let dir = tempfile::tempdir().unwrap();
    let loaded = libraries(Path::new(LOADER), Path::new(EXE));
    assert!(loaded.paths.len() > 1 && loaded.unasked.is_none(), "{loaded:?}");
    let check = |loader: &Path, why: &str| {
        let loaded = libraries(loader, Path::new(EXE));
        assert!(loaded.paths.is_empty(), "{loaded:?}");
        assert!(loaded.unasked.as_ref().is_some_and(|told| told.contains(why)), "{loaded:?}");
    };
    let copy = dir.path().join("ld-linux-x86-64.so.2");
    fs::copy(LOADER, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o757)).unwrap();
    check(&copy, "others than root");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    if std::os::unix::fs::chown(&copy, Some(65534), None).is_err() {
        assert_ne!(fs::metadata(&copy).unwrap().uid(), 0);
    }
    check(&copy, "others than root");
    let link = dir.path().join("ld-linux.so");
    std::os::unix::fs::symlink("/bin/ls", &link).unwrap();
    check(&link, "none that ctrace knows");
    check(Path::new("/bin/ls"), "none that ctrace knows");
    check(&dir.path().join("ld-linux-none"), "cannot be opened");
}

#[test]
fn asks_no_loader_that_would_run_code_of_the_program() {
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

#[test]
fn does_not_wait_for_ever() {
    let start = std::time::Instant::now();
    let command = |name: &str, argument: &str| {
        let mut command = Command::new(name);
        command.arg(argument);
        command
    };
    assert_eq!(output(command("sleep", "1000"), Duration::from_millis(50)), None);
    assert!(start.elapsed() < Duration::from_secs(100));
    assert_eq!(output(command("echo", "x"), PATIENCE).unwrap(), b"x\n");
}
