//! Prints and parses solvers. A solver is a table entry that contains its body, a graph between braces.
//!
//! ```text
//! s0 = ode method=dormand_prince states=2 parameters=4 times=20 relative=1e-6 max_steps=1000000 times_are=data absolute=[1e-6, 1e-6] {
//!   in0 = lane [1]
//!   …
//! }
//! s1 = root unknowns=2 parameters=1 tolerance=1e-6 max_steps=200 {
//! s2 = integral lower=finite upper=infinite parameters=3 relative=1e-8 {
//! ```

use std::fmt::{self, Write as _};
use std::sync::Arc;

use jensen_math::solvers::{Ends, Integral, Method, Ode, Root};

use super::{Number, Words, read_list, read_number, write_graph, write_list};
use crate::ir::Graph;
use crate::ops::{Solver, SolverKind};

const METHODS: [(Method, &str); 4] = [
    (Method::DormandPrince, "dormand_prince"),
    (Method::CashKarp, "cash_karp"),
    (Method::Radau, "radau"),
    (Method::Implicit, "implicit"),
];

fn method_name(method: Method) -> &'static str {
    METHODS
        .iter()
        .find(|entry| entry.0 == method)
        .map_or("", |entry| entry.1)
}

fn end_name(finite: bool) -> &'static str {
    if finite { "finite" } else { "infinite" }
}

pub(super) fn write(solver: &Solver, most: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match &solver.kind {
        SolverKind::Ode(ode) => {
            write!(
                f,
                "ode method={} states={} parameters={} times={} relative={} max_steps={} times_are={} absolute=",
                method_name(ode.method),
                ode.states,
                ode.parameters,
                ode.times,
                Number(ode.relative),
                ode.max_steps,
                if ode.fixed_times { "data" } else { "arguments" }
            )?;
            write_list(&ode.absolute, usize::MAX, f, |x, f| {
                write!(f, "{}", Number(*x))
            })?;
        }
        SolverKind::Root(root) => write!(
            f,
            "root unknowns={} parameters={} tolerance={} max_steps={}",
            root.unknowns,
            root.parameters,
            Number(root.tolerance),
            root.max_steps
        )?,
        SolverKind::Integral(integral) => write!(
            f,
            "integral lower={} upper={} parameters={} relative={}",
            end_name(integral.ends.lower),
            end_name(integral.ends.upper),
            integral.parameters,
            Number(integral.relative)
        )?,
    }
    f.write_str(" {\n")?;
    let mut body = String::new();
    write!(body, "{}", Body(&solver.body, most))?;
    for line in body.lines() {
        writeln!(f, "  {line}")?;
    }
    f.write_str("}\n")
}

struct Body<'a>(&'a Graph, usize);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_graph(self.0, self.1, f)
    }
}

/// A table entry that has been read only in part. The first line of the entry and all lines read so far are stored.
#[derive(Default)]
pub(super) struct Open {
    head: String,
    body: String,
    depth: usize,
}

impl Open {
    /// Returns the unfinished entry if a table entry with a body begins on this line.
    pub fn begin(head: &str) -> Option<Self> {
        let head = head.strip_suffix('{')?;
        Some(Self {
            head: head.to_string(),
            ..Self::default()
        })
    }

    /// Adds a line to the entry. Returns the solver if the line completes it.
    pub fn line(&mut self, line: &str) -> Result<Option<Arc<Solver>>, String> {
        if line == "}" && self.depth == 0 {
            return self.finish().map(|solver| Some(Arc::new(solver)));
        }
        if line == "}" {
            self.depth -= 1;
        } else if line.ends_with('{') {
            self.depth += 1;
        }
        self.body.push_str(line);
        self.body.push('\n');
        Ok(None)
    }

    fn finish(&self) -> Result<Solver, String> {
        let body = Graph::parse(&self.body).map_err(|e| format!("in the body, {e}"))?;
        let (head, absolute) = match self.head.split_once("absolute=") {
            Some((head, list)) => (head, read_list(list.trim(), read_number)?),
            None => (self.head.as_str(), Vec::new()),
        };
        let mut words = Words {
            rest: head.split_whitespace().peekable(),
        };
        let kind = match words.next("a kind of solver")? {
            "ode" => SolverKind::Ode(Ode {
                method: words.choice("method", &METHODS)?,
                states: words.field("states")? as usize,
                parameters: words.field("parameters")? as usize,
                times: words.field("times")? as usize,
                relative: words.number("relative")?,
                max_steps: words.count("max_steps")?,
                fixed_times: words.choice("times_are", &[(true, "data"), (false, "arguments")])?,
                absolute,
            }),
            "root" => SolverKind::Root(Root {
                unknowns: words.field("unknowns")? as usize,
                parameters: words.field("parameters")? as usize,
                tolerance: words.number("tolerance")?,
                max_steps: words.count("max_steps")?,
            }),
            "integral" => {
                let finite = [(true, "finite"), (false, "infinite")];
                SolverKind::Integral(Integral {
                    ends: Ends {
                        lower: words.choice("lower", &finite)?,
                        upper: words.choice("upper", &finite)?,
                    },
                    parameters: words.field("parameters")? as usize,
                    relative: words.number("relative")?,
                })
            }
            other => return Err(format!("no solver is called `{other}`")),
        };
        if let Some(word) = words.rest.next() {
            return Err(format!("unexpected `{word}`"));
        }
        let solver = Solver { kind, body };
        solver.problem().map_or(Ok(solver), Err)
    }
}

impl<'a> Words<'a> {
    fn value(&mut self, name: &str) -> Result<&'a str, String> {
        let word = self.next(&format!("`{name}=`"))?;
        word.strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='))
            .ok_or_else(|| format!("expected `{name}=`, found `{word}`"))
    }

    fn number(&mut self, name: &str) -> Result<f64, String> {
        self.value(name).and_then(read_number)
    }

    fn count(&mut self, name: &str) -> Result<u64, String> {
        let word = self.value(name)?;
        word.parse()
            .map_err(|_| format!("expected a whole number, found `{word}`"))
    }

    fn choice<T: Copy>(&mut self, name: &str, choices: &[(T, &str)]) -> Result<T, String> {
        let word = self.value(name)?;
        choices
            .iter()
            .find(|choice| choice.1 == word)
            .map(|choice| choice.0)
            .ok_or_else(|| format!("`{word}` is no {name}"))
    }
}
