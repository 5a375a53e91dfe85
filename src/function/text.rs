//! A program as text, and as a graph in Graphviz's language.

use super::program::{At, Call, Control, Entry, GradientRule, Program};
use crate::graph::attributes::Value as Attributes;

impl Program {
    /// The program, a line for each entry.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write_entries(&self.entries, &self.outputs, "", &mut text);
        text
    }

    fn write_entries(&self, entries: &[Entry], outputs: &[At], indent: &str, text: &mut String) {
        for (at, entry) in entries.iter().enumerate() {
            let line = self.line(at, entry);
            *text += &format!("{indent}{line}\n");
            if let Entry::Call(Call { rule: Some(rule), .. }) = entry {
                let GradientRule { program: Ok(program), captures, .. } = rule else { continue };
                *text += &format!("{indent}  gradient, capturing ({}):\n", list(captures));
                let deeper = format!("{indent}    ");
                program.write_entries(&program.entries, &program.outputs, &deeper, text);
            }
            if let Entry::Control(control) = entry {
                for (number, block) in control.blocks().into_iter().enumerate() {
                    let name = control.block_name(number);
                    *text += &format!("{indent}  {name}, capturing ({}):\n", list(&block.captures));
                    let deeper = format!("{indent}    ");
                    self.write_entries(&block.entries, &block.outputs, &deeper, text);
                }
            }
        }
        *text += &format!("{indent}return ({})\n", list(outputs));
    }

    /// The entry in a line: `%3 = Binary{row: add}(%1, %2): f32[2]`.
    pub(super) fn line(&self, at: usize, entry: &Entry) -> String {
        match entry {
            Entry::Argument(number) => format!("%{at} = argument {number}"),
            Entry::Outer(number) => format!("%{at} = captured value {number}"),
            Entry::Captured(tensor) => format!("%{at} = captured: {}", tensor.spec()),
            Entry::Call(call) => {
                let (kind, attributes) = (call.op.kind(), Attributes::from_op(&*call.op));
                format!("%{at} = {kind}{attributes}({}): {}", list(&call.inputs), call.spec)
            }
            Entry::Read(variable) => {
                let spec = self.variables[*variable].spec();
                format!("%{at} = read variable {variable}: {spec}")
            }
            Entry::Stopped(of) => format!("%{at} = stop_gradient(%{of})"),
            Entry::Same(of) => format!("%{at} = %{of}"),
            Entry::Assign { variable, value } => {
                format!("assign variable {variable} = %{value}")
            }
            Entry::Effect { inputs, .. } => format!("print or check ({})", list(inputs)),
            Entry::Count(_) => "change a count on the host".to_string(),
            Entry::Control(Control::Choose { index, .. }) => {
                format!("%{at} = choose by %{index} among")
            }
            Entry::Control(Control::Host { inputs, .. }) => {
                format!("%{at} = call on the host ({})", list(inputs))
            }
            Entry::Control(Control::Repeat { start, most, .. }) => match *most {
                u64::MAX => format!("%{at} = repeat from ({})", list(start)),
                most => format!("%{at} = repeat from ({}), at most {most} times", list(start)),
            },
            Entry::Gradient { of, seeds, .. } => {
                let seeds: Vec<String> =
                    seeds.iter().map(|seeds| format!("({})", list(seeds))).collect();
                format!("%{at} = gradients of %{of} by {}", seeds.join(", "))
            }
            Entry::Result { of, index } => format!("%{at} = result {index} of %{of}"),
        }
    }

    /// The program as a graph of this name in Graphviz's language.
    pub(super) fn graphviz(&self, name: &str) -> String {
        let mut text = format!("digraph {} {{\n  node [shape=box];\n", quoted(name));
        self.write_nodes(&self.entries, &self.outputs, "", &mut text);
        text + "}\n"
    }

    /// Writes the entries as nodes, whose names begin with `prefix`, and arrows between them.
    fn write_nodes(&self, entries: &[Entry], outputs: &[At], prefix: &str, text: &mut String) {
        let arrow = |text: &mut String, from: &At, to: &str| {
            *text += &format!("  \"{prefix}{from}\" -> \"{to}\";\n");
        };
        for (at, entry) in entries.iter().enumerate() {
            let own = format!("{prefix}{at}");
            *text += &format!("  \"{own}\" [label={}];\n", quoted(&self.line(at, entry)));
            entry.inputs().iter().for_each(|from| arrow(text, from, &own));
            let Entry::Control(control) = entry else { continue };
            for (number, block) in control.blocks().into_iter().enumerate() {
                let inner = format!("{own}.{number}.");
                let label = quoted(&control.block_name(number));
                *text += &format!("  subgraph \"cluster_{inner}\" {{\n  label={label};\n");
                self.write_nodes(&block.entries, &block.outputs, &inner, text);
                *text += "  }\n";
            }
        }
        let end = format!("{prefix}return");
        *text += &format!("  \"{end}\" [label=\"return\"];\n");
        outputs.iter().for_each(|from| arrow(text, from, &end));
    }
}

/// A text as Graphviz quotes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `%1, %2`
fn list(entries: &[At]) -> String {
    entries.iter().map(|at| format!("%{at}")).collect::<Vec<_>>().join(", ")
}
