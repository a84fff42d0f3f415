//! `ctrace doctor`: what this kernel and this user can do, and what ctrace will therefore use.

use super::Failure;
use crate::{
    bpf::{Features, Nop, Support},
    cli::DoctorArgs,
    session::calibrate::{self, Calibration},
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
    let features = Features::probe();
    let works = features.link.is_some()
        && [&features.programs, &features.process_ids, &features.btf, &features.ring_buffer]
            .iter()
            .all(|s| s.works);
    let calibration = if args.calibrate && works { Some(calibrate::measure()?) } else { None };
    if args.json {
        let report = Report {
            schema: "ctrace.doctor.v1",
            works,
            features: &features,
            calibration: calibration.as_ref(),
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", text(&features, works, calibration.as_ref()));
    }
    Ok(u8::from(!works))
}

fn text(features: &Features, works: bool, calibration: Option<&Calibration>) -> String {
    let mut lines = vec![
        row("kernel", &format!("{} on {}", features.release, features.architecture)),
        row("rights", &rights(features)),
        row("lockdown", features.lockdown.as_deref().unwrap_or("none")),
        row("eBPF programs", &support(&features.programs)),
        row("process ids", &support(&features.process_ids)),
        row("kernel types (BTF)", &support(&features.btf)),
        row("ring buffers", &support(&features.ring_buffer)),
        row("session links", &support(&features.session_link)),
        row("multi links", &support(&features.multi_link)),
        row("perf links", &support(&features.perf_link)),
        row("semaphores", &support(&features.semaphores)),
        row(
            "long nops under probes",
            match features.nop {
                Nop::Emulated => "left as they are",
                Nop::Nop5 => "5-byte nops become calls that kill forked children: never probed",
                Nop::Nop10 => "10-byte nops become calls: never probed",
            },
        ),
    ];
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

fn row(name: &str, value: &str) -> String {
    format!("{name:<20} {value}")
}

fn support(support: &Support) -> String {
    match &support.reason {
        None => "yes".into(),
        Some(reason) => format!("no: {reason}"),
    }
}

fn rights(features: &Features) -> String {
    let names = |list: &[crate::bpf::Capability]| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let (held, missing) = (&features.capabilities.held, &features.capabilities.missing);
    match (held.is_empty(), missing.is_empty()) {
        (_, true) => "all that are needed".into(),
        (true, false) => format!("none; missing {}: run it with sudo", names(missing)),
        (false, false) => format!("{}; missing {}", names(held), names(missing)),
    }
}
