//! Tests the messages of `jensen latent fit` about data that cannot be used, or that can be used only after a change.

use crate::common::{Desk, jensen};

/// Fits a table and returns the exit code and all messages. The prior may refer to files by `@NAME`.
fn fit(desk: &Desk, likelihood: &str, prior: &str, table: &str, more: &[&str]) -> (i32, String) {
    let folder = desk.path(".").display().to_string();
    let prior = prior.replace('@', &format!("{folder}/"));
    let table = desk.path(table).display().to_string();
    let mut args = vec!["latent", "fit", "--likelihood", likelihood];
    args.extend(["--prior", &prior, "--data", &table]);
    args.extend(more);
    let done = jensen(args);
    (done.code, format!("{}{}", done.stdout, done.stderr))
}

fn npy(shape: &str, numbers: &[f64]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: files and what is said of them"
)]
fn what_cannot_be_used_is_refused_with_its_location() {
    let desk = Desk::new();
    for (name, text) in [
        ("empty.csv", ""),
        ("header.csv", "x,y\n"),
        ("ok.csv", "x,y\n1,0\n2,1\n3,1\n"),
        ("ragged.csv", "1,2,3\n4,5\n6,7,8\n"),
        ("nan.csv", "x,y\n0.1,0\nnan,1\n0.3,1\n"),
        ("label.csv", "x,y\n0.1,0\n0.2,2\n0.3,1\n"),
        ("negative.csv", "x,y\n1,-1\n2,3\n"),
        ("infinite.csv", "x,y\n1,inf\n2,3\n"),
        ("offset.csv", "x,o,y\n1,inf,0\n2,0,2\n"),
        ("exposure.csv", "x,e,y\n1,1,0\n2,0,2\n"),
        ("trials.csv", "x,n,y\n1,3,4\n2,2,2\n"),
        ("missing.csv", "x,y\n1,\n2,\n"),
        ("five.csv", "region,y\n1,2\n2,3\n5,1\n"),
        ("out.graph", "3\n1 1 2\n2 2 1 9\n3 1 2\n"),
        ("pair.graph", "2\n1 1 2\n2 1 1\n"),
        ("indefinite.csv", "1,2,0\n2,1,0\n0,0,1\n"),
        ("skew.csv", "1,0.5,0\n0.1,1,0\n0,0,1\n"),
        ("oblong.csv", "1,0,0\n0,1,0\n"),
        ("hole.csv", "1,0,0\n0,1,\n0,0,1\n"),
    ] {
        desk.file(name, text);
    }
    for (name, shape, numbers) in [
        ("rows.npy", "(0, 3)", vec![]),
        ("columns.npy", "(3, 0)", vec![]),
        ("cut.npy", "(2, 2)", vec![1.0, 0.0, 2.0]),
        ("cube.npy", "(1, 2, 2)", vec![1.0; 4]),
    ] {
        std::fs::write(desk.path(name), npy(shape, &numbers)).unwrap();
    }
    type Case<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], &'a [&'a str]);
    let cases: [Case<'_>; 25] = [
        (
            "bernoulli",
            "gp(rbf)",
            "empty.csv",
            &[],
            &["empty.csv:1:1: the table has no rows"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "header.csv",
            &[],
            &["header.csv:2:1: the table has no rows"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "rows.npy",
            &[],
            &["rows.npy: the table has no rows"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "columns.npy",
            &[],
            &["columns.npy: the table has no columns"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "cut.npy",
            &[],
            &["cut.npy", "its shape [2, 2] needs 32"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "cube.npy",
            &[],
            &["cube.npy", "a table needs vectors or matrices"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "ragged.csv",
            &[],
            &["ragged.csv:2:3: this row has 2 cells"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "ok.csv",
            &["--response", "z"],
            &["there is no column `z`; it has `x`, `y`"],
        ),
        (
            "bernoulli",
            "gp(rbf, on=q)",
            "ok.csv",
            &[],
            &["prior, column 12", "there is no column `q`"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "nan.csv",
            &[],
            &["`x` is missing in row 2; fill it in or remove the row"],
        ),
        (
            "bernoulli",
            "gp(rbf)",
            "label.csv",
            &[],
            &["label.csv: the response `y` is 2 in row 2", "needs 0 or 1"],
        ),
        (
            "poisson",
            "gp(rbf)",
            "negative.csv",
            &[],
            &["the response `y` is -1 in row 1", "needs a count"],
        ),
        (
            "gaussian",
            "gp(rbf)",
            "infinite.csv",
            &[],
            &["the response `y` is inf in row 1", "needs a finite number"],
        ),
        (
            "gamma",
            "gp(rbf)",
            "infinite.csv",
            &[],
            &[
                "the response `y` is inf in row 1",
                "needs a positive number",
            ],
        ),
        (
            "poisson",
            "gp(rbf, on=x)",
            "offset.csv",
            &["--offset", "o"],
            &["`o` has no finite number in row 1"],
        ),
        (
            "poisson",
            "gp(rbf, on=x)",
            "exposure.csv",
            &["--exposure", "e"],
            &["the exposure in row 2 is 0, but must be positive"],
        ),
        (
            "binomial",
            "gp(rbf, on=x)",
            "trials.csv",
            &["--trials", "n"],
            &["is 4 in row 1", "its number of trials, 3"],
        ),
        (
            "multinomial",
            "gp(rbf)",
            "missing.csv",
            &[],
            &["the response `y` has 0 distinct values"],
        ),
        (
            "poisson",
            "icar(graph=@out.graph, on=region)",
            "five.csv",
            &[],
            &["out.graph:3:7: there is no node 9"],
        ),
        (
            "poisson",
            "icar(graph=@pair.graph, on=region)",
            "five.csv",
            &[],
            &["row 3 has `region` = 5", "from 1 to 2"],
        ),
        (
            "bernoulli",
            "covariance(matrix=@indefinite.csv)",
            "ok.csv",
            &[],
            &["indefinite.csv: ", "not positive semi-definite"],
        ),
        (
            "bernoulli",
            "covariance(matrix=@skew.csv)",
            "ok.csv",
            &[],
            &["skew.csv: ", "elements (2, 1) and (1, 2) are 0.1 and 0.5"],
        ),
        (
            "bernoulli",
            "covariance(matrix=@oblong.csv)",
            "ok.csv",
            &[],
            &["oblong.csv` has 2 rows and 3 columns"],
        ),
        (
            "bernoulli",
            "covariance(matrix=@hole.csv)",
            "ok.csv",
            &[],
            &["hole.csv` has NaN in row 2, column 3"],
        ),
        (
            "bernoulli",
            "gp(rbf) + icar(graph=@pair.graph)",
            "ok.csv",
            &[],
            &[
                "prior, column 11: `icar` is a field",
                "use `gp(matern32, on=…)`",
            ],
        ),
    ];
    for (likelihood, prior, table, more, said) in cases {
        let (code, text) = fit(&desk, likelihood, prior, table, more);
        assert_eq!(code, 3, "{prior} on {table}: {text}");
        assert_eq!(
            text.matches("error").count(),
            1,
            "{prior} on {table}: {text}"
        );
        for part in said {
            assert!(
                text.contains(part),
                "{prior} on {table}: `{part}` is not in: {text}"
            );
        }
    }
}

#[test]
fn what_has_a_remedy_is_fitted_and_the_remedy_is_output() {
    let desk = Desk::new();
    for (name, text) in [
        ("repeat.csv", "x,y\n0.1,0\n0.1,1\n0.3,1\n0.3,1\n"),
        ("region.csv", "region,y\n1,30\n2,28\n3,1\n4,2\n5,1\n"),
        ("pieces.graph", "5\n1 1 2\n2 1 1\n3 1 4\n4 1 3\n5 0\n"),
        ("empty.csv", "x,y\n0.1,0\n0.2,2\n0.3,0\n0.4,\n"),
        ("towns.csv", "x,town,y\n0.1,Bonn,0\n0.2,Ulm,1\n0.3,Ulm,0\n"),
        ("three.csv", "x,y\n1,0\n2,1\n3,1\n"),
        ("singular.csv", "1,1,0\n1,1,0\n0,0,1\n"),
    ] {
        desk.file(name, text);
    }
    let cases: [(&str, &str, &str, &[&str]); 5] = [
        (
            "bernoulli",
            "gp(rbf, variance=1, lengthscale=1)",
            "towns.csv",
            &["columns of words cannot be inputs of `gp`: town; add a term such as iid(on=town)"],
        ),
        (
            "bernoulli",
            "gp(rbf, variance=1, lengthscale=1)",
            "repeat.csv",
            &["2 of 4 rows repeat the inputs of another row"],
        ),
        (
            "poisson",
            "icar(graph=@pieces.graph, on=region, precision=1)",
            "region.csv",
            &[
                "the graph has 3 components, and the prior is flat in the level of each",
                "1 nodes without neighbours, which are independent",
            ],
        ),
        (
            "multinomial",
            "gp(rbf, variance=1, lengthscale=1)",
            "empty.csv",
            &[
                "`y` has the 2 categories `0`, `2` that occur in the table; the last is the reference",
                "1 of 4 rows have no response",
            ],
        ),
        (
            "bernoulli",
            "covariance(matrix=@singular.csv, variance=1)",
            "three.csv",
            &[
                "singular.csv: the prior covariance is numerically singular, so Jensen added 1.0e-12 to its diagonal",
            ],
        ),
    ];
    for (likelihood, prior, table, said) in cases {
        let (code, text) = fit(&desk, likelihood, prior, table, &[]);
        assert_eq!(code, 0, "{prior} on {table}: {text}");
        for part in said {
            assert!(
                text.contains(part),
                "{prior} on {table}: `{part}` is not in: {text}"
            );
        }
    }
}
