//! The weights during training. They are point estimates, or each weight has a normal posterior (appendix F).

use jensen_graph::{SingleProgram, SingleWorkspace};
use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::{F32x16, LANES32, Simd};
use jensen_math::vmath::single as vmath;
use jensen_run::{Archive, ArchiveError};
use rayon::prelude::*;

use crate::layers::TensorSpec;
use crate::model::Tensor;
use crate::optimise::{Moving, Optimiser, ascend};

#[derive(Clone, Debug, PartialEq)]
struct Learned {
    values: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Learned {
    fn new(values: Vec<f32>, optimiser: Optimiser) -> Self {
        let slot = |which| {
            vec![
                optimiser.start();
                if optimiser.slots() > which {
                    values.len()
                } else {
                    0
                }
            ]
        };
        Self {
            first: slot(0),
            second: slot(1),
            values,
        }
    }

    fn save(&self, archive: &mut Archive, name: &str) {
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        archive.put(&format!("{name}.values"), &wide(&self.values));
        archive.put(&format!("{name}.first"), &wide(&self.first));
        archive.put(&format!("{name}.second"), &wide(&self.second));
    }

    fn restore(archive: &Archive, name: &str) -> Result<Self, ArchiveError> {
        let narrow = |part: &str| -> Result<Vec<f32>, ArchiveError> {
            let values = archive.vec(&format!("{name}.{part}"))?;
            Ok(values.into_iter().map(|x| x as f32).collect())
        };
        Ok(Self {
            values: narrow("values")?,
            first: narrow("first")?,
            second: narrow("second")?,
        })
    }
}

/// A tensor during training. If the tensor has a posterior, `mean` is the posterior mean, and the graph receives a draw
/// from the posterior.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub spec: TensorSpec,
    mean: Learned,
    log_sd: Option<Learned>,
    noise: Vec<f32>,
    drawn: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameters {
    pub list: Vec<Parameter>,
    pub updates: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct UpdateRule {
    pub optimiser: Optimiser,
    /// The factor 1 / lanes. Gradients that are summed over lanes are multiplied by it.
    pub scale: f32,
    /// The weight of `log N(w; 0, I)`. It is 1 / records, or 0 without a prior.
    pub prior: f32,
}

struct Tile<'a> {
    mean: Moving<'a>,
    log_sd: Option<Moving<'a>>,
    noise: &'a [f32],
    prior: f32,
}

const CHUNK: usize = 2048;

/// The purpose of the random numbers that draw weights during training. Every minibatch has one draw.
pub(crate) const WEIGHTS: Purpose = Purpose::new("neural posterior weights");

impl Parameter {
    fn is_bayesian(&self) -> bool {
        self.log_sd.is_some()
    }

    fn current(&self) -> &[f32] {
        if self.is_bayesian() {
            &self.drawn
        } else {
            &self.mean.values
        }
    }
}

impl Parameters {
    /// Creates the parameters. Tensors with an index of at least `bayesian.0` have a posterior, whose log standard
    /// deviations start at `bayesian.1`.
    pub(crate) fn new(
        tensors: Vec<Tensor>,
        optimiser: Optimiser,
        bayesian: Option<(usize, f32)>,
    ) -> Self {
        let list = tensors
            .into_iter()
            .enumerate()
            .map(|(which, tensor)| {
                let log_sd = bayesian
                    .filter(|&(first, _)| which >= first)
                    .map(|(_, start)| Learned::new(vec![start; tensor.data.len()], optimiser));
                Parameter {
                    drawn: if log_sd.is_some() {
                        tensor.data.clone()
                    } else {
                        Vec::new()
                    },
                    noise: vec![
                        0.0;
                        if log_sd.is_some() {
                            tensor.data.len()
                        } else {
                            0
                        }
                    ],
                    mean: Learned::new(tensor.data, optimiser),
                    log_sd,
                    spec: tensor.spec,
                }
            })
            .collect();
        Self { list, updates: 0 }
    }

