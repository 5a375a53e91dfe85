//! Functions, written out at their calls.

use std::collections::HashMap;

use anyhow::{Result, bail};
use naga::valid::FunctionInfo;
use naga::{Function, Handle};

use super::places::{Base, Place};
use super::{Compiler, Enclosing, Frame, Value};
use crate::layout::Shape;
use crate::program::{Op, Reg};

/// WGSL has no recursion, so only a broken module calls deeper.
const DEEPEST: usize = 64;

impl<'a> Compiler<'a> {
    /// Writes out a function with these arguments; returns the registers of its result.
    pub(super) fn call(
        &mut self,
        function: &'a Function,
        info: &'a FunctionInfo,
        arguments: Vec<Value>,
    ) -> Result<Vec<Reg>> {
        if self.calls == DEEPEST {
            bail!("functions call each other more than {DEEPEST} deep");
        }
        self.calls += 1;
        let count = match &function.result {
            Some(result) => Shape::new(self.module, result.ty).scalars(self.module)?,
            None => 0,
        };
        let result = self.fresh(count);
        // What the function uses apart from its result is free again behind it.
        let mark = self.top;
        let mut frame = Frame {
            function,
            info,
            values: HashMap::new(),
            locals: HashMap::new(),
            result: (result..result + count).collect(),
            depth: self.frames.len() as u32 + 1,
        };
        for (handle, expression) in function.expressions.iter() {
            if let naga::Expression::FunctionArgument(i) = expression {
                frame.values.insert(handle, arguments[*i as usize].clone());
            }
        }
        self.emit(Op::Call);
        self.frames.push(Enclosing::Call);
        self.declare_locals(&mut frame)?;
        self.block(&mut frame, &function.body)?;
        self.frames.pop();
        self.emit_exit(Op::EndCall { exit: 0 });
        self.top = mark;
        self.calls -= 1;
        Ok(frame.result)
    }

    /// Gives the function's variables registers, and writes what they begin with.
    fn declare_locals(&mut self, frame: &mut Frame<'a>) -> Result<()> {
        let function = frame.function;
        for (handle, local) in function.local_variables.iter() {
            let count = Shape::new(self.module, local.ty).scalars(self.module)?;
            let first = self.fresh(count);
            let variable = self.local_name(local);
            let place = Place {
                base: Base::Registers { first, count, written: None },
                constant: 0,
                dynamic: None,
                variable,
            };
            frame.locals.insert(handle, place);
            let values = match local.init {
                Some(init) => self.scalars(frame, init)?,
                None => vec![self.constant(0); count as usize],
            };
            for (d, a) in (first..).zip(values) {
                self.emit(Op::Set { d, a });
            }
        }
        Ok(())
    }

    /// The number of a function's variable, by its name.
    fn local_name(&mut self, local: &naga::LocalVariable) -> u32 {
        let name = local.name.clone().unwrap_or_default();
        let names = &mut self.program.variables;
        let globals = self.module.global_variables.len();
        match names[globals..].iter().position(|known| *known == name) {
            Some(at) => (globals + at) as u32,
            None => {
                names.push(name);
                names.len() as u32 - 1
            }
        }
    }

    pub(super) fn call_by_handle(
        &mut self,
        handle: Handle<Function>,
        arguments: Vec<Value>,
    ) -> Result<Vec<Reg>> {
        self.call(&self.module.functions[handle], &self.info[handle], arguments)
    }
}
