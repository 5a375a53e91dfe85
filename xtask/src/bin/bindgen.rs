//! `xtask-bindgen WASM FOLDER NAME`: writes JavaScript bindings and types for a wasm, and the wasm that fits them.
//!
//! wasm-bindgen as a library, at the version that Cargo.lock has for the crate too: an installed wasm-bindgen of another
//! version refuses the wasm.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wasm, folder, name] = arguments.as_slice() else {
        eprintln!(
            "error: the arguments are the wasm, the folder for the result and the name of its files"
        );
        return ExitCode::from(2);
    };
    match bind(wasm, folder, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: no bindings for {wasm}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bind(wasm: &str, folder: &str, name: &str) -> anyhow::Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).web(true)?.typescript(true).out_name(name);
    // Without arguments `init` looks beside the module.
    bindgen.omit_default_module_path(false);
    // Names of functions and tools are no use to a visitor.
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(folder)
}
