//! Burn's import: it writes Rust code for a model, which a program compiles. So a project of its own is made and built.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use burn_onnx::ModelGen;

use super::Options;
use crate::Result;

/// Writes Burn's code and weights for a model. It panics where the import fails.
pub fn generate(file: &Path, out: &Path) -> Result<()> {
    let (file, out) = (file.to_string_lossy(), out.to_string_lossy());
    ModelGen::new().input(&file).out_dir(&out).run_from_cli();
    Ok(())
}

/// Makes and builds FOLDER/burn.
pub fn build(options: &Options) -> Result<()> {
    let project = options.folder.join("burn");
    let source = project.join("src");
    std::fs::create_dir_all(&source)?;
    let mut main = String::from(include_str!("burn_main.rs.txt"));
    let mut arms = String::new();
    for name in options.models()? {
        let start = Instant::now();
        let file = options.folder.join(format!("{name}.onnx"));
        match std::panic::catch_unwind(|| generate(&file, &source)) {
            Ok(done) => done?,
            Err(_) => {
                println!("{name}: Burn's import fails");
                continue;
            }
        }
        println!("{name}: code after {:.0?}", start.elapsed());
        main.push_str(&format!("\nmod {name};\n"));
        arms.push_str(&format!("        \"{name}\" => times!({name}),\n"));
    }
    std::fs::write(source.join("main.rs"), main.replace("        // MODELS\n", &arms))?;
    std::fs::write(project.join("Cargo.toml"), include_str!("burn_manifest.toml"))?;
    let start = Instant::now();
    let status = Command::new("cargo")
        .args(["build", "--release", "--manifest-path"])
        .arg(project.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(project.join("target"))
        .status()?;
    if !status.success() {
        return Err("Burn's code does not build".into());
    }
    println!("built after {:.0?}", start.elapsed());
    Ok(())
}
