//! The standard library's sources from Debian's package `rust-src`, from the suite that has the requested version.
//!
//! The system is not changed: apt uses a separate list of sources, package lists and cache below `scratch`. The mirror is that
//! of the machine, and so is the keyring with which apt verifies packages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::run::CommandLine;

/// Suites by their permanent names; the one most likely to match a nightly comes first.
const SUITES: [&str; 3] = ["testing", "unstable", "stable"];

/// Unpacks the sources with the major and minor version of `rust` (as in `1.97.0-nightly`). Returns the folder that holds
/// `library/`, and the package's version.
pub fn std_sources(rust: &str, scratch: &Path) -> Result<(PathBuf, String)> {
    let wanted = minor(rust).ok_or_else(|| anyhow!("`{rust}` is not a version of Rust"))?;
    let unpacked = scratch.join(format!("rust-src-{wanted}"));
    if let Some(found) = unpacked_sources(&unpacked) {
        return Ok(found);
    }
    let mut seen = Vec::new();
    for suite in SUITES {
        let apt = Apt::new(scratch, suite)?;
        if !apt.line("apt-get").args(["--quiet", "update"]).run()?.is_success() {
            seen.push(format!("{suite}: no package lists"));
            continue;
        }
        let table = apt.line("apt-cache").args(["madison", "rust-src"]).probe().unwrap_or_default();
        let versions = madison_versions(&table);
        let Some(version) =
            versions.iter().find(|version| minor(version).as_deref() == Some(wanted.as_str()))
        else {
            seen.push(format!(
                "{suite}: {}",
                if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
            ));
            continue;
        };
        apt.unpack(version, &unpacked)?;
        return unpacked_sources(&unpacked).ok_or_else(|| {
            anyhow!("the package rust-src {version} has no /usr/src/rustc-*/library")
        });
    }
    bail!("no suite has version {wanted} of rust-src ({})", seen.join("; "))
}

/// The sources in a folder that [`Apt::unpack`] filled, and their version.
fn unpacked_sources(unpacked: &Path) -> Option<(PathBuf, String)> {
    let mut folders: Vec<PathBuf> = fs::read_dir(unpacked.join("usr/src"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    folders.sort();
    folders.into_iter().find_map(|folder| {
        let version = folder.file_name()?.to_str()?.strip_prefix("rustc-")?.to_owned();
        folder.join("library/std/Cargo.toml").is_file().then_some((folder, version))
    })
}

/// apt with separate folders.
struct Apt {
    folder: PathBuf,
    list: PathBuf,
}

impl Apt {
    fn new(scratch: &Path, suite: &str) -> Result<Self> {
        let folder = scratch.join(format!("apt-{suite}"));
        for part in ["parts", "lists/partial", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part)
                .with_context(|| format!("cannot make the folder {}", part.display()))?;
        }
        let (name, text) = own_sources()?;
        let text =
            source_of(&text, suite).ok_or_else(|| anyhow!("{name} names no mirror of Debian"))?;
        // apt distinguishes the two formats by the file's name.
        let list =
            folder.join(if text.starts_with("deb ") { "mirror.list" } else { "mirror.sources" });
        fs::write(&list, text).with_context(|| format!("cannot write {}", list.display()))?;
        Ok(Self { folder, list })
    }

    fn line(&self, program: &str) -> CommandLine {
        let place = |key: &str, path: &Path| format!("{key}={}", path.display());
        let options = [
            place("Dir::Etc::sourcelist", &self.list),
            place("Dir::Etc::sourceparts", &self.folder.join("parts")),
            place("Dir::State::lists", &self.folder.join("lists")),
            place("Dir::Cache", &self.folder.join("cache")),
            "Acquire::Languages=none".to_owned(),
            // apt's own user often cannot enter a folder below a home folder.
            "APT::Sandbox::User=root".to_owned(),
        ];
        options
            .into_iter()
            .fold(CommandLine::new(program), |line, option| line.args(["-o".to_owned(), option]))
    }

    /// Downloads the package, which apt verifies with the signed lists, and unpacks it.
    fn unpack(&self, version: &str, unpacked: &Path) -> Result<()> {
        let _ = fs::remove_dir_all(unpacked);
        let package = format!("rust-src={version}");
        let download =
            self.line("apt-get").args(["--quiet", "download", &package]).folder(&self.folder);
        if !download.run()?.is_success() {
            bail!("`apt-get download {package}` failed");
        }
        let file = fs::read_dir(&self.folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "deb"))
            .ok_or_else(|| {
                anyhow!("`apt-get download {package}` left no file in {}", self.folder.display())
            })?;
        let words = [file.display().to_string(), unpacked.display().to_string()];
        if !CommandLine::new("dpkg").args(["-x"]).args(words).run()?.is_success() {
            bail!("`dpkg -x` failed on {}", file.display());
        }
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("cannot remove {}", self.folder.display()))
    }
}

