//! Tests of mixtures of the rows of several files. The fit must equal that of one table, for any number of workers and
//! after any failures.
#![cfg(feature = "mixture")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jensen::Error;
use jensen::job::{Around, MEMORY_LIMIT, ResultFolder, folder};
use jensen::points::{
    MixtureModel, MixtureRequest, PointRequest, PointShard, Points, PointsFit, fit_mixture,
    fit_mixture_files, point_step,
};
use jensen::records::{RecordSteps, ShardShare};
use jensen::run::Silent;

const SHARES: [usize; 5] = [120, 80, 200, 30, 70];

#[derive(Clone, Copy, Default)]
struct Workers {
    backwards: bool,
    forget: bool,
    /// The number of the call that receives no answer.
    lost: Option<usize>,
}

struct Here {
    plan: String,
    workers: Workers,
    calls: Arc<AtomicUsize>,
    kept: Mutex<Vec<Option<Arc<PointShard>>>>,
}

impl RecordSteps for Here {
    fn solve(&self, ask: &[u8], shares: &[ShardShare<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        if Some(self.calls.fetch_add(1, Ordering::Relaxed)) == self.workers.lost {
            return Err(Error::Input("the machine is gone".to_owned()));
        }
        let mut kept = self.kept.lock().unwrap();
        let mut answers = vec![Vec::new(); shares.len()];
        let mut order: Vec<usize> = (0..shares.len()).collect();
        if self.workers.backwards {
            order.reverse();
        }
        for at in order {
            let (number, path, digest, share) = &shares[at];
            let shard = &mut kept[*number];
            answers[at] = point_step(&self.plan, path, digest, ask, share, shard)?;
            if self.workers.forget {
                *shard = None;
            }
        }
        Ok(answers)
    }
}

fn rows(kind: &str) -> (Vec<&'static str>, Vec<String>) {
    let wave = |n: usize| (n as f64 * 0.737_373 + 0.21).sin();
    let row = |n: usize| {
        let group = n * 7 % 3;
        match kind {
            "bernoulli" => {
                let bit = |d: usize| u8::from(wave(5 * n + d) > [-0.8, 0.1, 0.7][(group + d) % 3]);
                format!(
                    "{},{},{}",
                    bit(0),
                    if n % 17 == 3 {
                        String::new()
                    } else {
                        bit(1).to_string()
                    },
                    bit(2)
                )
            }
            "multinomial" => {
                let count = |d: usize| {
                    1 + (3.0 * (1.0 + wave(3 * n + d))) as usize + 6 * usize::from(group == d)
                };
                format!("{},{},{}", count(0), count(1), count(2))
            }
            _ => {
                let x = |d: usize| {
                    wave(3 * n + d) + 0.5 * wave(11 * n + d) + [-3.0, 0.5, 3.0][(group + d) % 3]
                };
                let second = if kind == "gaps" && n % 13 == 5 {
                    String::new()
                } else {
                    x(1).to_string()
                };
                format!("{},{second},{}", x(0), x(2))
            }
        }
    };
    (
        vec!["a", "b", "c"],
        (0..SHARES.iter().sum()).map(row).collect(),
    )
}

fn written(folder: &Path, kind: &str) -> (PathBuf, Vec<PathBuf>) {
    let (names, rows) = rows(kind);
    let write = |name: String, rows: &[String]| {
        let path = folder.join(name);
        std::fs::write(&path, format!("{}\n{}\n", names.join(","), rows.join("\n"))).unwrap();
        path
    };
    let all = write("all.csv".to_owned(), &rows);
    let mut start = 0;
    let shards = SHARES.iter().enumerate().map(|(number, share)| {
        start += share;
        write(format!("{number}.csv"), &rows[start - share..start])
    });
    let shards = shards.collect();
    (all, shards)
}

fn requests() -> Vec<(&'static str, MixtureRequest)> {
    let request = |kind: &str, settings: &str| {
        let kind = match kind {
            "bernoulli" | "multinomial" => format!("\"kind\": \"{kind}\", "),
            _ => String::new(),
        };
        serde_json::from_str(&format!("{{{kind}\"components\": 3, {settings}}}")).unwrap()
    };
    [
        ("gaps", r#""points": {"seed": 4, "starts": 1}"#),
        (
            "gaps",
            r#""covariance": "diagonal", "points": {"temper": "anneal=5", "starts": 1}"#,
        ),
        (
            "whole",
            r#""covariance": "diagonal", "points": {"starts": 3, "max_iters": 30}"#,
        ),
        (
            "whole",
            r#""points": {"temper": "local", "batch": 90, "passes": 3.0}"#,
        ),
        (
            "bernoulli",
            r#""points": {"batch": 70, "passes": 4.0, "seed": 2}"#,
        ),
        (
            "multinomial",
            r#""points": {"temper": "global", "max_iters": 70, "starts": 1}"#,
        ),
        (
            "gaps",
            r#""covariance": "tied", "points": {"starts": 2, "max_iters": 30}"#,
        ),
        (
            "gaps",
            r#""covariance": "spherical", "points": {"batch": 90, "passes": 3.0}"#,
        ),
    ]
    .map(|(kind, settings)| (kind, request(kind, settings)))
    .to_vec()
}

fn around<'a>(results: ResultFolder, observer: &'a mut Silent) -> Around<'a> {
    Around {
        results,
        checkpoint_every: Some(0.0),
        memory_limit: MEMORY_LIMIT,
        clock: &|| 0.0,
        cancel: None,
        partial: false,
        observer,
    }
}

