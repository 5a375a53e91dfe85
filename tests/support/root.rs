//! The folder of the repository, in which tests find their data. The folder at compile time is useless for tests that run
//! elsewhere (`cargo xtask report --pack`), so the environment takes precedence: cargo sets the variable for every test.

use std::path::PathBuf;

pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}
