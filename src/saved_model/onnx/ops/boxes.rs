//! Boxes of detected objects. How many there are is a value, so the host computes them.

use super::call::{Call, Results, Table};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::value::Value;

pub(super) static OPS: Table = &[("NonMaxSuppression", non_max_suppression)];

/// The most boxes of an image.
const MOST: usize = 100_000;
/// The most pairs that a call compares, which takes some seconds.
const MOST_PAIRS: usize = 2_000_000_000;

/// The corners of a box: `[y1, x1, y2, x2]`, smaller first.
fn corners(numbers: &[f64], center: bool) -> [f64; 4] {
    let [a, b, c, d] = [numbers[0], numbers[1], numbers[2], numbers[3]];
    match center {
        true => [b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0],
        false => [a.min(c), b.min(d), a.max(c), b.max(d)],
    }
}

/// The common part of two boxes, as a share of both together.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let side = |at: usize| (a[at + 2].min(b[at + 2]) - a[at].max(b[at])).max(0.0);
    let area = |x: &[f64; 4]| (x[2] - x[0]) * (x[3] - x[1]);
    let common = side(0) * side(1);
    let union = area(a) + area(b) - common;
    if common > 0.0 && union > 0.0 { common / union } else { 0.0 }
}

/// The boxes of each class with the highest scores, without those that overlap a better one.
fn non_max_suppression(c: &Call<'_>) -> Result<Results> {
    let (boxes, scores) = (c.input(0)?.read()?, c.input(1)?.read()?);
    let ([batch, count, 4], [scored, classes, known]) = (boxes.shape(), scores.shape()) else {
        return Err(wrong(&boxes, &scores));
    };
    let (batch, count, classes) = (*batch, *count, *classes);
    if *scored != batch || *known != count || count > MOST {
        return Err(wrong(&boxes, &scores));
    }
    let number = |at: usize, default: f64| -> Result<f64> {
        match c.get(at) {
            Some(_) => Ok(c.floats(at)?.first().copied().unwrap_or(default)),
            None => Ok(default),
        }
    };
    let most = match c.get(2) {
        Some(_) => c.ints(2)?.first().copied().unwrap_or(0).max(0) as usize,
        None => 0,
    };
    let (limit, least) = (number(3, 0.0)?, number(4, f64::NEG_INFINITY)?);
    let center = c.attr_int("center_point_box", 0) != 0;
    let (boxes, scores) = (c.floats(0)?, c.floats(1)?);
    let mut chosen: Vec<i64> = Vec::new();
    let mut pairs = 0;
    for item in 0..batch {
        let own = boxes[item * count * 4..(item + 1) * count * 4].chunks_exact(4);
        let own: Vec<[f64; 4]> = own.map(|numbers| corners(numbers, center)).collect();
        for class in 0..classes {
            let from = (item * classes + class) * count;
            let scores = &scores[from..from + count];
            let mut order: Vec<usize> = (0..count).filter(|at| scores[*at] > least).collect();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
            let mut kept: Vec<usize> = Vec::new();
            for at in order {
                if kept.len() == most {
                    break;
                }
                pairs += kept.len();
                if pairs > MOST_PAIRS {
                    return Err(Error::Data(message!(
                        "of {count} boxes and {classes} classes, more than {MOST_PAIRS} pairs are compared. Keep fewer boxes, by \
                         max_output_boxes_per_class or score_threshold."
                    )));
                }
                if kept.iter().all(|other| overlap(&own[at], &own[*other]) <= limit) {
                    kept.push(at);
                }
            }
            chosen.extend(kept.into_iter().flat_map(|at| [item as i64, class as i64, at as i64]));
        }
    }
    let bytes: Vec<u8> = chosen.iter().flat_map(|value| value.to_le_bytes()).collect();
    Ok(vec![Value::host(HostArray::new(HostDType::I64, [chosen.len() / 3, 3], bytes)?)])
}

fn wrong(boxes: &HostArray<'_>, scores: &HostArray<'_>) -> Error {
    Error::Shape(message!(
        "the boxes {:?} and the scores {:?} are not [batch, boxes, 4] and [batch, classes, boxes] of at most {MOST} boxes.",
        boxes.shape(),
        scores.shape()
    ))
}
