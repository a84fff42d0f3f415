//! Any text is a provider file or a clear error, and what it declares can be read and shown.

use ctrace_common::MAX_VALUES;
use ctrace_user::testing::target::ProviderFile;

/// A name, a type and a length.
const LONGEST: usize = 80;

pub fn check(text: &str) {
    let Ok(file) = ProviderFile::parse(text) else { return };
    let mut declares_any = false;
    for arguments in file.arguments() {
        declares_any = true;
        assert!(arguments.len() <= MAX_VALUES);
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        assert!(shown.iter().all(|it| it.len() <= LONGEST && it.is_ascii()));
    }
    assert!(declares_any, "a file that declares no probe is an error");
}
