//! What a visitor of the page downloads.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

/// The page's limit, in bytes packed by gzip.
pub const LIMIT: u64 = 300_000;

/// Kinds of files that the page loads. Others, such as source maps, are fetched by nobody or by developers.
const LOADED: [&str; 4] = ["js", "css", "html", "wasm"];

/// Files of the page with their sizes.
pub struct Download {
    files: Vec<(String, u64, u64)>,
}

impl Download {
    /// All files, packed.
    pub fn total(&self) -> u64 {
        self.files.iter().map(|(_, _, packed)| packed).sum()
    }
}

/// Sizes of the files in `dist`; its `examples` are pages of their own.
pub fn measure(dist: &Path) -> Result<Download> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dist).with_context(|| format!("cannot read {}", dist.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let loaded = path.extension().is_some_and(|end| LOADED.iter().any(|kind| end == *kind));
        if loaded && path.is_file() {
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((name, bytes.len() as u64, packed(&bytes)?));
        }
    }
    files.sort_by_key(|(_, _, packed)| std::cmp::Reverse(*packed));
    Ok(Download { files })
}

/// How large `bytes` are as a web server sends them.
fn packed(bytes: &[u8]) -> Result<u64> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

impl fmt::Display for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width =
            self.files.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0).max("total".len());
        writeln!(f, "{:width$}  {:>9}  {:>9}", "file", "bytes", "gzip")?;
        for (name, raw, packed) in &self.files {
            writeln!(f, "{name:width$}  {raw:>9}  {packed:>9}")?;
        }
        let raw: u64 = self.files.iter().map(|(_, raw, _)| raw).sum();
        writeln!(f, "{:width$}  {raw:>9}  {:>9}  (limit {LIMIT})", "total", self.total())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_the_page_loads_is_counted() {
        let dist = std::env::temp_dir().join(format!("wgrad-xtask-{}-size", std::process::id()));
        fs::create_dir_all(dist.join("examples")).unwrap();
        let script = "let a = 1;\n".repeat(1000);
        fs::write(dist.join("page.js"), &script).unwrap();
        fs::write(dist.join("page.js.map"), &script).unwrap();
        fs::write(dist.join("a.wasm"), [0; 100]).unwrap();
        fs::write(dist.join("examples/one.js"), &script).unwrap();
        let download = measure(&dist).unwrap();
        fs::remove_dir_all(&dist).unwrap();
        let names: Vec<&str> = download.files.iter().map(|(name, _, _)| name.as_str()).collect();
        assert_eq!(names, ["page.js", "a.wasm"]);
        assert_eq!(download.files[0].1, 11_000);
        // Repetition packs well, and each file pays for gzip's header of 18 bytes.
        assert!(download.total() > 36 && download.total() < 200, "{download}");
        assert!(download.to_string().contains("total"));
    }
}
