//! What a text shows of who reaches its barriers.

#![allow(clippy::unwrap_used)]

mod support;

use support::kernel;
use wgrad_interpreter::{Mutation, compile};

/// The lines of barriers that some may not reach, counted from the body's first.
fn diverging(shared: &str, body: &str) -> Vec<u32> {
    let declarations = format!(
        "@group(0) @binding(1) var<uniform> p: vec4<u32>;\n@group(0) @binding(2) var<storage, read> x: array<u32>;\n{shared}"
    );
    let wgsl = kernel(8, &declarations, body);
    let before = wgsl.lines().take_while(|line| *line != ") {").count() as u32 + 1;
    let program = compile(&wgsl, Mutation::None).unwrap_or_else(|e| panic!("{e:#}\n{wgsl}"));
    program.diverging().into_iter().map(|line| line - before).collect()
}

const SHARED: &str = "var<workgroup> s: array<u32, 8>;";

#[test]
fn what_all_know_may_decide() {
    for condition in [
        "group.x == 3u",
        "p.x > group.y",
        "x[group.x] == 7u",
        "x[p.y + 2u * group.x] < p.z",
        "arrayLength(&x) > 5u",
    ] {
        assert!(diverging("", &format!("if ({condition}) {{ workgroupBarrier(); }}")).is_empty());
        assert!(
            diverging("", &format!("if ({condition}) {{ return; }}\nworkgroupBarrier();"))
                .is_empty()
        );
    }
    let counted =
        "for (var i = 0u; i < p.x; i++) { if (i == p.y) { continue; } workgroupBarrier(); }";
    assert!(diverging("", counted).is_empty());
    let halved = "for (var half = 4u; half > 0u; half /= 2u) { if (local < half) { s[local] = half; } workgroupBarrier(); }";
    assert!(diverging(SHARED, halved).is_empty());
}

#[test]
fn what_differs_may_not() {
    for condition in [
        "local < 4u",
        "all.x == 0u",
        // Memory that is written, whatever is in it.
        "y[0] == 1u",
        "s[0] == 1u",
        "workgroupUniformLoad(&s)[0] == 1u",
        "x[local] == 7u",
    ] {
        // A load may itself be a barrier, which all reach.
        let once = format!("if ({condition}) {{\nworkgroupBarrier(); }}");
        assert_eq!(diverging(SHARED, &once), [2], "{condition}");
        let behind = format!("if ({condition}) {{ return; }}\nworkgroupBarrier();");
        assert_eq!(diverging(SHARED, &behind), [2], "{condition}");
    }
}

#[test]
fn loops_that_some_leave_are_not_for_all() {
    let left = "for (var i = 0u; i < 9u; i++) {\nif (i > local) { break; }\nworkgroupBarrier(); }\nworkgroupBarrier();";
    assert_eq!(diverging("", left), [3]);
    // The barrier comes first, but not in the second turn.
    let second =
        "for (var i = 0u; i < 9u; i++) {\nworkgroupBarrier();\nif (i > local) { break; } }";
    assert_eq!(diverging("", second), [2]);
    let counted = "for (var i = local; i < 9u; i++) {\nworkgroupBarrier(); }\nworkgroupBarrier();";
    assert_eq!(diverging("", counted), [2]);
    let goes_on =
        "for (var i = 0u; i < 9u; i++) {\nif (i == local) { continue; }\nworkgroupBarrier(); }";
    assert_eq!(diverging("", goes_on), [3]);
    let returned =
        "for (var i = 0u; i < 9u; i++) { if (i == local) { return; } }\nworkgroupBarrier();";
    assert_eq!(diverging("", returned), [2]);
}

#[test]
fn variables_carry_what_they_were_given() {
    let given = "var n = p.x;\nif (n > 2u) { workgroupBarrier(); }\nn += local;\nif (n > 2u) { workgroupBarrier(); }";
    assert_eq!(diverging("", given), [4]);
    // What was chosen by one who differs differs.
    let chosen = "var n = 0u;\nif (local > 2u) { n = 1u; }\nif (n > 0u) { workgroupBarrier(); }";
    assert_eq!(diverging("", chosen), [3]);
    let turned = "var n = 0u;\nfor (var i = 0u; i < 3u; i++) {\nif (n > 0u) { workgroupBarrier(); }\nn = local; }";
    assert_eq!(diverging("", turned), [3]);
    let element =
        "var a: array<u32, 4>;\na[group.x % 4u] = local;\nif (a[1] > 0u) { workgroupBarrier(); }";
    assert_eq!(diverging("", element), [3]);
}

#[test]
fn functions_are_seen_through() {
    let f = "fn limit(n: u32) -> u32 { if (n > 3u) { return 3u; } return n; }";
    assert!(diverging(f, "if (limit(p.x) > 1u) { workgroupBarrier(); }").is_empty());
    assert_eq!(diverging(f, "if (limit(local) > 1u) { workgroupBarrier(); }"), [1]);
}

#[test]
fn subgroups_work_together_as_a_whole() {
    assert!(diverging("", "y[all.x] = subgroupAdd(local);").is_empty());
    assert_eq!(diverging("", "if (local > 2u) { y[all.x] = subgroupAdd(local); }"), [1]);
    let of_number = |body: &str| {
        let wgsl = kernel(8, "", body).replace(") {\n", "@builtin(subgroup_id) id: u32,\n) {\n");
        compile(&wgsl, Mutation::None).unwrap().diverging().len()
    };
    assert_eq!(of_number("if (id == 0u) { y[all.x] = subgroupAdd(local); }"), 0);
    assert_eq!(of_number("if (id == 0u) { workgroupBarrier(); }"), 1);
}
