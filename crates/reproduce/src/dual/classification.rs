//! Classification by Gaussian processes and by logistic regression, and searches over grids of hyperparameters.

use jensen::data::{Cells, Column, Table};
use jensen::latent::{LatentSpec, Solver, StoredPosterior, TableModel, outcome, posterior_at};
use jensen::report::figure::{Axis, Figure, HeatMap, Series};

use super::race::{Case, Folder, case, compare, fit, learning, numbers, request};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

fn ionosphere(context: &Context<'_>) -> Result<Table, Failure> {
    Ok(Table::read(&context.data("uci/ionosphere.csv")?)?)
}

/// Reads the images of the digits 3 (label 0) and 5 (label 1) from the training set and the test set.
fn usps(context: &Context<'_>) -> Result<Table, Failure> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for file in ["usps/zip.train.gz", "usps/zip.test.gz"] {
        let table = Table::read(&context.data(file)?)?;
        let columns: Vec<&[f64]> = table
            .columns()
            .iter()
            .map(Column::numbers)
            .collect::<Result<_, _>>()?;
        for i in 0..table.rows() {
            if columns[0][i] == 3.0 || columns[0][i] == 5.0 {
                rows.push(columns.iter().map(|c| c[i]).collect());
            }
        }
    }
    let width = rows.first().map_or(0, Vec::len);
    let mut columns: Vec<(String, Vec<f64>)> = (1..width)
        .map(|j| (format!("x{j}"), rows.iter().map(|r| r[j]).collect()))
        .collect();
    let label = rows.iter().map(|r| f64::from(r[0] == 5.0)).collect();
    columns.push(("five".to_owned(), label));
    numbers("USPS 3 and 5", columns)
}

const GP_SOLVERS: [Solver; 4] = [
    Solver::Dual,
    Solver::Primal,
    Solver::Opper,
    Solver::Coordinate,
];
/// The solvers that support every design.
pub(super) const SOLVERS: [Solver; 3] = [Solver::Dual, Solver::Primal, Solver::Opper];

/// Returns the classifications of Ionosphere and of USPS by Gaussian processes.
pub(super) fn cases(context: &Context<'_>) -> Result<[Case; 2], Failure> {
    let ionosphere = case(
        context,
        "Ionosphere",
        ionosphere(context)?,
        request("gp(rbf, lengthscale=2.7, variance=7.4)", "bernoulli", "V35"),
    )?;
    let usps = case(
        context,
        "USPS 3 and 5",
        usps(context)?,
        request("gp(rbf, lengthscale=12, variance=20)", "bernoulli", "five"),
    )?;
    Ok([ionosphere, usps])
}

pub(super) fn gp(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("Gaussian process classification");
    let [ionosphere, usps] = cases(context)?;
    let limit = context.pick(20.0, 40.0);
    figure = figure.panel(compare(context, &ionosphere, &GP_SOLVERS, limit)?);
    let limit = context.pick(30.0, 60.0);
    figure = figure.panel(compare(context, &usps, &GP_SOLVERS, limit)?);
    for case in [&ionosphere, &usps] {
        let exact = Case {
            name: if case.name == "Ionosphere" {
                "Ionosphere, exact"
            } else {
                "USPS 3 and 5, exact"
            },
            table: case.table.clone(),
            request: LatentSpec {
                bound: Some("exact".to_owned()),
                ..case.request.clone()
            },
            files: Folder(case.files.0.clone()),
            proper: 0.0,
        };
        compare(context, &exact, &[Solver::Dual], 600.0)?;
    }
    context.figure("gp", &figure)
}

