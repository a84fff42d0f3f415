//! Checks the user of a command that root's ctrace starts, and what it inherits from ctrace.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
/// Ids without accounts.
const UID: &str = "3999999";
const GID: &str = "3999998";

/// Prints a process's ids, capabilities, open files and environment.
const TELL: &str = "echo uid=$(id -ru):$(id -u); echo gid=$(id -rg):$(id -g); echo groups=$(id -G); \
    sed -n 's/^\\(Cap...\\|NoNewPrivs\\):\\t*/\\1=/p' /proc/self/status; \
    echo files=$(ls /proc/$$/fd | sort -n | tr '\\n' ,); env";

/// A shell has something to trace: it allocates memory.
const TRACED: [&str; 4] = ["-f", "malloc@libc*", "-o", "/dev/null"];

fn ctrace(env: &Env, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = Command::new(&env.ctrace);
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND", "DOAS_USER", "PKEXEC_UID"] {
        command.env_remove(name);
    }
    run(command.args(arguments).envs(variables.iter().copied()), LIMIT).expect("ctrace")
}

/// Runs `ctrace run` with a shell that prints its ids, rights, files and environment.
fn told(
    env: &Env,
    variables: &[(&str, &str)],
    options: &[&str],
) -> (HashMap<String, String>, String) {
    let arguments = [&["run"], &TRACED[..], options, &["--", "/bin/sh", "-c", TELL]].concat();
    let finished = ctrace(env, variables, &arguments);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    (facts(&finished.stdout), finished.stderr)
}

fn facts(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[track_caller]
fn check(facts: &HashMap<String, String>, wanted: &[(&str, &str)]) {
    for (key, value) in wanted {
        assert_eq!(facts.get(*key).map(String::as_str), Some(*value), "{key} of {facts:?}");
    }
}

const NONE: &str = "0000000000000000";
const NO_CAPABILITIES: [(&str, &str); 4] =
    [("CapInh", NONE), ("CapPrm", NONE), ("CapEff", NONE), ("CapAmb", NONE)];

/// Makes a folder that everybody may read and execute, but not write.
fn public() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("ours");
    folder
}

fn copy(from: impl AsRef<Path>, folder: &TempDir, name: &str, mode: u32) -> String {
    let path = folder.path().join(name);
    fs::copy(from, &path).expect("copied");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    path.display().to_string()
}

#[test]
fn under_sudo_the_command_has_the_rights_of_the_caller() {
    let env = or_skip!(gate::live(Link::Session));
    let sudo = [("SUDO_UID", UID), ("SUDO_GID", GID), ("SUDO_COMMAND", "x"), ("HOME", "/root")];
    let (facts, said) = told(&env, &sudo, &[]);
    check(&facts, &NO_CAPABILITIES);
    check(&facts, &[("NoNewPrivs", "0"), ("HOME", "/"), ("SHELL", "/bin/sh"), ("groups", GID)]);
    check(&facts, &[("uid", "3999999:3999999"), ("gid", "3999998:3999998")]);
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_COMMAND", "USER", "LOGNAME", "XDG_RUNTIME_DIR"] {
        assert!(!facts.contains_key(name) || facts[name].is_empty(), "{name} of {facts:?}");
    }
    assert!(said.contains("running /bin/sh as uid 3999999"), "{said}");
    assert!(said.contains("--user root keeps root"), "{said}");
}

