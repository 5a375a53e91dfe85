//! What drivers do with terms, factors, NaN, conversions and elements beyond an array, on an adapter.
//!
//! "separate" stands for a driver that does what is written: the adapter's own takes latitudes, too.

#![allow(clippy::unwrap_used)]

mod support;

use support::{float, run};

#[test]
fn terms_cancel_and_come_in_another_order() {
    // (a + b) - a is b, though nothing of b is left in a + b.
    for body in [
        "return (a + b) - a;",
        "let s = a + b; return s - a;",
        "var s = a; s += b; s -= a; return s;",
    ] {
        assert_eq!(float(body, "round-to-zero", 1e20, 1.0, 0.0), 0.0, "{body}");
        assert_eq!(float(body, "regroup", 1e20, 1.0, 0.0), 1.0, "{body}");
        assert_eq!(float(body, "regroup+round-to-zero", 1e20, 1.0, 0.0), 1.0, "{body}");
    }
    assert_eq!(float("return a - (a - b);", "regroup", 1e20, 1.0, 0.0), 1.0);
    assert_eq!(float("return (a * b) / a;", "regroup", 1e30, 3e30, 0.0), 3e30);
    assert_eq!(float("return (a * b) / a;", "separate", 1e30, 3e30, 0.0), f32::INFINITY);
    assert_eq!(float("return select(T(0.0), T(1.0), a + b > a);", "regroup", 1e20, 1.0, 0.0), 1.0);
    assert_eq!(
        float("return select(T(0.0), T(1.0), a + b > a);", "round-to-zero", 1e20, 1.0, 0.0),
        0.0
    );
    // Some order of four terms differs from the one that is written.
    let bodies =
        ["return a + b + c + 1.0;", "return 1.0 + (c + (b + a));", "return (a + 1.0) - (c + b);"];
    let [a, b, c] = [1e8, 0.3, -1e8];
    let other = bodies.iter().filter(|body| {
        float(body, "round-far", a, b, c) != float(body, "regroup+round-far", a, b, c)
    });
    assert!(other.count() > 0);
}

#[test]
fn what_is_hidden_is_not_regrouped() {
    let hidden = "let s = bitcast<T>(bitcast<vec4<u32>>(a + b) ^ vec4<u32>(zero())); return s - a;";
    let text = |driver: &str| {
        let kernel = format!(
            "@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
             alias T = vec4<f32>;\n\
             fn zero() -> u32 {{ return bitcast<u32>(x[0].z); }}\n\
             fn f(a: T, b: T) -> T {{ {hidden} }}\n\
             @compute @workgroup_size(1) fn main() {{ y[0] = f(x[0].xxxx, x[0].yyyy).x; }}"
        );
        f32::from_bits(run(&kernel, driver, 1, &[1e20f32.to_bits(), 1f32.to_bits(), 0, 0], 1)[0])
    };
    for driver in ["separate", "regroup", "regroup+contract+factor+identities"] {
        assert_eq!(text(driver), 0.0, "{driver}");
    }
}

#[test]
fn a_common_factor_is_taken_out() {
    // c (a + b) is finite where both products are not.
    let body = "return a * c + b * c;";
    assert!(float(body, "separate", 1e30, -1e30, 1e30).is_nan());
    assert_eq!(float(body, "factor", 1e30, -1e30, 1e30), 0.0);
    assert_eq!(float("return a * c - b * c;", "factor", 1e30, 1e30, 1e30), 0.0);
    assert_eq!(float("return a * c - c * b + 1.0;", "factor", 3.0, 1.0, 2.0), 5.0);
}

#[test]
fn identities_hold_also_for_infinity_and_nan() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for (body, x, wanted) in [
        ("return a - a;", inf, 0.0),
        ("return a / a;", inf, 1.0),
        ("return a / a;", 0.0, 1.0),
        ("return a * 0.0;", inf, 0.0),
        ("return select(T(0.0), T(1.0), a == a);", nan, 1.0),
        ("return select(T(0.0), T(1.0), a != a);", nan, 0.0),
    ] {
        assert_eq!(float(body, "identities", x, 0.0, 0.0), wanted, "{body}");
    }
}

