//! Tests of the prior and the design that a specification and a table define.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jensen_latent::prior::{Graph, Inputs, Source, Spec, Units, assemble};
use jensen_latent::{Covariance, Dense, Design, PriorDensity, Query, Sparse};

/// A table in memory. It contains numbers and words, and a path of five regions with the name `path`.
#[derive(Default)]
pub struct TestTable {
    numbers: BTreeMap<&'static str, Vec<f64>>,
    words: BTreeMap<&'static str, Vec<&'static str>>,
}

impl TestTable {
    pub fn with(mut self, name: &'static str, values: &[f64]) -> Self {
        self.numbers.insert(name, values.to_vec());
        self
    }

    pub fn with_words(mut self, name: &'static str, values: &[&'static str]) -> Self {
        self.words.insert(name, values.to_vec());
        self
    }
}

impl Source for TestTable {
    fn rows(&self) -> usize {
        let numbers = self.numbers.values().map(Vec::len);
        numbers
            .chain(self.words.values().map(Vec::len))
            .next()
            .unwrap_or(0)
    }

    fn numbers(&self, column: &str) -> Result<Cow<'_, [f64]>, String> {
        let found = self
            .numbers
            .get(column)
            .map(|x| Cow::Borrowed(x.as_slice()));
        found.ok_or_else(|| format!("there is no column `{column}`"))
    }

    fn words(&self, column: &str) -> Result<Vec<Option<String>>, String> {
        match self.words.get(column) {
            Some(words) => Ok(words.iter().map(|w| Some((*w).to_owned())).collect()),
            None => Ok(self
                .numbers(column)?
                .iter()
                .map(|x| Some(x.to_string()))
                .collect()),
        }
    }

    fn holds_words(&self, column: &str) -> Result<bool, String> {
        Ok(self.words.contains_key(column))
    }

    fn inputs(&self) -> Inputs {
        Inputs {
            columns: self.numbers.keys().map(|k| (*k).to_owned()).collect(),
            words: self.words.keys().map(|k| (*k).to_owned()).collect(),
        }
    }

    fn graph(&self, file: &str) -> Result<Graph, String> {
        match file {
            "path" => Ok(Graph::path(5, false)),
            _ => Err(format!("cannot read `{file}`")),
        }
    }

    /// Returns a covariance of three regions: `good`, `bad` with an eigenvalue of −1, or `flat` with rank 1.
    fn matrix(&self, file: &str) -> Result<Dense, String> {
        let off = match file {
            "good" => 0.5,
            "flat" => 1.0,
            "bad" => 2.0,
            _ => return Err(format!("there is no file `{file}`")),
        };
        Ok(Dense::from_fn(3, 3, |i, j| if i == j { 1.0 } else { off }))
    }

    /// Returns a matrix over a path of four nodes: the matrix of the differences of neighbours, the same matrix with an
    /// added diagonal, or an indefinite matrix.
    fn sparse(&self, file: &str) -> Result<Sparse, String> {
        let (more, off) = match file {
            "walk" => (0.0, -1.0),
            "proper" => (0.5, -1.0),
            "indefinite" => (0.0, -1.5),
            _ => return Err(format!("there is no file `{file}`")),
        };
        let mut entries = vec![(0, 0, 1.0 + more), (3, 3, 1.0 + more)];
        entries.extend((1..3).map(|i| (i, i, 2.0 + more)));
        entries.extend((1..4).flat_map(|i| [(i - 1, i, off), (i, i - 1, off)]));
        Sparse::from_triplets(4, 4, &entries).map_err(|e| e.to_string())
    }

    fn mask(&self, _file: &str, rows: usize, columns: usize) -> Result<Vec<bool>, String> {
        Ok((0..rows * columns).map(|i| i != 4).collect())
    }
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-12, "{found:?} {expected:?}");
    }
}

fn rows(n: usize) -> Vec<usize> {
    (0..n).collect()
}

