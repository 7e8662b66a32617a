//! Lowers operators and functions of containers with one element per record.

use std::rc::Rc;

use super::super::Lower;
use super::super::call::Resolved;
use super::{all_records, is_flat};
use crate::distributions::{Formula, OverRecords};
use crate::functions::Keep;
use crate::library;
use crate::program::{BinaryOp, BuiltinId, Level, Span};
use crate::symbolic::functions::{Builder, operators};
use crate::symbolic::index;
use crate::symbolic::value::{Dims, Leaf, Sym, interacting};
use crate::value::Value;
use crate::value::error::{Eval, FnError, FnResult};
use crate::value::index::Idx;

/// Functions that compute each record's part of the result from the same record's part of the arguments. A call for a
/// single record therefore returns this record's part of the result.
const BY_RECORD: &[&str] = &[
    "append_col",
    "col",
    "diag_post_multiply",
    "rows_dot_product",
    "rows_dot_self",
    "add",
    "subtract",
    "elt_multiply",
    "elt_divide",
];

/// Functions whose value for all records is the sum of their values for each record.
const SUMS: &[&str] = &[
    "sum",
    "dot_product",
    "dot_self",
    "squared_distance",
    "norm1",
];

impl Lower<'_, '_> {
    pub(in crate::lower) fn each_record(
        &self,
        args: &[Sym],
        f: impl FnOnce(&[Sym]) -> FnResult<Sym>,
    ) -> Option<FnResult<Sym>> {
        if !args.iter().any(|a| matches!(a, Sym::Records(_))) {
            return None;
        }
        Some(self.ones(args).and_then(|ones| {
            let one = f(&ones)?;
            Ok(Sym::Records(Rc::new(one)))
        }))
    }

    /// Returns the arguments for a single record. Fails if an argument is the value of the current record, because the
    /// call would then pair this value with every record.
    fn ones(&self, args: &[Sym]) -> FnResult<Vec<Sym>> {
        let own = |a: &Sym| !matches!(a, Sym::Records(_)) && a.has_records(self.tape);
        if args.iter().any(own) {
            return Err(interacting());
        }
        Ok(args.iter().map(Sym::one_record).collect())
    }

    pub(in crate::lower) fn binary_of_records(
        &self,
        op: BinaryOp,
        a: &Sym,
        b: &Sym,
    ) -> Option<FnResult<Sym>> {
        let over = |x: &Sym| matches!(x, Sym::Records(_));
        if !over(a) && !over(b) {
            return None;
        }
        let elementwise = !matches!(op, BinaryOp::Mul | BinaryOp::LeftDiv);
        let promoted = elementwise.then(|| (self.promoted(a), self.promoted(b)));
        let (a, b) = promoted.as_ref().map_or((a, b), |(a, b)| (a, b));
        let cx = self.cx(op.symbol());
        let leaf = |x: &Sym| x.one_record().dims().map(|d| d.leaf);
        let (la, lb) = match (leaf(a), leaf(b)) {
            (Ok(la), Ok(lb)) => (la, lb),
            (Err(error), _) | (_, Err(error)) => return Some(Err(error)),
        };
        let both = over(a) && over(b);
        let scalar = a.is_scalar() || b.is_scalar();
        let fits = match op {
            BinaryOp::Mul if !scalar => {
                if both && matches!((la, lb), (Leaf::Row(_), Leaf::Vector(_))) {
                    // The product is a sum over the records.
                    let args = [a.clone(), b.clone()];
                    return Some(self.ones(&args).and_then(|ones| {
                        let one = operators::binary(&cx, op, &ones[0], &ones[1])?;
                        Ok(one.e(self.tape)?.sum_records().into())
                    }));
                }
                over(a) && !over(b) && matches!(la, Leaf::Vector(_) | Leaf::Matrix(..))
            }
            BinaryOp::Div if matches!(lb, Leaf::Matrix(..)) => false,
            BinaryOp::LeftDiv => false,
            _ => both || scalar,
        };
        if !fits {
            return Some(Err(interacting()));
        }
        self.each_record(&[a.clone(), b.clone()], |ones| {
            operators::binary(&cx, op, &ones[0], &ones[1])
        })
    }

    pub(super) fn promoted(&self, value: &Sym) -> Sym {
        match value {
            Sym::Data(_) => self
                .as_records(value.clone())
                .unwrap_or_else(|_| value.clone()),
            other => other.clone(),
        }
    }

