//! Shaders with lines that the host repeats or leaves out.
//!
//! The values that a kernel holds in registers must be separate variables (`sum_0`, `sum_1`), because not every driver
//! unrolls a loop over an array, and their number depends on the tile. Such a shader is a normal file that contains
//! lines like the following, which are comments to other WGSL tools:
//!
//! ```wgsl
//! //for q in TM4              The lines up to //end, TM4 times (or as often as a number says);
//! var sum_$q = V(Sum(0));     $q is 0, then 1, ...
//! //end
//! //if TAIL                   The lines up to //else, or //end, if the flag TAIL is set,
//! for (...) { }
//! //else                      and those from there to //end if not.
//! //end
//! let first = $TM4u * local;  A count's number stands in the text behind a $, too.
//! ```
//!
//! A loop's name is one lower-case letter; counts and flags are in capitals.

use std::fmt::Write;
use std::sync::Arc;

use super::known_texts::KnownTexts;

/// Consecutive lines.
enum Part<'a> {
    Line(&'a str),
    For { name: &'a str, count: &'a str, lines: Vec<Part<'a>> },
    If { flag: &'a str, then: Vec<Part<'a>>, otherwise: Vec<Part<'a>> },
}

/// Expands `template` for these counts and flags; it may use no others.
pub(crate) fn expand(
    template: &'static str,
    counts: &[(&str, usize)],
    flags: &[(&str, bool)],
) -> Arc<str> {
    static EXPANDED: KnownTexts = KnownTexts::new();
    // A shader lives as long as the program, so its address identifies it.
    let mut of = format!("{:p} {}", template.as_ptr(), template.len());
    for (name, count) in counts {
        _ = write!(of, " {name} {count}");
    }
    for (name, on) in flags {
        _ = write!(of, " {name} {on}");
    }
    EXPANDED.get(&of, || expanded(template, counts, flags))
}

fn expanded(template: &str, counts: &[(&str, usize)], flags: &[(&str, bool)]) -> String {
    let mut lines = template.lines();
    let (parts, end) = parse(&mut lines);
    assert!(end.is_none(), "the shader has more of {end:?} than loops and conditions");
    let mut writer = Writer { numbers: counts.to_vec(), flags, text: String::new() };
    writer.write(&parts);
    writer.text
}

/// The parts up to the `//else` or `//end` that closes them, and that line.
fn parse<'a>(lines: &mut std::str::Lines<'a>) -> (Vec<Part<'a>>, Option<&'a str>) {
    let mut parts = Vec::new();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        parts.push(match words[..] {
            ["//for", name, "in", count] => {
                let (lines, _) = parse(lines);
                Part::For { name, count, lines }
            }
            ["//if", flag] => {
                let (then, end) = parse(lines);
                let otherwise = if end == Some("//else") { parse(lines).0 } else { Vec::new() };
                Part::If { flag, then, otherwise }
            }
            [end @ ("//else" | "//end")] => return (parts, Some(end)),
            _ => Part::Line(line),
        });
    }
    (parts, None)
}

struct Writer<'a> {
    /// The values of the counts, and of the loops around the present line.
    numbers: Vec<(&'a str, usize)>,
    flags: &'a [(&'a str, bool)],
    text: String,
}

impl<'a> Writer<'a> {
    fn write(&mut self, parts: &[Part<'a>]) {
        for part in parts {
            match part {
                Part::Line(line) => self.line(line),
                Part::For { name, count, lines } => {
                    let count = count.parse().unwrap_or_else(|_| self.number(count));
                    for number in 0..count {
                        self.numbers.push((name, number));
                        self.write(lines);
                        self.numbers.pop();
                    }
                }
                Part::If { flag, then, otherwise } => {
                    let known = self.flags.iter().find(|(name, _)| name == flag);
                    let (_, set) = known.expect("the host sets every flag that a shader names");
                    self.write(if *set { then } else { otherwise });
                }
            }
        }
    }

    /// Writes a line, with numbers in place of the names behind a `$`.
    fn line(&mut self, line: &str) {
        let mut pieces = line.split('$');
        self.text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let count = piece.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit());
            let end = count.unwrap_or(piece.len()).max(1);
            let (name, rest) = piece.split_at(end);
            self.text.push_str(&self.number(name).to_string());
            self.text.push_str(rest);
        }
        self.text.push('\n');
    }

    fn number(&self, name: &str) -> usize {
        let known = self.numbers.iter().find(|(known, _)| *known == name);
        known.expect("the host gives every number that a shader names").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_repeated_with_their_numbers() {
        let template = "a\n//for i in N\nx$i = $Nu;\n//for j in 2\ny_$i_$j;\n//end\n//end\n//for t in M0\nz\n//end\nb";
        let text = expand(template, &[("N", 2), ("M0", 0)], &[]);
        assert_eq!(&*text, "a\nx0 = 2u;\ny_0_0;\ny_0_1;\nx1 = 2u;\ny_1_0;\ny_1_1;\nb\n");
    }

    #[test]
    fn lines_are_there_if_their_flag_is_set() {
        let template =
            "//if A\na\n//if B\nb\n//end\n//else\nnot a\n//if B\nb alone\n//end\n//end\nall";
        let of = |a, b| expand(template, &[], &[("A", a), ("B", b)]);
        assert_eq!(&*of(true, true), "a\nb\nall\n");
        assert_eq!(&*of(true, false), "a\nall\n");
        assert_eq!(&*of(false, true), "not a\nb alone\nall\n");
    }

    #[test]
    #[should_panic = "every number"]
    fn a_number_that_nobody_gives_is_noticed() {
        expand("x_$Q", &[("P", 1)], &[]);
    }
}
