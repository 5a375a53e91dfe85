//! Findings: the name of the fastest variant for each op's key, as text and as a file in the cache folder.
//!
//! The tuner ignores a file that is missing, damaged or for another adapter, because it can measure again.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::{AdapterInfo, Caps, kernels_are_rewritten, platform};
use crate::files;
use crate::files::cache_folder;

/// The configuration that findings are valid for: an adapter with its driver, the features in use, and the crate's
/// version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    adapter: String,
    driver: String,
    used: String,
}

/// Keys of ops in order, and the variant of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Findings(Vec<(String, String)>);

const MAGIC: &str = "wgrad tuning 1";

/// A larger file was not written by this crate.
const LARGEST: u64 = 16 << 20;

impl Identity {
    pub(crate) fn new(info: &AdapterInfo, caps: &Caps) -> Self {
        let line =
            |text: String| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Identity {
            adapter: line(format!("{} ({:?})", info.name, info.backend)),
            driver: line(info.driver.clone()),
            used: format!("processor {}, subgroups {:?}", caps.cpu, caps.subgroups),
        }
    }

    pub(super) fn header(&self) -> String {
        format!(
            "{MAGIC}\nversion {}\nadapter {}\ndriver {}\nused {}\n",
            env!("CARGO_PKG_VERSION"),
            self.adapter,
            self.driver,
            self.used
        )
    }

