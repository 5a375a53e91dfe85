//! How a convolution's products read their first operand: WGSL that locates the windows of images, and the windows that
//! cover a position.

use super::super::matmul::Rows;

/// The windows of images as rows. Row: the image and corner of a window. u: the row within. With `by_row` the elements
/// of a window's row are contiguous: i is the column and channel, and v is 0. Otherwise v is the column and i the
/// channel within the group. With `vector` four channels are read at once.
pub(super) fn windows_of_images(vector: bool, by_row: bool, grouped: bool) -> Rows {
    let first = if grouped { " + batch * p.cg" } else { "" };
    let corner = format!(
        "struct Row {{ image: u32, y: u32, x: u32 }}\n\
         fn a_row(batch: u32, m: u32) -> Row {{\n    \
         let i = (m / p.ow) % p.oh;\n    \
         return Row(m / (p.ow * p.oh) * p.h * p.w * p.c{first}, i * p.sh - p.top, (m % p.ow) * p.sw - p.left);\n}}\n\
         // Above and left of the image the sums wrap to large numbers.\n"
    );
    let place = "(row: Row, u: u32, v: u32) -> At {\n    \
        let y = row.y + u * p.dh;\n    let x = row.x + v * p.dw;\n    \
        let inside = y < p.h && x < p.w;\n    \
        return At(select(0u, row.image + (y * p.w + x) * p.c, inside), inside);\n}";
    let line = "(row: Row, u: u32, v: u32) -> At {\n    \
        let y = row.y + u * p.dh;\n    \
        return At(row.image + y * p.w * p.c, row.x * p.c, y < p.h);\n}";
    let skip_line = "At(at.line, at.x + n, at.inside)";
    let (of, at, load, skip) = if vector {
        (PLACE, place, PLACE_QUAD, SKIP)
    } else if by_row {
        (
            LINE,
            line,
            "fn a_load(at: At, i: u32) -> Sum {\n    \
             let x = at.x + i;\n    \
             let inside = at.inside && x < p.w * p.c;\n    \
             return select(Sum(0), Sum(a[select(0u, at.line + x, inside)]), inside);\n}",
            skip_line,
        )
    } else {
        (PLACE, place, PLACE_LOAD, SKIP)
    };
    Rows { text: format!("{corner}{of}"), at: at.to_string(), load, vector, columns: None, skip }
}

const PLACE: &str = "struct At { place: u32, inside: bool }";
const LINE: &str = "struct At { line: u32, x: u32, inside: bool }";

const PLACE_QUAD: &str = "fn a_quad(at: At, i: u32) -> V { return select(V(Sum(0)), V(a[(at.place + i) / 4u]), at.inside); }";
/// Finds the position n further along i.
const SKIP: &str = "At(at.place + n, at.inside)";
const PLACE_LOAD: &str =
    "fn a_load(at: At, i: u32) -> Sum { return select(Sum(0), Sum(a[at.place + i]), at.inside); }";

/// The gradients of the windows that cover each position, as rows. Row: the image and position. u, v: the position in
/// the window. i: the result's channel within the group.
pub(super) fn windows_over_places(vector: bool, dense: bool, grouped: bool) -> Rows {
    let first = if grouped { " + batch * p.og" } else { "" };
    let window = if dense {
        "let i = y;\n    let j = x;\n    let inside = i < p.oh && j < p.ow;\n    "
    } else {
        "let i = y / p.sh;\n    let j = x / p.sw;\n    \
         let inside = i < p.oh && j < p.ow && i * p.sh == y && j * p.sw == x;\n    "
    };
    let text = format!(
        "struct Row {{ image: u32, y: u32, x: u32 }}\n\
         {PLACE}\n\
         fn a_row(batch: u32, m: u32) -> Row {{\n    \
         let y = (m / p.w) % p.h;\n    \
         return Row(m / (p.w * p.h) * p.oh * p.ow * p.o{first}, y + p.top, m % p.w + p.left);\n}}"
    );
    let at = format!(
        "(row: Row, u: u32, v: u32) -> At {{\n    \
         // A negative difference wraps to a large number, whose quotient lies beyond the last window.\n    \
         let y = row.y - u * p.dh;\n    let x = row.x - v * p.dw;\n    {window}\
         return At(select(0u, row.image + (i * p.ow + j) * p.o, inside), inside);\n}}"
    );
    let load = if vector { PLACE_QUAD } else { PLACE_LOAD };
    Rows { text, at, load, vector, columns: None, skip: SKIP }
}

/// The elements at one position of every window, as rows, for the gradient of the filter. Row: the position in the
/// window and the channel. u: the image, v: the result's row, i: its column. With `vectors` four channels may be read
/// at once.
pub(super) fn places_of_windows(vectors: bool, grouped: bool) -> Rows {
    let (own, first) = if grouped { ("p.cg", " + batch * p.cg") } else { ("p.c", "") };
    // Above and left of the image the sums wrap to large numbers.
    let text = format!(
        "struct Row {{ y: u32, x: u32, c: u32 }}\n\
         struct At {{ line: u32, x: u32, inside: bool }}\n\
         fn a_row(batch: u32, m: u32) -> Row {{\n    \
         return Row(m / ({own} * p.kw) * p.dh - p.top, (m / {own}) % p.kw * p.dw - p.left, m % {own}{first});\n}}"
    );
    let at = "(row: Row, u: u32, v: u32) -> At {\n    \
        let y = row.y + v * p.sh;\n    \
        return At((u * p.h + y) * p.w * p.c + row.c, row.x, y < p.h);\n}";
    let load = "fn a_load(at: At, i: u32) -> Sum {\n    \
        let x = at.x + i * p.sw;\n    \
        let inside = at.inside && x < p.w;\n    \
        return select(Sum(0), Sum(a[select(0u, at.line + x * p.c, inside)]), inside);\n}";
    let columns = "fn a_load(at: At, i: u32) -> Sum { return a_column(at, i)[at.line % 4u]; }\n\
        fn a_column(at: At, i: u32) -> V {\n    \
        let x = at.x + i * p.sw;\n    \
        let inside = at.inside && x < p.w;\n    \
        return select(V(Sum(0)), V(a[select(0u, at.line + x * p.c, inside) / 4u]), inside);\n}";
    let columns = vectors.then_some(columns);
    let skip = "At(at.line, at.x + n * p.sw, at.inside)";
    Rows { text, at: at.to_string(), load, vector: false, columns, skip }
}
