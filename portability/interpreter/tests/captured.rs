//! The plans that `WGRAD_KERNEL_CAPTURE` has written to a folder. A test, so that `cargo xtask races` compiles no other form of
//! this crate than all tests do.

use std::process::Command;

#[test]
#[ignore = "it needs captured plans, and takes long; `cargo xtask races` runs it"]
fn captured_plans_have_no_fault() {
    let Ok(arguments) = std::env::var("WGRAD_INTERPRETER") else {
        panic!("WGRAD_INTERPRETER is to have the arguments of src/main.rs, one a line");
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_wgrad-interpreter"));
    match command.args(arguments.lines()).status() {
        Ok(status) => assert!(status.success(), "see above"),
        Err(error) => panic!("cannot start {command:?}: {error}"),
    }
}
