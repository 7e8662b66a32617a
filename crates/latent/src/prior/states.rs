//! A Matérn process of one input and a few effects, as a Markov chain of states and independent variables. It is the
//! same prior as a [`GaussianProcess`](super::GaussianProcess) with these terms, but the cost of a fit is proportional
//! to the number of values of the input.

use super::inputs::{Index, Source, matrix};
use super::kernel::Shape;
use super::matern::Matern;
use super::read::{Piece, Reader};
use super::setting::{self, Setting};
use super::term::{Body, Building};
use crate::{
    Chain, ChainStep, Covariance, CovarianceSensitivity, Design, Error, Parameter, Prior, Query,
    Sensitivity, Sparse, Square, Structure,
};

/// From this number of distinct inputs on, a chain is cheaper than a covariance matrix. The factor of a matrix of 200
/// rows takes as long as the filter and the smoother over 200 states.
const LEAST: usize = 200;

/// The largest number of effects beside the process. Each of them takes a run of the filter.
const MOST: usize = 64;

/// A part of the sum.
#[derive(Clone, Debug)]
enum Part {
    /// The process, with its variance and its lengthscale.
    Process(Box<Matern>, [Setting; 2]),
    /// Independent effects with a common variance.
    Effects { count: usize, variance: Setting },
}

/// A Matérn process at some times plus independent effects.
#[derive(Clone, Debug)]
pub struct States {
    parts: Vec<Part>,
    /// The inputs of the process in increasing order.
    times: Vec<f64>,
}

/// The variables on which rows depend.
struct Loads {
    time: Vec<f64>,
    /// The row, the part, the number of the effect within the part, and its weight.
    effects: Vec<(usize, usize, usize, f64)>,
    /// The number of new groups of each part.
    new: Vec<usize>,
}

impl States {
    /// Returns a process at sorted times.
    ///
    /// # Errors
    /// Fails if the kernel is not `matern32` or `matern52`, or if there is no time.
    pub fn new(
        shape: Shape,
        times: Vec<f64>,
        variance: Setting,
        lengthscale: Setting,
    ) -> Result<Self, Error> {
        let process = Matern::of(shape).filter(|_| !times.is_empty());
        let process = process.ok_or_else(|| {
            Error::Prior("only a Matérn process has states at its inputs".to_owned())
        })?;
        let parts = vec![Part::Process(Box::new(process), [variance, lengthscale])];
        Ok(Self { parts, times })
    }

