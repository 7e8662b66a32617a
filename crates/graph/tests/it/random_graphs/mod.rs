//! Generates random well-conditioned graphs that may contain every operation.

use jensen_graph::{ElemOp, Graph, MatMul, NodeId, Shape};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The decisions of the generator, which are represented by numbers. Every list of numbers defines a graph.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub dim: usize,
    pub steps: Vec<[u32; 5]>,
}

pub fn recipes(most: usize) -> impl Strategy<Value = Recipe> {
    let steps = prop::collection::vec(any::<[u32; 5]>(), 2..most);
    (1..12_usize, steps).prop_map(|(dim, steps)| Recipe { dim, steps })
}

/// Returns the configuration of a property test that tries the same cases in every run.
pub fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// Returns numbers in [-1, 1).
pub fn noise(len: usize, seed: u64) -> Vec<f64> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..len)
        .map(|_| dice.roll(1 << 20) as f64 / f64::from(1 << 19) - 1.0)
        .collect()
}

/// Functions without third derivatives in the table of operations, and functions whose integrals have none.
const WITHOUT_SECOND_DERIVATIVE: &[ElemOp] = &[
    ElemOp::Trigamma,
    ElemOp::Tetragamma,
    ElemOp::Pentagamma,
    ElemOp::LogGammaPA,
    ElemOp::LogGammaPAA,
    ElemOp::LogGammaQA,
    ElemOp::LogGammaQAA,
    ElemOp::LogIncBetaA,
    ElemOp::LogIncBetaB,
    ElemOp::LogIncBetaAA,
    ElemOp::LogIncBetaAB,
    ElemOp::LogIncBetaBB,
    ElemOp::LogStudentCdfN,
    ElemOp::LogStudentCdfNN,
    ElemOp::VonMisesMean,
    ElemOp::VonMisesVariance,
    ElemOp::LogBesselIV,
    ElemOp::LogBesselIVV,
];

struct Maker {
    graph: Graph,
    pool: Vec<NodeId>,
    dice: Dice,
}

impl Maker {
    fn pick(&mut self) -> NodeId {
        // Recent values are chosen more often, which makes the graphs deep.
        let recent = self.pool.len().min(4);
        let at = if self.dice.roll(2) == 0 {
            self.pool.len() - 1 - self.dice.roll(recent)
        } else {
            self.dice.roll(self.pool.len())
        };
        self.pool[at]
    }

    fn len(&self, x: NodeId) -> usize {
        self.graph.shape(x).len as usize
    }

    /// Returns `len` elements of x, repeated or omitted as necessary.
    fn fit(&mut self, x: NodeId, len: usize) -> NodeId {
        if self.len(x) == len {
            return x;
        }
        let (stride, offset) = (1 + self.dice.roll(3), self.dice.roll(7));
        let from = self.len(x);
        let index: Vec<u32> = (0..len)
            .map(|i| ((i * stride + offset) % from) as u32)
            .collect();
        self.graph.gather(x, &index)
    }

    /// Maps x to within 0.015 of `centre`.
    fn near(&mut self, x: NodeId, centre: f64) -> NodeId {
        let bounded = self.graph.elem(ElemOp::Tanh, &[x]);
        let small = self.graph.scale(0.015, bounded);
        let centre = self.graph.constant(centre);
        self.graph.add(centre, small)
    }

    fn squashed(&mut self, x: NodeId) -> NodeId {
        self.graph.elem(ElemOp::Tanh, &[x])
    }

    fn elementwise(&mut self) -> NodeId {
        let op = ElemOp::ALL[self.dice.roll(ElemOp::ALL.len())];
        let points = op.test_points();
        if points.is_empty() || WITHOUT_SECOND_DERIVATIVE.contains(&op) {
            return self.log_sum_exp();
        }
        let point = points[self.dice.roll(points.len())].clone();
        let mut len = 1;
        let args: Vec<NodeId> = point
            .iter()
            .map(|&centre| {
                let mut x = self.pick();
                if self.len(x) != 1 {
                    if len == 1 {
                        len = self.len(x);
                    }
                    x = self.fit(x, len);
                }
                if self.dice.roll(6) == 0 {
                    self.graph.constant(centre)
                } else {
                    self.near(x, centre)
                }
            })
            .collect();
        self.graph.elem(op, &args)
    }

