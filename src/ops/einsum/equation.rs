//! Parses an equation, `ij,jk->ik`, for operands of known shapes. This file computes only with sizes, not with tensors.

use crate::error::{Error, Result, message};

/// A label: the letters in the order of their characters, then the axes of the ellipsis, counted from its end.
pub(super) type Label = u8;

/// A set of labels.
pub(super) type Set = u128;

/// The first label of the ellipsis.
const ELLIPSIS: usize = 52;
/// The number of labels that fit in a [`Set`].
pub(super) const LABELS: usize = 128;

pub(super) fn set(labels: &[Label]) -> Set {
    labels.iter().fold(0, |set, &label| set | (1 << label))
}

/// The labels of each operand and of the result, and the size of each label.
pub(super) struct Equation {
    pub(super) inputs: Vec<Vec<Label>>,
    pub(super) output: Vec<Label>,
    pub(super) sizes: Vec<usize>,
}

/// The part of the text for one operand or the result.
struct Term {
    letters: Vec<Label>,
    /// The position of the ellipsis among the letters.
    ellipsis: Option<usize>,
}

fn letter(c: char) -> Option<Label> {
    match c {
        'A'..='Z' => Some(c as u8 - b'A'),
        'a'..='z' => Some(c as u8 - b'a' + 26),
        _ => None,
    }
}

fn name(label: Label) -> String {
    match label {
        0..26 => char::from(b'A' + label).to_string(),
        26..52 => char::from(b'a' + label - 26).to_string(),
        _ => format!("the ellipsis's axis -{}", usize::from(label) - ELLIPSIS + 1),
    }
}

fn refused<T>(equation: &str, why: impl std::fmt::Display) -> Result<T> {
    Err(Error::Shape(message!("Einsum: \"{equation}\": {why}")))
}

fn term(equation: &str, text: &str) -> Result<Term> {
    let (before, after) = match text.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    };
    let ellipsis = after.map(|_| before.len());
    let mut letters = Vec::new();
    for c in before.chars().chain(after.unwrap_or("").chars()) {
        let Some(label) = letter(c) else {
            let why = match (c, ellipsis) {
                ('.', Some(_)) => "a term may have at most one ellipsis.".to_string(),
                ('.', None) => "an ellipsis is three dots.".to_string(),
                _ => format!(
                    "{c:?} is not a label; labels are letters, and \"...\" stands for further axes."
                ),
            };
            return refused(equation, why);
        };
        letters.push(label);
    }
    Ok(Term { letters, ellipsis })
}

impl Term {
    /// The labels of all axes; the ellipsis has `axes` axes.
    fn labels(&self, axes: usize) -> Vec<Label> {
        let mut labels = self.letters.clone();
        if let Some(at) = self.ellipsis {
            let of_ellipsis = (0..axes).rev().map(|axis| (ELLIPSIS + axis) as Label);
            labels.splice(at..at, of_ellipsis);
        }
        labels
    }
}

