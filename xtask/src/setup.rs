//! `cargo xtask setup`: looks for what wgpu needs to use a GPU, installs it if this is possible
//! without a prompt, and otherwise names the command to run.
//!
//! Only Linux needs a check: the Vulkan loader (`libvulkan.so.1`) and the manifest of at least one
//! Vulkan driver. Mesa's drivers include a software one, so wgrad also runs on a machine without a
//! GPU, slowly. Metal is part of macOS, and Windows includes DirectX 12 and a software adapter
//! (WARP).
//!
//! The search follows the loader's own rules. Each rule is a function of its inputs (variables,
//! folders, text), so that the tests need neither a GPU nor root.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::run::CommandLine;
use crate::system::Packages;

const LOADER: &str = "libvulkan.so.1";

/// The variables that replace the search for drivers, in order of precedence. The second is the
/// older name of the first.
const DRIVER_OVERRIDES: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// The loader and Mesa's drivers, in the names of each distribution.
pub const DRIVER_PACKAGES: Packages = Packages {
    debian: &["mesa-vulkan-drivers", "libvulkan1"],
    fedora: &["mesa-vulkan-drivers", "vulkan-loader"],
    arch: &["vulkan-icd-loader", "vulkan-swrast"],
    suse: &["libvulkan1", "libvulkan_lvp"],
    alpine: &["vulkan-loader", "mesa-vulkan-swrast"],
    otherwise: "the Vulkan loader and Mesa's Vulkan drivers (or the driver of your GPU's vendor)",
    // The command installs the software driver alone.
    arch_note: " (for a GPU also vulkan-radeon, vulkan-intel or nvidia-utils)",
    suse_note: " (for a GPU also libvulkan_radeon, libvulkan_intel or NVIDIA's driver)",
    alpine_note: " (for a GPU also mesa-vulkan-ati or mesa-vulkan-intel)",
};

/// Checks this machine, installs what is missing if possible, and otherwise fails with advice.
pub fn run() -> Result<()> {
    match std::env::consts::OS {
        "linux" => setup_linux(),
        "macos" => {
            report("GPU API", "Metal is part of macOS; there is nothing to install");
            Ok(())
        }
        "windows" => {
            let text = "DirectX 12 and its software adapter (WARP) are part of Windows; \
                        a GPU needs its vendor's driver";
            report("GPU API", text);
            Ok(())
        }
        other => {
            report("GPU API", &format!("{other} is not known here; wgrad needs Vulkan on it"));
            Ok(())
        }
    }
}

fn setup_linux() -> Result<()> {
    let machine = Machine::look();
    machine.report();
    let Some(missing) = machine.missing() else {
        return Ok(());
    };
    if let Missing::OverriddenDrivers(variable) = missing {
        bail!(
            "{variable} is set and names no Vulkan driver manifest that exists, and while it is \
             set no other driver is used. Unset it or correct it, then run `cargo xtask setup` \
             again."
        );
    }
    DRIVER_PACKAGES.install(missing.sentence(), "cargo xtask setup")?;
    let machine = Machine::look();
    machine.report();
    match machine.missing() {
        None => Ok(()),
        Some(Missing::OverriddenDrivers(variable)) => bail!(
            "{variable} is set and names no Vulkan driver manifest that exists. Unset it or \
             correct it, then run `cargo xtask setup` again."
        ),
        Some(missing) => bail!(
            "{} even after the installation. Install the Vulkan driver that your GPU's vendor \
             names for this system, then run `cargo xtask setup` again.",
            missing.sentence()
        ),
    }
}

/// Prints one line for a check to standard error, so that standard output has only the output of
/// the command that follows.
fn report(check: &str, result: &str) {
    eprintln!("setup: {check}: {result}");
}

/// The state of a Linux machine.
struct Machine {
    loader: Option<String>,
    drivers: Drivers,
}

impl Machine {
    fn look() -> Self {
        let variable = |name: &str| std::env::var_os(name);
        Self { loader: find_loader(), drivers: Drivers::find(&variable) }
    }

    fn report(&self) {
        match &self.loader {
            Some(path) => report("Vulkan loader", path),
            None => report("Vulkan loader", "not found"),
        }
        match self.drivers.manifests.as_slice() {
            [] => match self.drivers.overridden_by {
                Some(variable) => report("Vulkan drivers", &format!("not found in {variable}")),
                None => report("Vulkan drivers", "not found"),
            },
            manifests => {
                let paths: Vec<String> =
                    manifests.iter().map(|path| path.display().to_string()).collect();
                report("Vulkan drivers", &paths.join(", "));
            }
        }
    }

    fn missing(&self) -> Option<Missing> {
        match (&self.loader, self.drivers.manifests.as_slice(), self.drivers.overridden_by) {
            (None, [], _) => Some(Missing::LoaderAndDrivers),
            (None, _, _) => Some(Missing::Loader),
            (Some(_), [], Some(variable)) => Some(Missing::OverriddenDrivers(variable)),
            (Some(_), [], None) => Some(Missing::Drivers),
            (Some(_), _, _) => None,
        }
    }
}