    pub(crate) fn draw(&mut self, simd: Simd, seed: u64, purpose: Purpose, iteration: u64) {
        for (which, parameter) in self.list.iter_mut().enumerate() {
            let Some(log_sd) = &parameter.log_sd else {
                continue;
            };
            let moment = DrawKey {
                seed,
                purpose: purpose.fold(&parameter.spec.name),
                iteration,
                first: which as u64,
            };
            let moments = (&parameter.mean.values[..], &log_sd.values[..]);
            draw_weights(
                simd,
                moment,
                moments,
                &mut parameter.noise,
                &mut parameter.drawn,
            );
        }
    }

    pub(crate) fn current(&self) -> impl Iterator<Item = &[f32]> {
        self.list.iter().map(Parameter::current)
    }

    pub(crate) fn weights(&self) -> Weights {
        Weights {
            tensors: self.tensors(),
            log_sds: self.log_sds(),
        }
    }

    fn tensors(&self) -> Vec<Tensor> {
        let tensor = |parameter: &Parameter| Tensor {
            spec: parameter.spec.clone(),
            data: parameter.mean.values.clone(),
        };
        self.list.iter().map(tensor).collect()
    }

    fn log_sds(&self) -> Vec<Tensor> {
        let tensor = |parameter: &Parameter| {
            parameter.log_sd.as_ref().map(|log_sd| Tensor {
                spec: parameter.spec.clone(),
                data: log_sd.values.clone(),
            })
        };
        self.list.iter().filter_map(tensor).collect()
    }

    /// Computes `KL(q(θ) ‖ N(0, I))` for the tensors that have a posterior, in nats.
    pub(crate) fn divergence(&self) -> f64 {
        let mut total = 0.0;
        for parameter in &self.list {
            if let Some(log_sd) = &parameter.log_sd {
                total += divergence(&parameter.mean.values, &log_sd.values);
            }
        }
        total
    }

    /// Computes the gradients and moves the parameters. The caller must have called `program.run_lanes`. The program
    /// streams its outputs `outputs[k] = (output, parameter)` in this order. Parameters from index `prior_from` onwards
    /// have a prior. The caller increments the count of updates after all parameters have moved.
    pub(crate) fn update(
        &mut self,
        program: &SingleProgram,
        workspace: &SingleWorkspace,
        inputs: &[&[f32]],
        lanes: usize,
        (outputs, prior_from): (&[(usize, usize)], usize),
        rule: UpdateRule,
    ) {
        let count = self.updates + 1;
        let simd = program.simd();
        let mut parts: Vec<Tile<'_>> = Vec::with_capacity(program.tiles().len());
        let mut tiles = program.tiles().iter().peekable();
        let mut wanted = outputs.iter();
        for (which, parameter) in self.list.iter_mut().enumerate() {
            let Some(&(output, _)) = wanted.as_slice().first().filter(|pair| pair.1 == which)
            else {
                continue;
            };
            wanted.next();
            let mut mean = Rest::new(&mut parameter.mean);
            let mut log_sd = parameter.log_sd.as_mut().map(Rest::new);
            let mut noise: &[f32] = &parameter.noise;
            while let Some(tile) = tiles.next_if(|tile| tile.output == output) {
                let (head, tail) = noise.split_at(tile.len.min(noise.len()));
                noise = tail;
                parts.push(Tile {
                    mean: mean.take(tile.len),
                    log_sd: log_sd.as_mut().map(|rest| rest.take(tile.len)),
                    noise: head,
                    prior: if which >= prior_from { rule.prior } else { 0.0 },
                });
            }
        }
        program.consume_sums(workspace, inputs, lanes, &mut parts, |part, _, gradient| {
            let Tile {
                mean,
                log_sd,
                noise,
                prior,
            } = part;
            if let Some(log_sd) = log_sd {
                bayesian_step(simd, rule, count, mean, log_sd, noise, gradient);
            } else {
                ascend(
                    simd,
                    rule.optimiser,
                    mean,
                    gradient,
                    rule.scale,
                    *prior,
                    count,
                );
            }
        });
    }

    pub(crate) fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.set("updates", self.updates);
        for parameter in &self.list {
            parameter.mean.save(&mut archive, &parameter.spec.name);
            if let Some(log_sd) = &parameter.log_sd {
                log_sd.save(&mut archive, &format!("{}.log_sd", parameter.spec.name));
            }
        }
        let specs: Vec<&TensorSpec> = self.list.iter().map(|p| &p.spec).collect();
        archive.set("specs", specs);
        let bayesian: Vec<bool> = self.list.iter().map(Parameter::is_bayesian).collect();
        archive.set("bayesian", bayesian);
        archive
    }

