//! Makes up data that satisfy the declarations of the data block, so that programs can be analysed without data.

use super::machine::Machine;
use super::model::constrained;
use crate::program::Decl;
use crate::transform::Transform;
use crate::value::Value;
use crate::value::error::{ErrorKind, Eval};
use crate::value::sized::{Part, Sized, parts, put_part};

/// The settings for made-up data.
#[derive(Clone, Copy, Debug)]
pub struct Invention {
    /// The value of every single `int` whose bounds allow it. Most sizes therefore have this value. The elements of an
    /// array of ints count from 1 up to this value.
    pub size: i32,
    /// Whether an `int` whose two bounds differ by 1 takes the upper bound instead of the lower bound. Such an `int` is
    /// usually a switch, which the upper bound turns on.
    pub high: bool,
    /// Whether a single `int` without bounds is 0. Such an `int` is usually a switch, such as brms's `prior_only`,
    /// because most sizes are declared with bounds.
    pub off: bool,
}

/// Binds a made-up value to every declaration of the data block, in order.
///
/// # Errors
/// Fails if no value satisfies a declaration, for example if a made-up size violates the bound of another size.
pub fn invent_data(machine: &mut Machine<'_>, what: Invention) -> Eval<()> {
    let program = machine.program;
    for decl in &program.data {
        let ty = machine.resolve(decl)?;
        let value = invented(machine, decl, &ty, what)?;
        let span = program.var(decl.var).span;
        machine.check_declared(decl, &value, ErrorKind::Data, span)?;
        machine.slots[decl.var.0 as usize] = Some(value.into());
    }
    Ok(())
}

fn invented(machine: &mut Machine<'_>, decl: &Decl, ty: &Sized, what: Invention) -> Eval<Value> {
    let mut value = ty.empty();
    for part in parts(decl, ty) {
        let numbers = match part.ty.unwind().1 {
            Sized::Int => ints(machine, &part, what)?,
            _ => reals(machine, &part)?,
        };
        let made = part.ty.from_numbers(&mut numbers.into_iter());
        put_part(&mut value, &part.path, made);
    }
    Ok(value)
}

fn ints(machine: &mut Machine<'_>, part: &Part<'_>, what: Invention) -> Eval<Vec<f64>> {
    let transform = machine.transform(part.constraint)?;
    let count = part.ty.scalars();
    let one = part.ty.unwind().0.is_empty();
    let size = f64::from(what.size);
    let of = |k: usize| {
        let plain = if one { size } else { 1.0 + k as f64 % size };
        match &transform {
            Transform::Lower(a) => plain.max(a.at(k)),
            Transform::Upper(b) => plain.min(b.at(k)),
            Transform::LowerUpper(a, b) if one && b.at(k) - a.at(k) == 1.0 => {
                if what.high {
                    b.at(k)
                } else {
                    a.at(k)
                }
            }
            Transform::LowerUpper(a, b) => plain.clamp(a.at(k), b.at(k).max(a.at(k))),
            _ if one && what.off => 0.0,
            _ => plain,
        }
    };
    Ok((0..count).map(of).collect())
}

/// The numbers increase from element to element, within their bounds.
fn reals(machine: &mut Machine<'_>, part: &Part<'_>) -> Eval<Vec<f64>> {
    let transform = machine.transform(part.constraint)?;
    let count = part.ty.scalars() * if part.ty.is_complex() { 2 } else { 1 };
    let rank = |k: usize| (k as f64 + 1.0) / (count as f64 + 1.0);
    let of = |k: usize| match &transform {
        Transform::Lower(a) => a.at(k) + rank(k),
        Transform::Upper(b) => b.at(k) - 1.0 + rank(k),
        Transform::LowerUpper(a, b) => a.at(k) + (b.at(k) - a.at(k)) * rank(k),
        _ => rank(k),
    };
    if transform.is_elementwise() {
        return Ok((0..count).map(of).collect());
    }
    let coordinates = super::model::coordinates(part);
    let z: Vec<f64> = (0..coordinates).map(|k| 0.1 * (k % 5) as f64).collect();
    Ok(constrained(machine, part, &z)?.0)
}