/// Compares with the host's name services: the account's groups, home and shell.
#[test]
fn an_account_has_all_its_groups_and_its_login_environment() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = public();
    let add = |file: &str, line: &str| {
        let text = fs::read_to_string(format!("/etc/{file}")).expect("there") + line;
        fs::write(folder.path().join(file), text).expect("written");
    };
    add("passwd", "attacked:x:3999990:3999991::/home/attacked:/bin/other\n");
    add("group", "one:x:3999991:\ntwo:x:3999992:attacked\nthree:x:3999993:x,attacked\n");
    let ctrace = env.ctrace.display();
    let (at, traced) = (folder.path().display(), TRACED.join(" "));
    let inside = format!(
        "mount --bind {at}/passwd /etc/passwd && mount --bind {at}/group /etc/group && \
         exec {ctrace} run {traced} \"$@\" -- /bin/sh -c '{}'",
        TELL.replace('\'', "'\\''")
    );
    let told = |variables: &[(&str, &str)], options: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &inside, "sh"]).args(options);
        command.envs(variables.iter().copied()).env("MAIL", "/var/mail/root");
        let finished = run(&mut command, LIMIT).expect("unshare");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        (facts(&finished.stdout), finished.stderr)
    };
    let of_sudo = [("SUDO_UID", "3999990"), ("SUDO_GID", "3999992"), ("SUDO_USER", "attacked")];
    for (variables, options, gid) in [
        (&of_sudo[..], &[][..], "3999992:3999992"),
        (&[("DOAS_USER", "attacked")], &[], "3999991:3999991"),
        (&[("PKEXEC_UID", "3999990")], &[], "3999991:3999991"),
        (&[], &["--user", "attacked"], "3999991:3999991"),
    ] {
        let (facts, said) = told(variables, options);
        check(&facts, &NO_CAPABILITIES);
        check(&facts, &[("uid", "3999990:3999990"), ("gid", gid), ("USER", "attacked")]);
        check(&facts, &[("HOME", "/home/attacked"), ("SHELL", "/bin/other")]);
        check(&facts, &[("LOGNAME", "attacked"), ("MAIL", "/var/mail/attacked")]);
        let mut groups: Vec<&str> = facts["groups"].split(' ').collect();
        groups.sort_unstable();
        assert_eq!(groups, ["3999991", "3999992", "3999993"], "{variables:?}");
        assert!(said.contains("running /bin/sh as attacked (uid 3999990)"), "{said}");
    }
}

#[test]
fn without_sudo_nothing_changes_and_root_can_be_kept() {
    let env = or_skip!(gate::live(Link::Session));
    let root = [("uid", "0:0"), ("HOME", "/elsewhere"), ("USER", "somebody")];
    let variables = [("HOME", "/elsewhere"), ("USER", "somebody")];
    let (facts, said) = told(&env, &variables, &[]);
    check(&facts, &root);
    assert!(!said.contains("running"), "{said}");
    let of_sudo = [("SUDO_UID", UID), ("SUDO_GID", GID)];
    let (facts, said) = told(&env, &[&variables[..], &of_sudo].concat(), &["--user", "root"]);
    check(&facts, &root);
    assert!(said.contains("running /bin/sh as root (uid 0)"), "{said}");
    let (facts, said) = told(&env, &[&variables[..], &[("SUDO_UID", "0")]].concat(), &[]);
    check(&facts, &root);
    assert!(!said.contains("running"), "{said}");
}

/// These capabilities pass through an exec of any program.
#[test]
fn no_ambient_or_inheritable_capability_is_handed_on() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = public();
    let binary = copy(&env.ctrace, &folder, "ctrace", 0o755);
    let some = "+bpf,+perfmon,+sys_ptrace,+dac_read_search,+net_raw";
    let with = |user: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new("setpriv");
        // Without the last one, changing the user id would drop them.
        let fixed = "+no_setuid_fixup";
        command.args(user).args(["--inh-caps", some, "--ambient-caps", some]);
        command.args(["--securebits", fixed]).arg(&binary).arg("run").args(TRACED);
        command.args(["--", "/bin/sh", "-c", TELL]).env_remove("SUDO_UID");
        let finished = run(command.envs(variables.iter().copied()), LIMIT).expect("setpriv");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        facts(&finished.stdout)
    };
    let user = with(&["--reuid", UID, "--regid", GID, "--clear-groups"], &[]);
    check(&user, &NO_CAPABILITIES);
    check(&user, &[("uid", "3999999:3999999")]);
    let switched = with(&[], &[("SUDO_UID", UID), ("SUDO_GID", GID)]);
    check(&switched, &NO_CAPABILITIES);
    check(&switched, &[("uid", "3999999:3999999")]);
    let root = with(&[], &[]);
    check(&root, &[("uid", "0:0"), ("CapInh", NONE), ("CapAmb", NONE)]);
    assert_ne!(root["CapEff"], NONE, "it is still root");
}