/// The machine's own list of sources: its name and text.
fn own_sources() -> Result<(String, String)> {
    let places = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];
    places
        .into_iter()
        .filter_map(|place| Some((place.to_owned(), fs::read_to_string(place).ok()?)))
        .find(|(_, text)| source_of(text, "any").is_some())
        .ok_or_else(|| anyhow!("neither {} nor {} names a mirror of Debian", places[0], places[1]))
}

/// The first source in `text` that is a mirror of Debian's main archive, with another suite; in either format.
fn source_of(text: &str, suite: &str) -> Option<String> {
    let is_archive = |uri: &str| uri.trim_end_matches('/').ends_with("/debian");
    let one_line =
        text.lines().map(str::trim).filter(|line| line.starts_with("deb ")).find_map(|line| {
            // `deb [signed-by=/a b=c] http://host/debian suite component...`
            let rest = line.strip_prefix("deb ")?.trim();
            let (options, rest) = match rest.strip_prefix('[') {
                Some(rest) => {
                    rest.split_once(']').map(|(options, rest)| (format!("[{options}] "), rest))?
                }
                None => (String::new(), rest),
            };
            let uri = rest.split_whitespace().next().filter(|uri| is_archive(uri))?;
            Some(format!("deb {options}{uri} {suite} main\n"))
        });
    one_line.or_else(|| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        lines.split(|line| line.trim().is_empty()).find_map(|stanza| {
            let field = |key: &str| {
                stanza
                    .iter()
                    .find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim))
            };
            let uri = field("URIs")?.split_whitespace().find(|uri| is_archive(uri))?;
            let signed = field("Signed-By").filter(|value| !value.is_empty());
            let signed = signed.map_or_else(String::new, |path| format!("Signed-By: {path}\n"));
            Some(format!("Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n{signed}"))
        })
    })
}

/// The versions in the table of `apt-cache madison`, whose lines look like ` rust-src | 1.97.1+dfsg1-1 | mirror suite/main
/// ...`.
fn madison_versions(table: &str) -> Vec<String> {
    table.lines().filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned())).collect()
}

/// `1.97` of `1.97.1+dfsg1-1` and of `1.97.0-nightly`.
fn minor(version: &str) -> Option<String> {
    let mut parts = version.split('.');
    let number = |part: Option<&str>| part?.parse::<u32>().ok();
    Some(format!("{}.{}", number(parts.next())?, number(parts.next())?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_of_the_machine_is_asked_for_another_suite() {
        let stanzas = "# Debian\nTypes: deb deb-src\n# a snapshot\nURIs: http://mirror.example/debian-security\nSuites: \
                       bookworm-security\nComponents: main\n\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: \
                       bookworm bookworm-updates\nComponents: main contrib\nSigned-By: /usr/share/keyrings/a.gpg\n";
        assert_eq!(
            source_of(stanzas, "testing").unwrap(),
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: testing\nComponents: main\nSigned-By: \
             /usr/share/keyrings/a.gpg\n"
        );
        let lines = "# deb http://old.example/debian a main\ndeb http://mirror.example/debian-security b main\ndeb \
                     [arch=amd64 trusted=no] http://mirror.example/debian/ b main contrib\n";
        assert_eq!(
            source_of(lines, "unstable").unwrap(),
            "deb [arch=amd64 trusted=no] http://mirror.example/debian/ unstable main\n"
        );
        assert_eq!(source_of("deb http://mirror.example/ubuntu noble main\n", "testing"), None);
        assert_eq!(source_of("", "testing"), None);
    }

    #[test]
    fn versions_are_compared_by_major_and_minor_number() {
        let table = " rust-src | 1.97.1+dfsg1-1 | http://mirror.example/debian testing/main amd64 Packages\n";
        assert_eq!(madison_versions(table), ["1.97.1+dfsg1-1"]);
        assert_eq!(madison_versions(""), Vec::<String>::new());
        assert_eq!(minor("1.97.1+dfsg1-1").as_deref(), Some("1.97"));
        assert_eq!(minor("1.97.0-nightly").as_deref(), Some("1.97"));
        assert_eq!(minor("1.9"), Some("1.9".to_owned()));
        assert_eq!(minor("nightly"), None);
    }
}