/// What a Linux machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Loader,
    Drivers,
    LoaderAndDrivers,
    /// The named variable hides all installed drivers.
    OverriddenDrivers(&'static str),
}

impl Missing {
    fn sentence(self) -> &'static str {
        match self {
            Self::Loader => "This machine has no Vulkan loader (libvulkan.so.1)",
            Self::Drivers | Self::OverriddenDrivers(_) => "This machine has no Vulkan driver",
            Self::LoaderAndDrivers => {
                "This machine has neither a Vulkan loader (libvulkan.so.1) nor a Vulkan driver"
            }
        }
    }
}

/// The path of the Vulkan loader, from the linker's cache or else from the well-known folders.
fn find_loader() -> Option<String> {
    // Debian keeps ldconfig in /sbin, which is not on every user's PATH.
    let cached = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .into_iter()
        .find_map(|ldconfig| CommandLine::new(ldconfig).args(["-p"]).probe())
        .and_then(|text| loader_in_cache(&text, std::env::consts::ARCH));
    cached.or_else(|| {
        let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = std::env::split_paths(&own).chain(library_folders(std::env::consts::ARCH));
        loader_in_folders(folders).map(|path| path.display().to_string())
    })
}

/// The path of the loader for `arch` in the output of `ldconfig -p`, whose lines look like
/// `libvulkan.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libvulkan.so.1`.
fn loader_in_cache(text: &str, arch: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, path) = line.trim().split_once(" => ")?;
        let flags = name.strip_prefix(LOADER)?.trim();
        // A 64-bit PC may also have the 32-bit library, which cannot be used here.
        let fits = arch != "x86_64" || flags.contains("x86-64");
        fits.then(|| path.to_owned())
    })
}

fn library_folders(arch: &str) -> Vec<PathBuf> {
    let multiarch = format!("/usr/lib/{arch}-linux-gnu");
    ["/usr/local/lib", "/usr/lib64", "/lib64", &multiarch, "/usr/lib", "/lib"]
        .into_iter()
        .map(PathBuf::from)
        .collect()
}

fn loader_in_folders(folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(LOADER)).find(|path| path.is_file())
}

/// The Vulkan drivers that the loader would see.
#[derive(Debug, PartialEq, Eq)]
struct Drivers {
    manifests: Vec<PathBuf>,
    /// The variable that replaced the search, if any.
    overridden_by: Option<&'static str>,
}

impl Drivers {
    /// Searches like the loader; `variable` reads the environment.
    fn find(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        // An empty variable counts: the loader then uses no driver at all.
        let overriding = DRIVER_OVERRIDES.into_iter().find_map(|name| {
            variable(name).map(|list| (name, std::env::split_paths(&list).collect()))
        });
        match overriding {
            Some((name, places)) => {
                Self { manifests: manifests_in(places), overridden_by: Some(name) }
            }
            None => Self { manifests: manifests_in(driver_places(variable)), overridden_by: None },
        }
    }
}

