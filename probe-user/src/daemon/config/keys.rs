//! The registry of keys: name, default, help and meaning of each in one place. Reading the file, the
//! defaults, the documentation and the example file all derive from it.

#![expect(
    clippy::unit_arg,
    reason = "a key's setter is an assignment that may fail: Ok(c.key = value?)"
)]

use super::{
    ByValue, Daemon, Output, ReportKind, Target,
    value::{TomlValue, path, providers},
};
use crate::{
    bpf::LinkChoice,
    daemon::{accounts, ids::TargetName, metrics::by_value::MOST_SERIES},
    session::spec::OnFull,
    target::{place::Returns, process::glob::PathGlob, values::asked::AskedValues},
    values,
};
use ctrace_core::filter::ThreadFilter;
use std::path::PathBuf;

pub(crate) struct Key<T> {
    pub name: Text,
    /// The default as it would be in the file.
    pub default: Text,
    /// Another value, if the default does not show the form.
    pub example: Option<Text>,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test makes the documentation from it"))]
    pub help: Text,
    pub set: Set<T>,
}

type Set<T> = fn(&mut T, TomlValue<'_>) -> Result<(), String>;
type Text = &'static str;

const fn daemon(name: Text, default: Text, help: Text, set: Set<Daemon>) -> Key<Daemon> {
    Key { name, default, example: None, help, set }
}

const fn target(name: Text, default: Text, help: Text, set: Set<Target>) -> Key<Target> {
    Key { name, default, example: None, help, set }
}

impl<T> Key<T> {
    pub(super) const fn new(
        name: Text,
        default: Text,
        example: Option<Text>,
        help: Text,
        set: Set<T>,
    ) -> Self {
        Self { name, default, example, help, set }
    }

    const fn example(mut self, example: Text) -> Self {
        self.example = Some(example);
        self
    }
}

fn patterns(value: TomlValue<'_>) -> Result<Vec<PathGlob>, String> {
    value.texts()?.iter().map(|text| PathGlob::parse(text)).collect()
}

/// Parses patterns of whole paths. The kernel names a running program by its file, so a path that
/// is a link also stands for where it leads.
fn paths(value: TomlValue<'_>) -> Result<Vec<PathGlob>, String> {
    let never = |text: &&String| !text.starts_with(['/', '*', '?', '[', '{']);
    match value.texts()?.iter().find(never) {
        Some(text) => {
            Err(format!("`{text}` is no path from the root; `name` takes names of programs"))
        }
        None => {
            let mut all = patterns(value)?;
            let leads_to = |pattern: &PathGlob| {
                let path = pattern.literal_path()?;
                let end = path.canonicalize().ok().filter(|end| end != path)?;
                PathGlob::parse(&globset::escape(end.to_str()?)).ok()
            };
            all.extend(all.iter().filter_map(leads_to).collect::<Vec<_>>());
            Ok(all)
        }
    }
}

/// Parses values of calls that are asked for.
fn asked<E: std::fmt::Display>(
    value: TomlValue<'_>,
    parse: fn(&str) -> Result<AskedValues, E>,
) -> Result<Vec<AskedValues>, String> {
    value.texts()?.iter().map(|text| parse(text).map_err(|error| error.to_string())).collect()
}

/// Parses a number, with `None` for 0.
fn unless_zero(value: TomlValue<'_>) -> Result<Option<u32>, String> {
    value.count().map(|number| Some(number).filter(|number| *number > 0))
}

pub(super) fn at_least_one(value: TomlValue<'_>) -> Result<u32, String> {
    unless_zero(value)?.ok_or_else(|| "at least 1".to_owned())
}

/// Parses a group, or none.
pub(super) fn group(text: &str) -> Result<Option<u32>, String> {
    if text.is_empty() { Ok(None) } else { accounts::group(text).map(Some) }
}

/// `[daemon]`
pub(crate) const DAEMON: [Key<Daemon>; 7] = [
    daemon(
        "socket",
        r#""/run/ctrace/ctrace.sock""#,
        "The socket through which `ctrace ctl` reaches the daemon.",
        |c, v| Ok(c.socket = path(v)?),
    ),
    daemon(
        "group",
        r#""""#,
        "A group, by name or number, whose members may use the socket besides root.",
        |c, v| Ok(c.group = v.parsed(group)?),
    )
    .example(r#""ctrace""#),
    daemon(
        "max_processes",
        "64",
        "The limit of processes traced at a time, for all targets together.",
        |c, v| Ok(c.max_processes = at_least_one(v)?),
    ),
    daemon(
        "rescan",
        r#""60s""#,
        "The time between looks through all processes, in case the kernel's report of a new one was lost.",
        |c, v| Ok(c.rescan = v.parsed(values::seconds)?),
    ),
    daemon(
        "recordings",
        r#""/var/lib/ctrace""#,
        "The folder for recordings of slow calls and of `ctrace ctl record`.",
        |c, v| Ok(c.recordings.folder = path(v)?),
    ),
    daemon(
        "recordings_keep",
        "20",
        "Remove the oldest recordings of a target beyond this number.",
        |c, v| Ok(c.recordings.files = at_least_one(v)?),
    ),
    daemon(
        "recordings_keep_bytes",
        r#""1GiB""#,
        "Remove the oldest recordings of a target beyond this total size.",
        |c, v| Ok(c.recordings.bytes = v.parsed(values::size)?),
    ),
];

/// `[[target]]`, and `[defaults]` but for `id`.
pub(crate) const TARGET: [Key<Target>; 54] = [
    target("id", r#""""#, "What this target is called in reports and commands.", |c, v| {
        Ok(c.id = TargetName(v.parsed(name)?.into()))
    })
    .example(r#""web""#),
    target(
        "exe",
        "[]",
        "Processes that run this program: a path, also of a link to it, or a glob (`**` for any \
         folders). This and the next six choose processes: every key that is given must match, by any \
         one of its values. A server that forks also needs `follow`: otherwise each of its processes \
         is traced by itself.",
        |c, v| Ok(c.matching.exe = paths(v)?),
    )
    .example(r#""/usr/bin/redis-server""#),
    target("name", "[]", "Processes of this name, or whose program's file has it; a glob.", |c, v| {
        Ok(c.matching.name = patterns(v)?)
    })
    .example(r#"["nginx", "php-fpm*"]"#),
    target("command", "[]", "Processes with this command line; a glob, in which * is anything.", |c, v| {
        Ok(c.matching.command = patterns(v)?)
    })
    .example(r#""*--role=worker*""#),
    target("user", "[]", "Processes of this user, by name or number.", |c, v| {
        Ok(c.matching.user = v.texts()?.iter().map(|u| accounts::user(u)).collect::<Result<_, _>>()?)
    })
    .example(r#""www-data""#),
    target("cgroup", "[]", "Processes in this control group; a glob.", |c, v| {
        Ok(c.matching.cgroup = patterns(v)?)
    })
    .example(r#""/system.slice/**""#),
    target("unit", "[]", "Processes of this systemd unit, such as a service; a glob.", |c, v| {
        Ok(c.matching.unit = patterns(v)?)
    })
    .example(r#""redis.service""#),
    target(
        "container",
        "[]",
        "Processes in the container whose id or name, in the control group's path, begins so.",
        |c, v| Ok(c.matching.container = v.texts()?),
    )
    .example(r#""4f1c0a""#),
    target("max_processes", "8", "Trace at most so many processes of this target at a time.", |c, v| {
        Ok(c.max_processes = at_least_one(v)?)
    })
    .example("32"),
    target(
        "functions",
        "[]",
        "Functions to trace, as `ctrace attach -f`. With no functions, usdt, pairs, markers and groups: \
         all marker scopes.",
        |c, v| Ok(c.what.select.functions = v.texts()?),
    )
    .example(r#"["handle_*", "malloc@libc*"]"#),
    target("usdt", "[]", "USDT probes to trace, as `ctrace attach -u`.", |c, v| {
        Ok(c.what.select.usdt = v.texts()?)
    })
    .example(r#"["redis:*"]"#),
    target("pairs", "[]", "Pairs of USDT probes to time as calls, as `ctrace attach --pair`.", |c, v| {
        Ok(c.what.select.pairs = v.texts()?)
    })
    .example(r#"["lock=app:lock_wait,app:lock_got"]"#),
    target("no_pairs", "false", "Count hits of USDT probes that look like pairs, and time no calls between them.", |c, v| {
        Ok(c.what.select.no_pairs = v.flag()?)
    }),
    target(
        "providers",
        "[]",
        "Paths of files with the types of arguments of USDT probes, as `ctrace attach --provider`.",
        |c, v| Ok(c.what.select.providers = providers(v)?),
    ),
    target(
        "with_callees",
        "0",
        "Also trace the functions that the chosen ones call by name, as many calls deep, as `ctrace attach \
         --with-callees`.",
        |c, v| Ok(c.what.select.with_callees = v.count()?),
    ),
    target(
        "with_callers",
        "0",
        "Also trace the functions that call the chosen ones by name, as many calls up, as `ctrace attach \
         --with-callers`.",
        |c, v| Ok(c.what.select.with_callers = v.count()?),
    ),
    target("markers", "[]", "Marker scopes to trace, as `ctrace attach -m`.", |c, v| {
        Ok(c.what.select.markers = v.texts()?)
    })
    .example(r#"["parse*"]"#),
    target("groups", "[]", "Groups of marker scopes to trace.", |c, v| {
        Ok(c.groups = v.texts()?)
    })
    .example(r#"["prod"]"#),
    target(
        "args",
        "[]",
        "Arguments of calls to read, as `ctrace attach --arg`, for `by` and for recordings.",
        |c, v| Ok(c.args = asked(v, AskedValues::arguments)?),
    )
    .example(r#"["handle: key=1:str"]"#),
    target("rets", "[]", "Results of calls to read, as `ctrace attach --ret`.", |c, v| {
        Ok(c.rets = asked(v, AskedValues::result)?)
    })
    .example(r#"["handle: i32"]"#),
    target("exclude", "[]", "What to leave out of all of these.", |c, v| {
        Ok(c.what.select.exclude = v.texts()?)
    })
    .example(r#"["std::*"]"#),
    target("max_functions", "1000", "Refuse a selection of more functions, probes and scopes.", |c, v| {
        Ok(c.what.most.max_functions = at_least_one(v)? as usize)
    }),
    target(
        "max_object_memory",
        r#""512MiB""#,
        "Memory limit for reading one program or library, including its debug file.",
        |c, v| Ok(c.what.most.object.memory = v.parsed(values::size)?),
    ),
    target(
        "max_object_time",
        r#""10s""#,
        "CPU time limit for reading one program or library.",
        |c, v| Ok(c.what.most.object.time = v.parsed(values::seconds)?),
    ),
    target("min_duration", r#""off""#, "Only calls that took at least this long.", |c, v| {
        Ok(c.what.filter.min_duration = v.unless_off(values::nanos)?.unwrap_or_default())
    })
    .example(r#""10us""#),
    target("depth", "0", "Only calls at most this deep among the traced functions; 0: all.", |c, v| {
        Ok(c.what.filter.max_depth = unless_zero(v)?)
    }),
    target("threads", "[]", "Only the threads whose names match one of these globs, or of these ids.", |c, v| {
        Ok(c.what.filter.threads = v.texts()?.iter().map(|text| ThreadFilter::new(text)).collect())
    })
    .example(r#"["worker-*"]"#),
    target("follow", "false", "Also trace all later descendants of a process, in the same session and report.", |c, v| {
        Ok(c.what.probes.follow = v.flag()?)
    }),
    target("returns", r#""auto""#, "How the ends of calls are seen: auto, uretprobe or ret-sites.", |c, v| {
        let words = [
            ("auto", Returns::Auto),
            ("uretprobe", Returns::ReturnProbe),
            ("ret-sites", Returns::RetSites),
        ];
        Ok(c.what.probes.returns = v.one_of(&words)?)
    }),
    target("link", r#""auto""#, "How probes are linked: auto, session, multi or perf.", |c, v| {
        let words = [
            ("auto", LinkChoice::Auto),
            ("session", LinkChoice::Session),
            ("multi", LinkChoice::Multi),
            ("perf", LinkChoice::Perf),
        ];
        Ok(c.what.probes.link = v.one_of(&words)?)
    }),
    target("ring_size", r#""512KiB""#, "Size of the ring buffer of each CPU, for each process.", |c, v| {
        Ok(c.what.probes.ring_size = Some(v.parsed(values::ring_size)?))
    }),
    target("on_full", r#""drop""#, "What threads with full marker buffers do while their ring is nearly full: drop or wait.", |c, v| {
        let words = [("drop", OnFull::Drop), ("wait", OnFull::Wait)];
        Ok(c.what.probes.on_full = Some(v.one_of(&words)?))
    }),
    target(
        "spool",
        r#""8MiB""#,
        "Memory for the calls of an interval, for each process; beyond it percentiles are within \
         0.1 %.",
        |c, v| Ok(c.what.probes.spool = v.parsed(values::size)?),
    ),
    target(
        "max_slowdown",
        r#""warn""#,
        "Reaction to a slowed process: warn (beyond 50 %), off, or let go beyond a percentage.",
        |c, v| Ok(c.what.probes.max_slowdown = v.parsed(values::slowdown)?),
    ),
    target(
        "budget",
        r#""off""#,
        "Limit of the probes' cost, as a percentage of the target's own CPU time.",
        |c, v| Ok(c.what.probes.budget = v.unless_off(values::budget)?),
    )
    .example(r#""1%""#),
    target("report", r#""json""#, "The form of reports: json (a line each), table or none.", |c, v| {
        let words =
            [("json", ReportKind::Json), ("table", ReportKind::Table), ("none", ReportKind::None)];
        Ok(c.reports.kind = v.one_of(&words)?)
    }),
    target("interval", r#""60s""#, "Between reports; each covers exactly its own interval.", |c, v| {
        Ok(c.reports.interval = v.parsed(values::seconds)?)
    }),
    target("output", r#""stdout""#, "Where reports go: stdout (the journal), or a file.", |c, v| {
        let output = |text: &str| match text {
            "stdout" => Ok(Output::Stdout),
            text if text.starts_with('/') => Ok(Output::File(PathBuf::from(text))),
            _ => Err("stdout, or a path from the root".to_owned()),
        };
        Ok(c.reports.output = v.parsed(output)?)
    })
    .example(r#""/var/log/ctrace/web.jsonl""#),
    target("views", "[]", "What a table shows, as `--view`; none: summary.", |c, v| {
        Ok(c.reports.views = v.texts()?)
    })
    .example(r#"["summary", "tree"]"#),
    target("sort", r#""""#, "The column by which a table is sorted.", |c, v| {
        Ok(c.reports.sort = Some(v.text()?).filter(|column| !column.is_empty()))
    })
    .example(r#""total""#),
    target("top", "0", "Show only so many rows of a table; 0: all.", |c, v| {
        Ok(c.reports.top = unless_zero(v)?.map(|rows| rows as usize))
    }),
    target("center", "1", "Percent of the calls to cut off each end for the center columns.", |c, v| {
        Ok(c.reports.center_cut = values::center(&v.number()?.to_string())?)
    }),
    target("rotate_size", r#""64MiB""#, "Begin another file of reports at this size.", |c, v| {
        Ok(c.reports.rotate_bytes = v.parsed(values::size)?)
    }),
    target("rotate_age", r#""off""#, "Begin another file of reports after so long.", |c, v| {
        Ok(c.reports.rotate_age = v.unless_off(values::seconds)?)
    })
    .example(r#""1440m""#),
    target("keep_files", "10", "Keep at most this many files of reports; the oldest are removed.", |c, v| {
        Ok(c.reports.keep_files = at_least_one(v)?)
    }),
    target("keep_bytes", r#""1GiB""#, "Keep files of reports of at most this size in all; the oldest are removed.", |c, v| {
        Ok(c.reports.keep_bytes = v.parsed(values::size)?)
    }),
    target(
        "by",
        r#""off""#,
        "Metrics also count the calls of FUNCTION by each value of ARG: an argument or result that is read, a \
         value of a marker scope, an argument of a USDT probe.",
        |c, v| v.unless_off(ByValue::parse).map(|by| c.by = by),
    )
    .example(r#""handle: key""#),
    target("by_values", "20", "So many values have series of their own, those that take the most time; at most 100.", |c, v| {
        match at_least_one(v)? as usize {
            values if values <= MOST_SERIES => Ok(c.by_values = values),
            _ => Err(format!("at most {MOST_SERIES}")),
        }
    }),
    target("plots", "false", "Metrics also tell the numbers that markers plot.", |c, v| {
        Ok(c.plots = v.flag()?)
    }),
    target(
        "slow",
        r#""off""#,
        "When a call takes this long, keep the last seconds as a recording.",
        |c, v| {
            let slow = v.unless_off(values::nanos)?;
            Ok(c.flight.slow = slow.map(|slow| std::time::Duration::from_nanos(slow.0)))
        },
    )
    .example(r#""250ms""#),
    target("slow_functions", "[]", "Functions whose slow calls are kept; empty: all.", |c, v| {
        Ok(c.flight.functions = v.texts()?)
    })
    .example(r#"["handle_request"]"#),
    target("slow_keep", r#""10s""#, "How much of the time before a slow call is kept.", |c, v| {
        Ok(c.flight.keep = v.parsed(values::seconds)?)
    }),
    target("slow_memory", r#""8MiB""#, "Memory for that, for each process.", |c, v| {
        Ok(c.flight.memory = v.parsed(values::size)?)
    }),
    target("slow_pause", r#""60s""#, "Least time between two recordings of slow calls.", |c, v| {
        Ok(c.flight.pause = v.parsed(values::seconds)?)
    }),
];

/// Checks a name, which appears in commands, file names and labels.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "" => Ok(String::new()),
        text if text.len() <= 64 && text.chars().all(fits) && !text.starts_with(['.', '-']) => {
            Ok(text.to_owned())
        }
        _ => Err("letters, digits and -_. only, at most 64".to_owned()),
    }
}
