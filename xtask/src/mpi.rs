//! `cargo xtask mpi`: the tests of several processes, which need an MPI library.

use std::sync::OnceLock;

use anyhow::{Result, bail};

use crate::run::{CommandLine, Status};
use crate::system::Packages;

/// An MPI library, `mpirun`, and libclang, which reads the library's headers.
const PACKAGES: Packages = Packages {
    debian: &["libopenmpi-dev", "openmpi-bin", "libclang-dev"],
    fedora: &["openmpi-devel", "clang-devel"],
    arch: &["openmpi", "clang"],
    suse: &["openmpi4-devel", "clang-devel"],
    alpine: &["openmpi-dev", "clang-dev"],
    otherwise: "an MPI library such as Open MPI, with its headers, and libclang",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

const LACK: &str = "an MPI library, `mpirun` or the headers of libclang were not found";

/// Whether tests of several processes can be compiled and run.
pub fn is_installed() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(look)
}

fn look() -> bool {
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let runs =
        |program: &str, args: &[&str]| CommandLine::new(program).args(args).probe().is_some();
    runs(&compiler, &["-show"]) && runs("mpirun", &["--version"]) && has_libclang()
}

/// Whether a libclang is where its loader looks first.
fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() || !cfg!(target_os = "linux") {
        return true;
    }
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let llvm = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with("llvm"));
    let mut libraries = llvm.map(|folder| folder.path().join("lib/libclang.so"));
    let common = ["/usr/lib/libclang.so", "/usr/lib64/libclang.so"];
    libraries.any(|path| path.exists())
        || common.iter().any(|path| std::path::Path::new(path).exists())
}

/// Installs MPI if this is possible without a prompt. The other tests run without it, too.
pub fn set_up() {
    if !cfg!(target_os = "linux") || look() {
        return;
    }
    if let Err(error) = PACKAGES.install(LACK, "cargo xtask test") {
        eprintln!("setup: MPI: the tests of several processes are left out: {error}");
    }
}

/// Installs MPI, or fails with advice: for all features together.
pub fn require(again: &str) -> Result<()> {
    if look() { Ok(()) } else { PACKAGES.install(LACK, again) }
}

/// Installs MPI or fails with advice; then runs the tests of several processes with `arguments`.
pub fn run(arguments: &[String]) -> Result<Status> {
    crate::setup::run()?;
    if let Some(("--mpich", rest)) = arguments.split_first().map(|(at, rest)| (at.as_str(), rest)) {
        return run_with_mpich(rest);
    }
    require("cargo xtask mpi")?;
    CommandLine::cargo_test().args(["--test", "mpi"]).args(arguments).run()
}

/// MPICH, and libclang. On Debian it stands next to Open MPI, whose commands keep the plain names.
const MPICH: Packages = Packages {
    debian: &["libmpich-dev", "mpich", "libclang-dev"],
    fedora: &["mpich-devel", "clang-devel"],
    arch: &[],
    suse: &["mpich-devel", "clang-devel"],
    alpine: &["mpich-dev", "clang-dev"],
    otherwise: "MPICH with its headers, and libclang",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

/// MPICH's compiler and its `mpirun`: on Debian, on Fedora, on openSUSE, and where it is the only library.
const MPICH_COMMANDS: [(&str, &str); 4] = [
    ("mpicc.mpich", "mpirun.mpich"),
    ("/usr/lib64/mpich/bin/mpicc", "/usr/lib64/mpich/bin/mpirun"),
    ("/usr/lib64/mpi/gcc/mpich/bin/mpicc", "/usr/lib64/mpi/gcc/mpich/bin/mpirun"),
    ("mpicc", "mpirun"),
];

fn mpich() -> Option<(&'static str, &'static str)> {
    let is_mpich = |compiler: &str| {
        let shown = CommandLine::new(compiler).args(["-show"]).probe();
        shown.is_some_and(|line| line.contains("mpich"))
    };
    let runs = |command: &str| CommandLine::new(command).args(["--version"]).probe().is_some();
    MPICH_COMMANDS.into_iter().find(|(compiler, command)| is_mpich(compiler) && runs(command))
}

/// Runs the tests with MPICH. The library is part of what is compiled, and Cargo does not see that it changes, so this has a folder of
/// its own.
fn run_with_mpich(arguments: &[String]) -> Result<Status> {
    let again = "cargo xtask mpi --mpich";
    let found = mpich().filter(|_| has_libclang());
    if found.is_none() {
        MPICH.install("MPICH or the headers of libclang were not found", again)?;
    }
    let Some((compiler, command)) = found.or_else(mpich) else {
        bail!(
            "MPICH is installed, but none of its commands was found where this looks for them: {MPICH_COMMANDS:?}"
        );
    };
    let test = ["test", "--package", "wgrad", "--features", "mpi", "--test", "mpi"];
    CommandLine::cargo(test)
        .args(["--target-dir", "target/mpich"])
        .args(arguments)
        .env("MPICC", compiler)
        .env("WGRAD_MPIRUN", command)
        .run()
}