    /// Returns the prior and the design of a sum, or `None` if a covariance matrix suits the sum better.
    pub(super) fn of(
        terms: &[Vec<Building>],
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Option<(Self, Design)>, String> {
        if source.copies() > 1 {
            return Ok(None);
        }
        let mut parts = Vec::with_capacity(terms.len());
        let mut pieces = Vec::with_capacity(terms.len());
        for term in terms {
            let [building] = term.as_slice() else {
                return Ok(None);
            };
            let Some(part) = part(building) else {
                return Ok(None);
            };
            parts.push(part);
            pieces.push(&building.piece);
        }
        let is_process = |part: &&Part| matches!(part, Part::Process(..));
        let count = |part: &Part| match part {
            Part::Process(..) => 0,
            Part::Effects { count, .. } => *count,
        };
        if parts.iter().filter(is_process).count() != 1
            || parts.iter().map(count).sum::<usize>() > MOST
        {
            return Ok(None);
        }
        let mut out = Self {
            parts,
            times: Vec::new(),
        };
        let loads = out.loads(&pieces, source, rows)?;
        out.times = distinct(loads.time.clone());
        if out.times.len() < LEAST {
            return Ok(None);
        }
        let design = out.design(&out.times, &[&loads], &loads);
        Ok(Some((out, design)))
    }

    fn loads(
        &self,
        pieces: &[&Piece],
        source: &dyn Source,
        rows: &[usize],
    ) -> Result<Loads, String> {
        let mut out = Loads {
            time: Vec::new(),
            effects: Vec::new(),
            new: vec![0; pieces.len()],
        };
        for (number, (piece, part)) in pieces.iter().zip(&self.parts).enumerate() {
            let values = match &piece.reader {
                Reader::Common => {
                    out.effects
                        .extend((0..rows.len()).map(|row| (row, number, 0, 1.0)));
                    continue;
                }
                Reader::At(index) => {
                    let Part::Effects { count, .. } = part else {
                        continue;
                    };
                    let positions = index.positions(source, rows)?;
                    for (row, position) in positions.into_iter().enumerate() {
                        let group = position.unwrap_or_else(|new| {
                            out.new[number] = out.new[number].max(new + 1);
                            count + new
                        });
                        out.effects.push((row, number, group, 1.0));
                    }
                    continue;
                }
                Reader::Covariates(list) | Reader::Inputs(list) => matrix(list, source, rows)?,
                _ => unreachable!("refused as a part"),
            };
            match part {
                Part::Process(..) => out.time = values.data,
                Part::Effects { .. } => {
                    for j in 0..values.cols {
                        let column = values.col(j).iter().enumerate();
                        out.effects
                            .extend(column.map(|(row, x)| (row, number, j, *x)));
                    }
                }
            }
        }
        Ok(out)
    }

    /// Returns the map from the states at `times` and the effects to the rows of `loads`. `all` lists the rows whose
    /// groups are variables.
    fn design(&self, times: &[f64], all: &[&Loads], loads: &Loads) -> Design {
        let size = self.process().0.size;
        let mut starts = Vec::with_capacity(self.parts.len());
        let mut next = times.len() * size;
        for count in self.counts(all) {
            starts.push(next);
            next += count;
        }
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); next];
        for (row, time) in loads.time.iter().enumerate() {
            let node = times.partition_point(|t| t < time);
            columns[node * size].push((row, 1.0));
        }
        for (row, part, effect, weight) in &loads.effects {
            columns[starts[*part] + effect].push((*row, *weight));
        }
        let mut out = Sparse {
            rows: loads.time.len(),
            cols: next,
            col_start: vec![0],
            row: Vec::new(),
            value: Vec::new(),
        };
        for column in columns {
            for (row, weight) in column {
                out.row.push(row);
                out.value.push(weight);
            }
            out.col_start.push(out.row.len());
        }
        Design::Sparse(out)
    }

    /// Returns the number of effects of each part, including those of new groups.
    fn counts(&self, all: &[&Loads]) -> Vec<usize> {
        let own = |(number, part): (usize, &Part)| match part {
            Part::Process(..) => 0,
            Part::Effects { count, .. } => {
                count + all.iter().map(|l| l.new[number]).max().unwrap_or(0)
            }
        };
        self.parts.iter().enumerate().map(own).collect()
    }

    fn process(&self) -> (&Matern, &[Setting; 2]) {
        let mut found = self.parts.iter().filter_map(|part| match part {
            Part::Process(process, settings) => Some((process.as_ref(), settings)),
            Part::Effects { .. } => None,
        });
        found.next().expect("one part is the process")
    }

    /// Returns all hyperparameters, including fixed ones.
    pub fn settings(&self) -> Vec<Setting> {
        let of = |part: &Part| match part {
            Part::Process(_, settings) => settings.to_vec(),
            Part::Effects { variance, .. } => vec![variance.clone()],
        };
        self.parts.iter().flat_map(of).collect()
    }

    /// Returns the number of distinct inputs.
    pub fn nodes(&self) -> usize {
        self.times.len()
    }

    /// Returns the prior of the states at `times` with this number of effects of each part.
    fn prior(&self, theta: &[f64], times: &[f64], counts: &[usize]) -> Result<Structure, Error> {
        let values = setting::values(&self.settings(), theta)?;
        let mut values = values.iter();
        let mut chain = Chain {
            size: 1,
            initial: Square::default(),
            steps: Vec::new(),
            others: Vec::new(),
        };
        for (part, count) in self.parts.iter().zip(counts) {
            let variance = *values.next().expect("each part has a variance");
            match part {
                Part::Process(process, _) => {
                    let lengthscale = *values.next().expect("the process has a lengthscale");
                    chain.size = process.size;
                    chain.initial = scaled(&process.stationary, variance);
                    let each = gaps(times).map(|gap| {
                        let step = process.step(process.rate * gap / lengthscale);
                        let noise = scaled(&step.noise, variance);
                        ChainStep { noise, ..step }
                    });
                    chain.steps = each.collect();
                }
                Part::Effects { .. } => chain.others.extend(vec![variance; *count]),
            }
        }
        Ok(Structure {
            mean: vec![0.0; chain.latents()],
            covariance: Covariance::Chain(chain),
        })
    }

    /// Returns the query for rows of another table. Its chain has a state at each of the new inputs too, so the
    /// posterior there is exact.
    pub(super) fn query(
        &self,
        theta: &[f64],
        pieces: &[Piece],
        (fitted, rows): (&Design, &[usize]),
        source: &dyn Source,
    ) -> Result<Query, Error> {
        let pieces: Vec<&Piece> = pieces.iter().collect();
        let new = self.loads(&pieces, source, rows).map_err(Error::Data)?;
        let old = self.of_design(fitted);
        let times = distinct([self.times.as_slice(), &new.time].concat());
        let all = [&old, &new];
        Ok(Query::Extended {
            prior: Box::new(self.prior(theta, &times, &self.counts(&all))?),
            design: self.design(&times, &all, &old),
            rows: self.design(&times, &all, &new),
        })
    }

    /// Returns the variables on which the fitted rows depend.
    fn of_design(&self, design: &Design) -> Loads {
        let mut out = Loads {
            time: Vec::new(),
            effects: Vec::new(),
            new: vec![0; self.parts.len()],
        };
        let Design::Sparse(w) = design else {
            return out;
        };
        out.time = vec![0.0; w.rows];
        let size = self.process().0.size;
        for (node, time) in self.times.iter().enumerate() {
            w.col(node * size)
                .0
                .iter()
                .for_each(|row| out.time[*row] = *time);
        }
        let mut column = self.times.len() * size;
        for (part, count) in self.counts(&[]).into_iter().enumerate() {
            for effect in 0..count {
                let (rows, weights) = w.col(column);
                let each = rows.iter().zip(weights);
                out.effects
                    .extend(each.map(|(row, weight)| (*row, part, effect, *weight)));
                column += 1;
            }
        }
        out
    }
}