    pub(crate) fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let specs: Vec<TensorSpec> = archive.get("specs")?;
        let bayesian: Vec<bool> = archive.get("bayesian")?;
        let mut list = Vec::with_capacity(specs.len());
        for (spec, bayesian) in specs.into_iter().zip(bayesian) {
            let mean = Learned::restore(archive, &spec.name)?;
            if mean.values.len() != spec.len() {
                let name = &spec.name;
                return Err(ArchiveError(format!(
                    "the tensor `{name}` has another length"
                )));
            }
            let log_sd = if bayesian {
                Some(Learned::restore(archive, &format!("{}.log_sd", spec.name))?)
            } else {
                None
            };
            let extra = if bayesian { spec.len() } else { 0 };
            list.push(Parameter {
                spec,
                mean,
                log_sd,
                noise: vec![0.0; extra],
                drawn: vec![0.0; extra],
            });
        }
        Ok(Self {
            list,
            updates: archive.get("updates")?,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    pub tensors: Vec<Tensor>,
    pub log_sds: Vec<Tensor>,
}

impl Weights {
    pub(crate) fn save(&self) -> Archive {
        let mut archive = Archive::new();
        let wide = |tensor: &Tensor| {
            tensor
                .data
                .iter()
                .map(|&x| f64::from(x))
                .collect::<Vec<f64>>()
        };
        for tensor in &self.tensors {
            archive.put(&tensor.spec.name, &wide(tensor));
        }
        for tensor in &self.log_sds {
            archive.put(&format!("{}.log_sd", tensor.spec.name), &wide(tensor));
        }
        archive
    }

    pub(crate) fn restored(mut self, archive: &Archive) -> Result<Self, ArchiveError> {
        let read = |tensor: &mut Tensor, end: &str| -> Result<(), ArchiveError> {
            let name = format!("{}{end}", tensor.spec.name);
            let wide = archive.vec_of(&name, tensor.data.len())?;
            tensor.data = wide.into_iter().map(|x| x as f32).collect();
            Ok(())
        };
        for tensor in &mut self.tensors {
            read(tensor, "")?;
        }
        for tensor in &mut self.log_sds {
            read(tensor, ".log_sd")?;
        }
        Ok(self)
    }

    pub(crate) fn are_finite(&self) -> bool {
        let mut all = self.tensors.iter().chain(&self.log_sds);
        all.all(|tensor| tensor.data.iter().all(|x| x.is_finite()))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct DrawKey {
    pub seed: u64,
    pub purpose: Purpose,
    pub iteration: u64,
    /// The random-number lane of the first weight.
    pub first: u64,
}

pub(crate) fn draw_weights(
    simd: Simd,
    key: DrawKey,
    (mean, log_sd): (&[f32], &[f32]),
    noise: &mut [f32],
    drawn: &mut [f32],
) {
    let outputs = drawn.par_chunks_mut(CHUNK);
    let outputs = outputs.zip(noise.par_chunks_mut(CHUNK));
    let moments = mean.par_chunks(CHUNK).zip(log_sd.par_chunks(CHUNK));
    outputs
        .zip(moments)
        .enumerate()
        .for_each(|(chunk, ((drawn, noise), (mean, log_sd)))| {
            let mut normals = [0.0_f64; CHUNK];
            let n = drawn.len();
            let first = key.first + (chunk * CHUNK) as u64;
            let normals = &mut normals[..n];
            let (seed, purpose) = (key.seed, key.purpose);
            fill_normals(simd, seed, purpose, key.iteration, first, 1, n, normals);
            for (noise, &z) in noise.iter_mut().zip(normals.iter()) {
                *noise = z as f32;
            }
            scatter(simd, drawn, mean, log_sd, noise);
        });
}

/// Computes `KL(q ‖ N(0, I))` for normal weights, in nats. It is the negative of the last sum in Eq. 24.
pub(crate) fn divergence(mean: &[f32], log_sd: &[f32]) -> f64 {
    let terms = mean.iter().zip(log_sd).map(|(&m, &s)| {
        let (m, s) = (f64::from(m), f64::from(s));
        0.5 * (m * m + (2.0 * s).exp() - 1.0) - s
    });
    terms.sum()
}

jensen_math::simd_fn! {
    fn scatter, scatter_fn = <V>(out: &mut [f32], mean: &[f32], log_sd: &[f32], noise: &[f32]) {
        let n = out.len().min(mean.len()).min(log_sd.len()).min(noise.len());
        let mut i = 0;
        while i < n {
            let part = (n - i).min(LANES32);
            // SAFETY: the slices have that many elements.
            unsafe {
                let sd = vmath::exp(V::Single::load_part(log_sd.as_ptr().add(i), part));
                let z = V::Single::load_part(noise.as_ptr().add(i), part);
                let mean = V::Single::load_part(mean.as_ptr().add(i), part);
                sd.fma(z, mean).store_part(out.as_mut_ptr().add(i), part);
            }
            i += part;
        }
    }

    fn slopes, slopes_fn = <V>(
        out: &mut [f32], gradient: &[f32], noise: &[f32], log_sd: &[f32], scale: f32, prior: f32,
    ) {
        let n = out.len().min(gradient.len()).min(log_sd.len()).min(noise.len());
        let (scale, prior) = (V::Single::splat(scale), V::Single::splat(prior));
        let mut i = 0;
        while i < n {
            let part = (n - i).min(LANES32);
            // SAFETY: the slices have that many elements.
            unsafe {
                let sd = vmath::exp(V::Single::load_part(log_sd.as_ptr().add(i), part));
                let z = V::Single::load_part(noise.as_ptr().add(i), part);
                let g = V::Single::load_part(gradient.as_ptr().add(i), part);
                let pull = (-prior * sd).fma(sd, prior);
                (scale * g * z).fma(sd, pull).store_part(out.as_mut_ptr().add(i), part);
            }
            i += part;
        }
    }
}

/// Updates one tile by Eq. 24, with the exact gradient of the divergence of q(θ) from N(0, I).
fn bayesian_step(
    simd: Simd,
    rule: UpdateRule,
    count: u64,
    mean: &mut Moving<'_>,
    log_sd: &mut Moving<'_>,
    noise: &[f32],
    gradient: &[f32],
) {
    let mut slope = [0.0_f32; CHUNK];
    for start in (0..gradient.len()).step_by(CHUNK) {
        let n = CHUNK.min(gradient.len() - start);
        let range = start..start + n;
        let slope = &mut slope[..n];
        let log_sds = &log_sd.weights[range.clone()];
        let (gradients, noise) = (&gradient[range.clone()], &noise[range.clone()]);
        slopes(
            simd, slope, gradients, noise, log_sds, rule.scale, rule.prior,
        );
        let mut part = log_sd.part(range.clone());
        ascend(simd, rule.optimiser, &mut part, slope, 1.0, 0.0, count);
        let mut part = mean.part(range.clone());
        let gradient = &gradient[range];
        ascend(
            simd,
            rule.optimiser,
            &mut part,
            gradient,
            rule.scale,
            rule.prior,
            count,
        );
    }
}

impl Moving<'_> {
    fn part(&mut self, range: std::ops::Range<usize>) -> Moving<'_> {
        let cut = |x: &'_ mut [f32]| -> std::ops::Range<usize> {
            if x.is_empty() { 0..0 } else { range.clone() }
        };
        let (first, second) = (cut(self.first), cut(self.second));
        Moving {
            weights: &mut self.weights[range],
            first: &mut self.first[first],
            second: &mut self.second[second],
        }
    }
}

struct Rest<'a>(Moving<'a>);

impl<'a> Rest<'a> {
    fn new(learned: &'a mut Learned) -> Self {
        Self(Moving {
            weights: &mut learned.values,
            first: &mut learned.first,
            second: &mut learned.second,
        })
    }

    fn take(&mut self, n: usize) -> Moving<'a> {
        let cut = |slice: &mut &'a mut [f32]| {
            let whole = std::mem::take(slice);
            let (head, tail) = whole.split_at_mut(n.min(whole.len()));
            *slice = tail;
            head
        };
        Moving {
            weights: cut(&mut self.0.weights),
            first: cut(&mut self.0.first),
            second: cut(&mut self.0.second),
        }
    }
}
