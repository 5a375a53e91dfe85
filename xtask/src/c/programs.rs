//! The programs that use the C API: how each is compiled and run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::library::{Profile, compiler, system_libraries};
use crate::run::{CommandLine, Status, first_failure, workspace_root};
use crate::virtual_environment;

/// Whether all programs that this needs are there.
pub fn has_tools() -> bool {
    let runs = |program: &str, argument: &str| {
        CommandLine::new(program).args([argument]).probe().is_some()
    };
    let compiles = CommandLine::new(compiler())
        .args(["-E", "-include", "vulkan/vulkan.h", "-x", "c", "/dev/null"])
        .probe()
        .is_some();
    compiles
        && runs(&cxx(), "--version")
        && runs("luajit", "-v")
        && ["cmake", "pkg-config", "make", "objdump"].iter().all(|name| runs(name, "--version"))
}

fn cxx() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// How a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    Plain,
    /// With the static library.
    Static,
    /// AddressSanitizer, which includes LeakSanitizer: also for what the library allocates, as it calls `malloc`.
    Addresses,
    Threads,
}

impl Build {
    fn name(self) -> &'static str {
        match self {
            Build::Plain => "plain",
            Build::Static => "static",
            Build::Addresses => "addresses",
            Build::Threads => "threads",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Build::Plain | Build::Static => &["-O1"],
            Build::Addresses => &[
                "-O1",
                "-g",
                "-fno-omit-frame-pointer",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=undefined",
            ],
            Build::Threads => &["-O1", "-g", "-fsanitize=thread"],
        }
    }
}

