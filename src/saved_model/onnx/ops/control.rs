//! Branches and loops. What the host knows, it decides when the node runs; otherwise a call reads the value.

use super::call::{Call, Results, Table, axis, long, tf};
use crate::eager;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::saved_model::control_flow::cond;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[("If", if_), ("Loop", loop_), ("Scan", scan)];

/// Whether a value is true; `None` if a trace has to record a branch.
fn truth(value: &Value) -> Result<Option<bool>> {
    if matches!(value, Value::Tensor(_)) && eager::in_trace() {
        return Ok(None);
    }
    Ok(Some(value.read()?.bytes().first().is_some_and(|byte| *byte != 0)))
}

fn if_(c: &Call<'_>) -> Result<Results> {
    let (yes, no) = (c.graph("then_branch")?, c.graph("else_branch")?);
    let condition = c.input(0)?;
    if let Some(truth) = truth(&condition)? {
        return c.runner.graph(if truth { yes } else { no }, Vec::new());
    }
    let branch = |graph| -> Result<Vec<Tensor>> {
        c.runner.graph(graph, Vec::new())?.iter().map(Value::tensor).collect()
    };
    let condition = condition.tensor()?.reshape(())?;
    let results = cond(&condition, || branch(yes), || branch(no))?;
    Ok(results.into_iter().map(Value::Tensor).collect())
}

fn stacked(rows: Vec<Value>) -> Result<Value> {
    if rows.is_empty() {
        return Err(Error::Shape(message!(
            "a loop without a turn has results for each turn, whose shapes are not known."
        )));
    }
    tf("Pack", rows, vec![])
}

fn loop_(c: &Call<'_>) -> Result<Results> {
    let body = c.graph("body")?;
    let most = match c.get(0) {
        Some(_) => c.ints(0)?.first().copied().unwrap_or(0),
        None => i64::MAX,
    };
    let mut again = match c.get(1) {
        Some(value) => value.clone(),
        None => Value::int(HostDType::Bool, 1),
    };
    let mut values = (2..c.inputs.len()).map(|at| c.input(at)).collect::<Result<Vec<_>>>()?;
    let (count, mut rows) = (values.len(), Vec::new());
    rows.resize_with(body.outputs.len().saturating_sub(1 + count), Vec::new);
    let mut turn = 0;
    while turn < most {
        match truth(&again)? {
            Some(true) => {}
            Some(false) => break,
            None => {
                return Err(Error::Trace(message!(
                    "a loop decides by a value how often it runs, which a trace does not have."
                )));
            }
        }
        let mut inputs = vec![Value::int(HostDType::I64, turn), again];
        inputs.append(&mut values);
        let mut results = c.runner.graph(body, inputs)?.into_iter();
        again = results.next().ok_or_else(|| Error::Data(message!("its body has no results.")))?;
        values = results.by_ref().take(count).collect();
        if values.len() != count {
            return Err(Error::Data(message!(
                "its body has too few results. The file is damaged."
            )));
        }
        for (rows, row) in rows.iter_mut().zip(results) {
            rows.push(row);
        }
        turn += 1;
    }
    let rows = rows.into_iter().map(stacked).collect::<Result<Vec<_>>>()?;
    values.extend(rows);
    Ok(values)
}

fn scan(c: &Call<'_>) -> Result<Results> {
    if c.opset < 9 {
        return Err(Error::Data(message!(
            "Scan before opset 9 is not supported. Export a newer one."
        )));
    }
    let body = c.graph("body")?;
    let scanned = usize::try_from(c.attr_int("num_scan_inputs", 0)).unwrap_or(0);
    let all = c.all()?;
    let states = all
        .len()
        .checked_sub(scanned)
        .ok_or_else(|| Error::Data(message!("it has {} inputs and scans {scanned}.", all.len())))?;
    let at = |name: &str, index: usize| {
        c.attr_ints(name).and_then(|list| list.get(index)).copied().unwrap_or(0)
    };
    let mut values = all[..states].to_vec();
    let mut sources = Vec::with_capacity(scanned);
    for (index, value) in all[states..].iter().enumerate() {
        let shape = value.shape()?;
        let along = axis(at("scan_input_axes", index), shape.len())?;
        let backwards = at("scan_input_directions", index) != 0;
        sources.push((value, along, backwards, shape[along]));
    }
    let turns = sources.first().map_or(0, |source| source.3);
    let mut rows: Vec<Vec<Value>> = Vec::new();
    rows.resize_with(body.outputs.len().saturating_sub(states), Vec::new);
    for turn in 0..turns {
        let mut inputs = std::mem::take(&mut values);
        for (value, along, backwards, _) in &sources {
            let index = if *backwards { turns - 1 - turn } else { turn } as i64;
            let place = Value::int(HostDType::I64, index);
            let row = vec![(*value).clone(), place, long(&[*along as i64])];
            inputs.push(tf("GatherV2", row, vec![])?);
        }
        let mut results = c.runner.graph(body, inputs)?.into_iter();
        values = results.by_ref().take(states).collect();
        for (rows, row) in rows.iter_mut().zip(results) {
            rows.push(row);
        }
    }
    for (index, mut rows) in rows.into_iter().enumerate() {
        if at("scan_output_directions", index) != 0 {
            rows.reverse();
        }
        let y = stacked(rows)?;
        let rank = y.shape()?.len();
        let along = axis(at("scan_output_axes", index), rank)? as i64;
        let mut perm: Vec<i64> = (1..rank as i64).collect();
        perm.insert(along as usize, 0);
        values.push(if along == 0 { y } else { tf("Transpose", vec![y, long(&perm)], vec![])? });
    }
    Ok(values)
}
