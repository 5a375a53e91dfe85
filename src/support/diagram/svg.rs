//! [`to_svg`]: a diagram as an image.

use std::fmt::Write as _;

use super::layout::{Arrow, LINE, Layout, PAD, layout};
use super::{Kind, Node};

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1c2733;text-anchor:middle}\
.title{font-weight:600}.note{fill:#5b6b7b;font-size:12px}\
rect{fill:#fff;stroke:#8a9bab;rx:6}.input{fill:#e8f1fb;stroke:#5b8fc7}.model{fill:#f4f6f8;stroke:#b8c3cd}\
path{fill:none;stroke:#5b6b7b;stroke-width:1.4;marker-end:url(#end)}";

/// Draws the nodes of a diagram with this title.
pub(crate) fn to_svg(title: &str, nodes: &[Node]) -> String {
    let layout = layout(nodes);
    let (width, height) = (layout.width + 2.0 * PAD, layout.height + 2.0 * PAD);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\">\n<title>{}</title>\n<style>{STYLE}</style>\n<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"7\" \
         refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" \
         style=\"fill:#5b6b7b;stroke:none;marker-end:none\"/></marker></defs>\n",
        escaped(title)
    );
    draw(&mut text, &layout, PAD, PAD);
    text.push_str("</svg>\n");
    text
}

/// Draws the contents of `layout`, whose corner is at (left, top).
fn draw(text: &mut String, layout: &Layout<'_>, left: f64, top: f64) {
    for placed in &layout.boxes {
        let (x, y) = (left + placed.x, top + placed.y);
        let class = match (&placed.inner, placed.node.kind) {
            (Some(_), _) => " class=\"model\"",
            (None, Kind::Input) => " class=\"input\"",
            _ => "",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<rect{class} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            placed.width, placed.height
        );
        for (i, line) in placed.node.lines.iter().enumerate() {
            let class = if i == 0 { "title" } else { "note" };
            let _ = writeln!(
                text,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + placed.width / 2.0,
                y + PAD / 2.0 + LINE * (i as f64 + 0.72),
                escaped(line)
            );
        }
        if let Some(inner) = &placed.inner {
            let inner_left = x + (placed.width - inner.width) / 2.0;
            draw(text, inner, inner_left, y + placed.node.lines.len() as f64 * LINE + 1.5 * PAD);
        }
    }
    for arrow in &layout.arrows {
        let _ = writeln!(text, "<path d=\"{}\"/>", way(arrow, left, top));
    }
}

fn way(arrow: &Arrow, left: f64, top: f64) -> String {
    let (x1, y1) = (left + arrow.from.0, top + arrow.from.1);
    let (x2, y2) = (left + arrow.to.0, top + arrow.to.1);
    let (foot, head) = (top + arrow.foot, top + arrow.head);
    // A line of length zero would rotate the head of the arrow.
    let down = |from: f64, to: f64| match to - from > 0.5 {
        true => format!("V{to:.1}"),
        false => String::new(),
    };
    let (start, end) = (down(y1, foot), down(head, y2));
    match arrow.lane {
        None => {
            let middle = (foot + head) / 2.0;
            format!(
                "M{x1:.1} {y1:.1}{start}C{x1:.1} {middle:.1} {x2:.1} {middle:.1} {x2:.1} {head:.1}{end}"
            )
        }
        Some(lane) => {
            let (lane, out, back) = (left + lane, foot + TURN, head - TURN);
            // The points where it enters its lane and leaves it; an upward arrow begins and ends at
            // the sides of the boxes.
            let (enter, leave) = if head > foot { (out, back) } else { (foot, head) };
            let (bend, unbend) = if head > foot { (foot, head) } else { (out, back) };
            format!(
                "M{x1:.1} {y1:.1}{start}C{x1:.1} {out:.1} {lane:.1} {bend:.1} {lane:.1} {enter:.1}V{leave:.1}C{lane:.1} \
                 {unbend:.1} {x2:.1} {back:.1} {x2:.1} {head:.1}{end}"
            )
        }
    }
}

/// The distance below and above a row at which an arrow turns into its lane.
const TURN: f64 = 28.0;

/// A text in XML, which does not allow control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escaped("<a & \"b\">\u{1}"), "&lt;a &amp; &quot;b&quot;&gt;\u{fffd}");
    }
}