#[test]
fn rows_that_repeat_inputs_share_a_latent_variable() {
    let test_table = TestTable::default()
        .with("a", &[1.0, 2.0, 1.0, 3.0])
        .with("b", &[0.0, 0.0, 0.0, 1.0]);
    let spec = Spec::parse("gp(rbf, variance=2, lengthscale=1)").unwrap();
    let made = assemble(&spec, &test_table, &rows(4), Units::TABLE).unwrap();
    assert_eq!(made.design(), Design::Select(vec![0, 1, 0, 2]));
    assert!(
        made.notes[0].starts_with("1 of 4 rows repeat the inputs"),
        "{:?}",
        made.notes
    );
    let structure = made.prior().structure(&[]).unwrap();
    let Covariance::Dense(sigma) = structure.covariance else {
        panic!("not dense");
    };
    assert!((sigma.get(0, 1) - 2.0 * (-0.5f64).exp()).abs() < 1e-14);
    assert!((sigma.get(0, 2) - 2.0 * (-2.5f64).exp()).abs() < 1e-14);
    // If the rows have independent effects, no two rows share a latent variable.
    let spec = Spec::parse("gp(rbf) + iid()").unwrap();
    let made = assemble(&spec, &test_table, &rows(4), Units::TABLE).unwrap();
    assert_eq!(made.design(), Design::Identity);
    assert_eq!(made.prior().parameters().len(), 3);
    // A new row has an effect of its own, so its variance is larger but its covariances are the same.
    let (query, extra) = made.query(&[2.0, 1.0, 0.5], &test_table, &[0]).unwrap();
    let Query::Cross {
        covariance,
        variance,
        ..
    } = query
    else {
        panic!("no cross-covariance");
    };
    assert_eq!(extra.added(), [0.0]);
    assert!((variance[0] - 2.5).abs() < 1e-14 && (covariance.get(0, 0) - 2.0).abs() < 1e-14);
}

