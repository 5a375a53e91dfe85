//! Planning needs memory in proportion to the graph, whatever its form, and never makes an excessively long kernel. Allocations
//! are counted on a device that computes nothing; the values are checked on one that does, with smaller graphs.

#[path = "../support/counting.rs"]
mod counting;
#[path = "../support/graphs/mod.rs"]
mod graphs;

use std::cell::Cell;

use counting::Counting;
use graphs::Build;
use wgrad as tf;
use wgrad::Device;
use wgrad::interop::DeviceExt;
use wgrad::interop::wgpu;

/// The permitted growth of memory for twice the graph: 2, plus room for tables that double.
const GROWTH: f64 = 2.6;
/// The peak of bytes per node while a graph is called and flushed.
const PEAK_PER_NODE: u64 = 20_000;
/// Allocations per node.
const ALLOCATIONS_PER_NODE: u64 = 1_000;
/// Bytes of one kernel's source.
const TEXT: usize = 28 << 10;

/// This thread's allocations. Other threads compile pipelines, which is not planning.
#[derive(Clone, Copy, Default)]
struct Counts {
    current: i64,
    peak: i64,
    allocations: u64,
}

thread_local! {
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { current: 0, peak: 0, allocations: 0 }) };
}

fn count(bytes: i64) {
    // Ending threads are not counted.
    let _ = COUNTS.try_with(|counts| {
        let mut now = counts.get();
        now.current += bytes;
        now.peak = now.peak.max(now.current);
        now.allocations += u64::from(bytes > 0);
        counts.set(now);
    });
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(count);

/// The number of tensors that a kernel may bind, which limits the growth of most kernels.
#[derive(Clone, Copy, Debug)]
enum Bindings {
    /// WebGPU's guaranteed number.
    Eight,
    /// Practically unlimited, as on most native adapters.
    Many,
}

/// A device that accepts every call and computes nothing.
fn idle_device(bindings: Bindings) -> Device {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::NOOP,
        backend_options: wgpu::BackendOptions {
            noop: wgpu::NoopBackendOptions { enable: true, ..Default::default() },
            ..Default::default()
        },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let options = wgpu::RequestAdapterOptions::default();
    let adapter = pollster::block_on(instance.request_adapter(&options)).unwrap();
    let required_limits = match bindings {
        Bindings::Eight => wgpu::Limits::default(),
        Bindings::Many => adapter.limits(),
    };
    let wanted = wgpu::DeviceDescriptor { required_limits, ..Default::default() };
    let (raw, queue) = pollster::block_on(adapter.request_device(&wanted)).unwrap();
    let device = Device::from_wgpu(&adapter, raw, queue).unwrap();
    device.set_fusion(true);
    // Each graph is one plan.
    device.set_stream_limit(Some(1 << 20));
    device
}

/// The cost of calling and flushing a graph.
#[derive(Clone, Copy, Debug)]
struct Cost {
    nodes: u64,
    peak: u64,
    allocations: u64,
}

/// Calls and flushes the graph twice: the first time its pipelines are made, the second time it is only planned.
fn cost(device: &Device, build: Build, n: usize) -> tf::Result<Cost> {
    device.scope(|| {
        let run = || -> tf::Result<Cost> {
            let nodes = device.stats().nodes;
            let mut before = COUNTS.get();
            before.peak = before.current;
            COUNTS.set(before);
            let held = build(n)?;
            device.flush()?;
            let after = COUNTS.get();
            drop(held);
            Ok(Cost {
                nodes: device.stats().nodes - nodes,
                peak: (after.peak - before.current) as u64,
                allocations: after.allocations - before.allocations,
            })
        };
        run()?;
        let plan = device.last_plan().expect("a flush has run");
        for kernel in plan.kernels() {
            let (label, bytes) = (&kernel.label, kernel.wgsl.len());
            assert!(bytes <= TEXT, "of {n}: the text of {label} takes {bytes} bytes");
        }
        device.trim()?;
        let second = run()?;
        device.trim()?;
        Ok(second)
    })
}

/// The costs of graphs up to size `2 * n`, small ones first, so that unbounded growth is found early.
fn bounded(name: &str, n: usize, build: Build) -> tf::Result<()> {
    for bindings in [Bindings::Eight, Bindings::Many] {
        let device = idle_device(bindings);
        let mut last: Option<Cost> = None;
        for size in [n / 16, n / 8, n / 4, n / 2, n, 2 * n].into_iter().filter(|&size| size > 1) {
            let now = cost(&device, build, size)?;
            println!("{name} {size}, {bindings:?}: {now:?}, a node {}", now.peak / now.nodes);
            // Some parts of a plan do not grow.
            let nodes = now.nodes.max(30);
            assert!(now.peak <= PEAK_PER_NODE * nodes, "{name} of {size}: {now:?}");
            assert!(now.allocations <= ALLOCATIONS_PER_NODE * nodes, "{name} of {size}: {now:?}");
            if let Some(half) = last.filter(|_| size == 2 * n) {
                let grown = |now: u64, half: u64| now as f64 <= GROWTH * half as f64;
                let both = grown(now.peak, half.peak) && grown(now.allocations, half.allocations);
                assert!(both, "{name}: {half:?} become {now:?}");
            }
            last = Some(now);
        }
    }
    Ok(())
}

/// Fused and op by op are equal, for graphs of size `n`.
fn right(name: &str, n: usize, build: Build) -> tf::Result<()> {
    let (fused, apart) = (Device::new()?, Device::new()?);
    apart.set_fusion(false);
    let run = |device: &Device| -> tf::Result<Vec<Vec<f32>>> {
        device.scope(|| {
            let held = build(n)?;
            device.flush()?;
            held.iter().map(|x| x.to_vec()).collect()
        })
    };
    let (fused, apart) = (run(&fused)?, run(&apart)?);
    assert_eq!(fused.len(), apart.len());
    for (i, (fused, apart)) in fused.iter().zip(&apart).enumerate() {
        // Values are of magnitude 1, and none of these graphs amplifies differences.
        let size = apart.iter().fold(1f32, |m, v| m.max(v.abs()));
        for (a, b) in fused.iter().zip(apart) {
            assert!((a - b).abs() <= 1e-4 * size, "{name} {n}: result {i}: {a} and {b}");
        }
    }
    Ok(())
}

/// A test of the bound at a size and its double, and one of the values at a smaller size.
macro_rules! graphs {
    ($($build:expr => $bounded:ident $n:literal, $right:ident $small:literal;)*) => {
        $(
            #[test]
            fn $bounded() -> tf::Result<()> {
                bounded(stringify!($bounded), $n, $build)
            }

            #[test]
            fn $right() -> tf::Result<()> {
                right(stringify!($right), $small, $build)
            }
        )*
    };
}

graphs! {
    graphs::diamonds => diamonds_are_bounded 300, diamonds_are_right 60;
    graphs::diamonds_before_folds =>
        diamonds_before_folds_are_bounded 150, diamonds_before_folds_are_right 20;
    graphs::diamonds_with_folds =>
        diamonds_with_folds_are_bounded 140, diamonds_with_folds_are_right 40;
    graphs::diamonds_with_softmax =>
        diamonds_with_softmax_are_bounded 120, diamonds_with_softmax_are_right 30;
    graphs::diamonds_with_products =>
        diamonds_with_products_are_bounded 300, diamonds_with_products_are_right 30;
    graphs::ladder => ladders_are_bounded 200, ladders_are_right 60;
    graphs::ladder_with_folds =>
        ladders_with_folds_are_bounded 160, ladders_with_folds_are_right 30;
    graphs::mean_of_two => means_of_two_are_bounded 400, means_of_two_are_right 100;
    graphs::descent => descents_are_bounded 80, descents_are_right 12;
    graphs::grid => grids_are_bounded 20, grids_are_right 8;
    graphs::fan_out => fans_out_are_bounded 1000, fans_out_are_right 50;
    graphs::fan_in => fans_in_are_bounded 1000, fans_in_are_right 100;
    graphs::sum_of_inputs => sums_of_inputs_are_bounded 1000, sums_of_inputs_are_right 100;
    graphs::slices => slices_are_bounded 250, slices_are_right 40;
    graphs::rolls => rolls_are_bounded 200, rolls_are_right 30;
    graphs::net => gradients_of_nets_are_bounded 50, gradients_of_nets_are_right 12;
    |n| graphs::random::graph(n, 1) => random_graphs_are_bounded 1000, random_graphs_are_right 100;
    |n| graphs::random::graph(n, 2) => others_are_bounded 1000, others_are_right 120;
    |n| graphs::random::graph(n, 3) => more_are_bounded 1000, more_are_right 140;
}
