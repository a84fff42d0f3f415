//! `ctrace run`: launch a command and trace it from the first instruction of main.

use super::Failure;
use crate::{
    bpf,
    cli::RunArgs,
    session::{
        Origin, Setup,
        launch::{Launched, exit_code},
        signals::Signals,
        sink::{self, Sink},
        trace::{self, Ending},
    },
    target::launch::{self, Launch},
    ui,
};
use anyhow::anyhow;
use ctrace_core::report::TargetReport;

pub(super) fn main(args: &RunArgs, verbose: u8) -> Result<u8, Failure> {
    if args.command[0].as_encoded_bytes().starts_with(b"-") {
        let option = args.command[0].display();
        return Err(
            anyhow!("`{option}` is no option of `ctrace run`; see `ctrace help run`").into()
        );
    }
    let resolved = launch::resolve(&args.command[0])
        .map_err(|error| Failure::new(error.exit_code(), error))?;
    Ok(trace_command(args, &resolved, verbose)?)
}

fn trace_command(args: &RunArgs, resolved: &Launch, verbose: u8) -> anyhow::Result<u8> {
    bpf::require()?;
    let sink = Sink::open(&args.trace.output, sink::Default::Stderr)?;
    let mut setup = Setup::plan(&args.trace, &resolved.objects)?;
    let plan = std::mem::take(&mut setup.plan);
    for remark in resolved.remarks() {
        ui::say(&remark);
    }
    let mut launched = Launched::stopped(&resolved.command, &args.command)?;
    let pid = launched.pid();
    let words = args.command.iter().map(|word| word.to_string_lossy().into_owned());
    let target = TargetReport {
        pid: Some(pid),
        exe: Some(resolved.exe.display().to_string()),
        command: words.collect(),
        ..TargetReport::default()
    };
    let mut tracer = setup.tracer(pid, Origin::Launched, target, sink)?;
    super::announce(verbose, &plan, pid);
    tracer.arm(&plan, &resolved.objects)?;
    drop(plan);
    let ending = Ending { after: None, signals: Signals::Forward(pid) };
    trace::run(&mut tracer, trace::watch(pid)?, &ending, || launched.start())?;
    drop(tracer);
    launched.let_go()?;
    Ok(exit_code(launched.wait()?))
}
