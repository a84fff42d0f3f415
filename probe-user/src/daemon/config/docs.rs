//! Writes the registry of keys as documentation: the tables in `docs/daemon.md`, and the example
//! file `docs/ctrace.toml`. A test compares them with this output.

use super::{
    FLEET, METRICS, PPROF,
    keys::{DAEMON, Key, TARGET},
};
use std::fmt::Write as _;

/// Returns the keys of a table, in Markdown.
pub(crate) fn tables() -> String {
    let mut out = String::new();
    out += "### `[daemon]`\n\n";
    table(&mut out, &DAEMON);
    out += "\n### `[metrics]`\n\n";
    table(&mut out, &METRICS);
    out += "\n### `[pprof]`\n\n";
    table(&mut out, &PPROF);
    out += "\n### `[fleet]`\n\n";
    table(&mut out, &FLEET);
    out += "\n### `[defaults]` and `[[target]]`\n\n";
    table(&mut out, &TARGET);
    out
}

fn table<T>(out: &mut String, keys: &[Key<T>]) {
    *out += "| key | default | example | meaning |\n|---|---|---|---|\n";
    for Key { name, default, example, help, .. } in keys {
        let example = example.map_or_else(String::new, |example| format!("`{example}`"));
        let help = help.replace('|', "\\|");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{name}` | `{default}` | {example} | {help} |");
    }
}

/// Returns a file with every key, commented out, at its default.
pub(crate) fn example() -> String {
    let mut out = String::from(
        "# What `ctrace daemon` traces and where it reports: every key with its default. Copy it to\n\
         # /etc/ctrace/ctrace.toml, keep what you change, and try it with `ctrace daemon --check`.\n\n\
         [daemon]\n",
    );
    keys(&mut out, &DAEMON, |_| true);
    out += "\n# docs/metrics.md tells about these.\n[metrics]\n";
    keys(&mut out, &METRICS, |_| true);
    out += "\n# docs/profiles.md tells about these.\n[pprof]\n";
    keys(&mut out, &PPROF, |_| true);
    out += "\n# docs/fleet/README.md tells about these.\n[fleet]\n";
    keys(&mut out, &FLEET, |_| true);
    out += "\n# What all targets have in common: every key of a target but `id`.\n[defaults]\n";
    keys(&mut out, &TARGET, |key| key.name != "id");
    out += "\n# One for each kind of process. The first that matches has it.\n\
            #[[target]]\n\
            #id = \"redis\"\n\
            #unit = \"redis-server.service\"\n\
            #functions = [\"processCommand\", \"*Command\"]\n\
            #interval = \"10s\"\n\
            #slow = \"50ms\"\n";
    out
}

fn keys<T>(out: &mut String, keys: &[Key<T>], is_wanted: impl Fn(&Key<T>) -> bool) {
    for key in keys.iter().filter(|key| is_wanted(key)) {
        let mut line = "#".to_owned();
        for word in key.help.split_whitespace() {
            if line.len() + 1 + word.len() > 100 {
                *out += &line;
                *out += "\n";
                line = "#".to_owned();
            }
            line += " ";
            line += word;
        }
        let example = key.example.map_or_else(String::new, |example| format!("    # {example}"));
        let _ = writeln!(out, "{line}\n#{} = {}{example}", key.name, key.default);
    }
}
