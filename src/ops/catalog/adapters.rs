//! Plans the calls for every known adapter: each one must accept all kernels that it should run, and launch none that
//! it cannot run.

use super::{Catalog, checks};
use crate::device::distinct_adapters;

#[test]
fn every_call_fits_every_known_adapter() {
    let mut catalog = Catalog::new();
    catalog.caps = distinct_adapters().into_iter().map(|(_, caps)| caps).collect();
    // Plans are checked as they are made.
    catalog.gather();
    let mut wrong = Vec::new();
    for text in catalog.texts.values() {
        let module = naga::front::wgsl::parse_str(&text.source.wgsl).unwrap();
        let complaint = checks::too_much(text, &module);
        wrong
            .extend(complaint.map(|what| format!("{} ({}): {what}", text.source.label, text.call)));
    }
    // `cargo xtask adapters` passes them to other compilers.
    if let Some(folder) = std::env::var_os("WGRAD_KERNEL_TEXTS") {
        let folder = std::path::PathBuf::from(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for (i, wgsl) in catalog.texts.keys().enumerate() {
            std::fs::write(folder.join(format!("catalog-{i:05}.wgsl")), wgsl.as_bytes()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(catalog.texts.len() > 1000, "{} texts", catalog.texts.len());
}
