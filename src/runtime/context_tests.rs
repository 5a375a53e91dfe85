//! What `tf.config` does with several adapters, which machines that run tests rarely have: the guide's programs on lists of
//! devices alone.

use super::*;
use crate::device::Backend;

fn adapter(name: &str, kind: AdapterKind) -> AdapterInfo {
    AdapterInfo { name: name.into(), kind, ..AdapterInfo::for_tests() }
}

/// Four GPUs and a CPU, as in TensorFlow's guide.
fn machine() -> Devices {
    let mut adapters: Vec<AdapterInfo> = (0..4)
        .map(|i| adapter(&format!("GeForce GTX 1080 number {i}"), AdapterKind::DiscreteGpu))
        .collect();
    adapters.push(adapter("llvmpipe", AdapterKind::Cpu));
    Devices::new(adapters, 0)
}

fn gpus(devices: &Devices) -> Vec<PhysicalDevice> {
    let gpu = |device: &&PhysicalDevice| device.device_type() == "GPU";
    devices.physical.iter().filter(gpu).cloned().collect()
}

fn names(devices: &mut Devices) -> Vec<String> {
    devices.logical().iter().map(|(device, _)| device.name()).collect()
}

#[test]
fn physical_devices_print_as_tensorflow_prints_them() {
    let devices = machine();
    assert_eq!(
        format!("{:?}", gpus(&devices)),
        "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU'), \
         PhysicalDevice(name='/physical_device:GPU:1', device_type='GPU'), \
         PhysicalDevice(name='/physical_device:GPU:2', device_type='GPU'), \
         PhysicalDevice(name='/physical_device:GPU:3', device_type='GPU')]"
    );
    assert_eq!(
        devices.physical[4].to_string(),
        "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"
    );
}

#[test]
fn two_of_four_gpus_are_visible() {
    let mut devices = machine();
    let all = gpus(&devices);
    devices.set_visible(&all[1..3], Some(Kind::Gpu)).unwrap();
    // The CPU is of another kind, so it stays visible.
    assert_eq!(names(&mut devices), ["/device:GPU:0", "/device:GPU:1", "/device:CPU:0"]);
    let on: Vec<usize> = devices.logical().iter().map(|(_, physical)| *physical).collect();
    assert_eq!(on, [1, 2, 4]);
    // The preferred GPU is hidden, so the first visible one is the default.
    assert_eq!(devices.default_device().unwrap(), 0);
    // The same again changes nothing, so it is no error.
    devices.set_visible(&all[1..3], Some(Kind::Gpu)).unwrap();
    let error = devices.set_visible(&all[..1], Some(Kind::Gpu)).unwrap_err().to_string();
    assert_eq!(
        error,
        "set_visible_devices: the visible devices cannot be changed after devices have been used. Call it at the start of \
         the program, before the first tensor and before list_logical_devices."
    );
}

#[test]
fn wrong_devices_are_not_made_visible() {
    let mut devices = machine();
    let (all, cpu) = (gpus(&devices), devices.physical[4].clone());
    let error = devices.set_visible(&[cpu], Some(Kind::Gpu)).unwrap_err().to_string();
    assert!(error.contains("/physical_device:CPU:0 is not a GPU"), "{error}");
    let strange =
        PhysicalDevice { name: DeviceName { kind: Kind::Gpu, index: 9 }, ..all[0].clone() };
    let error = devices.set_visible(&[strange], None).unwrap_err().to_string();
    assert!(error.contains("there is no /physical_device:GPU:9"), "{error}");
    assert!(devices.visible.iter().all(|visible| *visible));
    devices.set_visible(&[], None).unwrap();
    let error = devices.default_device().unwrap_err().to_string();
    assert!(error.contains("has hidden all devices"), "{error}");
}

#[test]
fn one_gpu_becomes_two_of_2048_mb() {
    let mut devices = machine();
    let all = gpus(&devices);
    devices.set_visible(&all[..1], None).unwrap();
    let half = LogicalDeviceConfiguration::new().memory_limit_mb(2048);
    devices.configure(&all[0], &[half.clone(), half.clone()]).unwrap();
    assert_eq!(names(&mut devices), ["/device:GPU:0", "/device:GPU:1"]);
    for (device, physical) in devices.logical() {
        assert_eq!((device.memory_limit_mb(), *physical), (Some(2048), 0));
    }
    devices.configure(&all[0], &[half.clone(), half]).unwrap();
    let whole = LogicalDeviceConfiguration::new();
    let error = devices.configure(&all[0], &[whole]).unwrap_err().to_string();
    assert!(
        error.contains("the logical devices cannot be changed after devices have been used"),
        "{error}"
    );
}

#[test]
fn configurations_that_make_no_sense_are_errors() {
    let mut devices = machine();
    let gpu = devices.physical[0].clone();
    let error = devices.configure(&gpu, &[]).unwrap_err().to_string();
    assert!(error.contains("/physical_device:GPU:0 needs at least one logical device"), "{error}");
    for limit in [0, u64::MAX / 2] {
        let limited = LogicalDeviceConfiguration::new().memory_limit_mb(limit);
        let error = devices.configure(&gpu, &[limited]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("a memory limit of {limit} MB is not possible")),
            "{error}"
        );
    }
}

#[test]
fn a_name_without_a_device_takes_the_next_best_or_is_an_error() {
    let mut devices = machine();
    let named = |text: &str| DeviceName::parse(text).unwrap();
    assert_eq!(devices.place(named("/gpu:2"), false).unwrap(), 2);
    assert_eq!(devices.place(named("/cpu:0"), false).unwrap(), 4);
    assert_eq!(devices.place(named("/gpu:7"), true).unwrap(), 0);
    assert_eq!(devices.place(named("/cpu:7"), true).unwrap(), 4);
    assert_eq!(
        devices.place(named("/gpu:7"), false).unwrap_err().to_string(),
        "device: there is no /job:localhost/replica:0/task:0/device:GPU:7. The devices of this process are: /device:GPU:0, \
         /device:GPU:1, /device:GPU:2, /device:GPU:3, /device:CPU:0. Name one of these, make more of them with \
         set_logical_device_configuration, or allow another one with set_soft_device_placement(true)."
    );
    let mut without = Devices::new(vec![adapter("llvmpipe", AdapterKind::Cpu)], 0);
    assert_eq!(without.place(named("/gpu:0"), true).unwrap(), 0);
}

#[test]
fn a_gpu_that_two_graphics_apis_show_is_listed_once() {
    let with = |backend, kind| AdapterInfo { backend, ..adapter("GPU", kind) };
    let adapters = [
        with(Backend::Vulkan, AdapterKind::Cpu),
        with(Backend::Vulkan, AdapterKind::IntegratedGpu),
        with(Backend::Vulkan, AdapterKind::DiscreteGpu),
        with(Backend::Vulkan, AdapterKind::DiscreteGpu),
        with(Backend::Dx12, AdapterKind::IntegratedGpu),
        with(Backend::Dx12, AdapterKind::DiscreteGpu),
        with(Backend::Dx12, AdapterKind::DiscreteGpu),
    ];
    let models = [[9, 9], [1, 1], [2, 2], [2, 2], [1, 1], [2, 2], [2, 2]];
    assert_eq!(distinct(&adapters, &models, 2), [2, 3, 1, 0]);
    // The program has asked for an adapter of the other API.
    assert_eq!(distinct(&adapters, &models, 5), [5, 6, 1, 0]);
    assert_eq!(distinct(&[], &[], 0), [0usize; 0]);
}
