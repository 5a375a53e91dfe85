//! Says what the feature `mpi` needs before the crates that need it fail without a remedy.

use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_MPI").is_none() || cfg!(windows) {
        return;
    }
    println!("cargo::rerun-if-env-changed=MPICC");
    let works = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    if !works(&compiler, &["-show"])
        && !works("pkg-config", &["--exists", "mpich"])
        && !works("pkg-config", &["--exists", "ompi"])
    {
        println!(
            "cargo::error=the feature `mpi` needs an MPI library and libclang, and `{compiler}` does not run. Install them: on Debian or \
             Ubuntu `apt-get install libopenmpi-dev openmpi-bin libclang-dev`, on Fedora `dnf install openmpi-devel clang-devel` and `module \
             load mpi`, on macOS `brew install open-mpi llvm`; or name the compiler of another MPI library in the variable MPICC."
        );
    }
}
