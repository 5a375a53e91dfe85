//! From the compiled wasm to the npm package in `web/pkg`: bindings, a smaller wasm, and the files around them.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::run::{CommandLine, Status};
use crate::web::{Project, licences, report, target};

/// The workspace member that is compiled to wasm.
pub const CRATE: &str = "wgrad-web";
/// Its cargo profile.
pub const PROFILE: &str = "web";
/// A profile that compiles faster, for tests.
pub const DRAFT: &str = "web-draft";
/// The npm package, and the stem of its files.
const NAME: &str = "wgrad";

/// The folder of the module that also loads models of other programs.
pub const MODELS: &str = "models";

/// The placeholder for [`exports`] in the manifest.
const EXPORTS: &str = "EXPORTS";

/// The paths of the module and the wasm. This is text because the order matters: the first match is used, and types must come
/// first.
fn exports() -> String {
    let entry = |name: &str, file: &str, types: &str| {
        format!("    \"{name}\": {{ \"types\": \"./{types}\", \"default\": \"./{file}\" }},\n")
    };
    let wasm = format!("{NAME}_bg.wasm");
    let module = |name: &str, folder: &str| {
        let inside = |file: &str| format!("{folder}{file}");
        let path = format!("./{folder}{wasm}");
        entry(name, &inside(&format!("{NAME}.js")), &inside(&format!("{NAME}.d.ts")))
            + &entry(&path, &inside(&wasm), &inside(&format!("{wasm}.d.ts")))
    };
    format!(
        "{{\n{}{}    \"./package.json\": \"./package.json\"\n  }}",
        module(".", ""),
        module(&format!("./{MODELS}"), &format!("{MODELS}/")),
    )
}

/// The types of the wasm for bundlers that copy it as a file.
const ADDRESS: &str = "\
/** The address of the wasm; pass it to `init` if the bundler copies the wasm as a file. */
declare const address: string;
export default address;
";

/// Features that Rust's wasm uses by default; every browser with WebGPU supports them. An older wasm-opt knows these names too.
const WASM_FEATURES: [&str; 6] = [
    "bulk-memory",
    "nontrapping-float-to-int",
    "sign-ext",
    "mutable-globals",
    "reference-types",
    "multivalue",
];

/// The passes that make the compressed wasm smallest. Inlining functions that have one caller, and storing repeated results in
/// a local, save bytes but compress worse: in large functions each use of a local is encoded differently. Rust's stack begins
/// at address 0, so low addresses hold no data. Reconstructed loops and blocks become more similar.
const SHRINKING: [&str; 7] = [
    "--flatten",
    "--rereloop",
    "-Oz",
    "-Oz",
    "--low-memory-unused",
    "--one-caller-inline-max-function-size=15",
    "--skip-pass=local-cse",
];

