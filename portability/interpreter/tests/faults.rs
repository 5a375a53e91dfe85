//! Kernels that are wrong in other ways than by a race, and their right twins.

#![allow(clippy::unwrap_used)]

mod support;

use support::{dispatch, found, kernel};
use wgrad_interpreter::{Kind, Mutation, Settings, compile};

const SHARED: &str = "var<workgroup> s: array<u32, 8>;";

#[test]
fn all_invocations_reach_a_barrier() {
    assert_eq!(found("", "workgroupBarrier();"), []);
    // The same for all of a workgroup is right.
    assert_eq!(found("", "if (group.x == 0u) { workgroupBarrier(); }"), []);
    assert_eq!(found("", "if (group.x == 0u) { return; } workgroupBarrier();"), []);
    // One way or the other.
    assert_eq!(found("", "if (local < 4u) { workgroupBarrier(); }"), [Kind::Diverging]);
    let both = "if (local < 4u) { workgroupBarrier(); } else { workgroupBarrier(); }";
    assert_eq!(found("", both), [Kind::Diverging]);
    // Some have returned, or have left the loop.
    assert_eq!(found("", "if (local == 7u) { return; } workgroupBarrier();"), [Kind::Diverging]);
    assert_eq!(
        found("", "for (var i = 0u; i < local; i++) { workgroupBarrier(); }"),
        [Kind::Diverging]
    );
    assert_eq!(found("", "for (var i = 0u; i < 3u; i++) { workgroupBarrier(); }"), []);
    // A function that some call.
    let f = "fn f(go: bool) { if (!go) { return; } workgroupBarrier(); }";
    assert_eq!(found(f, "f(local < 4u);"), [Kind::Diverging]);
    assert_eq!(found(f, "f(local < 8u);"), []);
}

#[test]
fn a_uniform_load_is_two_barriers() {
    let shared = "var<workgroup> n: u32;";
    let body = "if (local == 0u) { n = 5u; } y[all.x] = workgroupUniformLoad(&n);";
    assert_eq!(found(shared, body), []);
    let plain = "if (local == 0u) { n = 5u; } y[all.x] = n;";
    assert_eq!(found(shared, plain), [Kind::ReadAfterWrite]);
    // What follows may write again.
    let again = "if (local == 0u) { n = 5u; } let x = workgroupUniformLoad(&n); if (local == 1u) { n = 6u; } y[all.x] = x;";
    assert_eq!(found(shared, again), []);
    let some =
        "if (local == 0u) { n = 5u; } if (local < 4u) { y[all.x] = workgroupUniformLoad(&n); }";
    assert_eq!(found(shared, some), [Kind::Diverging]);
}

#[test]
fn indices_stay_inside() {
    assert_eq!(found("", "y[all.x + 48u] = 1u;"), []);
    assert_eq!(found("", "y[all.x + 49u] = 1u;"), [Kind::OutOfBounds]);
    // Any element may answer a read.
    assert_eq!(found("", "y[all.x] = y[63u + local];"), [Kind::ReadBeyond]);
    assert!(!Kind::ReadBeyond.is_fault() && Kind::OutOfBounds.is_fault());
    assert_eq!(found(SHARED, "s[local + 1u] = 1u;"), [Kind::OutOfBounds]);
    let local = "var a: array<u32, 4>; a[local] = 1u; y[all.x] = a[0];";
    assert_eq!(found("", local), [Kind::OutOfBounds]);
    assert_eq!(found("", &local.replace("a[local]", "a[local % 4u]")), []);
    let negative = "let a = array<u32, 4>(1u, 2u, 3u, 4u); y[all.x] = a[i32(local) - 4];";
    assert_eq!(found("", negative), [Kind::OutOfBounds]);
    // An index that is formed and not used is none.
    assert_eq!(found("", "let p = &y[64u + local]; if (local == 9u) { *p = 1u; }"), []);
}

#[test]
fn workgroup_memory_is_written_before_it_is_read() {
    assert_eq!(found(SHARED, "s[local] = 1u; y[all.x] = s[local];"), []);
    assert_eq!(found(SHARED, "y[all.x] = s[local];"), [Kind::Unwritten]);
    assert_eq!(
        found(
            SHARED,
            "if (local < 7u) { s[local] = 1u; } workgroupBarrier(); y[all.x] = s[local];"
        ),
        [Kind::Unwritten]
    );
    let once = "if (group.x == 0u) { s[local] = 1u; } y[all.x] = s[local];";
    assert_eq!(found(SHARED, once), [Kind::Unwritten]);
}

#[test]
fn private_variables_are_written_before_they_are_read() {
    let variable = "var<private> v: array<u32, 2>;";
    assert_eq!(found(variable, "v[0] = 1u; y[all.x] = v[0];"), []);
    assert_eq!(found(variable, "v[0] = 1u; y[all.x] = v[1];"), [Kind::UnwrittenPrivate]);
    assert_eq!(found(variable, "v[local % 2u] = 1u; y[all.x] = v[local % 2u];"), []);
    assert_eq!(found("var<private> v: u32 = 3u;", "y[all.x] = v;"), []);
}

#[test]
fn loops_come_to_an_end() {
    assert_eq!(found("", "for (var i = 0u; i < 65535u; i++) { y[all.x] = i; }"), []);
    assert_eq!(found("", "for (var i = 0u; i >= 0u; i++) { y[all.x] = i; }"), [Kind::Endless]);
    assert_eq!(found("", "loop { if (local == 9u) { break; } }"), [Kind::Endless]);
    let wgsl = kernel(8, "", "for (var i = 0u; i < 1000u; i++) { y[all.x] = i; }");
    let settings = Settings { most_steps: 10_000, ..Settings::default() };
    let (report, _) = dispatch(&wgsl, [1, 1, 1], vec![vec![0; 8]], settings);
    assert_eq!(report.findings[0].kind, Kind::Endless);
}

#[test]
fn a_finding_names_variable_line_and_text() {
    let wgsl = kernel(8, SHARED, "s[local] = local;\ny[all.x] = s[local ^ 1u];");
    let (report, _) = dispatch(&wgsl, [1, 1, 1], vec![vec![0; 8]], Settings::default());
    assert_eq!(
        report.findings[0].to_string(),
        "race: read after another invocation's write of `s`, line 10: `y[all.x] = s[local ^ 1u];` (8 times; first in \
         workgroup 0, invocation 0, at 1)"
    );
}

#[test]
fn the_turns_of_loops_are_counted() {
    let wgsl = kernel(
        8,
        "",
        "for (var i = 0u; i < local; i++) { for (var k = 0u; k < 1u; k++) { y[all.x] = k; } }",
    );
    let (report, _) = dispatch(&wgsl, [1, 1, 1], vec![vec![0; 8]], Settings::default());
    assert_eq!(report.turns, [7, 1]);
}

#[test]
fn what_is_not_known_is_an_error_that_names_it() {
    let error = |text: &str| format!("{:#}", compile(text, Mutation::None).unwrap_err());
    let texture = "@group(0) @binding(0) var t: texture_2d<f32>;\n@compute @workgroup_size(1) fn main() { _ = textureDimensions(t); }";
    assert!(error(texture).contains("Handle"), "{}", error(texture));
    let math = kernel(1, "", "y[0] = pack4x8snorm(vec4<f32>(f32(local)));");
    assert!(error(&math).contains("Pack4x8snorm"), "{}", error(&math));
    assert!(error("fn main() {}").contains("no compute shader"));
    assert!(error("fn main( {}").contains("naga does not read it"));
}
