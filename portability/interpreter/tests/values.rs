//! What kernels compute.

#![allow(clippy::unwrap_used)]

mod support;

use support::{dispatch, kernel};
use wgrad_interpreter::{Order, Settings};

/// The word that each of eight invocations puts into `y`, the same in every order.
#[track_caller]
fn words(declarations: &str, body: &str) -> Vec<u32> {
    let wgsl = kernel(8, declarations, body);
    let run = |order: Order| {
        let settings = Settings { order, ..Settings::default() };
        let (report, memory) = dispatch(&wgsl, [1, 1, 1], vec![vec![0; 8]], settings);
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        memory[0].clone()
    };
    let straight = run(Order::Straight);
    for seed in 0..6 {
        assert_eq!(run(Order::Random(seed)), straight);
    }
    straight
}

fn floats(declarations: &str, body: &str) -> Vec<f32> {
    words(declarations, body).into_iter().map(f32::from_bits).collect()
}

#[test]
fn branches_and_loops_take_each_invocation_its_way() {
    let body = "var sum = 0u;\n\
        for (var i = 0u; i < 10u; i++) {\n\
            if (i == local) { continue; }\n\
            if (i > 2u * local) { break; }\n\
            sum += i;\n\
        }\n\
        y[local] = sum;";
    let expected = (0..8u32).map(|n| (0..10).filter(|i| *i <= 2 * n && *i != n).sum::<u32>());
    assert_eq!(words("", body), expected.collect::<Vec<_>>());
}

#[test]
fn functions_return_from_anywhere() {
    let f = "fn f(n: u32) -> u32 {\n\
        for (var i = 0u; i < n; i++) { if (i * i >= n) { return i; } }\n\
        if (n == 1u) { return 77u; }\n\
        return 99u;\n\
    }";
    assert_eq!(words(f, "y[local] = f(local);"), [99, 77, 99, 2, 2, 3, 3, 3]);
}

#[test]
fn functions_have_variables_of_their_own_at_each_call() {
    let f = "fn f(n: u32) -> u32 { var a: array<u32, 4>; a[n % 4u] += n; return a[0] + a[1] + a[2] + a[3]; }";
    let body = "var sum = 0u; for (var i = 0u; i < 3u; i++) { sum += f(local + i); } y[local] = sum + f(100u);";
    assert_eq!(words(f, body), (0..8).map(|n| 3 * n + 3 + 100).collect::<Vec<u32>>());
}

#[test]
fn a_variable_of_a_loop_is_reset_in_each_iteration() {
    let body = "var sum = 0u; for (var i = 0u; i < 4u; i++) { var n: u32; n += local; sum += n; } y[local] = sum;";
    assert_eq!(words("", body), (0..8).map(|n| 4 * n).collect::<Vec<u32>>());
}

#[test]
fn a_switch_has_cases_with_several_values_and_a_default() {
    let body = "var v = 0u;\n\
        switch (local) {\n\
            case 1u, 3u: { v = 10u; }\n\
            default: { v = 30u; if (local == 7u) { break; } v += 1u; }\n\
            case 2u: { v = 20u; }\n\
        }\n\
        y[local] = v;";
    assert_eq!(words("", body), [31, 10, 20, 10, 31, 31, 31, 30]);
}

#[test]
fn structs_arrays_and_pointers_lead_to_their_parts() {
    let declarations = "struct S { a: u32, v: vec3<f32>, m: array<vec2<u32>, 3> }\n\
        fn bump(p: ptr<function, S>, i: u32) { (*p).m[i].y += 5u; (*p).v[i] = 2.0; }";
    let body = "var s = S(local, vec3<f32>(1.0), array<vec2<u32>, 3>());\n\
        bump(&s, local % 3u);\n\
        let copy = s;\n\
        s.m[0].y = 1000u;\n\
        y[local] = copy.a + 10u * copy.m[local % 3u].y + 100u * u32(copy.v.x + copy.v.y + copy.v.z);";
    assert_eq!(words(declarations, body), (0..8).map(|n| n + 50 + 400).collect::<Vec<u32>>());
}

#[test]
fn vectors_are_taken_apart_and_put_together() {
    let body = "let v = vec4<f32>(1.0, 2.0, 3.0, f32(local));\n\
        let w = v.wzyx * 2.0 + vec4<f32>(v.xy, 0.5, 0.25);\n\
        y[local] = bitcast<u32>(dot(w, vec4<f32>(1.0)) + select(0.0, 100.0, any(v > vec4<f32>(5.0))));";
    let expected = |n: f32| 2.0 * (1.0 + 2.0 + 3.0 + n) + 3.75 + if n > 5.0 { 100.0 } else { 0.0 };
    assert_eq!(floats("", body), (0..8).map(|n| expected(n as f32)).collect::<Vec<_>>());
}