/// The folders of a run.
struct Places<'a> {
    source: PathBuf,
    prefix: &'a Path,
    /// What the static library needs.
    system: &'a [&'static str],
    built: PathBuf,
    scratch: PathBuf,
    data: PathBuf,
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A program in `wgrad-c`, with its arguments.
struct Program {
    file: &'static str,
    builds: &'static [Build],
    arguments: fn(&Places<'_>, Build, u32) -> Vec<String>,
}

use Build::{Addresses, Plain, Static, Threads};

const PROGRAMS: &[Program] = &[
    Program {
        file: "examples/mnist_like.c",
        builds: &[Plain, Static, Addresses, Threads],
        arguments: |places, _, _| vec![text(&places.scratch)],
    },
    Program {
        file: "examples/predict.cpp",
        builds: &[Plain, Addresses, Threads],
        arguments: |places, _, _| vec![text(&places.data)],
    },
    Program {
        file: "tests/wrong_calls.c",
        builds: &[Plain, Addresses],
        arguments: |places, _, _| vec![text(&places.scratch)],
    },
    Program {
        file: "tests/arrays.c",
        builds: &[Plain, Addresses],
        arguments: |_, _, _| Vec::new(),
    },
    Program {
        file: "tests/threads.c",
        builds: &[Plain, Addresses, Threads],
        arguments: |_, _, _| Vec::new(),
    },
    Program {
        file: "tests/leaks.c",
        builds: &[Plain, Addresses],
        arguments: |places, build, devices| {
            let [devices, times] = if build == Plain { [devices, 10_000] } else { [60, 500] };
            let model = places.data.join("onnx/mlp.onnx");
            vec![text(&model), devices.to_string(), times.to_string()]
        },
    },
];

/// Compiles and runs all programs whose names contain `only`.
pub fn run(prefix: &Path, profile: Profile, devices: u32, only: &str) -> Result<Status> {
    let root = workspace_root();
    let places = Places {
        source: root.join("wgrad-c"),
        prefix,
        system: &system_libraries(profile),
        built: root.join("target/c/programs"),
        scratch: root.join("target/c/scratch"),
        data: root.join("tests/data"),
    };
    for folder in [&places.built, &places.scratch] {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut statuses = Vec::new();
    for program in PROGRAMS {
        for build in program.builds {
            if format!("{} {}", program.file, build.name()).contains(only) {
                statuses.push(one(program, *build, &places, devices)?);
            }
        }
    }
    for (name, check) in OTHERS {
        if name.contains(only) {
            statuses.push(check(&places)?);
        }
    }
    Ok(first_failure(statuses))
}

fn one(program: &Program, build: Build, places: &Places<'_>, devices: u32) -> Result<Status> {
    let file = places.source.join(program.file);
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let built = places.built.join(format!("{stem}-{}", build.name()));
    let (compiler, standard) = match program.file.ends_with(".cpp") {
        true => (cxx(), "-std=c++17"),
        false => (compiler(), "-std=gnu11"),
    };
    let lib = places.prefix.join("lib");
    let mut compile = CommandLine::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(build.flags())
        .args([
            format!("-I{}", places.prefix.join("include").display()),
            text(&file),
            "-o".into(),
            text(&built),
        ]);
    compile = match build {
        Build::Static => {
            compile.args([text(&lib.join("libwgrad.a"))]).args(places.system.iter().copied())
        }
        _ => compile.args([
            format!("-L{}", lib.display()),
            "-lwgrad".into(),
            format!("-Wl,-rpath,{}", lib.display()),
            "-lpthread".into(),
        ]),
    };
    if program.file.ends_with("arrays.c") {
        compile = compile.args(["-lvulkan"]);
    }
    let status = compile.run()?;
    if !status.is_success() {
        return Ok(status);
    }
    let suppressions = |name: &str| places.source.join("tests").join(name).display().to_string();
    let mut run = CommandLine::new(text(&built)).args((program.arguments)(places, build, devices));
    run = match build {
        // The driver's own leaks and races are not the library's.
        Build::Addresses => run
            .env("ASAN_OPTIONS", "detect_leaks=1:detect_odr_violation=0:fast_unwind_on_malloc=1")
            .env(
                "LSAN_OPTIONS",
                &format!("suppressions={}:print_suppressions=0", suppressions("leaks.supp")),
            ),
        Build::Threads => run.env(
            "TSAN_OPTIONS",
            &format!(
                "halt_on_error=1:second_deadlock_stack=1:suppressions={}",
                suppressions("threads.supp")
            ),
        ),
        _ => run,
    };
    // As for the other tests, llvmpipe's optimizer costs more than it saves.
    if std::env::var_os("GALLIVM_PERF").is_none() {
        run = run.env("GALLIVM_PERF", "nopt");
    }
    run.folder(&places.scratch).run()
}

/// A check beyond one program.
type Other = fn(&Places<'_>) -> Result<Status>;

const OTHERS: &[(&str, Other)] =
    &[("lua", lua), ("pkg-config", pkg_config), ("cmake", cmake), ("snippets", snippets)];

/// The parsers of Swift and Kotlin, whose compilers few machines have.
const PARSERS: [&str; 3] =
    ["tree-sitter==0.26.1", "tree-sitter-swift==0.7.4", "tree-sitter-kotlin==1.1.0"];
const PARSER_MODULES: &str = "tree_sitter, tree_sitter_swift, tree_sitter_kotlin";

/// The programs in Swift and Kotlin are parsed, and their calls compared with the header.
fn snippets(places: &Places<'_>) -> Result<Status> {
    let python = virtual_environment::python("parsers", PARSER_MODULES, &[&PARSERS])?;
    let files = [
        "tests/snippets.py",
        "include/wgrad.h",
        "examples/Classifier.swift",
        "examples/Classifier.kt",
    ];
    CommandLine::new(python).args(files.map(|file| text(&places.source.join(file)))).run()
}

/// LuaJIT reads the header's declarations, without what its parser does not know: the preprocessor's lines.
fn lua(places: &Places<'_>) -> Result<Status> {
    let header = places.built.join("wgrad.i");
    let status = CommandLine::new(compiler())
        .args(["-E", "-P", "-nostdinc", "-I", &text(&places.source.join("tests/plain_headers"))])
        .args([text(&places.prefix.join("include/wgrad.h")), "-o".into(), text(&header)])
        .run()?;
    if !status.is_success() {
        return Ok(status);
    }
    CommandLine::new("luajit")
        .args([text(&places.source.join("examples/ops.lua")), text(&header)])
        .args([text(&places.prefix.join("lib/libwgrad.so.0"))])
        .env("GALLIVM_PERF", "nopt")
        .run()
}

/// A Makefile that asks pkg-config.
fn pkg_config(places: &Places<'_>) -> Result<Status> {
    let project = places.source.join("tests/packages");
    let make = |target: &str| {
        CommandLine::new("make")
            .args(["-C", &text(&project), target, &format!("BUILD={}", places.built.display())])
            .env("PKG_CONFIG_PATH", &text(&places.prefix.join("lib/pkgconfig")))
    };
    make("run").run()
}

/// A CMake project.
fn cmake(places: &Places<'_>) -> Result<Status> {
    let (project, built) = (places.source.join("tests/packages"), places.built.join("cmake"));
    let configure = CommandLine::new("cmake")
        .args(["-S", &text(&project), "-B", &text(&built)])
        .args([format!("-DCMAKE_PREFIX_PATH={}", places.prefix.display())])
        .run()?;
    if !configure.is_success() {
        return Ok(configure);
    }
    let build = CommandLine::new("cmake").args(["--build", &text(&built)]).run()?;
    if !build.is_success() {
        return Ok(build);
    }
    let shared = CommandLine::new(text(&built.join("version"))).run()?;
    let linked_in = CommandLine::new(text(&built.join("version_static"))).run()?;
    Ok(first_failure([shared, linked_in]))
}