    /// The file in the cache folder, if there should be one.
    fn path(&self) -> Option<PathBuf> {
        let env = |name: &str| std::env::var_os(name);
        let kept = platform::HAS_FILES && !kernels_are_rewritten() && !cache_folder::is_off(&env);
        if !kept || self.adapter.is_empty() {
            return None;
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.adapter.chars().take(40).map(plain).collect();
        let name = format!("{name}-{:016x}.txt", checksum(self.header().as_bytes()));
        Some(cache_folder::cache(&env)?.join("tuning").join(name))
    }
}

impl Findings {
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.find(key).ok().map(|at| self.0[at].1.as_str())
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(key))
    }

    pub(super) fn set(&mut self, key: &str, variant: &str) {
        let variant = variant.to_string();
        match self.find(key) {
            Ok(at) => self.0[at].1 = variant,
            Err(at) => self.0.insert(at, (key.to_string(), variant)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds `other`, which is newer.
    pub(super) fn take_over(&mut self, other: Findings) {
        other.0.iter().for_each(|(key, variant)| self.set(key, variant));
    }

    /// A header, a checksum of the rest, and a line for each finding.
    pub(super) fn text(&self, identity: &Identity) -> String {
        let header = identity.header();
        let mut lines = String::new();
        for (key, name) in &self.0 {
            let _ = writeln!(lines, "{name}\t{key}");
        }
        let sum = checksum(format!("{header}{lines}").as_bytes());
        format!("{header}checksum {sum:016x}\n{lines}")
    }

    /// Parses the output of [`Findings::text`], or returns the reason why it cannot be used.
    pub(super) fn parse(text: &[u8], identity: &Identity) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not text".to_string())?;
        if !text.starts_with(&format!("{MAGIC}\n")) {
            return Err("it holds no findings of this version".to_string());
        }
        let header = identity.header();
        let rest = text.strip_prefix(header.as_str()).ok_or_else(|| {
            "its findings are of another adapter, driver or version of wgrad".to_string()
        })?;
        let damaged = || "it is damaged".to_string();
        let (sum, lines) = rest.split_once('\n').ok_or_else(damaged)?;
        let sum = sum.strip_prefix("checksum ").ok_or_else(damaged)?;
        if sum != format!("{:016x}", checksum(format!("{header}{lines}").as_bytes())) {
            return Err(damaged());
        }
        let mut findings = Findings::default();
        for line in lines.lines() {
            let (name, key) = line.split_once('\t').ok_or_else(damaged)?;
            findings.set(key, name);
        }
        Ok(findings)
    }

    /// The findings of the file in the cache folder; none if there is no file that it can use.
    pub(super) fn of_file(identity: &Identity) -> Self {
        identity.path().map(|path| Findings::read(&path, identity)).unwrap_or_default()
    }

    fn read(path: &Path, identity: &Identity) -> Self {
        let text = match files::look(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Findings::default(),
            Ok(file) if file.len() > LARGEST => Err("it is larger than findings are".to_string()),
            found => found.and_then(|_| files::read(path)).map_err(|error| error.to_string()),
        };
        text.and_then(|text| Findings::parse(&text, identity)).unwrap_or_else(|why| {
            log::warn!("{}: {why}; its findings are not used.", path.display());
            Findings::default()
        })
    }

    /// Writes the file, including findings that another process has added meanwhile.
    pub(super) fn save(&self, identity: &Identity) {
        let Some(path) = identity.path() else { return };
        if let Err(error) = self.write(&path, identity) {
            log::warn!(
                "{}: {error}; what was measured is not kept. Set WGRAD_CACHE to a folder that can be written, or to \
                 `off`.",
                path.display()
            );
        }
    }

    fn write(&self, path: &Path, identity: &Identity) -> io::Result<()> {
        let mut all = Findings::read(path, identity);
        all.take_over(self.clone());
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        files::replace(path, |file| io::Write::write_all(file, all.text(identity).as_bytes()))
    }
}

/// FNV-1a: enough against accidents.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fresh_id;

    fn identity(adapter: &str) -> Identity {
        let info = AdapterInfo { name: adapter.into(), ..AdapterInfo::for_tests() };
        Identity::new(&info, &Caps::portable())
    }

    fn findings(pairs: &[(&str, &str)]) -> Findings {
        let mut findings = Findings::default();
        pairs.iter().for_each(|(key, variant)| findings.set(key, variant));
        findings
    }

    #[test]
    fn text_is_read_back() {
        let some =
            findings(&[("MatMul: float32[2, 3]", "tiled"), ("Conv2D: x", "registers 8x2 8x8")]);
        let text = some.text(&identity("one"));
        assert_eq!(Findings::parse(text.as_bytes(), &identity("one")), Ok(some));
        let none = Findings::default();
        assert_eq!(
            Findings::parse(none.text(&identity("a\nb")).as_bytes(), &identity("a\nb")),
            Ok(none)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = findings(&[("a key", "tiled"), ("b", "lanes 1x1")]).text(&identity("one"));
        let refused = |text: &[u8]| Findings::parse(text, &identity("one")).unwrap_err();
        assert_eq!(refused(b""), "it holds no findings of this version");
        assert_eq!(refused(&[0xff, 0xfe, 0]), "it is not text");
        assert_eq!(
            refused(good.replace("tuning 1", "tuning 2").as_bytes()),
            "it holds no findings of this version"
        );
        let foreign = "its findings are of another adapter, driver or version of wgrad";
        assert_eq!(Findings::parse(good.as_bytes(), &identity("two")), Err(foreign.to_string()));
        let version = concat!("version ", env!("CARGO_PKG_VERSION"));
        assert_eq!(refused(good.replace(version, "version 0").as_bytes()), foreign);
        // Truncated at any position, and with any changed character after the header.
        for end in 0..good.len() {
            assert!(
                Findings::parse(&good.as_bytes()[..end], &identity("one")).is_err(),
                "{end} bytes"
            );
        }
        for at in good.find("checksum").unwrap()..good.len() {
            let mut flipped = good.clone().into_bytes();
            flipped[at] ^= 1;
            assert_eq!(refused(&flipped), "it is damaged", "byte {at}");
        }
    }

    #[test]
    fn a_file_gathers_what_several_write() {
        let folder = std::env::temp_dir().join(format!(
            "wgrad-tuning-{}-{}",
            std::process::id(),
            fresh_id()
        ));
        let path = folder.join("deeper").join("adapter.txt");
        let one = identity("one");
        assert_eq!(Findings::read(&path, &one), Findings::default());
        findings(&[("a", "x"), ("b", "x")]).write(&path, &one).unwrap();
        findings(&[("b", "y"), ("c", "y")]).write(&path, &one).unwrap();
        assert_eq!(Findings::read(&path, &one), findings(&[("a", "x"), ("b", "y"), ("c", "y")]));
        // A damaged file is replaced, and no other files remain.
        std::fs::write(&path, b"\x00\x01garbage").unwrap();
        assert_eq!(Findings::read(&path, &one), Findings::default());
        findings(&[("d", "z")]).write(&path, &one).unwrap();
        assert_eq!(Findings::read(&path, &one), findings(&[("d", "z")]));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        // A pipe neither blocks the read nor is replaced.
        #[cfg(unix)]
        {
            let pipe = folder.join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            assert_eq!(Findings::read(&pipe, &one), Findings::default());
            let error = findings(&[("d", "z")]).write(&pipe, &one).unwrap_err();
            assert_eq!(error.to_string(), "it is a pipe or a device and not a file");
        }
        // A folder that cannot be created is an error, not a panic.
        assert!(findings(&[]).write(&path.join("below a file"), &one).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    mod kills {
        use super::*;
        use crate::files::tests as killed;

        const KEYS: usize = 300;

        #[test]
        #[ignore = "other tests run it in a process of its own"]
        fn finds_for_ever() {
            killed::write_for_ever(|folder, value| {
                let mut findings = Findings::default();
                (0..KEYS).for_each(|key| findings.set(&key.to_string(), &value.to_string()));
                findings.write(&folder.join("adapter.txt"), &identity("one")).unwrap();
            });
        }

        /// All findings of exactly one save are in the file.
        fn kill(kills: usize) {
            let part = "plan::tuner::findings::tests::kills::finds_for_ever";
            killed::kill(part, "adapter.txt", kills, |path| {
                let text = path.exists().then(|| files::read(path).unwrap())?;
                let findings = Findings::parse(&text, &identity("one")).unwrap();
                assert_eq!(findings.len(), KEYS);
                let value = findings.get("0").unwrap();
                assert!((0..KEYS).all(|key| findings.get(&key.to_string()) == Some(value)));
                Some(value.parse().unwrap())
            });
        }

        #[test]
        fn a_tuner_that_is_killed_leaves_the_old_findings_or_the_new_ones() {
            kill(4);
        }

        #[test]
        #[ignore = "takes a while: continuous integration runs it by itself"]
        fn a_tuner_is_killed_fifty_times() {
            kill(50);
        }
    }
}