#[test]
fn no_file_of_ours_is_open_in_the_command() {
    let env = or_skip!(gate::live(Link::Session));
    let alone = run(Command::new("/bin/sh").args(["-c", TELL]), LIMIT).expect("sh");
    let alone = facts(&alone.stdout);
    let (ours, _) = told(&env, &[], &[]);
    check(&ours, &[("files", &alone["files"])]);
    // Another user does not even get the caller's open files.
    let (theirs, _) = told(&env, &[("SUDO_UID", UID), ("SUDO_GID", GID)], &[]);
    let mut files = theirs["files"].split(',');
    assert!(files.all(|file| alone["files"].split(',').any(|has| has == file)), "{theirs:?}");
}

/// Another user can neither read nor get the caller's open files and the keys of the session
/// keyring. For the same user nothing changes.
#[test]
fn keys_and_open_files_of_the_caller_stay_with_the_caller() {
    let env = or_skip!(gate::live(Link::Session));
    let keyring = env.targets.get(&program("keyring.c")).expect("builds");
    let folder = public();
    let look = copy(&keyring, &folder, "look", 0o755);
    let told = |variables: &[(&str, &str)], options: &[&str]| {
        let inside = "exec 9</etc/shadow; exec \"$@\"";
        let mut command = Command::new(&keyring);
        command.args(["join", "sh", "-c", inside, "sh"]).arg(&env.ctrace);
        command.args(["run", "-f", "malloc@libc*", "-o", "/dev/null"]).args(options);
        let both = "echo key=$($0 look); echo file=$(readlink /proc/$$/fd/9)";
        command.args(["--", "/bin/sh", "-c", both, &look]).env_remove("SUDO_UID");
        let finished = run(command.envs(variables.iter().copied()), LIMIT).expect("keyring");
        if finished.shell_code() == 77 {
            return None;
        }
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        Some(facts(&finished.stdout))
    };
    let sudo = [("SUDO_UID", UID), ("SUDO_GID", GID)];
    let Some(ours) = told(&[], &[]) else {
        return gate::skipped("keys_and_open_files", "this kernel has no keys");
    };
    let theirs = told(&sudo, &[]).expect("keys");
    let kept = told(&sudo, &["--user", "root"]).expect("keys");
    check(&ours, &[("key", "known"), ("file", "/etc/shadow")]);
    check(&kept, &[("key", "known"), ("file", "/etc/shadow")]);
    check(&theirs, &[("key", "nothing"), ("file", "")]);
}

#[test]
fn set_user_id_programs_still_become_what_they_are() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = public();
    let id = copy("/usr/bin/id", &folder, "id", 0o4755);
    let sudo = [("SUDO_UID", UID), ("SUDO_GID", GID)];
    for (options, wanted) in [(&["-u"][..], "0"), (&["-u", "-r"], UID)] {
        let arguments = [&["run"], &TRACED[..], &["--", &id], options].concat();
        let finished = ctrace(&env, &sudo, &arguments);
        assert_eq!(finished.stdout.trim(), wanted, "{}", finished.stderr);
    }
}

#[test]
fn what_only_root_may_execute_is_not_executed() {
    let env = or_skip!(gate::live(Link::Session));
    let (open, closed) = (public(), tempfile::tempdir().expect("a folder"));
    fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).expect("ours");
    let sudo = [("SUDO_UID", UID), ("SUDO_GID", GID)];
    for path in [copy("/bin/true", &open, "mine", 0o700), copy("/bin/true", &closed, "in", 0o755)] {
        for subcommand in ["run", "record"] {
            let out = closed.path().join("out").display().to_string();
            let arguments = [subcommand, "-f", "malloc@libc*", "-o", &out, "--", &path];
            let finished = ctrace(&env, &sudo, &arguments);
            assert_eq!(finished.shell_code(), 126, "{}", finished.stderr);
            assert!(
                finished.stderr.to_lowercase().contains("permission denied"),
                "{}",
                finished.stderr
            );
        }
    }
}

