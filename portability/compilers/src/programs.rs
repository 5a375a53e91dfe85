//! The compilers that are installed here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};

use crate::Translated;
use crate::translate::{uses_small_matrices, uses_subgroups};

/// Those that were found, and a folder for what they read.
#[derive(Debug)]
pub struct Programs {
    spirv_tools: bool,
    tint: bool,
    dxc: bool,
    folder: PathBuf,
}

impl Programs {
    /// Looks for programs on the `PATH`. `folder` is for temporary files.
    pub fn find(folder: &Path) -> Result<Programs> {
        let runs = |name: &str| {
            // Tint's help ends as an error.
            Command::new(name).arg("--help").output().is_ok()
        };
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Programs {
            spirv_tools: runs("spirv-val") && runs("spirv-opt"),
            tint: runs("tint"),
            dxc: runs("dxc"),
            folder: folder.to_path_buf(),
        })
    }

    /// The programs that are there, and those that are not.
    pub fn names(&self) -> [Vec<&'static str>; 2] {
        let all = [
            ("spirv-val", self.spirv_tools),
            ("spirv-opt -O", self.spirv_tools),
            ("tint", self.tint),
            ("dxc", self.dxc),
        ];
        let those = |there: bool| {
            all.iter().filter(|(_, found)| *found == there).map(|(name, _)| *name).collect()
        };
        [those(true), those(false)]
    }

    /// Hands a kernel to each program. Returns what they refuse, with the program's name.
    pub fn complaints(
        &self,
        name: &str,
        wgsl: &str,
        translated: &Translated,
    ) -> Result<Vec<String>> {
        let mut found = Vec::new();
        // The matrices are an extension of wgpu's, and younger than Debian's SPIRV-Tools.
        if uses_small_matrices(wgsl) {
            return Ok(found);
        }
        if self.spirv_tools {
            found.extend(self.spirv(name, &translated.spirv)?);
        }
        found.extend(self.tint(name, wgsl)?);
        if let (true, Some(hlsl)) = (self.dxc, &translated.hlsl) {
            found.extend(self.dxc(name, hlsl)?);
        }
        Ok(found)
    }

    fn spirv(&self, name: &str, words: &[u32]) -> Result<Option<String>> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (plain, optimized) = (
            self.write(&format!("{name}.spv"), &bytes)?,
            self.folder.join(format!("{name}.opt.spv")),
        );
        let mut complaint =
            self.run("spirv-val", Command::new("spirv-val").args(VULKAN).arg(&plain))?;
        if complaint.is_none() {
            let mut command = Command::new("spirv-opt");
            command.arg("--target-env=vulkan1.1").arg("-O").arg(&plain).arg("-o").arg(&optimized);
            complaint = self.run("spirv-opt -O", &mut command)?;
        }
        if complaint.is_none() {
            let mut command = Command::new("spirv-val");
            complaint =
                self.run("spirv-val after spirv-opt -O", command.args(VULKAN).arg(&optimized))?;
        }
        for path in [plain, optimized] {
            // The second is not there after a complaint about the first.
            let _ = std::fs::remove_file(path);
        }
        Ok(complaint)
    }

    /// What Tint refuses of a kernel. It knows no cooperative matrices, and is not asked.
    pub fn tint(&self, name: &str, wgsl: &str) -> Result<Option<String>> {
        if !self.tint || uses_small_matrices(wgsl) {
            return Ok(None);
        }
        // naga accepts subgroups without the `enable` line that the standard demands, and does not know that line.
        let enable = if uses_subgroups(wgsl) { "enable subgroups;\n" } else { "" };
        let path = self.write(&format!("{name}.wgsl"), format!("{enable}{wgsl}").as_bytes())?;
        let complaint =
            self.run("tint", Command::new("tint").args(["--format", "wgsl"]).arg(&path))?;
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(complaint)
    }

    /// For shader model 6.2, as on adapters with f16.
    fn dxc(&self, name: &str, hlsl: &str) -> Result<Option<String>> {
        let path = self.write(&format!("{name}.hlsl"), hlsl.as_bytes())?;
        let mut command = Command::new("dxc");
        command
            .args(["-T", "cs_6_2", "-E", "main", "-HV", "2018", "-enable-16bit-types"])
            .arg(&path);
        let complaint = self.run("dxc", &mut command)?;
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(complaint)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn run(&self, name: &str, command: &mut Command) -> Result<Option<String>> {
        let output: Output = command.output().with_context(|| format!("cannot start {name}"))?;
        if output.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = said + &String::from_utf8_lossy(&output.stdout);
        Ok(Some(format!("{name}: {}", said.lines().take(4).collect::<Vec<_>>().join(" / "))))
    }
}

/// What naga writes for: Vulkan 1.1, as in `translate`.
const VULKAN: [&str; 2] = ["--target-env", "vulkan1.1"];