#[test]
fn parts_stand_side_by_side() {
    let test_table = TestTable::default()
        .with("x", &[0.5, 0.0, 2.0])
        .with("region", &[4.0, 2.0, 2.0])
        .with_words("town", &["b", "a", "c"]);
    let spec = Spec::parse(
        "icar(graph=path, on=region) + fixed(x, town) + iid(on=town, variance=3) + intercept()",
    )
    .unwrap();
    let made = assemble(&spec, &test_table, &rows(3), Units::TABLE).unwrap();
    // The latent variables are the effects of five regions, the coefficients of x and of two levels, the effects of
    // three towns, and one level.
    assert_eq!(made.prior().structure(&[2.0]).unwrap().len(), 12);
    let names: Vec<String> = made
        .prior()
        .parameters()
        .into_iter()
        .map(|p| p.name)
        .collect();
    assert_eq!(names, ["icar.precision"]);
    let Design::Sparse(w) = made.design() else {
        panic!("not sparse");
    };
    let mut row = vec![0.0; 12];
    for (j, value) in row.iter_mut().enumerate() {
        let (at, values) = w.col(j);
        *value = at.iter().position(|i| *i == 2).map_or(0.0, |k| values[k]);
    }
    // Regions are numbered from 1 because 0 does not occur, so row 2 is in region 2. The town of this row is the last
    // level.
    assert_eq!(
        row,
        [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    );
    // A new town adds the variance of a town and uses no effect of the fit.
    let new = TestTable::default()
        .with("x", &[1.0])
        .with("region", &[5.0])
        .with_words("town", &["d"]);
    let (_, extra) = made.query(&[2.0], &new, &[0]).unwrap();
    close(&extra.added(), &[3.0]);
    // Rows of the same new town share its effect.
    let new = TestTable::default()
        .with("x", &[1.0; 4])
        .with("region", &[5.0; 4])
        .with_words("town", &["d", "e", "a", "d"]);
    let (_, extra) = made.query(&[2.0], &new, &rows(4)).unwrap();
    let numbers = |row: &Vec<(usize, f64)>| row.iter().map(|(number, _)| *number).collect();
    let numbers: Vec<Vec<usize>> = extra.rows.iter().map(numbers).collect();
    assert_eq!(numbers, [vec![0], vec![1], vec![], vec![0]]);
    close(&extra.added(), &[3.0, 3.0, 0.0, 3.0]);
}

#[test]
fn positions_of_rows() {
    let test_table = TestTable::default()
        .with("t", &[2.0, 2.5, 4.0])
        .with("cell", &[0.0, 3.0, 5.0]);
    let made = |text: &str| {
        let spec = Spec::parse(text).unwrap();
        assemble(&spec, &test_table, &rows(3), Units::TABLE).map_err(|e| e.to_string())
    };
    let design = |text: &str| made(text).unwrap_or_else(|e| panic!("{e}")).design();
    // The nodes of the line are 2, 2.5, …, 4.
    assert_eq!(design("rw1(on=t)"), Design::Select(vec![0, 1, 4]));
    assert_eq!(
        design("ar1(on=t, from=1, to=5)"),
        Design::Select(vec![2, 3, 6])
    );
    // Cell 4 of the grid is a hole.
    assert_eq!(
        design("grid(rw1, 2, 3, on=cell, mask=m)"),
        Design::Select(vec![0, 3, 4])
    );
    assert_eq!(design("grid(spde, 3, 1)"), Design::Identity);
    for (text, message) in [
        (
            "rw1(on=t, step=1, cyclic)",
            "not among the evenly spaced nodes",
        ),
        ("rw1(on=t, to=3)", "outside the nodes from 2 to 3"),
        ("grid(rw1, 2, 2, on=cell)", "outside its 2 × 2 cells"),
        (
            "grid(rw1, 1, 2)",
            "the table has 3 rows, but the grid has 2 cells",
        ),
        ("grid(rw3, 2, 3)", "choose rw1, rw2 or spde"),
        ("grid(spde, 2, 3, precision=1)", "has no `precision`"),
        ("icar(graph=nowhere)", "cannot read `nowhere`"),
        ("fixed(t) * iid()", "can be multiplied"),
        ("gp(linear, lengthscale=1)", "has no lengthscale"),
        ("gp(rbf, on=t, alpha=2)", "the kernel `rbf` has no alpha"),
        ("svgp(rq, on=t)", "there is no kernel `rq`"),
        (
            "gp(rbf, ard, lengthscale=(1, 2, 3))",
            "needs one value or a list of 2",
        ),
        (
            "icar(graph~path)",
            "does not learn `graph`: write `graph=…`",
        ),
        ("ar1(rho=1)", "must be between -1 and 1"),
        ("iid(t)", "unexpected `t`"),
    ] {
        let error = match made(text) {
            Ok(_) => panic!("{text} is taken"),
            Err(error) => error,
        };
        assert!(error.contains(message), "{text}: {error}");
        assert!(error.starts_with("prior, column "), "{error}");
    }
}

#[test]
fn starting_values_follow_the_data() {
    let test_table = TestTable::default()
        .with("a", &[0.0, 2.0])
        .with("b", &[0.0, 8.0]);
    let spec = Spec::parse("gp(matern32, ard) * gp(rbf, on=a) + gp(constant, variance~5)").unwrap();
    let made = assemble(&spec, &test_table, &rows(2), Units::TABLE).unwrap();
    let starts: Vec<(String, f64)> = made
        .prior()
        .parameters()
        .into_iter()
        .map(|p| (p.name, p.start))
        .collect();
    let expected = [
        ("gp.variance", 1.0),
        ("gp[a].lengthscale", 2f64.sqrt()),
        ("gp[b].lengthscale", 4.0 * 2f64.sqrt()),
        // The variance of the second factor is fixed at 1.
        ("gp2.lengthscale", 1.0),
        ("gp3.variance", 5.0),
    ];
    assert_eq!(starts.len(), expected.len());
    for ((name, start), (n, s)) in starts.iter().zip(expected) {
        assert_eq!(name, n);
        assert!((start - s).abs() < 1e-12, "{name} {start}");
    }
}

#[test]
fn a_given_covariance_stands_with_kernels_in_sums_and_products() {
    let test_table = TestTable::default()
        .with("region", &[3.0, 1.0, 3.0, 2.0])
        .with("x", &[0.0, 1.0, 2.0, 4.0]);
    let text = "covariance(matrix=good, on=region, variance=2) * gp(rbf, on=x, lengthscale=3) + intercept(variance=5)";
    let spec = Spec::parse(text).unwrap();
    let made = assemble(&spec, &test_table, &rows(4), Units::TABLE).unwrap();
    let Covariance::Dense(sigma) = made.prior().structure(&[]).unwrap().covariance else {
        panic!("a dense covariance");
    };
    let (region, x) = ([2, 0, 2, 1], [0.0f64, 1.0, 2.0, 4.0]);
    for i in 0..4 {
        for j in 0..4 {
            let given = if region[i] == region[j] { 1.0 } else { 0.5 };
            let kernel = (-(x[i] - x[j]).powi(2) / 18.0).exp();
            let expected = 2.0 * given * kernel + 5.0;
            assert!((sigma.get(i, j) - expected).abs() < 1e-12, "{i} {j}");
        }
    }
    // Jensen repairs a singular matrix and warns the user, but refuses an indefinite matrix.
    let of = |file: &str| Spec::parse(&format!("covariance(matrix={file}, on=region)")).unwrap();
    let notes = assemble(&of("flat"), &test_table, &rows(4), Units::TABLE)
        .unwrap()
        .notes;
    assert!(
        notes
            .iter()
            .any(|n| n.contains("flat: ") && n.contains("added 1.0e-12 to its diagonal")),
        "{notes:?}"
    );
    let error = assemble(&of("bad"), &test_table, &rows(4), Units::TABLE)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("bad: ") && error.contains("not positive semi-definite"),
        "{error}"
    );
}