#[test]
fn matrices_multiply_columns() {
    let body = "let m = mat2x2<f32>(1.0, 2.0, 3.0, 4.0);\n\
        let v = m * vec2<f32>(f32(local), 1.0);\n\
        let w = vec2<f32>(1.0, 0.5) * m;\n\
        y[local] = bitcast<u32>(v.x + 10.0 * v.y + 100.0 * w.x + (m * m)[1].y);";
    let expected = |n: f32| (n + 3.0) + 10.0 * (2.0 * n + 4.0) + 100.0 * 2.0 + 22.0;
    assert_eq!(floats("", body), (0..8).map(|n| expected(n as f32)).collect::<Vec<_>>());
}

#[test]
fn halves_are_computed_and_stored_as_halves() {
    let wgsl = "enable f16;\n\
        @group(0) @binding(0) var<storage, read> x: array<vec4<f16>>;\n\
        @group(0) @binding(1) var<storage, read_write> y: array<vec4<f16>>;\n\
        @compute @workgroup_size(2)\n\
        fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[1u - i] * 3.0h + vec4<f16>(vec4<f32>(0.1)); }\n";
    let h = |x: f32| u32::from(half::f16::from_f32(x).to_bits());
    let pair = |a: f32, b: f32| h(a) | h(b) << 16;
    let x = vec![pair(1.0, 2.0), pair(3.0, 4.0), pair(0.1, 1000.0), pair(-1.0, 0.0)];
    let (report, memory) = dispatch(wgsl, [1, 1, 1], vec![x, vec![0; 4]], Settings::default());
    assert!(report.findings.is_empty());
    let f = |x: f32| {
        half::f16::from_f32(
            half::f16::from_f32(half::f16::from_f32(x).to_f32() * 3.0).to_f32()
                + half::f16::from_f32(0.1).to_f32(),
        )
        .to_f32()
    };
    assert_eq!(
        memory[1],
        [
            pair(f(0.1), f(1000.0)),
            pair(f(-1.0), f(0.0)),
            pair(f(1.0), f(2.0)),
            pair(f(3.0), f(4.0))
        ]
    );
}

#[test]
fn uniforms_are_read_as_they_are_aligned() {
    let wgsl = "struct P { a: u32, v: vec3<u32>, b: i32 }\n\
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;\n\
        @group(0) @binding(1) var<uniform> p: P;\n\
        @compute @workgroup_size(1) fn main() { y[0] = p.a; y[1] = p.v.z; y[2] = u32(-p.b); y[3] = arrayLength(&y); }\n";
    let p = vec![7, 0, 0, 0, 1, 2, 3, -9i32 as u32];
    let (_, memory) = dispatch(wgsl, [1, 1, 1], vec![vec![0; 5], p], Settings::default());
    assert_eq!(memory[0], [7, 3, 9, 5, 0]);
}

#[test]
fn places_in_the_grid_are_those_of_wgsl() {
    let wgsl = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n\
        @compute @workgroup_size(2, 3)\n\
        fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>,\n\
                @builtin(num_workgroups) n: vec3<u32>, @builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3<u32>) {\n\
            let at = (w.y * n.x + w.x) * 6u + i;\n\
            y[at] = g.x + 10u * g.y + 100u * l.x + 1000u * l.y;\n\
        }\n";
    let (report, memory) = dispatch(wgsl, [2, 2, 1], vec![vec![0; 24]], Settings::default());
    assert!(report.findings.is_empty());
    assert_eq!(memory[0][..6], [0, 101, 1010, 1111, 2020, 2121]);
    assert_eq!(memory[0][18..], [32, 133, 1042, 1143, 2052, 2153]);
}

#[test]
fn noise_moves_a_long_sum_by_little() {
    let body = "var sum = 0.0; for (var i = 1u; i < 100u; i++) { sum += 1.0 / f32(i); } y[local] = bitcast<u32>(sum);";
    let wgsl = kernel(8, "", body);
    let of = |noise| {
        let settings = Settings { noise, ..Settings::default() };
        f32::from_bits(dispatch(&wgsl, [1, 1, 1], vec![vec![0; 8]], settings).1[0][0])
    };
    let exact: f64 = (1..100).map(|i| 1.0 / f64::from(i)).sum();
    assert!((f64::from(of(None)) - exact).abs() < 2e-5);
    let moved: Vec<f32> = (0..8).map(|seed| of(Some(seed))).collect();
    assert!(moved.iter().any(|x| *x != of(None)));
    assert!(moved.iter().all(|x| (f64::from(*x) - exact).abs() < 5e-5), "{moved:?}");
}