#[test]
fn comparisons_with_nan_are_the_other_way_round() {
    let nan = f32::NAN;
    for operator in ["<", "<=", ">", ">=", "==", "!="] {
        let body = format!("return select(T(0.0), T(1.0), a {operator} b);");
        for [a, b] in [[nan, 1.0], [1.0, nan], [nan, nan]] {
            let other = if operator == "!=" { 0.0 } else { 1.0 };
            assert_eq!(float(&body, "compare-nan", a, b, 0.0), other, "{a} {operator} {b}");
        }
        assert_eq!(float(&body, "compare-nan", 1.0, 2.0, 0.0), float(&body, "none", 1.0, 2.0, 0.0));
    }
}

#[test]
fn extremes_with_nan_give_either_operand() {
    let nan = f32::NAN;
    for name in ["min", "max"] {
        let body = format!("return {name}(a, b);");
        assert!(float(&body, "extremes-first", nan, 1.0, 0.0).is_nan());
        assert_eq!(float(&body, "extremes-first", 1.0, nan, 0.0), 1.0);
        assert_eq!(float(&body, "extremes-last", nan, 1.0, 0.0), 1.0);
        assert!(float(&body, "extremes-last", 1.0, nan, 0.0).is_nan());
        assert_eq!(
            float(&body, "extremes-last", 1.0, 2.0, 0.0),
            float(&body, "none", 1.0, 2.0, 0.0)
        );
    }
    assert!(float("return clamp(a, b, c);", "extremes-first", nan, 1.0, 2.0).is_nan());
    assert_eq!(float("return clamp(a, b, c);", "extremes-last", nan, 1.0, 2.0), 2.0);
}

#[test]
fn tests_of_the_bits_of_computed_numbers_fail() {
    let kernel = |x: &str, test: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read> x: array<f32>;\n\
             @group(0) @binding(1) var<storage, read_write> y: array<u32>;\n\
             fn is(x: vec4<f32>) -> vec4<bool> {{ return {test}; }}\n\
             @compute @workgroup_size(1) fn main() {{ y[0] = select(0u, 1u, is(vec4<f32>({x})).x); }}"
        )
    };
    let nan = "(bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u)";
    let infinite = "(bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u)";
    let of =
        |x, test, driver, value: f32| run(&kernel(x, test), driver, 1, &[value.to_bits()], 1)[0];
    assert_eq!(of("x[0] + 1.0", nan, "none", f32::NAN), 1);
    assert_eq!(of("x[0] + 1.0", nan, "tests-of-bits", f32::NAN), 0);
    assert_eq!(of("x[0] + 1.0", infinite, "tests-of-bits", f32::INFINITY), 0);
    // What is read is what is there.
    assert_eq!(of("x[0]", nan, "tests-of-bits", f32::NAN), 1);
}

#[test]
fn nan_and_infinity_are_lost_where_the_letter_lets_them() {
    assert!(float("return a + b;", "nans-lost", f32::NAN, 1.0, 0.0).is_finite());
    assert!(float("return a - b;", "nans-lost", f32::INFINITY, f32::INFINITY, 0.0).is_finite());
    assert!(float("return a * b;", "infinities-lost", f32::MAX, 2.0, 0.0).is_finite());
    assert_eq!(float("return a * b;", "infinities-lost", 3.0, 2.0, 0.0), 6.0);
}