    fn log_sum_exp(&mut self) -> NodeId {
        let x = self.pick();
        let x = self.squashed(x);
        let g = &mut self.graph;
        let max = g.max(x);
        let shift = g.elem(ElemOp::Pivot, &[max]);
        let shifted = g.sub(x, shift);
        let exp = g.exp(shifted);
        let sum = g.sum(exp);
        let log = g.log(sum);
        g.add(shift, log)
    }

    fn scatter(&mut self) -> NodeId {
        let len = 1 + self.dice.roll(9);
        let count = 1 + self.dice.roll(10);
        let parts: Vec<NodeId> = (0..count)
            .map(|_| {
                let x = self.pick();
                if self.dice.roll(4) == 0 {
                    return self.fit(x, len);
                }
                let index: Vec<u32> = (0..self.len(x))
                    .map(|_| self.dice.roll(len) as u32)
                    .collect();
                self.graph.scatter_add(x, &index, len)
            })
            .collect();
        // This is a sum of scatters. The gradients of gathers are scatters with many sources.
        let sum = self.graph.add_all(&parts);
        self.squashed(sum)
    }

    fn matmul(&mut self) -> NodeId {
        let extent = |dice: &mut Dice| match dice.roll(8) {
            0 => 9 + dice.roll(6),
            _ => 1 + dice.roll(4),
        };
        let (m, k, n) = (
            extent(&mut self.dice),
            extent(&mut self.dice),
            extent(&mut self.dice),
        );
        let dims = MatMul {
            m: m as u32,
            k: k as u32,
            n: n as u32,
            left_transposed: self.dice.roll(2) == 0,
            right_transposed: self.dice.roll(2) == 0,
        };
        let mut factor = |len: usize| {
            if self.dice.roll(3) == 0 {
                self.graph.vector(&noise(len, len as u64))
            } else {
                let x = self.pick();
                let x = self.fit(x, len);
                self.squashed(x)
            }
        };
        let (left, right) = (factor(m * k), factor(k * n));
        self.graph.matmul(left, right, dims)
    }

    fn factorisation(&mut self) -> NodeId {
        let n = 1 + self.dice.roll(4);
        let x = self.pick();
        let x = self.fit(x, n * n);
        let x = self.squashed(x);
        let dims = MatMul {
            m: n as u32,
            k: n as u32,
            n: n as u32,
            left_transposed: false,
            right_transposed: true,
        };
        let ridge: Vec<f64> = (0..n * n)
            .map(|at| {
                if at / n == at % n {
                    1.0 + n as f64
                } else {
                    0.0
                }
            })
            .collect();
        let ridge = self.graph.vector(&ridge);
        let square = self.graph.matmul(x, x, dims);
        let spd = self.graph.add(square, ridge);
        let general = self.graph.add(x, ridge);
        let cols = 1 + self.dice.roll(2);
        let b = self.pick();
        let b = self.fit(b, n * cols);
        let b = self.squashed(b);
        let transposed = self.dice.roll(2) == 0;
        match self.dice.roll(5) {
            0 => self.graph.cholesky(spd, n),
            3 => self.graph.determinant(general, n),
            1 => {
                let l = self.graph.cholesky(spd, n);
                self.graph.tri_solve(l, b, n, cols, transposed)
            }
            2 => self.graph.solve(general, b, n, cols, transposed),
            _ => self.graph.log_abs_det(general, n),
        }
    }