    /// Returns `None` if no argument is a container with one element per record, or if the function is not affected by
    /// such containers.
    pub(in crate::lower) fn call_of_records(
        &mut self,
        id: BuiltinId,
        args: &[Sym],
        levels: &[Level],
        drop: bool,
        span: Span,
    ) -> Eval<Option<Sym>> {
        if self.axis.is_none() && !self.in_iterations() {
            return Ok(None);
        }
        let name = id.name();
        if let Some(built) = self.sized_by_records(name, args) {
            return built.map(Some).map_err(|e| e.at(span));
        }
        let over = |x: &Sym| matches!(x, Sym::Records(_));
        if !args.iter().any(over) {
            // The argument is an `int` per record, and the graph has no function for it.
            let unknown = matches!(self.resolved(id), Resolved::Known);
            if unknown && args.iter().any(|a| a.has_records(self.tape)) {
                return self.tabulated(id, args, span).map(Some);
            }
            return Ok(None);
        }
        if let ("row", [Sym::Records(one), at]) = (name, args)
            && self.is_own_index(at)
        {
            let row = index::get(self.tape, one, &[Idx::One(1)], None);
            return row.map(Some).map_err(|e| e.at(span));
        }
        let resolved = self.resolved(id);
        if let (Resolved::Function(Builder::Whole(_)), "multiply" | "divide") = (resolved, name) {
            let op = if name == "multiply" {
                BinaryOp::Mul
            } else {
                BinaryOp::Div
            };
            let result = self.binary_of_records(op, &args[0], &args[1]);
            return result.transpose().map_err(|e| e.at(span));
        }
        let kind = kind_over_records(resolved, name, args);
        if let Kind::Refused = kind {
            return self.of_all_data(id, args, span).map(Some);
        }
        // Functions of numbers are applied to all records together and to values with one number per record.
        let whole = matches!(
            resolved,
            Resolved::Density(Formula::Multivariate(..)) | Resolved::Function(Builder::Whole(_))
        );
        let apart = |name: &str| BY_RECORD.contains(&name) && !SUMS.contains(&name);
        let promoted: Vec<Sym>;
        let args = if whole && !SUMS.contains(&name) {
            args
        } else {
            promoted = args.iter().map(|a| self.promoted(a)).collect();
            &promoted
        };
        let fits = args.iter().all(|a| {
            over(a) || a.is_scalar() || (whole && matches!(kind, Kind::Sum)) || apart(name)
        });
        let fits = fits && (!SUMS.contains(&name) || args.iter().all(over));
        if !fits {
            return Err(interacting().at(span));
        }
        let ones = self.ones(args).map_err(|e| e.at(span))?;
        let one = if ones.iter().all(Sym::is_known) {
            self.known_one(id, &ones, levels, drop, span)?
        } else {
            self.built(id, &ones, levels, drop, span)?
        };
        self.fault(span)?;
        Ok(Some(match kind {
            Kind::Each => Sym::Records(Rc::new(one)),
            _ => one
                .e(self.tape)
                .map_err(|e| e.at(span))?
                .sum_records()
                .into(),
        }))
    }

    fn known_one(
        &mut self,
        id: BuiltinId,
        ones: &[Sym],
        levels: &[Level],
        drop: bool,
        span: Span,
    ) -> Eval<Sym> {
        let values: Vec<_> = ones.iter().filter_map(Sym::known).collect();
        let refs: Vec<&Value> = values.iter().map(|v| &**v).collect();
        let keep = if drop {
            Keep::arguments(levels.iter().map(|l| *l == Level::Param))
        } else {
            Keep::ALL
        };
        library::call(id, keep, &refs)
            .map(Sym::from)
            .map_err(|e| e.at(span))
    }

    fn sized_by_records(&self, name: &str, args: &[Sym]) -> Option<FnResult<Sym>> {
        if let [Sym::Records(one)] = args {
            let dims = match one.dims() {
                Ok(dims) => dims,
                Err(error) => return Some(Err(error)),
            };
            let count = self.record_count();
            let (rows, cols) = dims.leaf.extents();
            let int = |n: usize| Sym::Int(i32::try_from(n).unwrap_or(i32::MAX));
            let row = matches!(dims.leaf, Leaf::Row(_));
            match name {
                "size" => return Some(Ok(count)),
                "num_elements" => {
                    let each = dims.size();
                    return Some(if each == 1 {
                        Ok(count)
                    } else {
                        count.e(self.tape).map(|e| (e * each as f64).into())
                    });
                }
                "rows" => return Some(Ok(if row { int(rows) } else { count })),
                "cols" => return Some(Ok(if row { count } else { int(cols) })),
                _ => {}
            }
        }
        let leading = match name {
            "rep_vector" | "rep_row_vector" | "rep_array" | "rep_matrix" => 1,
            "zeros_vector" | "ones_vector" | "zeros_row_vector" | "ones_row_vector" => 0,
            _ => return None,
        };
        if !args.get(leading).is_some_and(|n| self.is_count(n)) {
            return None;
        }
        if args[..leading].iter().any(|x| x.has_records(self.tape))
            || args[leading + 1..].iter().any(|n| self.is_count(n))
        {
            return Some(Err(interacting()));
        }
        let mut ones = args.to_vec();
        ones[leading] = Sym::Int(1);
        let value = match leading {
            0 => {
                let x = if name.starts_with("ones") { 1.0 } else { 0.0 };
                let leaf = if name.contains("row") {
                    Leaf::Row(1)
                } else {
                    Leaf::Vector(1)
                };
                Ok(Dims::leaf(leaf).value(&[x]).into())
            }
            _ => match crate::symbolic::functions::find(name) {
                Some(builder) => builder.build(&self.cx("rep"), &ones),
                None => Err(interacting()),
            },
        };
        Some(value.map(|one| Sym::Records(Rc::new(one))))
    }