fn fitted(
    request: &MixtureRequest,
    shards: &[PathBuf],
    workers: Workers,
    results: ResultFolder,
) -> (Result<PointsFit, Error>, usize) {
    let calls: Arc<AtomicUsize> = Arc::default();
    let steps = |plan: &str| -> Box<dyn RecordSteps> {
        Box::new(Here {
            plan: plan.to_owned(),
            workers,
            calls: Arc::clone(&calls),
            kept: Mutex::new(vec![None; shards.len()]),
        })
    };
    let found = fit_mixture_files(request, shards, &steps, around(results, &mut Silent));
    (found, calls.load(Ordering::Relaxed))
}

#[test]
fn files_are_the_fit_of_one_table_but_for_rounding() {
    for (kind, request) in requests() {
        let folder = tempfile::tempdir().unwrap();
        let (all, shards) = written(folder.path(), kind);
        let points = Points::read(&all, &request.points).unwrap();
        let (one, by_one) =
            fit_mixture(&request, &points, around(ResultFolder::None, &mut Silent)).unwrap();
        let (many, by_many) = fitted(&request, &shards, Workers::default(), ResultFolder::None)
            .0
            .unwrap();
        let error = (one.fit.elbo - many.fit.elbo).abs() / one.fit.elbo.abs();
        assert!(
            error < 1e-9,
            "{kind}: {} and {}",
            one.fit.elbo,
            many.fit.elbo
        );
        // Several starts may reach the same optimum with different orders of the components, and rounding errors then
        // decide which start is chosen.
        let alone = request.points.starts.is_none_or(|starts| starts == 1);
        let pairs = one.fit.lambda.iter().zip(&many.fit.lambda);
        for (x, y) in pairs.filter(|_| alone) {
            assert!(
                (x - y).abs() < 1e-5 * (1.0 + x.abs()),
                "{kind}: {x} and {y}"
            );
        }
        assert_eq!(by_many.iterations, by_one.iterations, "{kind}");
        assert_eq!(by_many.points, 500);
        assert_eq!(by_many.columns, ["a", "b", "c"]);
    }
}

