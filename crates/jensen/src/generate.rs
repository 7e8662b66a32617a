//! Generated quantities of a program, computed at the draws of an earlier fit, for example predictions for new data.

use std::collections::HashMap;

use jensen_blackbox::NoiseSource;
use jensen_data::{DataSet, DrawsTable, similar_name};
use jensen_density::{Posterior, VariableKind};
use jensen_math::simd::Simd;

use crate::sample::sample_at;
use crate::stan::{Build, Model};
use crate::{Error, Sample, SampleRequest};

/// A program with its data. It computes generated quantities at given parameter values and ignores the log density.
pub struct Generator {
    model: Model<()>,
    simd: Simd,
    threads: usize,
}

impl Generator {
    /// Compiles a program and binds it to its data in the same way as for a fit.
    ///
    /// # Errors
    /// Fails with [`Error::Model`] if the program or the data have errors.
    pub fn compile(
        source: &str,
        name: &str,
        data: &DataSet,
        build: &Build<'_>,
    ) -> Result<Self, Error> {
        Ok(Self {
            model: Model::build(source, name, data, build, |_, _, _| Ok(()))?,
            simd: build.simd,
            threads: build.threads,
        })
    }

    /// Returns the compiled program with its data.
    pub fn model(&self) -> &Model<()> {
        &self.model
    }

    /// Computes the generated quantities at every draw of a table. The table must contain every parameter with its name
    /// and shape. The random numbers depend only on the seed and the index of the draw. The function omits draws that
    /// the program rejects and reports their number.
    ///
    /// # Errors
    /// Fails if a parameter is missing from the table or has the wrong number of elements there.
    pub fn generate(&self, draws: &DrawsTable, seed: u64) -> Result<Sample, Error> {
        let (posterior, bound) = (self.model.outputs(), self.model.bound());
        let mut ranges = HashMap::new();
        let mut start = 0;
        for variable in draws.variables() {
            ranges.insert(variable.name.as_str(), start..start + variable.len());
            start += variable.len();
        }
        for parameter in bound.all_variables() {
            if parameter.kind != VariableKind::Parameter {
                continue;
            }
            let found = ranges
                .get(parameter.name.as_str())
                .map(ExactSizeIterator::len);
            let expected = parameter.len();
            let name = &parameter.name;
            let message = match found {
                Some(found) if found == expected => continue,
                Some(found) => format!(
                    "the parameter `{name}` has {expected} element{}, but the draws have {found}",
                    if expected == 1 { "" } else { "s" }
                ),
                None => {
                    let hint = match similar_name(name, ranges.keys().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => {
                            "a fit with --save keeps only the variables that it names".to_owned()
                        }
                    };
                    format!("the draws have no variable `{name}`; {hint}")
                }
            };
            return Err(Error::Input(message));
        }
        let dim = bound.unconstrained_dim();
        let mut rows = Vec::with_capacity(draws.len() * dim);
        let (mut log_p, mut log_q) = (Vec::new(), Vec::new());
        let (mut rejected, mut rejection) = (0, None);
        for draw in 0..draws.len() {
            let row = draws.row(draw);
            let lookup = |name: &str| Some(row[ranges.get(name)?.clone()].to_vec());
            match posterior.unconstrain(&lookup) {
                Ok(point) => {
                    rows.extend(point);
                    log_p.push(draws.log_p()[draw]);
                    log_q.push(draws.log_g()[draw]);
                }
                Err(error) => {
                    rejected += 1;
                    rejection.get_or_insert(error.message);
                }
            }
        }
        let request = SampleRequest {
            first: 0,
            draws: log_p.len(),
            resample: false,
            source: NoiseSource::new(seed, self.simd),
            seed,
            threads: self.threads,
        };
        let sample = sample_at(posterior, dim, rows, [log_p, log_q], &request)?;
        Ok(Sample {
            rejected: sample.rejected + rejected,
            rejection: rejection.or(sample.rejection),
            ..sample
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Save;
    use jensen_data::DrawsVariable;

    const PROGRAM: &str = "data { int M; vector[M] at; }
        parameters { real a; array[2] real<lower=0> b; }
        model { reject(\"nobody looks here\"); }
        generated quantities { vector[M] line = a + b[2] * at; int n = poisson_rng(b[1]); }";

    fn generator() -> Generator {
        let data = DataSet::from_json(b"{\"M\": 2, \"at\": [1, 10]}", "new data").unwrap();
        let build = Build {
            save: Save::of_words("generated"),
            ..Build::default()
        };
        Generator::compile(PROGRAM, "line.stan", &data, &build).unwrap()
    }

    fn table(values: Vec<f64>) -> DrawsTable {
        let columns = vec![
            DrawsVariable::new("other", Vec::new()),
            DrawsVariable::new("b", vec![2]),
            DrawsVariable::new("a", Vec::new()),
        ];
        let draws = values.len() / 4;
        DrawsTable::new(columns, values, vec![-1.0; draws], vec![-2.0; draws]).unwrap()
    }

    #[test]
    fn parameters_are_found_by_name_and_impossible_draws_left_out() {
        let draws = table(vec![9., 3., 0.5, 2., 9., -1., 0.5, 2., 9., 3., 2., -1.]);
        let made = generator().generate(&draws, 7).unwrap();
        let names: Vec<&str> = made.variables.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["line", "n"]);
        assert_eq!((made.table.len(), made.rejected), (2, 1));
        assert!(made.rejection.as_deref().unwrap().contains('b'));
        let near = |found: &[f64], expected: [f64; 2]| {
            let close = |(a, b): (&f64, f64)| (a - b).abs() < 1e-12;
            assert!(found.iter().zip(expected).all(close), "{found:?}");
        };
        near(&made.table.row(0)[..2], [2.5, 7.0]);
        near(&made.table.row(1)[..2], [1.0, 19.0]);
        assert_eq!(made.table.log_p(), [-1.0, -1.0]);
    }

    #[test]
    fn a_missing_parameter_is_named() {
        let columns = vec![DrawsVariable::new("b", vec![3])];
        let draws = DrawsTable::new(columns, vec![1.0; 3], vec![0.0], vec![0.0]).unwrap();
        let error = generator().generate(&draws, 7).unwrap_err().to_string();
        assert!(
            error.contains("`a`") && error.contains("no variable"),
            "{error}"
        );
    }
}
