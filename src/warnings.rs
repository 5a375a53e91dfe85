//! Warnings that also reach the user of a program without a logger: they then go to standard error, in a browser to the
//! console, as Python's do.

use std::collections::HashSet;
use std::fmt::Arguments;
use std::sync::{Mutex, PoisonError};

use crate::device::platform;

/// How many texts are remembered. Each is printed once; texts after these are not printed, so that a loop cannot fill a
/// terminal.
const KEPT: usize = 256;

/// As `log::warn!`, for what the user of a program should know: for example that a training does not do what was
/// requested.
macro_rules! warn_user {
    ($($text:tt)*) => {{
        log::warn!($($text)*);
        $crate::warnings::without_logger(format_args!($($text)*));
    }};
}
pub(crate) use warn_user;

/// Prints a warning that no logger receives. To suppress warnings, a program installs a logger, or calls
/// `log::set_max_level(log::LevelFilter::Error)`.
pub(crate) fn without_logger(text: Arguments<'_>) {
    static REPORTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    // Without a logger the level is `Off`; installing one raises it.
    if log::max_level() != log::LevelFilter::Off || log::STATIC_MAX_LEVEL < log::LevelFilter::Warn {
        return;
    }
    let text = text.to_string();
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    let reported = reported.get_or_insert_with(HashSet::new);
    if reported.len() < KEPT && reported.insert(text.clone()) {
        platform::say(&format!("wgrad: {text}"));
    }
}
