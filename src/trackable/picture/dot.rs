//! [`to_dot`]: a diagram as text for Graphviz.

use std::fmt::Write as _;

use super::{Part, parts};
use crate::trackable::parts::Track;

pub(crate) fn to_dot(title: &str, track: Track<'_>) -> String {
    let mut dot = Dot { text: format!("digraph {} {{\n", quoted(title)), nodes: 0, clusters: 0 };
    dot.text.push_str("  compound=true;\n  node [shape=record];\n");
    dot.level(&parts(track), 1);
    dot.text.push_str("}\n");
    dot.text
}

struct Dot {
    text: String,
    nodes: usize,
    clusters: usize,
}

/// The nodes at which arrows to and from a part end, and its cluster if it is a model.
struct Ends {
    first: usize,
    last: usize,
    cluster: Option<usize>,
}

impl Dot {
    /// Writes parts side by side and the arrows between them.
    fn level(&mut self, parts: &[Part], depth: usize) {
        let ends: Vec<Ends> = parts.iter().map(|part| self.part(part, depth)).collect();
        let indent = "  ".repeat(depth);
        for (to, part) in ends.iter().zip(parts) {
            for from in part.from.iter().map(|&at| &ends[at]) {
                let mut clusters = Vec::new();
                clusters.extend(from.cluster.map(|cluster| format!("ltail=cluster_{cluster}")));
                clusters.extend(to.cluster.map(|cluster| format!("lhead=cluster_{cluster}")));
                let clusters = match clusters.is_empty() {
                    true => String::new(),
                    false => format!(" [{}]", clusters.join(", ")),
                };
                // Writing to a String cannot fail.
                let _ = writeln!(self.text, "{indent}n{} -> n{}{clusters};", from.last, to.first);
            }
        }
    }

    fn part(&mut self, part: &Part, depth: usize) -> Ends {
        let indent = "  ".repeat(depth);
        if part.inner.is_empty() {
            let mut shapes = vec![format!("output: {}", record(&part.shapes(false)))];
            if part.takes() {
                shapes.insert(0, format!("input: {}", record(&part.shapes(true))));
            }
            let label = format!("{{{}|{{{}}}}}", record(&part.title()), shapes.join("|"));
            let _ = writeln!(self.text, "{indent}n{} [label=\"{label}\"];", self.nodes);
            self.nodes += 1;
            return Ends { first: self.nodes - 1, last: self.nodes - 1, cluster: None };
        }
        let (first, cluster) = (self.nodes, self.clusters);
        self.clusters += 1;
        let title = quoted(&part.title());
        let _ =
            writeln!(self.text, "{indent}subgraph cluster_{cluster} {{\n{indent}  label={title};");
        self.level(&part.inner, depth + 1);
        let _ = writeln!(self.text, "{indent}}}");
        Ends { first, last: self.nodes - 1, cluster: Some(cluster) }
    }
}

/// A quoted text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

/// A text inside a record's label.
fn record(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '"' | '\\' | '{' | '}' | '|' | '<' | '>') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a \"b\\\n"), r#""a \"b\\""#);
        assert_eq!(record("{a|b} <c>"), r"\{a\|b\} \<c\>");
    }
}
