//! A user-defined model in a single file: a mixture over the answers to multiple-choice questions.

use jensen_conjugate::driver::{DriverSettings, Mode};
use jensen_conjugate::family::ExponentialFamily;
use jensen_conjugate::fit::fit;
use jensen_conjugate::models::{Components, Mixture};
use jensen_conjugate::temper::Temper;
use jensen_run::{Budget, Control, Silent};

/// Components over answers. The questions may differ in their numbers of choices.
struct Answers {
    choices: Vec<usize>,
    /// The answers of each person, with one choice for every question.
    rows: Vec<Vec<usize>>,
}

impl Answers {
    /// Returns the indices in t (or λ) of the choices that a person made.
    fn chosen(&self, point: usize) -> impl Iterator<Item = usize> + '_ {
        let starts = self.choices.iter().scan(0, |next, n| {
            let start = *next;
            *next += n;
            Some(start)
        });
        starts
            .zip(&self.rows[point])
            .map(|(start, answer)| start + answer)
    }
}

impl Components for Answers {
    fn name(&self) -> &'static str {
        "answers"
    }

    fn points(&self) -> usize {
        self.rows.len()
    }

    /// Returns one Dirichlet block for each question.
    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let block = |&n: &usize| (ExponentialFamily::Dirichlet { n }, vec![0.5; n]);
        self.choices.iter().map(block).collect()
    }

    /// Sums the statistics t of the choices. For a Dirichlet prior, they are log probabilities.
    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        self.chosen(point).map(|i| t[i]).sum()
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        self.chosen(point).for_each(|i| out[i] += weight);
    }

    /// Computes log Π_questions Σ_choices p^s, which temperatures need.
    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        let mut rest = t;
        let mut total = 0.0;
        for &n in &self.choices {
            let (block, after) = rest.split_at(n);
            total += block.iter().map(|x| (s * x).exp()).sum::<f64>().ln();
            rest = after;
        }
        total
    }
}

fn main() {
    let rows = (0..300)
        .map(|i| {
            let kind = i % 2;
            let odd = usize::from(i % 7 == 0);
            vec![(kind + odd) % 2, 2 * kind, (kind + i / 2 % 2) % 3]
        })
        .collect();
    let answers = Answers {
        choices: vec![2, 4, 3],
        rows,
    };
    let model = Mixture::new(answers, 2, 1.0);
    let settings = DriverSettings {
        mode: Mode::Batch {
            tolerance: 1e-8,
            max_iterations: 500,
        },
        temper: Temper::anneal(20.0),
        seed: 1,
        scores_per_pass: 0.0,
    };
    let clock = || 0.0;
    let mut silent = Silent;
    let mut control = Control::new(Budget::iterations(500), &clock, &mut silent);
    let outcome = fit(&model, &settings, "", &mut control).expect("a new run");
    let fitted = outcome.output.expect("a start");
    println!("{}; ELBO {:.2} nats", outcome.status, fitted.elbo);
    println!("weights {:.3?}", model.weights(&fitted.lambda));
}
