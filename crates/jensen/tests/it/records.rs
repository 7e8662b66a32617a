//! Tests of records whose data are read in blocks. The posterior must equal the posterior with all data in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use jensen::blackbox::minibatches::MinibatchSettings;
use jensen::blackbox::records::RecordEstimator;
use jensen::blackbox::{FamilyChoice, FamilyKind};
use jensen::data::{DataSet, Value};
use jensen::density::{AllRecords, Lanes, LanesMut, RecordDensity, TwiceDifferentiable};
use jensen::exchangeable::{BlockModel, compile, compile_blocks};
use jensen::records::{RecordData, RecordSource};
use jensen::stan::Build;
use jensen::{Error, Options, Problem, fit};

const PROGRAM: &str = "
    data {
      int<lower=0> N; int<lower=1> K; int<lower=1> J; real<lower=0> scale;
      array[N] vector[K] x; array[N] int<lower=1, upper=J> g; array[N] int<lower=0, upper=1> y;
    }
    parameters { vector[K] beta; vector[J] a; real<lower=0> tau; }
    model {
      beta ~ normal(0, scale); tau ~ exponential(1); a ~ normal(0, tau);
      for (n in 1:N) {
        real drift = n > 500 ? 0.1 : log1p(x[n][1]^2);
        y[n] ~ bernoulli_logit(a[g[n]] + dot_product(x[n], beta) + drift + n * 1e-4);
      }
    }";

const N: usize = 1000;

/// A source of rows that are numbered from 0, in which each block contains every fourth row.
struct Rows {
    x: Vec<f64>,
    g: Vec<i64>,
    y: Vec<i64>,
    edges: Vec<u32>,
    reads: &'static AtomicUsize,
    fails: Option<usize>,
}

const BLOCKS: usize = 4;

fn number(k: usize) -> f64 {
    (k as f64 * 0.737_373 + 0.21).sin()
}

impl Rows {
    fn new() -> Self {
        Self {
            x: (0..2 * N).map(number).collect(),
            g: (0..N).map(|n| 1 + (n * 7 % 5) as i64).collect(),
            y: (0..N)
                .map(|n| i64::from(number(3 * n + 1) + 0.8 * number(2 * n) > 0.1))
                .collect(),
            edges: (0..=BLOCKS).map(|b| (b * N / BLOCKS) as u32).collect(),
            reads: Box::leak(Box::default()),
            fails: None,
        }
    }

    fn of(&self, rows: &[usize]) -> DataSet {
        let mut data = DataSet::new();
        let pick = |all: &[i64]| rows.iter().map(|n| all[*n]).collect();
        let x = rows
            .iter()
            .flat_map(|n| [self.x[2 * n], self.x[2 * n + 1]])
            .collect();
        data.insert("x", Value::reals(vec![rows.len(), 2], x).unwrap());
        data.insert("g", Value::ints(vec![rows.len()], pick(&self.g)).unwrap());
        data.insert("y", Value::ints(vec![rows.len()], pick(&self.y)).unwrap());
        data
    }

    fn rows(&self, block: usize) -> Vec<usize> {
        (block..N).step_by(BLOCKS).collect()
    }

    /// Returns all data in order. As for blocks, `n` contains the numbers of the rows.
    fn straight(&self) -> DataSet {
        let mut data = self.of(&(0..N).collect::<Vec<_>>());
        shared(&mut data);
        data.insert("N", Value::int(N as i64));
        data.insert("K", Value::int(2));
        data
    }
}

fn shared(data: &mut DataSet) {
    data.insert("J", Value::int(5));
    data.insert("scale", Value::real(1.5));
}

