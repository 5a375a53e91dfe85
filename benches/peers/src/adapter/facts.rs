//! `wgrad-peers facts`: prints the adapter that wgrad uses, as one line of JSON. It does not identify the machine or its user.

use serde_json::{Value, json};
use wgrad::Device;
use wgrad::interop::DeviceExt;
use wgrad::interop::wgpu;

use crate::Result;
use crate::child::answer;

pub fn run() -> Result<()> {
    super::log_warnings();
    let device = Device::current()?;
    let taken = device.adapter();
    let (handle, _) = device.wgpu();
    let info = handle.adapter_info();
    let all: Vec<String> = Device::adapters().iter().map(ToString::to_string).collect();
    answer(json!({
        "name": taken.name,
        "kind": format!("{:?}", taken.kind),
        "backend": taken.backend.to_string(),
        "driver": taken.driver,
        "vendor": format!("{:#06x}", info.vendor),
        "device": format!("{:#06x}", info.device),
        "subgroups": [info.subgroup_min_size, info.subgroup_max_size],
        "adapters": all,
        "features": names(handle.features()),
        "adapter_features": adapter(&info).map(|adapter| names(adapter.features())),
        "cooperative": adapter(&info).map(|adapter| cooperative(&adapter)),
        "limits": limits(&handle.limits()),
    }))
}

/// The adapter behind the device; wgpu identifies it by its properties only.
fn adapter(info: &wgpu::AdapterInfo) -> Option<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::from_env().unwrap_or(wgpu::Backends::PRIMARY);
    let backends = descriptor.backends;
    let instance = wgpu::Instance::new(descriptor);
    let adapters = pollster::block_on(instance.enumerate_adapters(backends));
    adapters.into_iter().find(|adapter| adapter.get_info() == *info)
}

fn names(features: wgpu::Features) -> Vec<&'static str> {
    features.iter_names().map(|(name, _)| name).collect()
}

/// The kinds of small matrices that subgroups can multiply.
fn cooperative(adapter: &wgpu::Adapter) -> Vec<String> {
    let kinds = adapter.cooperative_matrix_properties();
    let text = |kind: &wgpu::CooperativeMatrixProperties| {
        let [m, n, k] = [kind.m_size, kind.n_size, kind.k_size];
        format!("{m}x{n}x{k} of {:?}, sums {:?}", kind.ab_type, kind.cr_type)
    };
    kinds.iter().map(text).collect()
}

/// Each limit's name and value, and WebGPU's guaranteed value.
fn limits(limits: &wgpu::Limits) -> Vec<Value> {
    let rows = |limits: &wgpu::Limits| -> Vec<(String, String)> {
        // wgpu lists the limits only in this text.
        let text = format!("{limits:#?}");
        let pairs =
            text.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(": "));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let guaranteed = rows(&wgpu::Limits::default());
    let paired = rows(limits).into_iter().zip(guaranteed);
    paired.map(|((name, value), (_, least))| json!([name, value, least])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_listed_with_what_is_guaranteed() {
        let given = wgpu::Limits { max_bind_groups: 7, ..Default::default() };
        let listed = limits(&given);
        assert!(listed.contains(&json!(["max_bind_groups", "7", "4"])), "{listed:?}");
        let size = ["max_storage_buffer_binding_size", "134217728", "134217728"];
        assert!(listed.contains(&json!(size)), "{listed:?}");
        assert!(listed.len() > 30, "{listed:?}");
    }
}
