//! Tests which functions of the library can be evaluated. Each signature with at most two array dimensions is called in
//! a separate program, whose real arguments depend on a parameter. With `JENSEN_GOLDEN=update`, the test writes the
//! page of the book, and otherwise it compares the page with the results. `JENSEN_COVERAGE=NAME` prints the results for
//! the signatures of functions whose names contain NAME.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::support::JsonData;
use jensen_stan::evaluable::unsupported;
use jensen_stan::interpret::ErrorKind;
use jensen_stan::lower::{LowerOptions, lower};
use jensen_stan::program::{BuiltinId, FunctionType, Level, Type};
use jensen_stan::{NoIncludes, check};

const DEPTH: usize = 2;

#[derive(Clone, Copy, Default)]
struct Verdict {
    graph: bool,
    interpreter: bool,
}

type Family = (&'static str, fn(&str, &FunctionType) -> bool);

/// Each function belongs to the first family that accepts it.
const FAMILIES: &[Family] = &[
    ("complex numbers", |_, f| {
        f.result.has_complex() || f.params.iter().any(|p| p.ty.has_complex())
    }),
    ("densities", |name, _| {
        name.ends_with("_lpdf") || name.ends_with("_lpmf") || name.contains("_lupdf")
    }),
    ("distribution functions", |name, _| {
        ["_cdf", "_lcdf", "_lccdf", "_unnorm"]
            .iter()
            .any(|s| name.ends_with(s))
    }),
    ("constraining transforms", |name, _| {
        ["_constrain", "_unconstrain", "_jacobian"]
            .iter()
            .any(|s| name.ends_with(s))
    }),
    ("functions of numbers", |_, f| {
        f.params.iter().all(|p| p.ty.unwind().1.is_scalar())
    }),
    ("matrices", |_, f| {
        *f.result.unwind().1 == Type::Matrix
            || f.params.iter().any(|p| *p.ty.unwind().1 == Type::Matrix)
    }),
    ("containers", |_, _| true),
];

fn family(name: &str, signature: &FunctionType) -> &'static str {
    let of = FAMILIES.iter().find(|(_, takes)| takes(name, signature));
    of.map_or("containers", |(family, _)| family)
}

/// Excludes random numbers, function arguments and arrays with more dimensions.
fn legal(name: &str, signature: &FunctionType) -> bool {
    let depth = |ty: &Type| ty.unwind().0;
    let function = |ty: &Type| matches!(ty.unwind().1, Type::Function(_));
    !name.ends_with("_rng")
        && signature.result != Type::Void
        && depth(&signature.result) <= DEPTH
        && signature
            .params
            .iter()
            .all(|p| depth(&p.ty) <= DEPTH && !function(&p.ty))
}

fn declare(ty: &Type, at: usize, z: &str) -> (String, String) {
    let (depth, leaf) = ty.unwind();
    let size = if matches!(leaf, Type::Matrix | Type::ComplexMatrix) {
        "[2,2]"
    } else {
        "[2]"
    };
    let offset = 0.11 * at as f64;
    let element = match leaf {
        Type::Int => "1".to_owned(),
        Type::Real => format!("{z} + {offset}"),
        Type::Complex => format!("to_complex({z} + {offset}, 0.3)"),
        Type::Vector => format!("[{z} + {offset}, 0.9 - {z}]'"),
        Type::RowVector => format!("[{z} + {offset}, 0.9 - {z}]"),
        Type::Matrix => format!("[[{z} + {offset} + 1, 0.2], [0.2, 1.7 - {z}]]"),
        Type::ComplexVector => format!("to_complex([{z} + {offset}, 0.9 - {z}]', 0.1)"),
        Type::ComplexRowVector => format!("to_complex([{z} + {offset}, 0.9 - {z}], 0.1)"),
        Type::ComplexMatrix => {
            format!("to_complex([[{z} + {offset} + 1, 0.2], [0.2, 1.7 - {z}]], 0.1)")
        }
        other => format!("({other})"),
    };
    let sizes = if leaf.is_scalar() {
        String::new()
    } else {
        size.to_owned()
    };
    let text = match depth {
        0 => format!("{leaf}{sizes}"),
        1 => format!("array[2] {leaf}{sizes}"),
        _ => format!("array[2,2] {leaf}{sizes}"),
    };
    let value = (0..depth).fold(element, |e, _| format!("{{{e}, {e}}}"));
    (text, value)
}

fn program(name: &str, signature: &FunctionType) -> String {
    let (mut data, mut local) = (String::new(), String::new());
    let mut names = Vec::new();
    for (at, param) in signature.params.iter().enumerate() {
        let known = param.level == Level::Data || param.ty.is_discrete();
        let (ty, value) = declare(&param.ty, at, if known { "0.4" } else { "z" });
        let into = if known { &mut data } else { &mut local };
        let _ = write!(into, "{ty} a{at} = {value}; ");
        names.push(format!("a{at}"));
    }
    let conditional = ["_lpdf", "_lpmf", "_cdf", "_lcdf", "_lccdf"]
        .iter()
        .any(|s| name.ends_with(s));
    let arguments = match &names[..] {
        [first, rest @ ..] if conditional => format!("{first} | {}", rest.join(", ")),
        all => all.join(", "),
    };
    let call = format!("used({name}({arguments}))");
    let blocks = if name.ends_with("_jacobian") {
        format!(
            "transformed parameters {{ real y; {{ {local} y = {call}; }} }} model {{ target += y; }}"
        )
    } else {
        format!("model {{ {local} target += {call}; }}")
    };
    let result = &signature.result;
    format!(
        "functions {{ real used({result} x) {{ return 1.0; }} }}\ntransformed data {{ {data} }}\n\
        parameters {{ real<lower=0.1, upper=0.9> z; }}\n{blocks}\n"
    )
}