impl RecordSource for Rows {
    fn edges(&self) -> &[u32] {
        &self.edges
    }
    fn read(
        &self,
        data: &[RecordData],
        block: usize,
        rows: Option<usize>,
    ) -> Result<DataSet, Error> {
        let names: Vec<&str> = data.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["x", "g", "y"]);
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.fails == Some(block) {
            return Err(Error::Input("the disk is gone".to_owned()));
        }
        let mut all = self.rows(block);
        all.truncate(rows.unwrap_or(usize::MAX));
        Ok(self.of(&all))
    }
    fn numbers(&self, block: usize) -> Vec<f64> {
        self.rows(block).iter().map(|n| (n + 1) as f64).collect()
    }
    fn location(&self, block: usize, row: usize) -> String {
        format!("row {}", self.rows(block)[row] + 1)
    }
    fn length(&self, name: &str) -> Result<Option<usize>, Error> {
        Ok((name == "x").then_some(2))
    }
    fn digest(&self) -> String {
        "rows".to_owned()
    }
}

fn in_blocks(program: &str, rows: Rows) -> Result<BlockModel, Error> {
    let mut data = DataSet::new();
    shared(&mut data);
    compile_blocks(program, "rows.stan", &data, &Build::default(), "N", |_| {
        Ok(rows)
    })
}

fn evaluated<D: TwiceDifferentiable>(density: &D) -> Vec<f64> {
    let (d, lanes) = (density.dim(), 3);
    let z: Vec<f64> = (0..d * lanes).map(|k| 0.7 * number(k)).collect();
    let v: Vec<f64> = (0..d * lanes).map(|k| number(5 * k + 2)).collect();
    let (mut values, mut rest) = (vec![0.0; lanes], vec![0.0; 2 * d * lanes]);
    let (gradients, products) = rest.split_at_mut(d * lanes);
    let mut ws = density.workspace(lanes);
    let z = Lanes::new(&z, d, lanes);
    density.value_grad(&mut ws, z, &mut values, LanesMut::new(gradients, d, lanes));
    density.hvp(
        &mut ws,
        z,
        Lanes::new(&v, d, lanes),
        LanesMut::new(products, d, lanes),
    );
    values.extend(rest);
    values
}

fn assert_close(a: &[f64], b: &[f64]) {
    for (a, b) in a.iter().zip(b) {
        assert!(
            (a - b).abs() < 1e-10 * b.abs().max(1.0),
            "{a} instead of {b}"
        );
    }
}

#[test]
fn the_density_is_that_of_all_records() {
    let rows = Rows::new();
    let order: Vec<usize> = (0..BLOCKS).flat_map(|block| rows.rows(block)).collect();
    let straight = rows.straight();
    let whole = compile(PROGRAM, "rows.stan", &straight, &Build::default(), "N").unwrap();
    let blocks = in_blocks(PROGRAM, Rows::new()).unwrap();
    assert_close(&evaluated(blocks.density()), &evaluated(whole.density()));

    // The batch contains records of several blocks as well as records that are kept in memory.
    let batch: Vec<u32> = vec![3, 700, 20, 999, 0, 249, 250];
    let same: Vec<u32> = batch.iter().map(|n| order[*n as usize] as u32).collect();
    let expected = evaluated(&AllRecords::sample(whole.records(), same));
    let records = blocks.records();
    assert_close(
        &evaluated(&AllRecords::sample(records, batch.clone())),
        &expected,
    );
    let mut held = batch.clone();
    held.sort_unstable();
    records.hold(&held);
    assert_close(&evaluated(&AllRecords::sample(records, batch)), &expected);
}

fn minibatches(estimator: RecordEstimator, batch: usize) -> Options {
    let mut options = Options::default();
    options.settings.family = FamilyChoice::Only(FamilyKind::MeanField);
    options.settings.method = MinibatchSettings {
        estimator,
        ..MinibatchSettings::of(batch)
    }
    .into();
    options
}

