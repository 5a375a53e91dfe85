//! The folder of the repository, in which tests find their data. Where it was when they were compiled is no help to tests
//! that run elsewhere (`cargo xtask report --pack`), so what stands in the environment comes first: cargo sets it for
//! every test.

use std::path::PathBuf;

pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}
