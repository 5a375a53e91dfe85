//! The steps of `cargo xtask web` that process a wasm, except for wasm-opt. A separate program, so that other commands do not
//! compile these libraries.
//!
//! - `xtask-wasm bind WASM FOLDER NAME` writes JavaScript bindings and types, and the matching wasm.
//! - `xtask-wasm guard BINDINGS CHECKS` adds checks to the calls of the bindings.
//! - `xtask-wasm order WASM [MODULE]` reorders its functions so that it compresses well, and renames the module of all its
//!   imports to MODULE.
//! - `xtask-wasm pack FILE PACKED` compresses a file in zlib's format.

mod declare;
mod dtypes;
mod guard;
mod order;

use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["bind", wasm, folder, name] => bind(wasm, folder, name),
        ["guard", bindings, checks] => guard(bindings, checks),
        ["order", wasm] => reorder(wasm, None),
        ["order", wasm, module] => reorder(wasm, Some(module)),
        ["pack", file, packed] => pack(file, packed),
        _ => {
            eprintln!(
                "error: expected `bind WASM FOLDER NAME`, `guard BINDINGS CHECKS`, `order WASM [MODULE]` or `pack FILE \
                 PACKED`"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// wasm-bindgen as a library, in the crate's version from Cargo.lock: an installed wasm-bindgen of another version would refuse
/// the wasm.
fn bind(wasm: &str, folder: &str, name: &str) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).web(true)?.typescript(true).out_name(name);
    // Without arguments `init` looks next to the module.
    bindgen.omit_default_module_path(false);
    // Names of functions and tools are of no use to a visitor.
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(folder).with_context(|| format!("no bindings for {wasm}"))?;
    let folder = Path::new(folder);
    // It declares the wasm's raw exports, which users do not call.
    let raw = folder.join(format!("{name}_bg.wasm.d.ts"));
    fs::remove_file(&raw).with_context(|| format!("cannot remove {}", raw.display()))?;
    rewrite(&folder.join(format!("{name}.d.ts")), |text| dtypes::typed(&declare::types(text)?))?;
    rewrite(&folder.join(format!("{name}.js")), declare::script)
}

fn rewrite(path: &Path, clean: fn(&str) -> Result<String>) -> Result<()> {
    let show = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {show}"))?;
    let text = clean(&text).with_context(|| format!("cannot clean {show}"))?;
    fs::write(path, text).with_context(|| format!("cannot write {show}"))
}

/// `checks` is the JavaScript that defines the checks.
fn guard(bindings: &str, checks: &str) -> Result<()> {
    let text = |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    let guarded = guard::guarded(&text(bindings)?, &text(checks)?)
        .with_context(|| format!("cannot put checks into {bindings}"))?;
    fs::write(bindings, guarded).with_context(|| format!("cannot write {bindings}"))
}

fn reorder(path: &str, module: Option<&str>) -> Result<()> {
    let wasm = read(path)?;
    let ordered =
        order::ordered(&wasm, module).with_context(|| format!("cannot reorder {path}"))?;
    fs::write(path, ordered).with_context(|| format!("cannot write {path}"))
}

fn pack(path: &str, packed: &str) -> Result<()> {
    let bytes = read(path)?;
    if bytes.is_empty() {
        bail!("{path} is empty");
    }
    let file = File::create(packed).with_context(|| format!("cannot write {packed}"))?;
    zopfli::compress(zopfli::Options::default(), zopfli::Format::Zlib, bytes.as_slice(), file)
        .with_context(|| format!("cannot pack {path} into {packed}"))
}

fn read(path: &str) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {path}"))
}