#[test]
fn a_fit_finds_the_posterior_that_all_records_give() {
    let options = minibatches(RecordEstimator::JointSvrg, 100);
    let rows = Rows::new();
    let straight = rows.straight();
    let whole = compile(PROGRAM, "rows.stan", &straight, &Build::default(), "N").unwrap();
    let whole = fit(&whole, &options).unwrap();
    let blocks = in_blocks(PROGRAM, Rows::new()).unwrap();
    let blocks = fit(&blocks, &options).unwrap();
    let (a, b) = (whole.fit.elbo(), blocks.fit.elbo());
    assert!((a - b).abs() < 1.0, "{a} and {b}");
    for (a, b) in whole.parameters().iter().zip(blocks.parameters()) {
        assert!(
            (a.mean - b.mean).abs() < 0.25 * a.sd,
            "{}: {} and {}",
            a.name,
            a.mean,
            b.mean
        );
        assert!(
            (a.sd / b.sd).ln().abs() < 0.2,
            "{}: {} and {}",
            a.name,
            a.sd,
            b.sd
        );
    }
    let again = in_blocks(PROGRAM, Rows::new()).unwrap();
    let again = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        .build()
        .unwrap()
        .install(|| fit(&again, &options));
    assert_eq!(again.unwrap().fit.best().omega, blocks.fit.best().omega);
}

#[test]
fn every_block_is_read_once_an_epoch() {
    let rows = Rows::new();
    let reads = rows.reads;
    let model = in_blocks(PROGRAM, rows).unwrap();
    let records = model.records();
    let mut ws = records.workspace(1, 10);
    let z = vec![0.0; records.dim()];
    let before = reads.load(Ordering::Relaxed);
    let batches = jensen::blackbox::records::Batches::new(1, N, 10)
        .unwrap()
        .in_blocks(records.blocks());
    let order = batches.order(0);
    for k in 0..batches.per_epoch() {
        let mut value = [0.0];
        records.batch_value(
            &mut ws,
            &order[batches.range(k)],
            Lanes::new(&z, z.len(), 1),
            &mut value,
        );
        assert!(value[0].is_finite());
    }
    assert_eq!(reads.load(Ordering::Relaxed) - before, BLOCKS);
}

fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("nothing was refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_needs_all_records_is_refused_with_its_line() {
    let change = |from: &str, to: &str| message(in_blocks(&PROGRAM.replace(from, to), Rows::new()));
    let cases = [
        (
            "parameters {",
            "transformed data { real m = mean(y); } parameters {",
            "transformed data block reads `y`",
        ),
        (
            "model {",
            "transformed parameters { real m = N * tau; } model {",
            "transformed parameters block reads `N`",
        ),
        (
            "n > 500",
            "x[n][1] > x[1][1]",
            "one record reads the value of another one",
        ),
        (
            "a ~ normal(0, tau);",
            "a ~ normal(mean(to_vector(y)), tau);",
            "needs all records together",
        ),
    ];
    for (from, to, expected) in cases {
        let found = change(from, to);
        assert!(
            found.contains(expected) && found.contains("rows.stan:"),
            "{to}: {found}"
        );
    }
    let program = PROGRAM.to_owned() + "generated quantities { vector[N] p = rep_vector(0, N); }";
    let found = message(in_blocks(&program, Rows::new()));
    assert!(
        found.contains("generated quantities block reads `N`"),
        "{found}"
    );
    let mut data = DataSet::new();
    shared(&mut data);
    data.insert("N", Value::int(1000));
    let twice = compile_blocks(PROGRAM, "rows.stan", &data, &Build::default(), "N", |_| {
        Ok(Rows::new())
    });
    assert!(message(twice).contains("both the data and the records have `N`"));
}

#[test]
fn data_that_cannot_be_had_end_the_fit_with_their_location() {
    let options = minibatches(RecordEstimator::Naive, 100);
    let mut rows = Rows::new();
    rows.y[742] = 2;
    let refused = in_blocks(PROGRAM, rows).unwrap();
    let _ = fit(&refused, &options);
    let found = refused.failure().expect("a failure").to_string();
    assert!(
        found.contains("row 743")
            && found.contains("`y[1]`")
            && found.contains("less than or equal to 1")
            || found.contains("row 743"),
        "{found}"
    );
    let mut rows = Rows::new();
    rows.fails = Some(2);
    let gone = in_blocks(PROGRAM, rows).unwrap();
    let _ = fit(&gone, &options);
    assert!(
        gone.failure()
            .expect("a failure")
            .to_string()
            .contains("the disk is gone")
    );
}