#[test]
fn precisions_from_files_are_fields() {
    let test_table = TestTable::default()
        .with("node", &[1.0, 2.0, 3.0, 4.0])
        .with("y", &[0.0; 4]);
    let structure = |text: &str, theta: &[f64]| {
        let spec = Spec::parse(text).unwrap();
        let made = assemble(&spec, &test_table, &rows(4), Units::TABLE).unwrap();
        made.prior().structure(theta).unwrap().covariance
    };
    // A matrix whose rows sum to 0 defines the random walk with the corresponding name.
    let (mine, known) = (
        structure("precision(matrix=walk, on=node)", &[2.5]),
        structure("rw1(on=node)", &[2.5]),
    );
    let (Covariance::Precision(mine), Covariance::Precision(known)) = (mine, known) else {
        panic!("no precisions");
    };
    assert_eq!(mine.matrix, known.matrix);
    assert_eq!(mine.null_space, known.null_space);
    let (a, b) = (
        mine.log_determinant.unwrap(),
        known.log_determinant.unwrap(),
    );
    assert!((a - b).abs() < 1e-10, "{a} {b}");
    // The other matrices are proper. Elimination along the path gives |2.5 Q|.
    let Covariance::Precision(proper) = structure("precision(matrix=proper)", &[2.5]) else {
        panic!("no precision");
    };
    assert_eq!(proper.null_space, None);
    let mut pivot = 1.5;
    let mut determinant: f64 = pivot;
    for diagonal in [2.5, 2.5, 1.5] {
        pivot = diagonal - 1.0 / pivot;
        determinant *= pivot;
    }
    let expected = 4.0 * 2.5f64.ln() + determinant.ln();
    assert!((proper.log_determinant.unwrap() - expected).abs() < 1e-10);
    for (text, reported) in [
        ("precision()", "`precision` needs a matrix"),
        ("precision(matrix=none)", "there is no file `none`"),
        ("precision(matrix=indefinite)", "not positive definite"),
    ] {
        let spec = Spec::parse(text).unwrap();
        let error = assemble(&spec, &test_table, &rows(4), Units::TABLE)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(reported), "{text}: {error}");
    }
}

