//! Warnings that reach a user whose program has no logger: they go to the standard error output then, in a browser to the
//! console, as Python's do.

use std::collections::HashSet;
use std::fmt::Arguments;
use std::sync::{Mutex, PoisonError};

use crate::device::platform;

/// Each text is told once, and so many are remembered; later ones are not told, so that a loop cannot fill a terminal.
const KEPT: usize = 256;

/// As `log::warn!`, for what the user of a program should know: that a training does not do what it was asked to.
macro_rules! warn_user {
    ($($text:tt)*) => {{
        log::warn!($($text)*);
        $crate::warnings::without_logger(format_args!($($text)*));
    }};
}
pub(crate) use warn_user;

/// Tells what no logger hears. A program that wants silence installs a logger, or calls
/// `log::set_max_level(log::LevelFilter::Error)`.
pub(crate) fn without_logger(text: Arguments<'_>) {
    static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    // Without a logger the level is `Off`; whoever installs one, raises it.
    if log::max_level() != log::LevelFilter::Off || log::STATIC_MAX_LEVEL < log::LevelFilter::Warn {
        return;
    }
    let text = text.to_string();
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let told = told.get_or_insert_with(HashSet::new);
    if told.len() < KEPT && told.insert(text.clone()) {
        platform::say(&format!("wgrad: {text}"));
    }
}