/// The folders that the loader searches for manifests if no variable replaces the search.
fn driver_places(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let list = |name: &str, default: &str| -> Vec<PathBuf> {
        std::env::split_paths(&set(name).unwrap_or_else(|| default.into())).collect()
    };
    let home = |name: &str, default: &str| -> Option<PathBuf> {
        let under_home = || set("HOME").map(|home| Path::new(&home).join(default));
        set(name).map(PathBuf::from).or_else(under_home)
    };

    let mut bases: Vec<PathBuf> = Vec::new();
    bases.extend(home("XDG_CONFIG_HOME", ".config"));
    bases.extend(list("XDG_CONFIG_DIRS", "/etc/xdg"));
    bases.extend(["/usr/local/etc", "/etc"].map(PathBuf::from));
    bases.extend(home("XDG_DATA_HOME", ".local/share"));
    bases.extend(list("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    bases.extend(["/usr/local/share", "/usr/share"].map(PathBuf::from));

    let added = set("VK_ADD_DRIVER_FILES").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&added).collect();
    places.extend(bases.into_iter().map(|base| base.join("vulkan/icd.d")));
    places
}

/// The driver manifests at `places`, each a manifest or a folder of manifests, without duplicates
/// and in order.
fn manifests_in(places: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_manifest =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "json") && path.is_file();
    let mut manifests: Vec<PathBuf> = Vec::new();
    for place in places {
        let mut found: Vec<PathBuf> = match fs::read_dir(&place) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(_) => vec![place],
        };
        found.retain(is_manifest);
        found.sort();
        for path in found {
            if !manifests.contains(&path) {
                manifests.push(path);
            }
        }
    }
    manifests
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A separate folder for each test, removed at its end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let name = format!("wgrad-xtask-{}-{test}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn file(&self, path: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "{}").unwrap();
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// An environment with only these variables.
    fn environment(pairs: &[(&str, &Path)]) -> impl Fn(&str) -> Option<OsString> + use<> {
        let pairs: Vec<(String, OsString)> =
            pairs.iter().map(|(name, path)| ((*name).to_owned(), path.into())).collect();
        move |name| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn manifests_are_the_json_files_of_folders_and_files_themselves() {
        let scratch = Scratch::new("manifests");
        let b = scratch.file("one/b.json");
        let a = scratch.file("one/a.json");
        scratch.file("one/readme.txt");
        fs::create_dir_all(scratch.0.join("one/folder.json")).unwrap();
        let c = scratch.file("two/c.json");
        let places = vec![
            scratch.0.join("absent"),
            scratch.0.join("one"),
            c.clone(),
            scratch.0.join("two"),
            scratch.0.join("two/absent.json"),
        ];
        assert_eq!(manifests_in(places), [a, b, c]);
    }

    #[test]
    fn drivers_are_found_under_home_and_data_folders() {
        let scratch = Scratch::new("places");
        let under_home = scratch.file("home/.local/share/vulkan/icd.d/home.json");
        let under_data = scratch.file("data/vulkan/icd.d/data.json");
        let added = scratch.file("added.json");
        let (home, data) = (scratch.0.join("home"), scratch.0.join("data"));
        let variables = environment(&[
            ("HOME", home.as_path()),
            ("XDG_DATA_DIRS", data.as_path()),
            ("VK_ADD_DRIVER_FILES", added.as_path()),
        ]);
        let drivers = Drivers::find(&variables);
        assert_eq!(drivers.overridden_by, None);
        for manifest in [under_home, under_data, added] {
            assert!(drivers.manifests.contains(&manifest), "{}", manifest.display());
        }
    }

    #[test]
    fn the_usual_folders_are_searched_without_any_variable() {
        let places = driver_places(&environment(&[]));
        for base in ["/usr/share", "/etc", "/usr/local/share", "/usr/local/etc"] {
            let folder = Path::new(base).join("vulkan/icd.d");
            assert!(places.contains(&folder), "{}", folder.display());
        }
    }

    #[test]
    fn an_override_hides_every_other_driver() {
        let scratch = Scratch::new("override");
        let there = scratch.file("there.json");
        let data = scratch.0.join("data");
        scratch.file("data/vulkan/icd.d/hidden.json");
        let nowhere = scratch.0.join("nowhere.json");

        let drivers = Drivers::find(&environment(&[
            ("XDG_DATA_DIRS", data.as_path()),
            ("VK_ICD_FILENAMES", nowhere.as_path()),
        ]));
        assert_eq!(drivers.manifests, Vec::<PathBuf>::new());
        assert_eq!(drivers.overridden_by, Some("VK_ICD_FILENAMES"));

        let drivers = Drivers::find(&environment(&[
            ("VK_DRIVER_FILES", there.as_path()),
            ("VK_ICD_FILENAMES", nowhere.as_path()),
        ]));
        assert_eq!(drivers.manifests, [there]);
        assert_eq!(drivers.overridden_by, Some("VK_DRIVER_FILES"));

        let drivers = Drivers::find(&environment(&[("VK_DRIVER_FILES", Path::new(""))]));
        assert_eq!(drivers.manifests, Vec::<PathBuf>::new());
        assert_eq!(drivers.overridden_by, Some("VK_DRIVER_FILES"));
    }

    #[test]
    fn what_is_missing_follows_from_what_was_found() {
        let machine = |loader: bool, driver: bool, overridden_by| Machine {
            loader: loader.then(String::new),
            drivers: Drivers {
                manifests: if driver { vec!["a.json".into()] } else { Vec::new() },
                overridden_by,
            },
        };
        let variable = Some("VK_ICD_FILENAMES");
        assert_eq!(machine(true, true, None).missing(), None);
        assert_eq!(machine(true, true, variable).missing(), None);
        assert_eq!(machine(false, true, None).missing(), Some(Missing::Loader));
        assert_eq!(machine(true, false, None).missing(), Some(Missing::Drivers));
        assert_eq!(machine(false, false, variable).missing(), Some(Missing::LoaderAndDrivers));
        assert_eq!(
            machine(true, false, variable).missing(),
            Some(Missing::OverriddenDrivers("VK_ICD_FILENAMES"))
        );
    }

    #[test]
    fn the_linkers_cache_gives_the_loader_of_the_architecture() {
        let text = "2 libs found in cache\n\
                    \tlibvulkan.so.1 (libc6) => /lib32/libvulkan.so.1\n\
                    \tlibvulkan.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libvulkan.so.1\n\
                    \tlibvulkan_lvp.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libvulkan_lvp.so\n";
        let path = |arch| loader_in_cache(text, arch);
        assert_eq!(path("x86_64").as_deref(), Some("/lib/x86_64-linux-gnu/libvulkan.so.1"));
        assert_eq!(path("x86").as_deref(), Some("/lib32/libvulkan.so.1"));
        assert_eq!(loader_in_cache("libvulkan_lvp.so (libc6) => /lib/a.so", "aarch64"), None);
    }

    #[test]
    fn the_loader_is_found_in_a_folder() {
        let scratch = Scratch::new("loader");
        let loader = scratch.file("lib/libvulkan.so.1");
        let folders = vec![scratch.0.join("absent"), scratch.0.join("lib")];
        assert_eq!(loader_in_folders(folders), Some(loader));
        assert_eq!(loader_in_folders([scratch.0.join("absent")]), None);
    }
}