fn verdict(source: &str, talk: bool) -> Verdict {
    let checked = check(source, "model.stan", &NoIncludes);
    let Some(program) = checked.program else {
        panic!("{source}{}", checked.render(false));
    };
    let said = unsupported(&program);
    let program = std::sync::Arc::new(program);
    let bound = jensen_stan::interpret::Interpreter::default().bind(
        program,
        &JsonData::default(),
        &mut |_| {},
    );
    let model = match bound {
        Ok(model) => model,
        Err(error) => {
            let said = error.kind != ErrorKind::Unsupported;
            return Verdict {
                graph: said,
                interpreter: said,
            };
        }
    };
    let value = model.log_density(&[0.1], true, false);
    let lowered = lower(&model, LowerOptions::default());
    if talk {
        println!(
            "{source}  {:?}\n  {:?}",
            value.as_ref().map_err(|e| e.to_string()),
            lowered.as_ref().err().map(|e| e.to_string())
        );
    }
    let graph = !matches!(&lowered, Err(e) if e.kind == ErrorKind::Unsupported);
    // Every program that `jensen check` accepts as correct can be lowered.
    assert_eq!(graph, said.is_empty(), "{source}{said:?}");
    Verdict {
        graph,
        interpreter: !matches!(&value, Err(e) if e.kind == ErrorKind::Unsupported),
    }
}

#[test]
fn the_page_says_what_evaluates() {
    let wanted = std::env::var("JENSEN_COVERAGE").ok();
    let mut families: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut missing: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for id in BuiltinId::all().filter(|id| !id.is_variadic()) {
        let name = id.name();
        if wanted
            .as_ref()
            .is_some_and(|wanted| !name.contains(wanted.as_str()))
        {
            continue;
        }
        for signature in id.signatures().iter().filter(|s| legal(name, s)) {
            let found = verdict(&program(name, signature), wanted.is_some());
            let row = [1, usize::from(found.graph), usize::from(found.interpreter)];
            for table in [families.entry(family(name, signature)), missing.entry(name)] {
                let counts = table.or_default();
                (0..3).for_each(|i| counts[i] += row[i]);
            }
        }
    }
    missing.retain(|_, [all, graph, interpreter]| graph != all || interpreter != all);
    let page = page(&families, &missing);
    if wanted.is_some() {
        println!("{page}");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/coverage.md");
    if std::env::var("JENSEN_GOLDEN").is_ok_and(|x| x == "update") {
        std::fs::write(&path, page).expect("the page is written");
        return;
    }
    let kept = std::fs::read_to_string(&path).expect("the page is there");
    assert!(
        kept == page,
        "docs/book/src/coverage.md is out of date: run this test with JENSEN_GOLDEN=update\n{page}"
    );
}

fn page(families: &BTreeMap<&str, [usize; 3]>, missing: &BTreeMap<&str, [usize; 3]>) -> String {
    let mut text = String::from(PREFACE);
    let mut total = [0; 3];
    for (family, counts) in families {
        let [all, graph, interpreter] = counts;
        let _ = writeln!(text, "| {family} | {all} | {graph} | {interpreter} |");
        (0..3).for_each(|i| total[i] += counts[i]);
    }
    let [all, graph, interpreter] = total;
    let _ = writeln!(text, "| all | {all} | {graph} | {interpreter} |");
    text.push_str(MISSING);
    for (name, [all, graph, interpreter]) in missing {
        let _ = writeln!(text, "| `{name}` | {all} | {graph} | {interpreter} |");
    }
    text.push_str(DIGITS);
    for line in include_str!("../reference/extremes_limits.csv").lines() {
        let [name, graph, interpreter] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("a name and two limits, not `{line}`");
        };
        let _ = writeln!(text, "| `{name}` | {graph} | {interpreter} |");
    }
    text
}

const DIGITS: &str = "
## How exact densities are at extreme arguments

The table bounds the errors of log densities at arguments where terms cancel. Errors are relative to the larger of the log density and 1.
The worst error over 10⁴ points is below the power of ten in the column. Parameters range from 10⁻⁶ to 10⁶ and counts up to 2 · 10⁹. The
references have 60 digits (`tools/oracle/extremes.py`). `cargo test -p jensen-stan --test it extremes::` compares the worst 200 points of
each distribution. Errors exceed 10⁻⁹ where terms as large as a count, a shape or a squared distance cancel to a number of order one.

| distribution | in the log density | in the interpreter |
| --- | ---: | ---: |
";

const PREFACE: &str = "# Functions of Stan's library that Jensen evaluates

A signature is a function together with the types of its arguments. The table counts the signatures that a log density may use, that have at
most two array dimensions, and that take no function as an argument. The next columns count the signatures that Jensen evaluates in the log
density, where every real argument depends on a parameter, and in the interpreter, which computes transformed data and generated quantities.
`JENSEN_GOLDEN=update cargo test -p jensen-stan --test it coverage::` writes this page, and the same test without the variable checks it.

| family | signatures | in the log density | in the interpreter |
| --- | ---: | ---: | ---: |
";

const MISSING: &str = "
## Functions with gaps

| function | signatures | in the log density | in the interpreter |
| --- | ---: | ---: | ---: |
";