    /// Calls a function that needs all records together, such as the mean over the records. Its result does not belong
    /// to a single record.
    fn of_all_data(&mut self, id: BuiltinId, args: &[Sym], span: Span) -> Eval<Sym> {
        let axis = self.axis.as_ref();
        let values: Option<Vec<Value>> = args
            .iter()
            .map(|arg| match arg {
                Sym::Records(one) => all_records(self.tape, one, axis?),
                other => other.known().map(std::borrow::Cow::into_owned),
            })
            .collect();
        match values {
            Some(values) => {
                let refs: Vec<&Value> = values.iter().collect();
                library::call(id, Keep::ALL, &refs)
                    .map(Sym::from)
                    .map_err(|e| e.at(span))
            }
            None if axis.is_some_and(|axis| axis.block) => Err(FnError::records(format!(
                "`{}` needs all records together, which are never in memory at once: if it depends only on \
                 data, make it a column or a number of the data",
                id.name()
            ))
            .at(span)),
            None => Err(FnError::records(format!(
                "records interact: `{}` needs all records together, so the log density is not a sum over records",
                id.name()
            ))
            .at(span)),
        }
    }

    fn tabulated(&mut self, id: BuiltinId, args: &[Sym], span: Span) -> Eval<Sym> {
        let unsupported = || {
            FnError::records(format!(
                "`{}` of values of each record is not supported yet",
                id.name()
            ))
            .at(span)
        };
        let tables: Vec<Vec<f64>> = args
            .iter()
            .map(|arg| match arg {
                arg if arg.is_scalar() => arg.e(self.tape).ok()?.data(),
                _ => None,
            })
            .collect::<Option<_>>()
            .ok_or_else(unsupported)?;
        let count = self.tape.records.get().unwrap_or(0);
        let mut results = Vec::with_capacity(count);
        for r in 0..count {
            let row: Vec<Value> = tables
                .iter()
                .map(|table| {
                    let x = if table.len() == 1 { table[0] } else { table[r] };
                    if x.fract() == 0.0 && x.abs() < f64::from(i32::MAX) {
                        Value::Int(x as i32)
                    } else {
                        Value::Real(x)
                    }
                })
                .collect();
            let refs: Vec<&Value> = row.iter().collect();
            let value = library::call(id, Keep::ALL, &refs).map_err(|e| e.at(span))?;
            results.push(value.real().map_err(|e| e.at(span))?);
        }
        Ok(self.tape.column(&results).into())
    }
}

enum Kind {
    Each,
    Sum,
    /// The function needs all records together, which is not supported.
    Refused,
}

fn kind_over_records(resolved: Resolved, name: &str, args: &[Sym]) -> Kind {
    match resolved {
        Resolved::Density(formula) => {
            let fits = match formula {
                Formula::Univariate(..) => true,
                Formula::Multivariate(_, records) => sums_over_records(records, args),
            };
            if fits { Kind::Sum } else { Kind::Refused }
        }
        Resolved::Function(Builder::Whole(_)) => {
            let vectors = args
                .iter()
                .filter(|a| matches!(a, Sym::Records(_)))
                .all(|a| is_flat(&a.one_record()));
            let each = BY_RECORD.contains(&name)
                || (matches!(name, "max" | "min" | "log_sum_exp") && args.len() == 2)
                || (vectors && matches!(name, "to_vector" | "to_row_vector" | "to_array_1d"));
            if SUMS.contains(&name) {
                Kind::Sum
            } else if each {
                Kind::Each
            } else {
                Kind::Refused
            }
        }
        Resolved::Function(Builder::Transform(..)) | Resolved::Known => Kind::Refused,
        Resolved::Function(_) => Kind::Each,
    }
}

/// Whether each record is one outcome of a multivariate density. Otherwise the records are the elements of a single
/// outcome.
fn sums_over_records(over: OverRecords, args: &[Sym]) -> bool {
    let many = |dims: &Dims| !dims.array.is_empty() && dims.leaf != Leaf::Scalar;
    args.iter().enumerate().all(|(i, arg)| match arg {
        Sym::Records(one) => one.dims().is_ok_and(|dims| match over {
            OverRecords::All => true,
            OverRecords::Outcome => i == 0,
            OverRecords::Located => i < 2 || many(&dims),
            OverRecords::Arrays => many(&dims),
        }),
        _ => true,
    })
}
