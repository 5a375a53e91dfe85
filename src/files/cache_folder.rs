//! The folder that stores files between runs: downloads, and kernels that drivers have compiled.

use std::ffi::OsString;
use std::path::PathBuf;

/// Looks up an environment variable; tests pass their own function.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The folder that a variable names, if it is set and not empty.
pub(crate) fn folder(env: Env, name: &str) -> Option<PathBuf> {
    env(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `$WGRAD_CACHE`, else `wgrad` in the system's cache folder.
pub(crate) fn cache(env: Env) -> Option<PathBuf> {
    let system = || {
        let caches = if cfg!(windows) {
            folder(env, "LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            folder(env, "HOME").map(|home| home.join("Library").join("Caches"))
        } else {
            folder(env, "XDG_CACHE_HOME")
                .or_else(|| folder(env, "HOME").map(|home| home.join(".cache")))
        };
        Some(caches?.join("wgrad"))
    };
    folder(env, "WGRAD_CACHE").filter(|_| !is_off(env)).or_else(system)
}

/// Whether `WGRAD_CACHE=off` disables storing data of drivers; downloads then go to the system's cache
/// folder.
pub(crate) fn is_off(env: Env) -> bool {
    env("WGRAD_CACHE").is_some_and(|value| value == "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_variable_says() {
        let of = |value: &'static str| {
            let env = move |name: &str| match name {
                "WGRAD_CACHE" => Some(OsString::from(value)),
                "HOME" | "XDG_CACHE_HOME" | "LOCALAPPDATA" => Some("here".into()),
                _ => None,
            };
            (cache(&env), is_off(&env))
        };
        let system = of("").0.unwrap();
        assert!(system.starts_with("here") && system.ends_with("wgrad"), "{system:?}");
        assert_eq!(of("there"), (Some("there".into()), false));
        assert_eq!(of("off"), (Some(system), true));
        assert_eq!(cache(&|_| None), None);
    }
}
