//! Turns lines into grey pixels: draws pen strokes as anti-aliased segments into a field of 28 by 28 pixels.
//!
//! Like the rest of the module it uses only `+ - * /` and `sqrt`, which IEEE 754 defines to the last bit, so
//! an image is the same on every platform.

/// The pixels along one side of the field.
pub(super) const SIDE: usize = 28;
/// The pixels along one side of the box that a digit is fitted into.
const BOX: f32 = 20.0;
/// The straight segments between two knots of a smooth line.
const PIECES: usize = 5;

/// A point of the field: `x` to the right, `y` downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f32,
    pub(super) y: f32,
}

/// A straight segment of a pen stroke.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) from: Point,
    pub(super) to: Point,
}

/// Half the line's width in pixels, and how wide its soft edge is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen {
    pub(super) radius: f32,
    pub(super) edge: f32,
    /// Changes the radius from the beginning of the drawing (minus this share) to its end (plus it).
    pub(super) taper: f32,
}

/// Appends the smooth line through `knots` as straight segments; at a corner the direction jumps.
pub(super) fn trace(knots: &[(Point, bool)], segments: &mut Vec<Segment>) {
    for i in 1..knots.len() {
        let ((a, a_corner), (b, b_corner)) = (knots[i - 1], knots[i]);
        let chord = Point { x: b.x - a.x, y: b.y - a.y };
        // The usual tangent of a spline through points: half the vector from one neighbour to the other.
        let leaving = match i.checked_sub(2) {
            Some(before) if !a_corner => half_way(knots[before].0, b),
            _ => chord,
        };
        let arriving = match knots.get(i + 1) {
            Some((after, _)) if !b_corner => half_way(a, *after),
            _ => chord,
        };
        let mut from = a;
        for piece in 1..=PIECES {
            let to = hermite(a, leaving, b, arriving, piece as f32 / PIECES as f32);
            segments.push(Segment { from, to });
            from = to;
        }
    }
}

fn half_way(from: Point, to: Point) -> Point {
    Point { x: (to.x - from.x) * 0.5, y: (to.y - from.y) * 0.5 }
}

fn hermite(a: Point, leaving: Point, b: Point, arriving: Point, t: f32) -> Point {
    let (t2, t3) = (t * t, t * t * t);
    let (wa, wb) = (2.0 * t3 - 3.0 * t2 + 1.0, 3.0 * t2 - 2.0 * t3);
    let (wl, wr) = (t3 - 2.0 * t2 + t, t3 - t2);
    Point {
        x: wa * a.x + wl * leaving.x + wb * b.x + wr * arriving.x,
        y: wa * a.y + wl * leaving.y + wb * b.y + wr * arriving.y,
    }
}

/// Scales and moves the drawing, pen width included, into the middle of the field, where it fills
/// the 20 by 20 box in the longer direction.
pub(super) fn fit(segments: &mut [Segment], pen: Pen) {
    let Some(first) = segments.first() else { return };
    let (mut low, mut high) = (first.from, first.from);
    for end in segments.iter().flat_map(|segment| [segment.from, segment.to]) {
        low = Point { x: low.x.min(end.x), y: low.y.min(end.y) };
        high = Point { x: high.x.max(end.x), y: high.y.max(end.y) };
    }
    let longer = (high.x - low.x).max(high.y - low.y).max(1e-3);
    let scale = (BOX - 2.0 * pen.radius - pen.edge + 0.5) / longer;
    let middle = Point { x: (low.x + high.x) * 0.5, y: (low.y + high.y) * 0.5 };
    let half = SIDE as f32 * 0.5;
    let place =
        |p: Point| Point { x: (p.x - middle.x) * scale + half, y: (p.y - middle.y) * scale + half };
    for segment in segments {
        *segment = Segment { from: place(segment.from), to: place(segment.to) };
    }
}

/// The share of ink in each pixel, `SIDE` to a row: the most that any segment leaves there.
pub(super) fn ink(segments: &[Segment], pen: Pen) -> [f32; SIDE * SIDE] {
    let mut field = [0.0; SIDE * SIDE];
    let last = segments.len().max(2) as f32 - 1.0;
    for (i, segment) in segments.iter().enumerate() {
        let along = 2.0 * i as f32 / last - 1.0;
        let pen = Pen { radius: pen.radius * (1.0 + pen.taper * along), ..pen };
        ink_segment(*segment, pen, &mut field);
    }
    field
}

fn ink_segment(Segment { from, to }: Segment, pen: Pen, field: &mut [f32; SIDE * SIDE]) {
    let reach = pen.radius + pen.edge;
    let (columns, rows) = (span(from.x, to.x, reach), span(from.y, to.y, reach));
    let way = Point { x: to.x - from.x, y: to.y - from.y };
    let length2 = way.x * way.x + way.y * way.y;
    let per_length2 = if length2 > 1e-9 { 1.0 / length2 } else { 0.0 };
    let per_edge = 1.0 / pen.edge;
    for row in rows {
        for column in columns.clone() {
            let px = column as f32 + 0.5 - from.x;
            let py = row as f32 + 0.5 - from.y;
            let t = ((px * way.x + py * way.y) * per_length2).clamp(0.0, 1.0);
            let (dx, dy) = (px - t * way.x, py - t * way.y);
            let share = (pen.radius - (dx * dx + dy * dy).sqrt()) * per_edge + 0.5;
            let pixel = &mut field[row * SIDE + column];
            *pixel = pixel.max(share.min(1.0));
        }
    }
}