/// Returns the part for a term without further factors.
fn part(building: &Building) -> Option<Part> {
    let Body::Kernel {
        shape,
        variance: Some(variance),
        lengthscales,
    } = &building.body
    else {
        return None;
    };
    let effects = |count| {
        let variance = variance.clone();
        Some(Part::Effects { count, variance })
    };
    match (shape, &building.piece.reader, lengthscales.as_slice()) {
        (_, Reader::Inputs(columns), [lengthscale]) if columns.len() == 1 => {
            let settings = [variance.clone(), lengthscale.clone()];
            Some(Part::Process(Box::new(Matern::of(*shape)?), settings))
        }
        (Shape::Constant, Reader::Common, _) => effects(1),
        (Shape::Linear, Reader::Covariates(list) | Reader::Inputs(list), _) => effects(list.len()),
        (Shape::Same, Reader::At(index @ Index::Groups { .. }), _) => effects(index.nodes()),
        _ => None,
    }
}

fn distinct(mut values: Vec<f64>) -> Vec<f64> {
    values.iter_mut().for_each(|x| *x += 0.0);
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn gaps(times: &[f64]) -> impl Iterator<Item = f64> {
    times.windows(2).map(|pair| pair[1] - pair[0])
}

fn scaled(square: &Square, factor: f64) -> Square {
    square.map(|row| row.map(|x| factor * x))
}

fn inner(a: &Square, b: &Square) -> f64 {
    let rows = a.iter().zip(b);
    rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>())
        .sum()
}

impl Prior for States {
    fn parameters(&self) -> Vec<Parameter> {
        setting::parameters(&self.settings())
    }

    fn structure(&self, theta: &[f64]) -> Result<Structure, Error> {
        self.prior(theta, &self.times, &self.counts(&[]))
    }

    fn gradient(&self, theta: &[f64], _at: &Structure, sensitivity: &Sensitivity) -> Vec<f64> {
        let settings = self.settings();
        let (CovarianceSensitivity::Chain(by), Ok(values)) =
            (&sensitivity.covariance, setting::values(&settings, theta))
        else {
            return vec![f64::NAN; theta.len()];
        };
        let (mut at, mut effect) = (0, 0);
        let mut all = Vec::with_capacity(values.len());
        for (part, count) in self.parts.iter().zip(self.counts(&[])) {
            let variance = values[at];
            at += 1;
            let Part::Process(process, _) = part else {
                all.push(by.others[effect..effect + count].iter().sum::<f64>());
                effect += count;
                continue;
            };
            let lengthscale = values[at];
            at += 1;
            let (mut by_variance, mut by_lengthscale) = (Vec::new(), Vec::new());
            for (gap, own) in gaps(&self.times).zip(&by.steps) {
                let tau = process.rate * gap / lengthscale;
                let step = process.step(tau);
                let slope = process.slope(tau, &step);
                by_variance.push(inner(&own.noise, &step.noise));
                let by_tau = inner(&own.transition, &slope.transition)
                    + variance * inner(&own.noise, &slope.noise);
                by_lengthscale.push(-by_tau * tau / lengthscale);
            }
            let sum = jensen_math::sum::pairwise_sum;
            all.push(sum(&by_variance) + inner(&by.initial, &process.stationary));
            all.push(sum(&by_lengthscale));
        }
        setting::free_only(&settings, &all)
    }
}
