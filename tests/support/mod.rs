//! What the integration tests share.

pub mod oracle;