#[test]
fn halves_are_rounded_down_flushed_or_left_out() {
    let body = "return T(quantizeToF16(a));";
    let x = 1.0 + 0.9 / 1024.0;
    assert_eq!(float(body, "none", x, 0.0, 0.0), 1.0 + 1.0 / 1024.0);
    assert_eq!(float(body, "halves-to-zero", x, 0.0, 0.0), 1.0);
    assert_eq!(float(body, "halves-to-zero", -x, 0.0, 0.0), -1.0);
    assert_eq!(float(body, "flush-halves", 3e-5, 0.0, 0.0), 0.0);
    assert_eq!(float(body, "flush-halves", 7e-5, 0.0, 0.0), float(body, "none", 7e-5, 0.0, 0.0));
    assert_eq!(float(body, "quantize-wild", 1e6, 0.0, 0.0), 12345.0);
    if support::has_f16() {
        for there_and_back in ["return f32(f16(x));", "let h = f16(x); return f32(h);"] {
            let kernel = format!(
                "enable f16;\n@group(0) @binding(0) var<storage, read> x: array<f32>;\n\
                 @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
                 fn f(x: f32) -> f32 {{ {there_and_back} }}\n\
                 @compute @workgroup_size(1) fn main() {{ y[0] = f(x[0]); y[1] = f(x[1]); }}"
            );
            let of = |driver| {
                run(&kernel, driver, 1, &[x, 3.1e-5].map(f32::to_bits), 2)
                    .into_iter()
                    .map(f32::from_bits)
                    .collect::<Vec<_>>()
            };
            let small = (3.1e-5f32 * 16_777_216.0).round() / 16_777_216.0;
            assert_eq!(of("none"), [1.0 + 1.0 / 1024.0, small]);
            assert_eq!(of("halves-to-zero")[0], 1.0);
            assert_eq!(of("flush-halves")[1], 0.0);
            assert_eq!(of("halves-elided"), [x, 3.1e-5]);
        }
    }
}

#[test]
fn arithmetic_of_halves_is_rewritten_too() {
    if !support::has_f16() {
        return;
    }
    let kernel = "enable f16;
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(1) fn main() {
            let a = f16(x[0]); let b = f16(x[1]);
            y[0] = f32(a * b + a); y[1] = f32(sqrt(a)); y[2] = select(0.0, 1.0, a < b);
        }";
    let of = |driver: &str| {
        run(kernel, driver, 1, &[1.2345, 1.7891].map(f32::to_bits), 3)
            .into_iter()
            .map(f32::from_bits)
            .collect::<Vec<_>>()
    };
    let [plain, cut] = ["none", "halves-to-zero"].map(of);
    assert!(cut[0] < plain[0] && cut[0] > plain[0] - 0.005, "{plain:?} {cut:?}");
    assert_eq!(cut[2], 1.0);
}

#[test]
fn conversions_to_integers_are_wild() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            y[i] = u32(x[i]); y[i + 4] = u32(i32(x[i]));
        }";
    let input = [f32::NAN, 1e20, -3.7, 7.9].map(f32::to_bits);
    let of = |driver| run(kernel, driver, 1, &input, 8);
    let plain = of("none");
    assert_eq!(
        [&plain[1..4], &plain[5..]].concat(),
        [4_294_967_040, 0, 7, 2_147_483_520, -3i32 as u32, 7]
    );
    let wild = 1_234_567_890;
    assert_eq!(
        of("convert-nan"),
        [wild, 4_294_967_040, 0, 7, wild, 2_147_483_520, -3i32 as u32, 7]
    );
    assert_eq!(of("convert-wild"), [wild, wild, wild, 7, wild, wild, -3i32 as u32, 7]);
}

#[test]
fn integers_become_the_float_nearer_to_zero() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            y[i] = f32(x[i]); y[i + 4] = f32(bitcast<i32>(x[i]));
        }";
    let input = [0x0100_0003, 0xffff_ffff, 12345, -16_777_219i32 as u32];
    let of = |driver| {
        run(kernel, driver, 1, &input, 8).into_iter().map(f32::from_bits).collect::<Vec<_>>()
    };
    assert_eq!(of("none")[..3], [16_777_220.0, 4_294_967_296.0, 12345.0]);
    assert_eq!(of("integers-to-zero")[..3], [16_777_218.0, 4_294_967_040.0, 12345.0]);
    assert_eq!(of("integers-to-zero")[4..], [16_777_218.0, -1.0, 12345.0, -16_777_218.0]);
}

