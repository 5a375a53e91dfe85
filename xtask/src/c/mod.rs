//! `cargo xtask c`: the C API. Builds the libraries, compares the header with the sources, and runs programs in C, C++ and Lua: as they
//! are, and under the sanitizers of addresses, leaks and threads.

mod header;
pub mod library;
mod programs;

use std::path::Path;

use anyhow::{Result, bail};

use crate::run::{Status, workspace_root};
use crate::system::Packages;
use library::Profile;

/// The compilers, LuaJIT, CMake, pkg-config, and Vulkan's headers for the program that shares buffers.
const PACKAGES: Packages = Packages {
    debian: &["gcc", "g++", "binutils", "make", "luajit", "cmake", "pkg-config", "libvulkan-dev"],
    fedora: &[
        "gcc",
        "gcc-c++",
        "libasan",
        "libtsan",
        "binutils",
        "make",
        "luajit",
        "cmake",
        "pkgconf",
        "vulkan-loader-devel",
    ],
    arch: &["gcc", "make", "luajit", "cmake", "pkgconf", "vulkan-headers", "vulkan-icd-loader"],
    suse: &["gcc", "gcc-c++", "make", "luajit", "cmake", "pkg-config", "vulkan-devel"],
    alpine: &["build-base", "luajit", "cmake", "pkgconf", "vulkan-loader-dev"],
    otherwise: "a C and a C++ compiler, make, LuaJIT, CMake, pkg-config and Vulkan's headers",
    arch_note: "",
    suse_note: "",
    alpine_note: " (musl has no sanitizers)",
};

const HELP: &str = "\
Usage: cargo xtask c [OPTIONS]

Without options: the library as programs get it, and all programs.

  --tests           use the library as `cargo xtask test` builds it, with the checks of sums and products
  --devices N       how many devices are opened and closed (default: 1000; 10000 takes minutes)
  --only TEXT       run only the programs whose names contain TEXT
  --header          write wgrad-c/include/wgrad.h, and nothing else
  --install PREFIX  install libraries, headers and the files for pkg-config and CMake, and nothing else
";

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    let (mut profile, mut devices, mut only) = (Profile::Release, 1000, String::new());
    let mut install = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || match rest.next() {
            Some(value) => Ok(value.clone()),
            None => bail!("{argument} needs a value; `cargo xtask c --help` lists the options"),
        };
        match argument.as_str() {
            "--help" => {
                println!("{HELP}");
                return Ok(Status::SUCCESS);
            }
            "--header" => return header::write().map(|()| Status::SUCCESS),
            "--tests" => profile = Profile::Tests,
            "--devices" => devices = value()?.parse()?,
            "--only" => only = value()?,
            "--install" => install = Some(value()?),
            _ => bail!("there is no option {argument}\n\n{HELP}"),
        }
    }
    if !cfg!(target_os = "linux") {
        bail!(
            "the C API is built and tested on Linux so far. `cargo build --release -p wgrad-c` makes a library without \
             versions of symbols."
        );
    }
    header::check()?;
    if let Some(prefix) = install {
        return library::install(profile, Path::new(&prefix)).map(|()| Status::SUCCESS);
    }
    crate::setup::run()?;
    if !programs::has_tools() {
        PACKAGES
            .install("compilers or other tools for C programs were not found", "cargo xtask c")?;
    }
    let prefix = workspace_root().join("target/c/installed");
    library::install(profile, &prefix)?;
    programs::run(&prefix, profile, devices, &only)
}
