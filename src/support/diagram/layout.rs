//! The positions of the boxes and arrows of a diagram: layers of boxes from top to bottom.
//!
//! A node is one layer below the lowest node that it gets input from. An arrow to the next layer is a curve; a longer
//! one runs down a lane on the right, next to all boxes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Kind, Node};

/// Pixels between layers, between boxes of a layer, between lanes, and from a frame to its contents.
const GAP: f64 = 36.0;
const SIDE: f64 = 28.0;
const LANE: f64 = 12.0;
pub(super) const PAD: f64 = 16.0;
/// The height of a line of text, and the width of a letter.
pub(super) const LINE: f64 = 18.0;
const LETTER: f64 = 8.2;

/// Boxes and arrows, from (0, 0) to (width, height).
#[derive(Default)]
pub(super) struct Layout<'a> {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) boxes: Vec<Placed<'a>>,
    pub(super) arrows: Vec<Arrow>,
}

/// A node with its position.
pub(super) struct Placed<'a> {
    pub(super) node: &'a Node,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Its contents, below its title.
    pub(super) inner: Option<Layout<'a>>,
}

/// From the bottom of a box to the top of another one, or down a lane between them.
pub(super) struct Arrow {
    pub(super) from: (f64, f64),
    /// Where the row of the first box ends, and that of the second begins.
    pub(super) foot: f64,
    pub(super) head: f64,
    pub(super) to: (f64, f64),
    pub(super) lane: Option<f64>,
}

/// The approximate width of a text.
fn text_width(text: &str) -> f64 {
    text.chars().map(|letter| if letter as u32 >= 0x2e80 { 2.0 * LETTER } else { LETTER }).sum()
}

pub(super) fn layout(nodes: &[Node]) -> Layout<'_> {
    let layers = layers(nodes);
    let mut boxes: Vec<Placed<'_>> = nodes.iter().map(placed).collect();
    let rows = rows(nodes, &layers);

    // Each row is as high as its highest box, and its boxes are centred vertically.
    let width = rows.iter().map(|row| row_width(row, &boxes)).fold(0.0, f64::max);
    let mut y = 0.0;
    // The beginning and the end of each row.
    let mut spans: Vec<(f64, f64)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut x = (width - row_width(row, &boxes)) / 2.0;
        let height = row.iter().map(|&at| boxes[at].height).fold(0.0, f64::max);
        for &at in row {
            let placed = &mut boxes[at];
            placed.x = x;
            placed.y = y + (height - placed.height) / 2.0;
            x += placed.width + SIDE;
        }
        spans.push((y, y + height));
        y += height + GAP;
    }
    let height = (y - GAP).max(0.0);
    let span = |at: usize| spans[layers[at]];
    let (arrows, lanes) = arrows(nodes, &layers, &boxes, &span, width);
    Layout { width: width + lanes, height, boxes, arrows }
}

fn row_width(row: &[usize], boxes: &[Placed<'_>]) -> f64 {
    row.iter().map(|&at| boxes[at].width).sum::<f64>() + SIDE * row.len().saturating_sub(1) as f64
}

fn placed(node: &Node) -> Placed<'_> {
    let text = node.lines.iter().map(|line| text_width(line)).fold(0.0, f64::max);
    let lines = node.lines.len() as f64 * LINE;
    if node.inner.is_empty() {
        let (width, height) = (text + 2.0 * PAD, lines + PAD);
        return Placed { node, x: 0.0, y: 0.0, width, height, inner: None };
    }
    let inner = layout(&node.inner);
    let width = inner.width.max(text) + 2.0 * PAD;
    let height = inner.height + lines + 2.5 * PAD;
    Placed { node, x: 0.0, y: 0.0, width, height, inner: Some(inner) }
}