impl Equation {
    pub(super) fn read(text: &str, shapes: &[&[usize]]) -> Result<Equation> {
        let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match plain.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&plain[..], None),
        };
        let terms: Vec<Term> =
            left.split(',').map(|text_of| term(text, text_of)).collect::<Result<_>>()?;
        if terms.len() != shapes.len() {
            let (count, given) = (terms.len(), shapes.len());
            return refused(
                text,
                format!(
                    "it has {count} terms on the left, and {given} tensors are given; each needs a term."
                ),
            );
        }
        let mut inputs = Vec::new();
        let mut sizes = vec![0; LABELS];
        // Which operand has set the size of each label.
        let mut owners = vec![0; LABELS];
        let mut known: Set = 0;
        let mut widest = 0;
        for (at, (term, &shape)) in terms.iter().zip(shapes).enumerate() {
            let more = shape.len().checked_sub(term.letters.len());
            let axes = match (more, term.ellipsis) {
                (Some(0), None) => 0,
                (Some(axes), Some(_)) if axes <= LABELS - ELLIPSIS => axes,
                _ => {
                    let (letters, rank) = (term.letters.len(), shape.len());
                    let dots = if term.ellipsis.is_some() { " and \"...\"" } else { "" };
                    return refused(
                        text,
                        format!(
                            "operand {at} is {shape:?} with {rank} axes, and its term has {letters} letters{dots}; give \
                             each axis a letter, or write \"...\" for those without one."
                        ),
                    );
                }
            };
            widest = widest.max(axes);
            let labels = term.labels(axes);
            for (&label, &size) in labels.iter().zip(shape) {
                let slot = usize::from(label);
                let spreads = slot >= ELLIPSIS;
                if known & (1 << label) == 0 || (spreads && sizes[slot] == 1) {
                    (sizes[slot], owners[slot]) = (size, at);
                    known |= 1 << label;
                } else if sizes[slot] != size && !(spreads && size == 1) {
                    let (first, other) = (sizes[slot], owners[slot]);
                    let rule =
                        if spreads { "Sizes must be equal or 1" } else { "They must be equal" };
                    return refused(
                        text,
                        format!(
                            "{} is {first} in operand {other} ({:?}) and {size} in operand {at} ({shape:?}). {rule}.",
                            if spreads { name(label) } else { format!("label {}", name(label)) },
                            shapes[other],
                        ),
                    );
                }
            }
            inputs.push(labels);
        }
        let output = match right {
            Some(right) => explicit(text, &term(text, right)?, widest, known)?,
            None => implicit(&inputs, widest),
        };
        Ok(Equation { inputs, output, sizes })
    }
}

/// The labels of a result that the equation spells out.
fn explicit(text: &str, right: &Term, widest: usize, known: Set) -> Result<Vec<Label>> {
    if widest > 0 && right.ellipsis.is_none() {
        return refused(
            text,
            format!("\"...\" stands for {widest} axes on the left; the result needs it too."),
        );
    }
    if let Some(&label) = right.letters.iter().find(|&&label| known & (1 << label) == 0) {
        return refused(
            text,
            format!("label {} of the result is in no term on the left.", name(label)),
        );
    }
    let twice =
        (1..right.letters.len()).find(|&at| right.letters[..at].contains(&right.letters[at]));
    if let Some(at) = twice {
        let label = name(right.letters[at]);
        return refused(text, format!("label {label} occurs twice in the result; name it once."));
    }
    Ok(right.labels(widest))
}

/// The axes of the ellipsis, and then the letters that occur once, in the order of their characters.
fn implicit(inputs: &[Vec<Label>], widest: usize) -> Vec<Label> {
    let count = |label: Label| inputs.iter().flatten().filter(|&&other| other == label).count();
    let dots = (0..widest).rev().map(|axis| (ELLIPSIS + axis) as Label);
    dots.chain((0..ELLIPSIS as Label).filter(|&label| count(label) == 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[Label]) -> String {
        let digit = |label: Label| char::from(b'0' + label - ELLIPSIS as Label);
        let one = |&label: &Label| if label < 52 { name(label) } else { digit(label).to_string() };
        labels.iter().map(one).collect()
    }

    #[test]
    fn results_are_spelled_out_or_in_alphabetical_order() {
        let cases: [(&str, &[&[usize]], &str); 7] = [
            ("ij,jk->ik", &[&[2, 3], &[3, 4]], "ik"),
            ("kj, ji", &[&[2, 3], &[3, 4]], "ik"),
            ("bA", &[&[2, 3]], "Ab"),
            ("ii", &[&[2, 2]], ""),
            ("i...", &[&[2, 3, 4]], "10i"),
            ("...i,...->i...", &[&[3, 4], &[5, 1]], "i10"),
            ("->", &[&[]], ""),
        ];
        for (text, shapes, want) in cases {
            assert_eq!(names(&Equation::read(text, shapes).unwrap().output), want, "{text}");
        }
        let wide = Equation::read("...i,...", &[&[1, 7, 3], &[4, 1]]).unwrap();
        assert_eq!((wide.sizes[ELLIPSIS], wide.sizes[ELLIPSIS + 1]), (7, 4));
    }
}