#[test]
fn broken_words_of_sudo_end_in_a_plain_error() {
    let env = or_skip!(gate::live(Link::Session));
    let (folder, long) = (public(), "7".repeat(100_000));
    let made = folder.path().join("made").display().to_string();
    let mut cases: Vec<Vec<(&str, &str)>> = vec![
        vec![("SUDO_UID", "65534"), ("SUDO_GID", "0")],
        vec![("SUDO_UID", UID)],
        vec![("DOAS_USER", "no\x1b[31m\nsuch")],
        vec![("PKEXEC_UID", "-1")],
    ];
    for value in ["", "-1", "4294967295", "4294967296", "1000x", "root", "\x1b[2J", &long] {
        cases.push(vec![("SUDO_UID", value), ("SUDO_GID", GID)]);
    }
    for variables in cases {
        let arguments = [&["run"], &TRACED[..], &["--", "touch", &made]].concat();
        let finished = ctrace(&env, &variables, &arguments);
        assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
        let said = finished.stderr;
        assert!(
            said.lines().count() == 1 && said.len() < 300 && !said.contains('\x1b'),
            "{said:?}"
        );
        assert!(!Path::new(&made).exists(), "it ran");
    }
    for (user, why) in [("no such user", "there is no user"), ("3999999", "there is no user")] {
        let arguments = [&["run"], &TRACED[..], &["--user", user, "--", "touch", &made]].concat();
        let finished = ctrace(&env, &[], &arguments);
        assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
        assert!(finished.stderr.contains(why), "{}", finished.stderr);
    }
    let finished = ctrace(&env, &[], &["record", "--user", "root", "-p", "1", "-f", "x"]);
    assert!(finished.stderr.contains("leave it out where a PID"), "{}", finished.stderr);
}

/// The files are also private.
#[test]
fn what_is_written_under_sudo_belongs_to_the_caller() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = public();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let sudo = [("SUDO_UID", UID), ("SUDO_GID", GID)];
    let done = |arguments: &[&str]| {
        let finished = ctrace(&env, &sudo, arguments);
        assert_eq!(finished.shell_code(), 0, "{arguments:?}: {}", finished.stderr);
    };
    let counts = copy(env.targets.get(&program("counts.c")).expect("builds"), &folder, "c", 0o755);
    let (report, trace) = (at("report.json"), at("trace.ctrace"));
    done(&["run", "-f", "leaf", "-o", &report, "--", &counts, "10"]);
    done(&["record", "-f", "leaf", "-o", &trace, "--", &counts, "10"]);
    // A new file starts each time one has become too large.
    // Values that cannot be packed make enough of it where many calls are lost.
    let many = ["record", "-f", "leaf", "--arg", "leaf: 0:u64"];
    let (small, rotated) = (at("small.ctrace"), at("rotated.ctrace"));
    done(&[&many[..], &["--max-size", "1MiB", "-o", &small, "--", &counts, "300000"]].concat());
    done(&[&many[..], &["--rotate", "1MiB", "-o", &rotated, "--", &counts, "300000"]].concat());
    let (exported, shown) = (at("exported"), at("shown"));
    done(&["export", &trace, "--format", "chrome", "-o", &exported]);
    done(&["report", &trace, "-o", &shown]);
    for file in [report, trace, small, rotated, at("rotated.1.ctrace"), exported, shown] {
        let meta = fs::metadata(PathBuf::from(&file)).expect(&file);
        let seen = (meta.uid().to_string(), meta.gid().to_string(), meta.mode() & 0o137);
        assert_eq!(seen, (UID.to_owned(), GID.to_owned(), 0), "{file}");
    }
}
