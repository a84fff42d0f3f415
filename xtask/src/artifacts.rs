//! Asks cargo where it puts what it builds.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The eBPF object of a build, and the build script that makes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ebpf {
    pub object: PathBuf,
    /// The toolchain that built it.
    pub toolchain: String,
    pub script: PathBuf,
}

/// Runs a build of `ctrace`, and returns its eBPF object.
pub(crate) fn ebpf(build: &mut Command) -> Result<Ebpf> {
    ebpf_of(&messages(build)?).context("cargo names no build script of ctrace")
}

/// Runs a build, and returns cargo's messages about it.
pub(crate) fn messages(build: &mut Command) -> Result<Vec<Value>> {
    let output = build.args(["--message-format", "json"]).output()?;
    if !output.status.success() {
        bail!("cargo failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads messages. Other lines are what build scripts print.
pub(crate) fn parse(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns the name of the package that a message is about.
pub(crate) fn package_of(message: &Value) -> Option<&str> {
    // The id is path+file:///folder#name@version, or folder#version if the name is the folder's.
    let (path, name) = message["package_id"].as_str()?.rsplit_once('#')?;
    match name.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

fn ebpf_of(messages: &[Value]) -> Option<Ebpf> {
    let own = || messages.iter().filter(|message| package_of(message) == Some("ctrace"));
    let script = own().find(|message| message["target"]["kind"][0] == "custom-build")?;
    let executed = own().find(|message| message["reason"] == "build-script-executed")?;
    let toolchain = executed["env"].as_array()?.iter().find(|set| set[0] == "CTRACE_BPF_TOOLCHAIN");
    Some(Ebpf {
        toolchain: toolchain?[1].as_str()?.to_owned(),
        object: PathBuf::from(executed["out_dir"].as_str()?).join("ctrace.bpf.o"),
        script: PathBuf::from(script["filenames"][0].as_str()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_script_of_ctrace_is_found_among_messages() {
        let messages = parse(
            r#"
{"reason":"compiler-artifact","package_id":"registry+https://r/i#libc@0.2.1","target":{"kind":["custom-build"]},"filenames":["/t/build/libc-1/build-script-build"]}
{"reason":"compiler-artifact","package_id":"path+file:///r/probe-user#ctrace@0.1.0","target":{"kind":["custom-build"]},"filenames":["/t/build/ctrace-2/build-script-main"]}
{"reason":"build-script-executed","package_id":"registry+https://r/i#libc@0.2.1","out_dir":"/t/build/libc-3/out"}
{"reason":"build-script-executed","package_id":"path+file:///r/probe-user#ctrace@0.1.0","env":[["OTHER","1"],["CTRACE_BPF_TOOLCHAIN","rustc 1.97"]],"out_dir":"/t/build/ctrace-4/out"}
{"reason":"build-finished","success":true}"#,
        );
        let expected = Ebpf {
            toolchain: "rustc 1.97".into(),
            object: "/t/build/ctrace-4/out/ctrace.bpf.o".into(),
            script: "/t/build/ctrace-2/build-script-main".into(),
        };
        assert_eq!(ebpf_of(&messages), Some(expected));
        assert_eq!(ebpf_of(&messages[..2]), None);
    }
}
