//! Checks that a GPU has enough registers for every kernel of the programs.

#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn no_kernel_spills_registers_or_leaves_cores_idle() {
    let output = Command::new(env!("CARGO_BIN_EXE_wgrad-kernels"))
        .arg("--check")
        .env("RADV_FORCE_FAMILY", "navi21")
        .env("WGRAD_PORTABLE", "1")
        .output()
        .unwrap();
    let [said, failed] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    if failed.contains("Mesa's Vulkan driver for AMD") {
        println!("not checked: {failed}");
        return;
    }
    assert!(output.status.success(), "{said}{failed}");
    // One line, and hundreds of kernels.
    let count: usize = said.split_once(" kernels, 0 ").unwrap().0.parse().unwrap();
    assert!(count > 400, "{said}");
}

/// A step's kernels on a desktop GPU, and in a browser.
#[test]
fn a_step_of_an_mlp_has_few_kernels() {
    let kernels = |portable: &str| {
        let test = std::env::current_exe().unwrap();
        let output = Command::new(test)
            .args(["print_the_kernels_of_an_mlp", "--exact", "--ignored", "--nocapture"])
            .env("WGRAD_PORTABLE", portable)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let count = said.lines().find_map(|line| line.strip_prefix("kernels: "));
        count.unwrap_or_else(|| panic!("{said}")).parse::<usize>().unwrap()
    };
    assert_eq!(kernels("1"), 11);
    assert_eq!(kernels("64"), 10);
}

#[test]
#[ignore = "the test above runs it"]
fn print_the_kernels_of_an_mlp() {
    let programs = wgrad_kernels::programs::all();
    let mlp =
        programs.iter().find(|program| program.name.starts_with("MLP step, 784-100")).unwrap();
    let labels = wgrad_kernels::kernels(mlp).unwrap();
    println!("{:?}", labels.iter().map(|kernel| &kernel.label).collect::<Vec<_>>());
    println!("\nkernels: {}", labels.len());
}
