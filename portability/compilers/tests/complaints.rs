//! Each check notices what it is for.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;

use wgrad_compilers::{Needs, Programs, Texts, translate};

const KERNEL: &str = "\
@group(0) @binding(0) var<storage, read_write> values: array<f32>;
var<workgroup> shared_values: array<f32, 128>;

@compute @workgroup_size(64, 2)
fn main(@builtin(local_invocation_index) at: u32) {
    shared_values[at] = values[at];
    workgroupBarrier();
    values[at] = shared_values[127u - at];
}
";

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("wgrad-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_kernel_is_written_in_every_language() {
    let translated = translate(KERNEL).unwrap();
    assert_eq!(translated.needs, Needs { threads: 128, shared: 512 });
    assert_eq!(translated.spirv[0], 0x0723_0203);
    assert!(translated.msl.contains("threadgroup_barrier"), "{}", translated.msl);
    assert!(translated.hlsl.unwrap().contains("GroupMemoryBarrierWithGroupSync"));
}

#[test]
fn what_is_no_kernel_is_refused() {
    let error = translate(&KERNEL.replace("values[at];", "values[at]")).unwrap_err();
    assert!(error.starts_with("WGSL: "), "{error}");
    let error = translate(&KERNEL.replace("array<f32>;", "array<f16>;")).unwrap_err();
    assert!(error.contains("f16"), "{error}");
    let error = translate("const one: f32 = 1.0;").unwrap_err();
    assert_eq!(error, "0 entry points, and there should be one");
}

/// The programs that are installed accept what naga writes, and refuse what is broken.
#[test]
fn programs_refuse_what_is_broken() {
    let folder = folder("programs");
    let programs = Programs::find(&folder).unwrap();
    let [there, missing] = programs.names();
    println!("installed: {there:?}; missing: {missing:?}");
    let mut translated = translate(KERNEL).unwrap();
    assert_eq!(programs.complaints("kernel", KERNEL, &translated).unwrap(), Vec::<String>::new());
    // The word behind the head is the first instruction's.
    translated.spirv.truncate(translated.spirv.len() - 2);
    let broken = KERNEL.replace("127u", "unknown");
    let found = programs.complaints("kernel", &broken, &translated).unwrap();
    for (name, refused) in [("spirv-val", "spirv-val: "), ("tint", "tint: ")] {
        let noticed = found.iter().any(|complaint| complaint.starts_with(refused));
        assert_eq!(noticed, there.contains(&name), "{name}: {found:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_workgroup_that_an_adapter_has_not_is_named() {
    let folder = folder("texts");
    std::fs::write(folder.join("one.wgsl"), KERNEL).unwrap();
    for (adapter, limits, asks) in [
        ("Large", r#"{ "threads": 256, "shared": 16384, "source": "a document" }"#, true),
        ("Few threads", r#"{ "threads": 64, "shared": 16384 }"#, true),
        ("Little memory", r#"{ "threads": 256, "shared": 256 }"#, true),
        ("Small, and does not ask", r#"{ "threads": 1, "shared": 0 }"#, false),
    ] {
        let own = folder.join(adapter);
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("limits.json"), limits).unwrap();
        if asks {
            std::fs::write(own.join("one"), "").unwrap();
        }
    }
    let texts = Texts::open(&folder).unwrap();
    assert_eq!(texts.names, ["one"]);
    let counts: Vec<(&str, usize)> = texts.adapters().collect();
    assert_eq!(counts[0], ("Few threads", 1));
    assert_eq!(
        texts.too_small("one", translate(KERNEL).unwrap().needs),
        [
            "128 threads and 512 shared bytes; Few threads has 64 and 16384",
            "128 threads and 512 shared bytes; Little memory has 256 and 256",
        ]
    );
    let run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_wgrad-compilers")).arg(&folder).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, said) = run();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("1 of 1 kernels") && said.contains("2 complaints"), "{said}");
    std::fs::remove_dir_all(folder.join("Few threads")).unwrap();
    std::fs::remove_dir_all(folder.join("Little memory")).unwrap();
    assert_eq!(run().0, Some(0));
    std::fs::write(folder.join("misfits.txt"), "Large: cast: 70000 workgroups, of 65535;\n")
        .unwrap();
    let (status, said) = run();
    assert!(status == Some(1) && said.contains("70000 workgroups"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_core_without_threads_is_named() {
    let folder = folder("idle");
    std::fs::write(folder.join("one.wgsl"), KERNEL).unwrap();
    std::fs::write(folder.join("registers.txt"), "one 64 matmul of two\n").unwrap();
    // 128 threads of 64 registers fit into 16,384 twice, into 65,536 eight times.
    for (adapter, registers) in [("Small", 16_384), ("Large", 65_536)] {
        let own = folder.join(adapter);
        std::fs::create_dir_all(&own).unwrap();
        let limits = format!(
            r#"{{ "threads": 256, "shared": 16384, "source": "a guess",
                "core": {{ "threads": 1024, "registers": {registers}, "shared": 65536, "groups": 16 }} }}"#
        );
        std::fs::write(own.join("limits.json"), limits).unwrap();
        std::fs::write(own.join("one"), "").unwrap();
    }
    let texts = Texts::open(&folder).unwrap();
    let needs = translate(KERNEL).unwrap().needs;
    assert_eq!(texts.idle("one", needs), []);
    // More shared memory leaves room for one workgroup of 128.
    let idle = texts.idle("one", Needs { shared: 40_000, ..needs });
    let found: Vec<(&str, f64)> = idle.iter().map(|i| (&i.adapter[..], i.occupancy)).collect();
    assert_eq!(found, [("Large", 0.125), ("Small", 0.125)]);
    assert_eq!((idle[0].registers, &idle[0].label[..]), (64, "matmul of two"));
    std::fs::remove_dir_all(folder).unwrap();
}