/// Writes the wasm that was built most recently with `profile`, and its JavaScript, into the emptied folder `pkg`.
pub fn bind(project: &Project, profile: &str, pkg: &Path) -> Result<Status> {
    let lock =
        fs::read_to_string(project.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let (library, tool) =
        (locked(&lock, "wasm-bindgen"), locked(&lock, "wasm-bindgen-cli-support"));
    match (library, tool) {
        (Some(library), Some(tool)) if library == tool => {
            report("wasm-bindgen", &format!("{library}, as locked"))
        }
        (library, tool) => {
            let show = |version: Option<&str>| version.unwrap_or("absent").to_owned();
            bail!(
                "Cargo.lock has wasm-bindgen {} and wasm-bindgen-cli-support {}, which must be the same version. Name \
                 wasm-bindgen's version in xtask/Cargo.toml and run `cargo update wasm-bindgen-cli-support`.",
                show(library),
                show(tool)
            );
        }
    }
    let wasm = project
        .target
        .join(target::TRIPLE)
        .join(profile)
        .join(format!("{}.wasm", CRATE.replace('-', "_")));
    if !wasm.is_file() {
        bail!("the build left no {}; is `{CRATE}` a cdylib?", wasm.display());
    }
    if pkg.exists() {
        fs::remove_dir_all(pkg).with_context(|| format!("cannot empty {}", pkg.display()))?;
    }
    wasm_tool(["bind", &wasm.display().to_string(), &pkg.display().to_string(), NAME])
}

/// Adds checks to the calls of the package's bindings. The page loads none, as its calls are type-checked.
pub fn guard(project: &Project, pkg: &Path) -> Result<Status> {
    let bindings = pkg.join(format!("{NAME}.js")).display().to_string();
    wasm_tool(["guard", &bindings, &project.web().join("src/guard.js").display().to_string()])
}

/// Runs `xtask-wasm`, a separate program, so that only this command compiles wasm-bindgen and similar crates.
fn wasm_tool<const N: usize>(arguments: [&str; N]) -> Result<Status> {
    let program = ["--package", "xtask", "--features", "web", "--bin", "xtask-wasm", "--"];
    CommandLine::cargo(["run", "--quiet"]).args(program).args(arguments).run()
}

/// The tests of that program, which `cargo xtask test` leaves out.
pub fn test() -> Result<Status> {
    let program = ["--package", "xtask", "--features", "web", "--bin", "xtask-wasm"];
    CommandLine::cargo(["test", "--quiet"]).args(program).run()
}

/// The version of a package in the text of a `Cargo.lock`.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    let name = format!("name = \"{package}\"");
    lines.find(|line| *line == name)?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

/// Minimizes the wasm, mainly its compressed size: wasm-opt shrinks it, if installed, and its functions are reordered. With
/// `short_names`, imports and exports also get short names; `names.json` then maps them to the old ones.
pub fn shrink(project: &Project, pkg: &Path, short_names: bool) -> Result<Status> {
    let wasm = pkg.join(format!("{NAME}_bg.wasm"));
    let path = wasm.display().to_string();
    let passes = if short_names { &["--minify-imports-and-exports-and-modules"][..] } else { &[] };
    let Some(names) = optimize(project, &wasm, passes)?.filter(|_| short_names) else {
        return wasm_tool(["order", &path]);
    };
    let file = pkg.join("names.json");
    fs::write(&file, &names).with_context(|| format!("cannot write {}", file.display()))?;
    // Short names are the same in every build but refer to different functions. The module's name is a hash of the mapping, so
    // that bindings cached from another build are refused instead of calling the wrong functions.
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    wasm_tool(["order", &path, &format!("{:08x}", hasher.finish() as u32)])
}

/// Compresses the page's wasm better than servers do, into the file that the page decompresses itself.
pub fn pack(pkg: &Path) -> Result<Status> {
    let wasm = pkg.join(format!("{NAME}_bg.wasm")).display().to_string();
    wasm_tool(["pack", &wasm, &format!("{wasm}.packed")])
}

/// The output of wasm-opt. If it is missing or fails, the package is built without it.
fn optimize(project: &Project, wasm: &Path, passes: &[&str]) -> Result<Option<String>> {
    let Some(tool) = wasm_opt(project) else {
        report("wasm-opt", "not found; the wasm stays as it is. `npm ci` in web/ brings one");
        return Ok(None);
    };
    let small = wasm.with_file_name("small.wasm");
    let features = WASM_FEATURES.map(|feature| format!("--enable-{feature}"));
    let places = [wasm.display().to_string(), "-o".to_owned(), small.display().to_string()];
    let done = tool.args(SHRINKING).args(passes).args(features).args(places).read();
    let size = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
    let Some((_, printed)) =
        done.ok().filter(|(status, _)| status.is_success() && size(&small) > 0)
    else {
        let _ = fs::remove_file(&small);
        report("wasm-opt", "warning: it failed (see its output above); the wasm stays as it was");
        return Ok(None);
    };
    report("wasm-opt", &format!("{} bytes became {}", size(wasm), size(&small)));
    fs::rename(&small, wasm).with_context(|| format!("cannot replace {}", wasm.display()))?;
    Ok(Some(printed))
}

/// npm's wasm-opt, whose version is locked, or the system's.
fn wasm_opt(project: &Project) -> Option<CommandLine> {
    let own = project.web().join("node_modules/binaryen/bin/wasm-opt");
    if own.is_file() {
        return Some(CommandLine::new("node").args([own.display().to_string()]));
    }
    let system = CommandLine::new("wasm-opt");
    system.clone().args(["--version"]).probe().map(|_| system)
}

/// Writes `package.json`, the README and the licences.
pub fn describe(project: &Project) -> Result<()> {
    let pkg = project.pkg();
    let licences = pkg.join(licences::FILE);
    fs::write(&licences, licences::collect()?)
        .with_context(|| format!("cannot write {}", licences.display()))?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&project.root.join(licence), &pkg.join(licence))?;
    }
    // The README links to this page.
    copy(&project.root.join("docs/tensorflow-js.md"), &pkg.join("tensorflow-js.md"))?;
    for folder in [pkg.clone(), project.models_pkg()] {
        let types = folder.join(format!("{NAME}_bg.wasm.d.ts"));
        fs::write(&types, ADDRESS).with_context(|| format!("cannot write {}", types.display()))?;
    }
    // npm always includes these.
    let known = ["package.json", "README.md"];
    let mut files: Vec<String> = fs::read_dir(&pkg)
        .with_context(|| format!("cannot read {}", pkg.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    files.sort();
    let modules = [format!("{NAME}.js"), format!("{NAME}_bg.wasm"), format!("{NAME}.d.ts")];
    for needed in modules.into_iter().chain([MODELS.to_owned()]) {
        if !files.contains(&needed) {
            bail!("wasm-bindgen wrote no {needed} into {}", pkg.display());
        }
    }
    let text = serde_json::to_string_pretty(&manifest(&project.package, files)?)?;
    let text = text.replace(&format!("\"{EXPORTS}\""), &exports());
    fs::write(pkg.join("package.json"), text + "\n").context("cannot write package.json")?;
    let readme = [project.root.join("docs/web.md"), project.root.join("README.md")];
    let readme = readme
        .iter()
        .find(|path| path.is_file())
        .ok_or_else(|| anyhow!("there is no docs/web.md"))?;
    copy(readme, &pkg.join("README.md"))
}

fn copy(from: &PathBuf, to: &PathBuf) -> Result<()> {
    let done = fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()));
    done.map(|_| ())
}

