//! The command line.

use std::path::PathBuf;

const HELP: &str = "\
Sends the tables of ctrace's daemon to an object store.

Usage: ctrace-store ship FOLDER URL [OPTIONS]

Each whole file of FOLDER (TABLE/host=…/day=…/unit=…/part-….parquet) becomes the object of the
same name below URL. The file is removed once the object is there.

  FOLDER        The folder of tables
  URL           s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX,
                abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX, or file:///FOLDER

Options:
  --once        Send what is there, and end: with 0 if all is sent, 1 if some files wait. Each is
                tried once, unless the store cannot be reached or refuses the credentials
  --host NAME   Send the files of this machine only; as its folder has it after `host=`
  --until-eof   End when standard input ends, after what is there then
  --help        Print this
  --version     Print the version

Credentials, regions and endpoints come from the environment: AWS_*, GOOGLE_*, AZURE_*.
Lines on standard output tell what happens: `uploaded BYTES NAME`, `failed WHY`,
`waiting FILES BYTES`.";

/// The wish of the caller.
pub(crate) enum Asked {
    Ship(Arguments),
    /// Print this.
    Text(String),
}

pub(crate) struct Arguments {
    pub(crate) folder: PathBuf,
    pub(crate) url: String,
    pub(crate) once: bool,
    pub(crate) host: Option<String>,
    pub(crate) until_eof: bool,
}

pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let (mut once, mut until_eof, mut host) = (false, false, None);
    let mut names = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        match &*word {
            "--help" | "-h" | "help" => return Ok(Asked::Text(HELP.to_owned())),
            "--version" | "-V" => {
                return Ok(Asked::Text(format!("ctrace-store {}", env!("CARGO_PKG_VERSION"))));
            }
            "--once" => once = true,
            "--until-eof" => until_eof = true,
            "--host" => host = Some(words.next().ok_or("--host needs a name")?),
            option if option.starts_with("--") => {
                return Err(format!(
                    "there is no option {}; --help lists all",
                    option.escape_debug()
                ));
            }
            _ => names.push(word),
        }
    }
    let [command, folder, url] = <[String; 3]>::try_from(names)
        .map_err(|_| "needed is: ship FOLDER URL; --help tells more".to_owned())?;
    if command != "ship" {
        return Err(format!("there is no command {}; --help tells more", command.escape_debug()));
    }
    Ok(Asked::Ship(Arguments { folder: folder.into(), url, once, host, until_eof }))
}