    /// Returns a sum of unrolled scalar copies of one expression, which is the pattern that re-rolling detects.
    fn unrolled(&mut self) -> NodeId {
        let (x, y) = (self.pick(), self.pick());
        let copies = 3 + self.dice.roll(24);
        self.graph.set_site(1 + self.dice.roll(3) as u32);
        let terms: Vec<NodeId> = (0..copies)
            .map(|i| {
                let (a, b) = (self.dice.roll(self.len(x)), self.dice.roll(self.len(y)));
                let g = &mut self.graph;
                let (a, b) = (g.element(x, a), g.element(y, b));
                let c = g.constant(0.1 + 0.05 * i as f64);
                let scaled = g.mul(c, a);
                let difference = g.sub(scaled, b);
                g.elem(ElemOp::Tanh, &[difference])
            })
            .collect();
        self.graph.set_site(0);
        if self.dice.roll(3) == 0 {
            return self.graph.concat(&terms);
        }
        let sum = self.graph.add_all(&terms);
        self.graph.scale(0.2, sum)
    }

    fn step(&mut self, kind: u32) -> NodeId {
        match kind % 16 {
            0..=4 => self.elementwise(),
            5 => {
                let (x, len) = (self.pick(), 1 + self.dice.roll(12));
                let index: Vec<u32> = (0..len)
                    .map(|_| self.dice.roll(self.len(x)) as u32)
                    .collect();
                self.graph.gather(x, &index)
            }
            6 | 7 => self.scatter(),
            8 => {
                let parts: Vec<NodeId> = (0..2 + self.dice.roll(3)).map(|_| self.pick()).collect();
                self.graph.concat(&parts)
            }
            9 => {
                let x = self.elementwise();
                let sum = self.graph.sum(x);
                self.squashed(sum)
            }
            10 => {
                let x = self.pick();
                if self.dice.roll(2) == 0 {
                    self.graph.max(x)
                } else {
                    self.graph.cumsum(x)
                }
            }
            11 => self.matmul(),
            12 => self.factorisation(),
            13 => {
                let x = self.pick();
                let x = self.fit(x, 1);
                let len = 2 + self.dice.roll(8);
                self.graph.broadcast(x, Shape::fixed(len))
            }
            14 => {
                let (x, y, z) = (self.pick(), self.pick(), self.pick());
                let len = self.len(x).max(self.len(y));
                let (x, y) = (self.fit(x, len), self.fit(y, len));
                let z = if self.len(z) == 1 {
                    z
                } else {
                    self.fit(z, len)
                };
                let c = self.graph.elem(ElemOp::Lt, &[x, y]);
                self.graph.select(c, x, z)
            }
            _ => self.unrolled(),
        }
    }

    fn finish(mut self) -> Graph {
        let last = self.pool.len().saturating_sub(5);
        let picked = self.pool.split_off(last);
        let terms: Vec<NodeId> = picked
            .into_iter()
            .map(|x| {
                let x = self.squashed(x);
                let weights = self.graph.vector(&noise(self.len(x), 7));
                let product = self.graph.mul(weights, x);
                let square = self.graph.square(product);
                let sum = self.graph.add(product, square);
                self.graph.sum(sum)
            })
            .collect();
        let mut target = self.graph.add_all(&terms);
        if self.graph.shape(target) != Shape::SCALAR {
            target = self.graph.sum(target);
        }
        self.graph.set_outputs(vec![target]);
        self.graph
    }
}

/// Builds the graph of a recipe, with one input z and one scalar output.
pub fn build(recipe: &Recipe) -> Graph {
    let mut graph = Graph::new();
    let z = graph.input(recipe.dim);
    let first = graph.element(z, 0);
    let table = graph.vector(&noise(5, 3));
    let mut maker = Maker {
        graph,
        pool: vec![table, first, z],
        dice: Dice(1),
    };
    for [kind, seed @ ..] in &recipe.steps {
        maker.dice = Dice(seed.iter().fold(u64::from(*kind), |mix, &s| {
            (mix << 13) ^ (mix >> 51) ^ u64::from(s)
        }));
        maker.dice.roll(2);
        let node = maker.step(*kind);
        maker.pool.push(node);
    }
    let graph = maker.finish();
    jensen_graph::verify::verify(&graph).expect("well formed");
    graph
}