/// The `package.json` of a crate, from cargo's metadata and the files that wasm-bindgen wrote.
fn manifest(package: &Value, files: Vec<String>) -> Result<Value> {
    let word = |key: &str| {
        package[key].as_str().ok_or_else(|| anyhow!("{CRATE}'s Cargo.toml lacks `{key}`"))
    };
    // Snippets are scripts that the bindings import for their side effects.
    let snippets = files.iter().any(|file| file == "snippets");
    let side_effects =
        if snippets { json!(["./snippets/*", "./models/snippets/*"]) } else { json!(false) };
    let licence = word("license")?;
    // npm requires brackets around an SPDX expression with two licences.
    let licence = if licence.contains(' ') { format!("({licence})") } else { licence.to_owned() };
    Ok(json!({
        "name": NAME,
        "version": word("version")?,
        "description": word("description")?,
        "license": licence,
        "type": "module",
        "main": format!("./{NAME}.js"),
        "types": format!("./{NAME}.d.ts"),
        "exports": EXPORTS,
        "sideEffects": side_effects,
        "files": files,
        "keywords": ["machine-learning", "webgpu", "autodiff", "tensor", "wasm"],
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_gives_the_version_of_just_that_package() {
        let lock = "[[package]]\nname = \"wasm-bindgen-shared\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \
                    \"wasm-bindgen\"\nversion = \"0.2.130\"\nsource = \"x\"\n";
        assert_eq!(locked(lock, "wasm-bindgen"), Some("0.2.130"));
        assert_eq!(locked(lock, "wasm-bindgen-cli-support"), None);
    }

    #[test]
    fn the_bindings_and_their_tool_are_locked_at_one_version() {
        let lock = fs::read_to_string(crate::run::workspace_root().join("Cargo.lock")).unwrap();
        let version = locked(&lock, "wasm-bindgen");
        assert!(version.is_some());
        assert_eq!(version, locked(&lock, "wasm-bindgen-cli-support"));
    }

    #[test]
    fn the_manifest_is_that_of_the_crate() {
        let package =
            json!({"version": "1.2.3", "description": "Tensors", "license": "MIT OR Apache-2.0"});
        let plain = manifest(&package, vec!["wgrad.js".to_owned()]).unwrap();
        assert_eq!((&plain["name"], &plain["version"]), (&json!("wgrad"), &json!("1.2.3")));
        assert_eq!(
            (&plain["license"], &plain["sideEffects"]),
            (&json!("(MIT OR Apache-2.0)"), &json!(false))
        );
        assert_eq!(
            (&plain["types"], &plain["files"]),
            (&json!("./wgrad.d.ts"), &json!(["wgrad.js"]))
        );
        let exports: Value = serde_json::from_str(&exports()).unwrap();
        assert_eq!(exports["."], json!({"types": "./wgrad.d.ts", "default": "./wgrad.js"}));
        let models = json!({"types": "./models/wgrad.d.ts", "default": "./models/wgrad.js"});
        assert_eq!(exports["./models"], models);
        assert!(super::exports().starts_with("{\n    \".\": { \"types\""));
        let snippets = manifest(&package, vec!["snippets".to_owned()]).unwrap();
        assert_eq!(snippets["sideEffects"], json!(["./snippets/*", "./models/snippets/*"]));
        assert!(manifest(&json!({"version": "1.2.3"}), Vec::new()).is_err());
    }
}
