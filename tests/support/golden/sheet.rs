//! The results of a case next to TensorFlow's: read at once, or only when everything has been called.

use std::collections::BTreeMap;

use ndarray::{ArrayD, IxDyn};
use wgrad::{DType, Result, Tensor};

use super::exceptions::{self, Element};
use super::oracle::{Array, Case, Oracle};

enum Got {
    /// Not read yet: none of the case's ops has run, as far as the caller can observe.
    Waiting(Tensor),
    Read(Result<ArrayD<f64>>),
}

struct Row {
    role: String,
    dtype: &'static str,
    got: Got,
    want: Want,
}

struct Want {
    dtype: &'static str,
    values: ArrayD<f64>,
}

/// Excused elements: the exception's index, the role, and the element's index.
pub type Excused = BTreeMap<(usize, String, usize), ()>;

pub struct Sheet<'a> {
    case: &'a Case,
    late: bool,
    rows: Vec<Row>,
    misses: Vec<String>,
}

impl<'a> Sheet<'a> {
    pub fn new(case: &'a Case, late: bool) -> Self {
        Sheet { case, late, rows: Vec::new(), misses: Vec::new() }
    }

    pub fn is_late(&self) -> bool {
        self.late
    }

    /// Records a result. Unless the sheet is a late one, the result is read, so all pending ops run.
    pub fn add(&mut self, role: &str, got: &Tensor, want: &Array) {
        self.enter(role, got, Want { dtype: want.dtype(), values: want.as_f64() });
    }

    /// Records a result that is a plain number in TensorFlow.
    pub fn add_number(&mut self, role: &str, got: &Tensor, want: f64) {
        let values = ArrayD::from_elem(IxDyn(&[]), want);
        self.enter(role, got, Want { dtype: "f32", values });
    }

    /// Records a gradient that TensorFlow does not have, which must therefore be zero.
    pub fn add_zeros(&mut self, role: &str, got: &Tensor) {
        self.enter(role, got, Want { dtype: "f32", values: ArrayD::zeros(got.shape()) });
    }

    fn enter(&mut self, role: &str, got: &Tensor, want: Want) {
        let dtype = got.dtype().name();
        let got = if self.late { Got::Waiting(got.clone()) } else { Got::Read(to_f64(got)) };
        self.rows.push(Row { role: role.to_owned(), dtype, got, want });
    }

    /// Records a failure that is not a number.
    pub fn miss(&mut self, role: &str, what: impl std::fmt::Display) {
        self.misses.push(format!("{role}: {what}"));
    }

    /// Reads the results that have not been read.
    pub fn settle(&mut self) {
        for row in &mut self.rows {
            if let Got::Waiting(tensor) = &row.got {
                row.got = Got::Read(to_f64(tensor));
            }
        }
    }

    /// Compares. Elements excused by an exception are added to `excused`, all other differences are returned.
    pub fn compare(mut self, golden: &Oracle, excused: &mut Excused) -> Vec<String> {
        self.settle();
        let mut misses = std::mem::take(&mut self.misses);
        for Row { role, dtype, got, want } in &self.rows {
            let got = match got {
                _ if *dtype != want.dtype => Err(format!("{dtype}, wanted {}", want.dtype)),
                Got::Read(Ok(got)) => Ok(got),
                Got::Read(Err(error)) => Err(error.to_string()),
                Got::Waiting(_) => unreachable!("settled"),
            };
            let what = got.and_then(|got| self.differences(golden, role, got, want, excused));
            misses.extend(what.err().map(|what| format!("{role}: {what}")));
        }
        misses
    }

    fn differences(
        &self,
        golden: &Oracle,
        role: &str,
        got: &ArrayD<f64>,
        want: &Want,
        excused: &mut Excused,
    ) -> std::result::Result<(), String> {
        let want = &want.values;
        if got.shape() != want.shape() {
            return Err(format!("shape {:?}, wanted {:?}", got.shape(), want.shape()));
        }
        let tol = self.case.tol;
        let mut misses = 0;
        let mut worst: Option<(f64, String)> = None;
        for (at, ((index, &w), &g)) in want.indexed_iter().zip(got).enumerate() {
            let Some(excess) = tol.excess(g, w) else { continue };
            let element = Element { golden, case: self.case, role, index: &index, got: g, want: w };
            if let Some(exception) = exceptions::excuse(&element) {
                excused.insert((exception, role.to_owned(), at), ());
                continue;
            }
            misses += 1;
            if worst.as_ref().is_none_or(|(most, _)| excess > *most) {
                use ndarray::Dimension;
                let (off, allowed) = ((g - w).abs(), tol.allowed(w));
                let text = format!(
                    "worst at {:?}: got {g:e}, want {w:e}, off by {off:e}, allowed {allowed:e}",
                    index.slice()
                );
                worst = Some((excess, text));
            }
        }
        match worst {
            Some((_, worst)) => Err(format!("{misses} of {} differ; {worst}", want.len())),
            None => Ok(()),
        }
    }
}

fn to_f64(x: &Tensor) -> Result<ArrayD<f64>> {
    Ok(match x.dtype() {
        DType::F32 => x.to_array::<f32>()?.mapv(f64::from),
        DType::I32 => x.to_array::<i32>()?.mapv(f64::from),
        DType::U8 => x.to_array::<u8>()?.mapv(f64::from),
        DType::Bool => x.to_array::<bool>()?.mapv(|b| f64::from(u8::from(b))),
        _ => x.cast(DType::F32)?.to_array::<f32>()?.mapv(f64::from),
    })
}