/// The pixels between two coordinates, widened by the pen's reach and cut at the field's edge.
fn span(a: f32, b: f32, reach: f32) -> std::ops::Range<usize> {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    // A cast from float saturates, so points outside move to the border.
    (low - reach) as usize..((high + reach + 1.0) as usize).min(SIDE)
}

/// Moves the image by whole pixels so that its centre of mass is nearest to the field's middle.
pub(super) fn centre(field: &[f32; SIDE * SIDE]) -> [f32; SIDE * SIDE] {
    let (mut mass, mut mx, mut my) = (0.0f32, 0.0f32, 0.0f32);
    for (i, &share) in field.iter().enumerate() {
        mass += share;
        mx += share * (i % SIDE) as f32;
        my += share * (i / SIDE) as f32;
    }
    if mass <= 0.0 {
        return *field;
    }
    let middle = (SIDE as f32 - 1.0) * 0.5;
    let shift = |moment: f32| (middle - moment / mass + SIDE as f32 + 0.5) as isize - SIDE as isize;
    let (right, down) = (shift(mx), shift(my));
    let mut moved = [0.0; SIDE * SIDE];
    for (i, &share) in field.iter().enumerate() {
        let x = (i % SIDE) as isize + right;
        let y = (i / SIDE) as isize + down;
        let inside = 0..SIDE as isize;
        if inside.contains(&x) && inside.contains(&y) {
            moved[y as usize * SIDE + x as usize] = share;
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEN: Pen = Pen { radius: 1.0, edge: 1.0, taper: 0.0 };

    fn at(x: f32, y: f32) -> Point {
        Point { x, y }
    }

    #[test]
    fn a_traced_line_passes_through_its_knots() {
        let mut segments = Vec::new();
        let knots = [(at(0.0, 0.0), false), (at(4.0, 8.0), false), (at(9.0, 1.0), true)];
        trace(&knots, &mut segments);
        assert_eq!(segments.len(), 2 * PIECES);
        assert_eq!(segments[0].from, at(0.0, 0.0));
        assert_eq!(segments[PIECES - 1].to, at(4.0, 8.0));
        assert_eq!(segments[2 * PIECES - 1].to, at(9.0, 1.0));
        assert!(segments.windows(2).all(|pair| pair[0].to == pair[1].from));
    }

    #[test]
    fn between_corners_a_line_is_straight() {
        let mut segments = Vec::new();
        trace(&[(at(0.0, 0.0), true), (at(10.0, 5.0), true), (at(0.0, 10.0), true)], &mut segments);
        for segment in &segments[..PIECES] {
            assert!((segment.to.y - segment.to.x * 0.5).abs() < 1e-5);
        }
    }

    #[test]
    fn fewer_than_two_knots_are_no_line() {
        let mut segments = Vec::new();
        trace(&[], &mut segments);
        trace(&[(at(1.0, 1.0), false)], &mut segments);
        assert!(segments.is_empty());
        fit(&mut segments, PEN);
        assert_eq!(centre(&ink(&segments, PEN)), [0.0; SIDE * SIDE]);
    }

    #[test]
    fn a_drawing_is_fitted_into_the_box() {
        let mut segments = vec![Segment { from: at(-300.0, 7.0), to: at(100.0, 107.0) }];
        fit(&mut segments, PEN);
        let (from, to) = (segments[0].from, segments[0].to);
        // 20 pixels minus the pen and its soft edge, centred, with the proportions unchanged.
        assert!((to.x - from.x - 17.5).abs() < 1e-4);
        assert!((from.x + to.x - 28.0).abs() < 1e-4);
        assert!((to.y - from.y - 17.5 / 4.0).abs() < 1e-4);
    }

    #[test]
    fn ink_covers_the_pen_and_fades_at_its_edge() {
        let field = ink(&[Segment { from: at(8.5, 10.5), to: at(18.5, 10.5) }], PEN);
        let at = |x: usize, y: usize| field[y * SIDE + x];
        assert_eq!((at(12, 10), at(12, 11), at(12, 12)), (1.0, 0.5, 0.0));
        assert_eq!((at(7, 10), at(6, 10)), (0.5, 0.0));
    }

    #[test]
    fn ink_outside_the_field_is_cut_off() {
        let field = ink(&[Segment { from: at(-40.0, -40.0), to: at(60.0, 60.0) }], PEN);
        assert_eq!((field[0], field[SIDE * SIDE - 1], field[SIDE - 1]), (1.0, 1.0, 0.0));
    }

    #[test]
    fn the_centre_of_mass_moves_to_the_middle() {
        let mut field = [0.0; SIDE * SIDE];
        field[3 * SIDE + 20] = 1.0;
        field[3 * SIDE + 21] = 1.0;
        let moved = centre(&field);
        assert_eq!(moved.iter().sum::<f32>(), 2.0);
        assert_eq!((moved[14 * SIDE + 13], moved[14 * SIDE + 14]), (1.0, 1.0));
    }
}
