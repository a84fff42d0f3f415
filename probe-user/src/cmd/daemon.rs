//! `ctrace daemon`: see `crate::daemon`.

use super::Failure;
use crate::{
    cli::DaemonArgs,
    daemon::{self, config::Config},
    ui,
};

pub(super) fn main(args: &DaemonArgs) -> Result<u8, Failure> {
    if args.check {
        let config = Config::load(&args.config)?;
        let (path, remarks) = (args.config.display(), config.remarks());
        remarks.iter().for_each(|remark| ui::say(remark));
        if let Some(refusal) = daemon::refusal(&config) {
            return Err(anyhow::anyhow!("{path}: {refusal}").into());
        }
        let count = ui::text::units::counted(config.targets.len() as u64, "target", "targets");
        let but = if remarks.is_empty() { "" } else { ", but for the lines above" };
        ui::say(&format!("{path} is sound{but}: {count}"));
        return Ok(0);
    }
    daemon::run(&args.config)?;
    Ok(0)
}
