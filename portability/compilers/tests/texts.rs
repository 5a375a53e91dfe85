//! The kernels that `WGRAD_KERNEL_TEXTS` has written to a folder. A test, so that `cargo xtask adapters` compiles no other form of
//! this crate than all tests do.

use std::process::Command;

#[test]
#[ignore = "it needs a folder of kernels, and takes long; `cargo xtask adapters` runs it"]
fn kernels_fit_adapters_and_compilers() {
    let Ok(arguments) = std::env::var("WGRAD_COMPILERS") else {
        panic!("WGRAD_COMPILERS is to have the arguments of src/main.rs, one a line");
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_wgrad-compilers"));
    match command.args(arguments.lines()).status() {
        Ok(status) => assert!(status.success(), "see above"),
        Err(error) => panic!("cannot start {command:?}: {error}"),
    }
}