const INSIDE: Units = Units {
    response: 4.0,
    scaled: true,
    centred: true,
};

#[test]
fn hyperparameters_are_in_the_units_of_the_table() {
    let test_table = TestTable::default()
        .with("a", &[0.0, 2.0, 4.0])
        .with("b", &[0.0, 80.0, 10.0]);
    let settings = |text: &str| {
        let spec = Spec::parse(text).unwrap();
        assemble(&spec, &test_table, &rows(3), INSIDE)
            .unwrap()
            .settings()
    };
    let own = settings("gp(rbf, on=a, lengthscale=3, variance=8) + iid(variance~pc(2, 0.05))");
    // A value that the user gives is divided by the unit, and the output multiplies it by the unit again.
    let sd = (8.0f64 / 3.0).sqrt();
    assert!((own[0].value - 0.5).abs() < 1e-12 && (own[0].unit - 16.0).abs() < 1e-12);
    assert!((own[1].value - 3.0 / sd).abs() < 1e-12 && (own[1].unit - sd).abs() < 1e-12);
    // P(σ > 2) = 0.05 in the units of the table's response is P(σ > ½) in the model's units.
    let PriorDensity::Power { rate, power } = own[2].density else {
        panic!("{:?}", own[2].density);
    };
    assert!((rate + 0.05f64.ln() / 0.5).abs() < 1e-12 && power == 0.5);
    assert!(own[2].free && own[2].value == 1.0);
    let rational = settings("gp(rq, on=a) + gp(rq, ard, alpha=3)");
    let names: Vec<&str> = rational.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names[..3], ["gp.variance", "gp.lengthscale", "gp.alpha"]);
    assert!(rational[2].free && rational[2].value == 1.0);
    let given = rational.last().unwrap();
    assert!(!given.free && given.value == 3.0, "{given:?}");
    // If no lengthscale is given for several columns, the unit of each column is its standard deviation.
    let several = settings("gp(rbf)");
    assert!((several[1].value - 2f64.sqrt()).abs() < 1e-12 && several[1].unit == 1.0);
    for (text, reported) in [
        ("iid(variance~pc(2))", "write `pc(U, α)`"),
        ("iid(variance~pc(2, 1.5))", "a probability below 1"),
        ("iid(variance~cauchy(1))", "there is no prior `cauchy`"),
    ] {
        let spec = Spec::parse(text).unwrap();
        let error = assemble(&spec, &test_table, &rows(3), INSIDE)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(reported), "{text}: {error}");
    }
}

#[test]
fn columns_that_say_nothing_are_left_out() {
    let test_table = TestTable::default()
        .with("x", &[1.0, 2.0, 4.0])
        .with("same", &[-10.0, -20.0, -40.0])
        .with("level", &[7.0, 7.0, 7.0]);
    let made = |text: &str| assemble(&Spec::parse(text).unwrap(), &test_table, &rows(3), INSIDE);
    let both = made("intercept() + fixed(x, level, same)").unwrap();
    assert_eq!(both.covariates().len(), 1);
    let notes = both.notes.join("\n");
    assert!(notes.contains("the column `level`: constant"), "{notes}");
    assert!(notes.contains("the column `same`: equal to"), "{notes}");
    // If there is no level, a constant column acts as the level.
    let origin = Units {
        centred: false,
        ..INSIDE
    };
    let spec = Spec::parse("fixed(x, level)").unwrap();
    let through = assemble(&spec, &test_table, &rows(3), origin).unwrap();
    assert_eq!(through.covariates().len(), 2);
    let error = made("intercept() + fixed(level)")
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("every column of `fixed` is constant"),
        "{error}"
    );
}