#[test]
fn what_is_beyond_an_array_is_another_element_of_it() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() {
            y[0] = x[x[0]]; y[1] = x[i32(x[1])];
            var own = array<u32, 3>(7u, 8u, 9u);
            y[2] = own[x[2]];
            y[7u + x[2]] = 5u;
        }";
    // Reads of elements 4, -1 and 5; a write beyond the end.
    let input = [4, u32::MAX, 5, 77];
    let y = run(kernel, "other-elements", 1, &input, 8);
    // The first beyond the end is the last.
    assert_eq!([y[0], y[1], y[2]], [77, 4, 7]);
    assert_eq!(y[1], input[0]);
    // 12 is four beyond the end of eight.
    assert_eq!(y[8 - 1 - 4], 5);
}

#[test]
fn what_the_rewriter_does_not_know_is_an_error() {
    let refused = |text: &str| {
        wgrad_hostile::rewrite(text, &"round-far".parse().unwrap()).unwrap_err().to_string()
    };
    let kernel = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n\
             @compute @workgroup_size(1) fn main() {{ {body} }}"
        )
    };
    assert!(
        refused(&kernel("x[0] = refract(vec2<f32>(x[1]), vec2<f32>(x[2]), 1.0).x;"))
            .contains("Refract")
    );
    assert!(
        refused(&kernel("let m = mat2x2<f32>(x[0], x[1], x[2], x[3]); x[0] = (m * m)[0].x;"))
            .contains("matrices")
    );
    assert!(
        refused("override a: f32; @compute @workgroup_size(1) fn main() {}")
            .contains("pipeline overrides")
    );
    assert!(refused("fn f( {").contains("expected"));
}

#[test]
fn a_driver_without_latitudes_changes_nothing() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        const FACTORS = array<f32, 2>(2.0, 3.0);
        struct Pair { a: f32, b: vec3<f32> }
        var<workgroup> shared_: array<f32, 4>;
        fn early(i: u32) -> f32 { if (i > 2u) { return 1.5; } return x[i]; }
        fn both(i: u32) -> Pair { var p: Pair; p.a = early(i); p.b = vec3<f32>(f32(i), early(i + 1u), 1.0); return p; }
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            shared_[i] = both(i).b.y;
            workgroupBarrier();
            var sum = 0.0;
            for (var k = 0u; k < 4u; k++) {
                if (k == i) { continue; }
                switch (k) { case 0u, 1u: { sum += shared_[k]; } default: { sum -= both(k).a; } }
            }
            y[i] = sum * FACTORS[i & 1u];
        }";
    let input = [1.25f32, 2.5, -0.75, 9.0].map(f32::to_bits);
    let plain = support::run_as_it_is(kernel, 1, &input, 4);
    for driver in [
        "none",
        "contract",
        "regroup+contract+identities",
        "flush-results+other-elements",
        "separate",
    ] {
        assert_eq!(run(kernel, driver, 1, &input, 4), plain, "{driver}");
    }
}

#[test]
fn functions_without_a_value_return_to_where_they_are_called() {
    // naga ends the last branch with a return, which must not end the caller.
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        fn store(i: u32, v: f32) { y[i] = v; if (v > 1.0) { y[i] = v + 1.0; } }
        @compute @workgroup_size(1) fn main() { for (var i = 0u; i < 3u; i++) { store(i, x[i]); } }";
    let input = [1.0f32, 2.0, 3.0].map(f32::to_bits);
    for driver in ["none", "contract", "identities", "regroup"] {
        let words = support::run(kernel, driver, 1, &input, 3);
        let numbers: Vec<f32> = words.into_iter().map(f32::from_bits).collect();
        assert_eq!(numbers, [1.0, 3.0, 4.0], "{driver}");
    }
}