#[test]
fn who_works_and_what_is_lost_changes_no_bit() {
    for (kind, mut request) in requests() {
        request.points.heldout = Some(0.1);
        let folder = tempfile::tempdir().unwrap();
        let (_, shards) = written(folder.path(), kind);
        let (whole, calls) = fitted(&request, &shards, Workers::default(), ResultFolder::None);
        let (whole, summary) = whole.unwrap();
        assert!(summary.heldout_log_predictive.is_some_and(f64::is_finite));
        let same = |found: &PointsFit, what: &str| {
            assert_eq!(found.0.fit.lambda, whole.fit.lambda, "{kind}: {what}");
            assert_eq!(found.0.fit.elbo, whole.fit.elbo, "{kind}: {what}");
            assert_eq!(
                found.1.heldout_log_predictive,
                summary.heldout_log_predictive
            );
            assert_eq!(found.1.iterations, summary.iterations, "{kind}: {what}");
        };
        let other = Workers {
            backwards: true,
            forget: true,
            lost: None,
        };
        same(
            &fitted(&request, &shards, other, ResultFolder::None)
                .0
                .unwrap(),
            "others",
        );
        // The last calls compute the ELBO, the gain of one more iteration and the scores.
        let late = calls.saturating_sub(4)..calls;
        for lost in [0, 1, 2, 5, calls / 2].into_iter().chain(late) {
            let out = folder.path().join(format!("fit{lost}"));
            let workers = Workers {
                lost: Some(lost),
                ..Workers::default()
            };
            let stopped = fitted(&request, &shards, workers, ResultFolder::New(out.clone())).0;
            let said = stopped.err().expect("nobody answered").to_string();
            assert!(said.contains("the machine is gone"), "{said}");
            assert!(!out.join("fit.json").exists());
            let results = match lost {
                // The run failed before it had written a checkpoint.
                0 | 1 => ResultFolder::New(out.clone()),
                _ => ResultFolder::Resumed {
                    folder: folder::open(&out, "mixture").unwrap(),
                    force: false,
                },
            };
            same(
                &fitted(&request, &shards, Workers::default(), results)
                    .0
                    .unwrap(),
                &format!("call {lost} of {calls}"),
            );
            let stored = MixtureModel::open(&out).unwrap();
            assert_eq!(stored.components, 3);
            let points = Points::read(&shards[0], &PointRequest::default()).unwrap();
            assert_eq!(stored.explain(&points).unwrap().bounds.len(), SHARES[0]);
        }
    }
}

#[test]
fn shards_that_cannot_be_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (_, shards) = written(folder.path(), "whole");
    let (_, request) = requests().swap_remove(2);
    let said = |request: &MixtureRequest, shards: &[PathBuf]| {
        let found = fitted(request, shards, Workers::default(), ResultFolder::None).0;
        found.err().expect("it cannot be").to_string()
    };
    let instead = |text: &str| {
        let path = folder.path().join("other.csv");
        std::fs::write(&path, text).unwrap();
        let mut changed = shards.clone();
        changed[3] = path;
        said(&request, &changed)
    };
    let columns = instead("a,b\n1,2\n");
    assert!(
        columns.contains("other.csv` has the columns `a`, `b` (2), but")
            && columns.contains("0.csv` has `a`, `b`, `c` (3)"),
        "{columns}"
    );
    assert!(
        instead("a,b,c\n1,inf,2\n").contains("other.csv`, row 1: the value of `b` is not finite")
    );
    assert!(instead("a,b,c\n").contains("other.csv"));
    let empty: Vec<PathBuf> = (0..2)
        .map(|n| folder.path().join(format!("empty{n}.csv")))
        .collect();
    for path in &empty {
        std::fs::write(path, "a,b,c\n1,,2\n3,,4\n5,,6\n").unwrap();
    }
    assert!(said(&request, &empty).contains("the column `b` has no number in any file"));
    let (_, binary) = requests().swap_remove(4);
    assert!(
        said(&binary, &shards).contains("0.csv` has")
            && said(&binary, &shards).contains("binary components need 0 and 1")
    );
    let many = MixtureRequest {
        components: Some("501".parse().unwrap()),
        ..request.clone()
    };
    assert!(said(&many, &shards).contains("501 components are too many for 500 points"));
    let wrong = MixtureRequest {
        smoothing: Some(1.0),
        ..request
    };
    assert!(
        said(&wrong, &shards)
            .contains("--smoothing belongs to binary, categorical and multinomial")
    );
}
