//! `ctrace doctor`: checks what this kernel and user support, and what ctrace will use.

use super::{Failure, heal, print, process};
use crate::{
    bpf::{Capability, Features, Needs, Nop, Support},
    cli::DoctorArgs,
    session::budget::{
        calibrate::{self, Calibration},
        remembered,
    },
    session::keep::sink::{self, Out},
    ui::{
        self,
        output::style::{Style, Tone},
        text,
    },
};
use serde::Serialize;

/// The object that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    works: bool,
    #[serde(flatten)]
    features: &'a Features,
    calibration: Option<&'a Calibration>,
}

/// The exit status is 0 when tracing works here.
pub(super) fn main(args: &DoctorArgs) -> Result<u8, Failure> {
    if let Some(process) = &args.heal {
        return heal::asked(process::id(process)?, args.json);
    }
    let features = Features::probe();
    let works = features.link.is_some()
        && [&features.programs, &features.process_ids, &features.btf, &features.ring_buffer]
            .iter()
            .all(|s| s.works);
    let calibration = if args.calibrate && works { Some(calibrate::measure()?) } else { None };
    if let Some(costs) = &calibration {
        match remembered::keep(costs) {
            Ok(path) => ui::say(&format!(
                "{} has these costs from now on; reports subtract them",
                path.display()
            )),
            Err(why) => ui::say(&format!("the costs are not kept for later sessions: {why:#}")),
        }
    }
    if args.json {
        let report = Report {
            schema: "ctrace.doctor.v1",
            works,
            features: &features,
            calibration: calibration.as_ref(),
        };
        print(&serde_json::to_string_pretty(&report)?)?;
    } else {
        let mut out = Out::open(None, sink::Default::Stdout)?;
        let text = text(&features, works, calibration.as_ref(), &out.style);
        out.write(&text)?;
    }
    Ok(u8::from(!works))
}

fn text(
    features: &Features,
    works: bool,
    calibration: Option<&Calibration>,
    style: &Style,
) -> String {
    let row = |name: &str, value: &str| row(name, value, style);
    let mut lines = vec![
        row("kernel", &format!("{} on {}", features.release, features.architecture)),
        row("rights", &rights(features)),
    ];
    lines.extend(features.capabilities.uses.iter().map(|needs| rights_for(needs, style)));
    lines.extend([
        row("lockdown", lockdown(features)),
        row("eBPF programs", &support(&features.programs)),
        row("process ids", &support(&features.process_ids)),
        row("kernel types (BTF)", &support(&features.btf)),
        row("ring buffers", &support(&features.ring_buffer)),
        row("session links", &support(&features.session_link)),
        row("multi links", &support(&features.multi_link)),
        row("perf links", &support(&features.perf_link)),
        row("guarded returns", &guarded_returns(&features.guarded_returns)),
        row("semaphores", &support(&features.semaphores)),
        row(
            "long nops",
            match features.nop {
                Nop::Emulated => "can be probed",
                Nop::Nop5 => "never probed: 5-byte ones become calls, which kill forked children",
                Nop::Nop10 => "never probed: 10-byte ones become calls",
            },
        ),
    ]);
    if let Some(why) = features.filter_in_programs {
        lines.push(row("process filter", &format!("in the programs: {why}")));
    }
    if let Some(calibration) = calibration {
        lines.extend(calibration.rows().into_iter().map(|(name, value)| row(name, &value)));
    }
    lines.push(String::new());
    lines.push(match features.link {
        Some(link) if works => format!("ctrace works here, with {link} links.\n"),
        _ => "ctrace cannot trace here; the lines above say why.\n".into(),
    });
    lines.join("\n")
}

/// Writes a value beside its name. What does not fit into the line follows below, beside the names.
fn row(name: &str, value: &str, style: &Style) -> String {
    const NAMES: usize = 21;
    let room = style.width.map(|width| width.saturating_sub(NAMES));
    let style = Style { width: room, ..Style::default() };
    let value = text::paragraph(value, Tone::Plain, &style);
    let mut lines = value.lines();
    let first = lines.next().unwrap_or_default();
    let more = lines.map(|line| format!("\n{:NAMES$}{line}", ""));
    format!("{name:<20} {first}") + &more.collect::<String>()
}

fn support(support: &Support) -> String {
    match &support.reason {
        None => "yes".into(),
        Some(reason) => format!("no: {reason}"),
    }
}

/// A process may have objects that stand against it where the host has all it takes.
fn guarded_returns(support: &Support) -> String {
    match &support.reason {
        None => "yes; for a process: ctrace list -v -p PID".into(),
        Some(_) => self::support(support),
    }
}

fn lockdown(features: &Features) -> &str {
    match &features.lockdown {
        Some(mode) => mode,
        None if features.lockdown_is_known => "none",
        None => "unknown: /sys/kernel/security/lockdown cannot be read (is securityfs mounted?)",
    }
}

fn names(list: &[Capability]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn rights(features: &Features) -> String {
    match features.capabilities.held.as_slice() {
        [] => "none: run it with sudo, or with what the next lines name".into(),
        held => names(held),
    }
}

/// Returns the least rights for a use, and whether they are present.
fn rights_for(needs: &Needs, style: &Style) -> String {
    let all = names(needs.needs);
    let value = match needs.missing.as_slice() {
        [] => format!("yes, by {all}"),
        missing if missing == needs.needs => format!("no: needs {all}"),
        missing => format!("no: needs {all}; {} missing", names(missing)),
    };
    row(&format!("  {}", needs.of), &value, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::text::names::width;

    #[test]
    fn a_long_value_is_wrapped_beside_the_names() {
        let value = ["CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE", "CAP_PERFMON", "CAP_BPF"].join(", ");
        for columns in [40, 60, 80] {
            let told = row("rights", &value, &Style { width: Some(columns), ..Style::default() });
            let lines: Vec<&str> = told.lines().collect();
            assert!(lines.iter().all(|line| width(line) <= columns + 2), "{told}");
            let (first, more) = lines.split_first().expect("a line");
            assert!(first.starts_with("rights               CAP_DAC_READ_SEARCH,"), "{told}");
            assert!(more.iter().all(|line| line.starts_with(&" ".repeat(23))), "{told}");
            assert_eq!(told.split_whitespace().skip(1).collect::<Vec<_>>().join(" "), value);
        }
        let told = row("rights", &value, &Style { width: Some(120), ..Style::default() });
        assert_eq!(told, format!("rights               {value}"));
    }
}
