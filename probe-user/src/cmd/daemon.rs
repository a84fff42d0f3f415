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
        config.remarks().iter().for_each(|remark| ui::say(remark));
        let count = ui::units::counted(config.targets.len() as u64, "target", "targets");
        ui::say(&format!("{} is sound: {count}", args.config.display()));
        return Ok(0);
    }
    daemon::run(&args.config)?;
    Ok(0)
}
