//! The shaders whose threads hand each other what lies in buffers: no race in them, and none of their barriers can go.

#![allow(clippy::unwrap_used)]

mod support;

use support::with_barriers;
use wgrad_interpreter::{Kind, Mutation};

/// A matrix without zeros, of any number of elements.
fn matrix(elements: usize) -> Vec<u32> {
    let mut random = 7u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) as f32 / 8_388_608.0 - 1.003
    };
    (0..elements).map(|_| next().to_bits()).collect()
}

/// Runs a shader on two matrices, whole and without each of its barriers in turn: the lines of barriers that nobody misses.
fn missed_by_nobody(text: &str, buffers: &[Vec<u32>]) -> Vec<u32> {
    let (found, barriers) = with_barriers(text, buffers, Mutation::None);
    assert_eq!(found, Vec::<Kind>::new(), "{text}");
    assert!(!barriers.is_empty());
    let left_out = |number: &usize| with_barriers(text, buffers, Mutation::WithoutBarrier(*number));
    let nobody = (0..barriers.len()).filter(|number| left_out(number).0.is_empty());
    nobody.map(|number| barriers[number]).collect()
}

#[test]
fn lu_factors_need_every_barrier() {
    let text = include_str!("../../../shaders/lu_panel.wgsl");
    let (m, n, count) = (21, 5, 2);
    let y = vec![0; count * m * (n + 1)];
    let p = vec![m as u32, n as u32, count as u32, count as u32];
    let text = format!("const WG: u32 = 8u;\n{text}");
    assert_eq!(missed_by_nobody(&text, &[matrix(count * m * n), y, p]), Vec::<u32>::new());
}

#[test]
fn qr_factors_need_every_barrier() {
    let text = include_str!("../../../shaders/qr_panel.wgsl");
    let (m, n, count) = (21, 5, 2);
    let y = vec![0; count * (m + n) * n];
    let p = vec![m as u32, n as u32, count as u32, count as u32];
    let text = format!("const WG: u32 = 16u;\nconst WIDE: u32 = 8u;\n{text}");
    assert_eq!(missed_by_nobody(&text, &[matrix(count * m * n), y, p]), Vec::<u32>::new());
}

#[test]
fn rotations_need_every_barrier() {
    let text = include_str!("../../../shaders/jacobi.wgsl");
    let (n, m, k, count) = (7, 9, 3, 2);
    let words = count * n * (m + k);
    let p = [n, m, m + k, n + 1, 0, 4, count, count].map(|word| word as u32).to_vec();
    let text = format!("const WG: u32 = 8u;\nconst LANES: u32 = 4u;\n{text}");
    assert_eq!(missed_by_nobody(&text, &[matrix(words), vec![0; words], p]), Vec::<u32>::new());
}