/// Compares the prior with divergences that are computed from the eigenvalues of the path's Laplacian.
#[test]
fn the_share_of_bym2_has_its_prior() {
    let test_table = TestTable::default().with("region", &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let spec = Spec::parse("bym2(graph=path, on=region)").unwrap();
    let made = assemble(&spec, &test_table, &rows(5), INSIDE).unwrap();
    let density = &made.settings()[1].density;
    // These are the Laplacian of the path and its scale.
    let e: Vec<f64> = (0..5)
        .map(|k| 2.0 - 2.0 * (std::f64::consts::PI * f64::from(k) / 5.0).cos())
        .collect();
    let vector = |k: usize, i: usize| {
        (std::f64::consts::PI * k as f64 * (i as f64 + 0.5) / 5.0).cos() * (2.0f64 / 5.0).sqrt()
    };
    let variance = |i: usize| -> f64 { (1..5).map(|k| vector(k, i).powi(2) / e[k]).sum() };
    let scale = ((0..5).map(|i| variance(i).ln()).sum::<f64>() / 5.0).exp();
    let distance = |phi: f64| -> f64 {
        let gamma = |k: usize| if k == 0 { 0.0 } else { 1.0 / (e[k] * scale) };
        let term = |k: usize| phi * (gamma(k) - 1.0) - (phi * (gamma(k) - 1.0)).ln_1p();
        (0..5).map(term).sum::<f64>().sqrt()
    };
    let rate = 3f64.ln() / distance(0.5);
    for phi in [0.03f64, 0.2, 0.5, 0.9, 0.99] {
        let h = 1e-5 * phi.min(1.0 - phi);
        let slope = (distance(phi + h) - distance(phi - h)) / (2.0 * h);
        let expected = rate.ln() - rate * distance(phi) + slope.ln();
        let stated = density.at(phi).0;
        assert!(
            (stated - expected).abs() < 2e-3,
            "{phi}: {stated} {expected}"
        );
    }
}

fn weights(design: &Design, row: usize) -> Vec<f64> {
    let Design::Sparse(w) = design else {
        panic!("not sparse");
    };
    let entry = |j: usize| {
        let (at, values) = w.col(j);
        at.iter().position(|i| *i == row).map_or(0.0, |k| values[k])
    };
    (0..w.cols).map(entry).collect()
}

#[test]
fn columns_scale_terms() {
    let test_table = TestTable::default()
        .with("t", &[0.0, 1.0, 2.0])
        .with("x", &[3.0, 0.0, -5.0])
        .with("same", &[2.0, 2.0, 2.0])
        .with("none", &[0.0, 0.0, 0.0])
        .with_words("town", &["b", "a", "b"]);
    let made =
        |text: &str, units| assemble(&Spec::parse(text).unwrap(), &test_table, &rows(3), units);
    let design = |text: &str| made(text, Units::TABLE).unwrap().design();
    assert_eq!(weights(&design("rw1(on=t, by=x)"), 2), [0.0, 0.0, -5.0]);
    let both = design("iid(on=town) + iid(on=town, by=x)");
    assert_eq!(weights(&both, 0), [0.0, 1.0, 0.0, 3.0]);
    // Each town has a level and a slope, whose variables are adjacent.
    let block = design("iid(on=town, by=(1, x))");
    assert_eq!(weights(&block, 0), [0.0, 0.0, 1.0, 3.0]);
    assert_eq!(weights(&block, 1), [1.0, 0.0, 0.0, 0.0]);
    // In the model's units, a slope next to a level refers to a standard deviation from the mean. Any other slope
    // refers to the root mean square. Variances and values are in the table's units.
    let units = INSIDE;
    let block = made("iid(on=town, by=(1, x), variance=(4, 9), cor=0.5)", units).unwrap();
    let (mean, sd) = (-2.0 / 3.0, (34.0f64 / 3.0 - 4.0 / 9.0).sqrt());
    close(&weights(&block.design(), 0)[2..], &[1.0, (3.0 - mean) / sd]);
    let settings = block.settings();
    let inside: Vec<f64> = settings.iter().map(|s| s.value).collect();
    close(&inside, &[4.0 / 16.0, 9.0 * sd * sd / 16.0, 0.5]);
    let names: Vec<&str> = settings.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["iid[1].variance", "iid[x].variance", "iid[1,x].cor"]
    );
    let alone = made("iid(on=town, by=x)", units).unwrap();
    close(
        &weights(&alone.design(), 0)[1..],
        &[3.0 / (34.0f64 / 3.0).sqrt()],
    );
    // At x = 0, the variance of the level is 4 − 2·½·2·3·mean + 9·mean².
    let at_zero = 4.0 - 2.0 * 0.5 * 6.0 * mean + 9.0 * mean * mean;
    let names: Vec<String> = block.derived().into_iter().map(|d| d.name).collect();
    assert_eq!(names, ["iid[1 at x=0].variance", "iid[1 at x=0,x].cor"]);
    let correlation = (0.5 * 6.0 - 9.0 * mean) / (at_zero.sqrt() * 3.0);
    close(
        &block.derived_at(&[]).unwrap(),
        &[at_zero / 16.0, correlation],
    );
    // Rows of the same new town share its level and its slope.
    let new = TestTable::default()
        .with("x", &[1.0, -2.0])
        .with_words("town", &["c", "c"]);
    let block = made(
        "iid(on=town, by=(1, x), variance=(4, 9), cor=0.5)",
        Units::TABLE,
    )
    .unwrap();
    let (_, extra) = block.query(&[], &new, &rows(2)).unwrap();
    assert_eq!(extra.variables.len(), 2);
    close(&extra.added(), &[4.0 + 6.0 + 9.0, 4.0 - 12.0 + 36.0]);
    let shared = extra.rows[0].iter().zip(&extra.rows[1]);
    let covariance: f64 = shared
        .map(|((a, x), (b, y))| if a == b { x * y } else { 0.0 })
        .sum();
    close(&[covariance], &[4.0 + 3.0 - 6.0 - 18.0]);
    for (text, message) in [
        (
            "rw1(on=t, by=(1, x))",
            "only `iid` has effects of several columns",
        ),
        ("iid(on=t, by=town)", "`town` has words"),
        ("iid(on=town, by=none)", "is 0 in the fitted rows"),
        (
            "iid(on=town, by=(1, same))",
            "is constant in the fitted rows",
        ),
        ("iid(on=town, by=(x, x))", "`x` is given twice"),
        ("iid(by=(1, x))", "several columns in `by=` need groups"),
        (
            "iid(on=town, by=x, cor=0.2)",
            "`cor` is between several columns",
        ),
        (
            "iid(on=town, by=(1, x), cor~gamma(1, 1))",
            "which is between -1 and 1",
        ),
        ("gp(rbf, on=t) * gp(rbf, on=x, by=x)", "in the first factor"),
        (
            "gp(rbf, on=t) + iid(on=town, by=(1, x))",
            "cannot be in one sum with `gp`",
        ),
        ("iid(on=town, by=missing)", "there is no column `missing`"),
    ] {
        let error = made(text, Units::TABLE).err().unwrap().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// The functions of a Hilbert-space process give the covariance of its kernel, in one and two dimensions, with the
/// stated error; new rows beyond the box are refused.
#[test]
fn basis_functions_give_the_covariance_of_their_kernel() {
    let n = 40;
    let at = |i: usize, step: f64| 10.0 * ((i as f64 + 0.5) * step).fract();
    let a: Vec<f64> = (0..n).map(|i| at(i, 0.754_877_666)).collect();
    let b: Vec<f64> = (0..n).map(|i| at(i, 0.569_840_291)).collect();
    let test_table = TestTable::default().with("a", &a).with("b", &b);
    let made = |text: &str| {
        assemble(
            &Spec::parse(text).unwrap(),
            &test_table,
            &rows(n),
            Units::TABLE,
        )
        .unwrap()
    };
    let covariance = |text: &str| -> Dense {
        let made = made(text);
        match made.prior().structure(&[]).unwrap().covariance {
            Covariance::Dense(sigma) => sigma,
            Covariance::Diagonal(variances) => {
                let Design::Dense(w) = made.design() else {
                    panic!("not dense");
                };
                Dense::from_fn(n, n, |i, j| {
                    (0..w.cols)
                        .map(|k| w.get(i, k) * w.get(j, k) * variances[k])
                        .sum()
                })
            }
            Covariance::Precision(_) | Covariance::Chain(_) => panic!("not independent"),
        }
    };
    for (kernel, basis) in [
        ("rbf, on=a, lengthscale=1.5", "basis=40, boundary=2"),
        ("matern52, on=a, lengthscale=3", "basis=90, boundary=3"),
        ("matern32, on=a, lengthscale=3", "basis=200, boundary=3"),
        (
            "rbf, ard, on=(a, b), lengthscale=(2, 4)",
            "basis=(28, 17), boundary=2.6",
        ),
    ] {
        let exact = covariance(&format!("gp({kernel}, variance=2)"));
        let own = covariance(&format!("hsgp({kernel}, variance=2, {basis})"));
        let off = exact.data.iter().zip(&own.data).map(|(x, y)| (x - y).abs());
        let off = off.fold(0.0, f64::max) / 2.0;
        let stated = made(&format!("hsgp({kernel}, variance=2, {basis})"));
        let stated = stated.truncation(&[]).unwrap()[0].1.error;
        assert!(
            off < 0.02 && off < 1.5 * stated + 1e-6,
            "{kernel}: {off} {stated}"
        );
    }
    // A short lengthscale, and a long one, need other functions, and the advised ones suffice.
    for length in [0.4, 30.0] {
        let text =
            |basis: &str| format!("hsgp(rbf, on=a, lengthscale={length}, variance=1, {basis})");
        let (_, few) = made(&text("basis=20, boundary=2")).truncation(&[]).unwrap()[0].clone();
        assert!(few.error > 0.1, "{few:?}");
        let (counts, boundary) = few.advice;
        let basis = format!("basis={}, boundary={boundary}", counts[0]);
        let error = made(&text(&basis)).truncation(&[]).unwrap()[0].1.error;
        assert!(error < 0.07, "{length}: {error}");
    }
    let own = made("hsgp(rbf, on=a, boundary=2)");
    let far = TestTable::default().with("a", &[14.0]);
    let error = own
        .query(&[1.0, 1.0], &far, &[0])
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("fit with a larger `boundary`"), "{error}");
    for (text, message) in [
        (
            "hsgp(matern12, on=a)",
            "choose one of rbf, matern32, matern52",
        ),
        ("hsgp(rbf, on=a, boundary=1)", "must be more than 1"),
        (
            "hsgp(rbf, on=(a, b), basis=(9, 9, 9))",
            "one number or a list of 2",
        ),
        ("hsgp(rbf, on=(a, b), basis=99)", "more than 4000"),
        (
            "gp(rbf, on=a) + hsgp(rbf, on=b)",
            "`hsgp` has basis functions",
        ),
    ] {
        let spec = Spec::parse(text).unwrap();
        let error = assemble(&spec, &test_table, &rows(n), Units::TABLE);
        let error = error.err().unwrap().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// Derivatives by the hyperparameters of basis functions, alone and beside a field.
#[test]
fn basis_functions_have_their_derivatives() {
    let test_table = TestTable::default()
        .with("a", &[0.0, 1.0, 3.0, 4.0])
        .with("b", &[2.0, 1.0, 5.0, 4.0]);
    for (text, theta) in [
        (
            "hsgp(matern32, ard, on=(a, b), basis=4)",
            vec![1.3, 0.8, 2.1],
        ),
        (
            "hsgp(rbf, on=(a, b), basis=3) + iid(on=a)",
            vec![1.3, 0.8, 0.6],
        ),
        (
            "hsgp(matern52, on=a, basis=5) + rw1(on=b)",
            vec![1.3, 0.8, 0.6],
        ),
    ] {
        let spec = Spec::parse(text).unwrap();
        let made = assemble(&spec, &test_table, &rows(4), Units::TABLE).unwrap();
        crate::prior::check_gradient(made.prior(), &theta);
    }
}
