//! Queries about the adapter for `cargo xtask report` that `cargo xtask bench` does not need: its properties, and whether the
//! kernels that it may get for products and convolutions agree.

mod facts;
mod variants;

pub use facts::run as facts;
pub use variants::run as variants;

use std::sync::Once;

/// Writes the warnings and errors that wgrad and wgpu log to standard error, as lines `warning: ...`.
fn log_warnings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // There is no other logger in this program.
        if log::set_logger(&Warnings).is_ok() {
            log::set_max_level(log::LevelFilter::Warn);
        }
    });
}

struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let words = record.args().to_string().replace('\n', " ");
            eprintln!("warning: {}: {words}", record.target());
        }
    }

    fn flush(&self) {}
}
