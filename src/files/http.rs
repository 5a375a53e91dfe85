//! What downloads have in common: the times that a client waits, the progress bar, and checksums as text.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

/// A client that takes files as they are, and waits `body` at most for one of them.
pub(crate) fn client(body: Duration) -> ConfigBuilder<AgentScope> {
    ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(30)))
        .timeout_recv_body(Some(body))
        // The files are compressed already, and checksums cover the compressed bytes.
        .accept_encoding("identity")
}

/// A bar that indicatif draws on standard error, and hides if that is not a terminal.
pub(crate) fn progress(name: &str, length: Option<u64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => (ProgressBar::new(length), "{msg} [{bar:30}] {bytes}/{total_bytes} {eta}"),
        None => (ProgressBar::new_spinner(), "{msg} {spinner} {bytes}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar
}

/// The digits of a checksum.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
