//! `wgrad.h`, which cbindgen generates from the sources of the C API.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use cbindgen::{Builder, Config, EnumConfig, ExportConfig, Language, Style};

use crate::run::workspace_root;

/// The sources in the order of the header's chapters.
const SOURCES: &[&str] = &[
    "status",
    "handles",
    "arguments",
    "device",
    "tensor",
    "dlpack",
    "native",
    "variable",
    "op",
    "tape",
    "optimizer",
    "model",
    "dataset",
    "training",
    "function",
    "checkpoint",
];

const START: &str = "/* wgrad's C API, version 0.1. Generated from wgrad-c/src by `cargo xtask c --header`; do not edit it.
 *
 * Every function that can fail returns a wgrad_status, and passes its results through pointers, which are set to null or 0 first.
 * wgrad_last_error says what went wrong. Texts are UTF-8 and end with a zero byte. Objects are handles, which the caller frees; a
 * handle that was freed, or one of another kind, is an error. All functions may be called in all threads, except that a tape
 * belongs to the thread that has opened it. docs/c.md explains the rest.
 */";

/// The structs of `dlpack.h`, which a program may include besides.
const DLPACK: &str = "typedef struct DLManagedTensor DLManagedTensor;
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;";

fn path() -> PathBuf {
    workspace_root().join("wgrad-c/include/wgrad.h")
}

fn generated() -> Result<String> {
    let config = Config {
        language: Language::C,
        header: Some(START.into()),
        include_guard: Some("WGRAD_H".into()),
        after_includes: Some(DLPACK.into()),
        cpp_compat: true,
        style: Style::Type,
        documentation: true,
        line_length: 120,
        usize_is_size_t: true,
        includes: Vec::new(),
        enumeration: EnumConfig::default(),
        export: ExportConfig {
            include: vec!["wgrad_dtype".into()],
            exclude: vec!["DLManagedTensor".into(), "DLManagedTensorVersioned".into()],
            ..ExportConfig::default()
        },
        ..Config::default()
    };
    let mut builder = Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(workspace_root().join(format!("wgrad-c/src/{source}.rs")));
    }
    let bindings = builder.generate().context("cbindgen cannot read wgrad-c/src")?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).context("the header is not UTF-8")?;
    // Rust's heading of what a caller of an unsafe function promises.
    Ok(text.replace(" * # Safety\n", " * Pointers:\n"))
}

/// Writes the header.
pub fn write() -> Result<()> {
    fs::write(path(), generated()?).with_context(|| format!("cannot write {}", path().display()))
}

/// Fails if the header is not what the sources say.
pub fn check() -> Result<()> {
    match fs::read_to_string(path()) {
        Ok(text) if text.replace("\r\n", "\n") == generated()? => Ok(()),
        _ => {
            bail!("wgrad-c/include/wgrad.h does not fit wgrad-c/src. Run `cargo xtask c --header`.")
        }
    }
}