/// The layer of each node, from the top.
fn layers(nodes: &[Node]) -> Vec<usize> {
    let mut layers = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        // A layer that is called again gets input from a node further down, which does not move it.
        let above = node.from.iter().filter(|&&from| from < at).map(|&from| layers[from] + 1);
        layers[at] = above.max().unwrap_or(0);
        // Nodes whose arrows are unknown are stacked vertically.
        if node.kind == Kind::Unconnected {
            layers[at] = at;
        }
    }
    // An input is directly above the first node that uses it.
    let mut first = vec![usize::MAX; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        node.from.iter().for_each(|&from| first[from] = first[from].min(layers[at]));
    }
    for (at, node) in nodes.iter().enumerate() {
        if node.from.is_empty() && node.kind != Kind::Unconnected && first[at] != usize::MAX {
            layers[at] = first[at].saturating_sub(1);
        }
    }
    layers
}

/// The nodes of each layer from left to right: below the nodes that they get input from.
fn rows(nodes: &[Node], layers: &[usize]) -> Vec<Vec<usize>> {
    let count = layers.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (at, &layer) in layers.iter().enumerate() {
        rows[layer].push(at);
    }
    // The position of a node in its row, from 0 to 1.
    let mut place = vec![0.5; nodes.len()];
    for row in &mut rows {
        let wanted = |at: usize| -> f64 {
            let above: Vec<f64> = nodes[at]
                .from
                .iter()
                .filter(|&&from| layers[from] < layers[at])
                .map(|&from| place[from])
                .collect();
            if above.is_empty() { 0.5 } else { above.iter().sum::<f64>() / above.len() as f64 }
        };
        let mut keyed: Vec<(f64, usize)> = row.iter().map(|&at| (wanted(at), at)).collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        *row = keyed.into_iter().map(|(_, at)| at).collect();
        let length = row.len() as f64;
        row.iter().enumerate().for_each(|(i, &at)| place[at] = (i as f64 + 0.5) / length);
    }
    rows
}

/// The arrows, and the width of their lanes on the right.
fn arrows(
    nodes: &[Node],
    layers: &[usize],
    boxes: &[Placed<'_>],
    span: &dyn Fn(usize) -> (f64, f64),
    width: f64,
) -> (Vec<Arrow>, f64) {
    let mut lanes = Lanes::default();
    let mut arrows = Vec::new();
    let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
    for (to, node) in nodes.iter().enumerate() {
        for (nth, &from) in node.from.iter().enumerate() {
            pairs.push((from, to, nth));
        }
    }
    // Lanes are assigned from top to bottom.
    pairs.sort_by_key(|&(from, to, _)| layers[from].min(layers[to]));
    for (from, to, nth) in pairs {
        let (start, end) = (&boxes[from], &boxes[to]);
        let count = nodes[to].from.len() as f64;
        let step = (end.width / (count + 1.0)).min(20.0);
        let x = end.x + end.width / 2.0 + (nth as f64 - (count - 1.0) / 2.0) * step;
        let lane = (layers[to] != layers[from] + 1).then(|| {
            let (top, foot) = (layers[from].min(layers[to]), layers[from].max(layers[to]));
            width + SIDE / 2.0 + lanes.take(top, foot) as f64 * LANE
        });
        arrows.push(Arrow {
            from: (start.x + start.width / 2.0, start.y + start.height),
            foot: span(from).1,
            head: span(to).0,
            to: (x, end.y),
            lane,
        });
    }
    let room = if lanes.count == 0 { 0.0 } else { SIDE / 2.0 + lanes.count as f64 * LANE };
    (arrows, room)
}

/// Lanes next to the boxes; each is free again below its arrow.
#[derive(Default)]
struct Lanes {
    count: usize,
    /// Where the arrow in each lane ends.
    busy: BinaryHeap<Reverse<(usize, usize)>>,
}

impl Lanes {
    fn take(&mut self, top: usize, foot: usize) -> usize {
        let lane = match self.busy.peek() {
            Some(&Reverse((end, lane))) if end < top => {
                self.busy.pop();
                lane
            }
            _ => {
                self.count += 1;
                self.count - 1
            }
        };
        self.busy.push(Reverse((foot, lane)));
        lane
    }
}