/// Scales all columns to mean 0 and standard deviation 1. In the response column, `positive` becomes 1 and every other
/// value becomes 0.
fn standardised(table: &Table, response: usize, positive: &str) -> Result<Table, Failure> {
    let mut columns = Vec::new();
    for (j, column) in table.columns().iter().enumerate() {
        if j == response {
            continue;
        }
        let x = column.numbers()?;
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let sd = (x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
        let values = x
            .iter()
            .map(|x| if sd > 0.0 { (x - mean) / sd } else { 0.0 });
        columns.push((column.name.clone(), values.collect()));
    }
    let levels = [positive.to_owned()];
    let own = &table.columns()[response];
    let all = own.levels();
    let is_positive = |code: Option<usize>| code.is_some_and(|c| all[c] == levels[0]);
    let codes = own.codes(&all)?;
    columns.push((
        "y".to_owned(),
        codes
            .into_iter()
            .map(|c| f64::from(is_positive(c)))
            .collect(),
    ));
    numbers(table.source(), columns)
}

fn all_columns(table: &Table, variance: f64) -> String {
    let names: Vec<&str> = table.names();
    let inputs = names[..names.len() - 1].join(", ");
    format!("intercept(variance={variance}) + fixed({inputs}, variance={variance})")
}

pub(super) fn logistic(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("Bayesian logistic regression");
    let sonar = Table::read(&context.data("uci/sonar.csv")?)?;
    let sonar = standardised(&sonar, 60, "M")?;
    let australian = Table::read(&context.data("uci/australian.dat")?)?;
    let australian = standardised(&australian, 14, "1")?;
    let digits = usps(context)?;
    let cases = [
        ("Sonar", sonar, "y"),
        ("Australian credit", australian, "y"),
        ("USPS, linear", digits, "five"),
    ];
    let limit = context.pick(20.0, 60.0);
    for (name, table, response) in cases {
        let prior = all_columns(&table, 1.0);
        let case = case(context, name, table, request(&prior, "bernoulli", response))?;
        figure = figure.panel(compare(context, &case, &SOLVERS, limit)?);
    }
    context.figure("logistic", &figure)
}

fn rows_of(table: &Table, rows: &[usize]) -> Result<Table, Failure> {
    let columns = table
        .columns()
        .iter()
        .map(|column| {
            let cells = match &column.cells {
                Cells::Numbers(x) => Cells::Numbers(rows.iter().map(|i| x[*i]).collect()),
                Cells::Words(x) => Cells::Words(rows.iter().map(|i| x[*i].clone()).collect()),
            };
            Column::new(column.name.clone(), cells)
        })
        .collect();
    Ok(Table::new(table.source(), columns)?)
}

struct Grid {
    name: &'static str,
    response: &'static str,
    steps: usize,
    lengthscales: (f64, f64),
    variances: (f64, f64),
}

pub(super) fn hyperparameters(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure =
        Figure::new("Lower bound and held-out log loss over hyperparameters").columns(2);
    let grids = [
        (
            Grid {
                name: "Ionosphere",
                response: "V35",
                steps: context.pick(7, 15),
                lengthscales: (0.5, 12.0),
                variances: (0.5, 500.0),
            },
            ionosphere(context)?,
        ),
        (
            Grid {
                name: "USPS 3 and 5",
                response: "five",
                steps: context.pick(5, 11),
                lengthscales: (2.0, 60.0),
                variances: (1.0, 2000.0),
            },
            usps(context)?,
        ),
    ];
    for (grid, table) in grids {
        for panel in search(context, &grid, &table)? {
            figure = figure.panel(panel);
        }
    }
    context.figure("hyperparameters", &figure)
}

/// Fits a model to two thirds of the rows at every point of a grid. Returns one map of the lower bounds of the fits,
/// and one map of the log loss on the remaining third of the rows.
fn search(context: &mut Context<'_>, grid: &Grid, table: &Table) -> Result<[HeatMap; 2], Failure> {
    let steps = grid.steps;
    let (held, fitted): (Vec<usize>, Vec<usize>) = (0..table.rows()).partition(|i| i % 3 == 0);
    let (train, test) = (rows_of(table, &fitted)?, rows_of(table, &held)?);
    let between = |(low, high): (f64, f64), k: usize| {
        low * (high / low).powf((k as f64 + 0.5) / steps as f64)
    };
    let key = format!("{}/grid", grid.name.replace(' ', "-"));
    let cells: Vec<(f64, f64)> = context.keep(&key, |context| {
        let mut cells = Vec::new();
        let files = Folder(context.data("")?);
        for i in 0..steps {
            context.check_stopped()?;
            context.say(format!("{}: row {} of {steps}", grid.name, i + 1));
            for j in 0..steps {
                let prior = format!(
                    "gp(rbf, lengthscale={}, variance={})",
                    between(grid.lengthscales, j),
                    between(grid.variances, i)
                );
                let request = request(&prior, "bernoulli", grid.response);
                let model = TableModel::new(&request, &train, &files)?;
                let (_, learnt, _) = fit(context, &model, &learning(Solver::Dual, false), None)?;
                let rows: Vec<usize> = (0..test.rows()).collect();
                let stored = StoredPosterior::new(&learnt);
                let (parts, seen) = posterior_at(&model, &stored, &test, &rows, &files)?;
                let score = outcome(&model, &parts, &seen);
                let loss = -score.log_predictive().unwrap_or(0.0);
                cells.push((learnt.fit.bound, loss));
            }
        }
        Ok(cells)
    })?;
    let label = |at: usize| {
        format!(
            "at lengthscale {:.2}, variance {:.1}",
            between(grid.lengthscales, at % steps),
            between(grid.variances, at / steps)
        )
    };
    let most = |value: fn(&(f64, f64)) -> f64| {
        (0..cells.len())
            .max_by(|a, b| value(&cells[*a]).total_cmp(&value(&cells[*b])))
            .unwrap_or(0)
    };
    let (best, least) = (most(|c| c.0), most(|c| -c.1));
    let name = |what: &str| What::new(format!("{} grid: {what}", grid.name), "nats");
    context.row(name("largest bound"), |_| {
        let note = format!("{}, {steps} × {steps} points", label(best));
        Ok(Ours::value(cells[best].0).note(note))
    })?;
    context.row(name("held-out log loss there"), |_| {
        let note = format!("a row, of {} rows held out", test.rows());
        Ok(Ours::value(cells[best].1).note(note))
    })?;
    context.row(name("least held-out log loss"), |_| {
        Ok(Ours::value(cells[least].1).note(label(least)))
    })?;
    let map = |title: String, at: usize, pick: fn(&(f64, f64)) -> f64| {
        let spot = (
            between(grid.lengthscales, at % steps),
            between(grid.variances, at / steps),
        );
        HeatMap::new(
            title,
            grid.lengthscales,
            grid.variances,
            steps,
            cells.iter().map(pick).collect(),
        )
        .x(Axis::new("lengthscale").log())
        .y(Axis::new("variance").log())
        .value(Axis::new("nats"))
        .overlay(Series::scatter("", [spot]).colour(3))
    };
    Ok([
        map(format!("{}: lower bound", grid.name), best, |c| c.0),
        map(format!("{}: held-out log loss", grid.name), least, |c| c.1),
    ])
}
