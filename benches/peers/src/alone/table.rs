//! A table that is printed line by line and written to the documentation.

use serde_json::{Map, Value};

pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// The width of the first column on the terminal.
const FIRST: usize = 50;

impl Table {
    /// Prints the headings.
    pub fn new(heads: &[&str]) -> Self {
        let table = Table {
            heads: heads.iter().map(|&head| head.to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        };
        println!("{}", table.aligned(&table.heads));
        table
    }

    pub fn row(&mut self, cells: Vec<String>) {
        println!("{}", self.aligned(&cells));
        self.rows.push(cells);
    }

    pub fn note(&mut self, note: String) {
        println!("    {note}");
        self.notes.push(note);
    }

    fn aligned(&self, cells: &[String]) -> String {
        let cell = |(i, cell): (usize, &String)| match i {
            0 => format!("{cell:<FIRST$}"),
            _ => format!("  {cell:>width$}", width = self.heads[i].chars().count().max(7)),
        };
        cells.iter().enumerate().map(cell).collect::<String>().trim_end().to_owned()
    }

    pub fn markdown(&self) -> String {
        let mut text =
            format!("| {} |\n|{}\n", self.heads.join(" | "), "---|".repeat(self.heads.len()));
        for row in &self.rows {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        for (i, note) in self.notes.iter().enumerate() {
            text.push_str(&format!("{}- {note}\n", if i == 0 { "\n" } else { "" }));
        }
        text.trim_end().to_owned()
    }

    /// One object per row, with the headings as keys.
    pub fn json(&self) -> Value {
        let object = |row: &Vec<String>| {
            let pairs = self.heads.iter().cloned().zip(row.iter().cloned().map(Value::String));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_with_its_notes() {
        let mut table = Table::new(&["program", "s"]);
        table.row(vec!["life".to_owned(), "1.50".to_owned()]);
        table.note("in a hurry".to_owned());
        assert_eq!(table.markdown(), "| program | s |\n|---|---|\n| life | 1.50 |\n\n- in a hurry");
        assert_eq!(table.json()[0]["s"], "1.50");
    }
}
