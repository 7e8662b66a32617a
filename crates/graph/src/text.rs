//! Prints a graph as text, and parses the text.
//!
//! The text begins with the tables. The tables are followed by one line for each node. The outputs are listed on the
//! last line. Blank lines and lines that start with `#` are ignored.
//!
//! ```text
//! c0 = [1.0, -0.5, inf]
//! i0 = [0, 0, 2]
//! r0 = values 2 [0.1, 0.2, 0.3, 0.4]
//! r1 = indices [0, 1]
//! in0 = lane [3]
//! %0: [3] lane = input in0
//! %1: [3] constant = const c0
//! %2: [3] lane = mul %0 %1 @12
//! %3: [3] lane = gather i0 %2
//! %4: [2/record] shared = record r0
//! %5: [] lane = sum %3
//! outputs %5
//! ```
//!
//! The line of a node contains its shape (`[]` for one element, `[n]`, or `[n/record]`), its placement, its operation
//! with attributes and arguments, and `@site` if the site is known. Numbers are printed with enough digits to reproduce
//! them exactly. A NaN whose bits differ from those of the standard NaN is printed as `nan(0x…)`. The parser adds nodes
//! without simplification, so every node keeps its id. The parser verifies each node when it has read its line.

mod solver;

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use self::solver::Open;
use crate::ir::{
    ConstId, Graph, IndexId, Input, NodeId, Placement, RecordColumn, RecordId, Shape, SolverId,
};
use crate::ops::{ElemOp, MAX_SCATTER, MatMul, Op, Pass, ScatterMap};
use crate::verify;

/// The largest number of entries of a table that [`Graph::summary`] prints in full.
const SUMMARY_ENTRIES: usize = 8;

/// An error in the text form of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The number of the line, counted from one.
    pub line: usize,
    /// The reason why the line is invalid.
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TextError {}

/// A graph in readable form. `Display` prints the text form of the graph, with long tables truncated.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a>(&'a Graph);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_graph(self.0, SUMMARY_ENTRIES, f)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_graph(self, usize::MAX, f)
    }
}

impl FromStr for Graph {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse(text)
    }
}

impl Graph {
    /// Returns the text form with long tables truncated. The parser cannot read this form.
    pub fn summary(&self) -> Summary<'_> {
        Summary(self)
    }

    /// Parses the text form; see the [module documentation](self).
    ///
    /// # Errors
    /// Returns the first error: a malformed line, or a node that violates an invariant of [`verify`].
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let mut reader = Reader {
            graph: Self::new(),
            open: None,
            finished: false,
        };
        let mut last = 1;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            last = number;
            reader.line(line).map_err(|message| TextError {
                line: number,
                message,
            })?;
        }
        let at_end = |message| TextError {
            line: last,
            message,
        };
        if !reader.finished {
            return Err(at_end("the text ends without a line of outputs".into()));
        }
        verify::verify(&reader.graph).map_err(|error| at_end(error.to_string()))?;
        Ok(reader.graph)
    }
}

struct Shaped(Shape);

impl fmt::Display for Shaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Shape::SCALAR => f.write_str("[]"),
            Shape { len, record: false } => write!(f, "[{len}]"),
            Shape { len, record: true } => write!(f, "[{len}/record]"),
        }
    }
}

fn read_shape(token: &str) -> Result<Shape, String> {
    let inner = token
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| format!("expected a shape like [3], found `{token}`"))?;
    if inner.is_empty() {
        return Ok(Shape::SCALAR);
    }
    let (len, record) = match inner.strip_suffix("/record") {
        Some(len) => (len, true),
        None => (inner, false),
    };
    Ok(Shape {
        len: read_u32(len)?,
        record,
    })
}

const PLACEMENTS: [(Placement, &str); 3] = [
    (Placement::Constant, "constant"),
    (Placement::Shared, "shared"),
    (Placement::Lane, "lane"),
];

fn placement_name(placement: Placement) -> &'static str {
    PLACEMENTS[placement as usize].1
}

fn read_placement(token: &str) -> Result<Placement, String> {
    PLACEMENTS
        .iter()
        .find(|entry| entry.1 == token)
        .map(|entry| entry.0)
        .ok_or_else(|| format!("expected constant, shared or lane, found `{token}`"))
}

struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.to_bits();
        if self.0.is_nan() && bits != f64::NAN.to_bits() {
            write!(f, "nan({bits:#x})")
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

fn read_number(token: &str) -> Result<f64, String> {
    if let Some(bits) = token
        .strip_prefix("nan(0x")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let value = u64::from_str_radix(bits, 16).map(f64::from_bits);
        return match value {
            Ok(value) if value.is_nan() => Ok(value),
            _ => Err(format!("`{token}` is not a NaN")),
        };
    }
    token
        .parse()
        .map_err(|_| format!("expected a number, found `{token}`"))
}

fn read_u32(token: &str) -> Result<u32, String> {
    token
        .parse()
        .map_err(|_| format!("expected a whole number, found `{token}`"))
}

fn read_field(token: &str, name: &str) -> Result<u32, String> {
    token
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('='))
        .ok_or_else(|| format!("expected `{name}=`, found `{token}`"))
        .and_then(read_u32)
}

fn write_list<T>(
    entries: &[T],
    most: usize,
    f: &mut fmt::Formatter<'_>,
    write: impl Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_char('[')?;
    for (k, entry) in entries.iter().take(most).enumerate() {
        if k > 0 {
            f.write_str(", ")?;
        }
        write(entry, f)?;
    }
    if entries.len() > most {
        write!(f, ", … {} in all", entries.len())?;
    }
    f.write_char(']')
}

fn read_list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or("expected a list in brackets")?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    inner.split(',').map(|entry| read(entry.trim())).collect()
}

fn write_graph(graph: &Graph, most: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let number = |x: &f64, f: &mut fmt::Formatter<'_>| write!(f, "{}", Number(*x));
    let whole = |x: &u32, f: &mut fmt::Formatter<'_>| write!(f, "{x}");
    for (k, table) in graph.consts.iter().enumerate() {
        write!(f, "{} = ", ConstId::new(k))?;
        write_list(table, most, f, number)?;
        f.write_char('\n')?;
    }
    for (k, list) in graph.indices.iter().enumerate() {
        write!(f, "{} = ", IndexId::new(k))?;
        write_list(list, most, f, whole)?;
        f.write_char('\n')?;
    }
    for (k, record) in graph.records.iter().enumerate() {
        write!(f, "{} = ", RecordId::new(k))?;
        match record {
            RecordColumn::Values { width, values } => {
                write!(f, "values {width} ")?;
                write_list(values, most, f, number)?;
            }
            RecordColumn::Indices(indices) => {
                f.write_str("indices ")?;
                write_list(indices, most, f, whole)?;
            }
        }
        f.write_char('\n')?;
    }
    for (k, solver) in graph.solvers.iter().enumerate() {
        write!(f, "{} = ", SolverId::new(k))?;
        solver::write(solver, most, f)?;
    }
    for (k, input) in graph.inputs.iter().enumerate() {
        writeln!(
            f,
            "in{k} = {} [{}]",
            placement_name(input.placement),
            input.len
        )?;
    }
    for id in graph.ids() {
        write_node(graph, id, f)?;
    }
    f.write_str("outputs")?;
    for output in graph.outputs() {
        write!(f, " {output}")?;
    }
    f.write_char('\n')
}

fn write_node(graph: &Graph, id: NodeId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let node = graph.node(id);
    let placement = placement_name(node.placement);
    write!(f, "{id}: {} {placement} = ", Shaped(node.shape))?;
    f.write_str(node.op.name())?;
    let flag = |set: bool, name: &'static str| if set { name } else { "" };
    match node.op {
        Op::Const(table) => write!(f, " {table}")?,
        Op::Input(slot) => write!(f, " in{slot}")?,
        Op::Record(column) | Op::GatherRecord(column) => write!(f, " {column}")?,
        Op::Gather(index) => write!(f, " {index}")?,
        Op::Solver(solver, pass) => write!(f, " {solver} {}", pass.name())?,
        Op::CumSum { reverse } => f.write_str(flag(reverse, " reverse"))?,
        Op::MatMul(dims) => {
            write!(f, " m={} k={} n={}", dims.m, dims.k, dims.n)?;
            f.write_str(flag(dims.left_transposed, " left_transposed"))?;
            f.write_str(flag(dims.right_transposed, " right_transposed"))?;
        }
        Op::Cholesky { n } | Op::EigenSym { n } => write!(f, " n={n}")?,
        Op::Determinant { n, log } => {
            write!(f, " n={n}")?;
            f.write_str(flag(log, " log"))?;
        }
        Op::Eigen { n, hermitian } => {
            write!(f, " n={n}")?;
            f.write_str(flag(hermitian, " hermitian"))?;
        }
        Op::Hypergeometric {
            above,
            below,
            order,
        } => write!(f, " above={above} below={below} order={order}")?,
        Op::TriSolve {
            n,
            cols,
            transposed,
        }
        | Op::Solve {
            n,
            cols,
            transposed,
        } => {
            write!(f, " n={n} cols={cols}")?;
            f.write_str(flag(transposed, " transposed"))?;
        }
        Op::RecordCount
        | Op::Elem(_)
        | Op::Broadcast
        | Op::Scatter(_)
        | Op::Concat
        | Op::Sum
        | Op::Max
        | Op::LaneSum => {}
    }
    for (k, arg) in graph.args(id).iter().enumerate() {
        f.write_char(' ')?;
        if let Op::Scatter(maps) = node.op {
            match maps[k] {
                ScatterMap::All => f.write_str("all:")?,
                ScatterMap::Index(index) => write!(f, "{index}:")?,
                ScatterMap::Record(column) => write!(f, "{column}:")?,
            }
        }
        write!(f, "{arg}")?;
    }
    if node.site != 0 {
        write!(f, " @{}", node.site)?;
    }
    f.write_char('\n')
}

struct Words<'a> {
    rest: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
}

impl<'a> Words<'a> {
    fn next(&mut self, what: &str) -> Result<&'a str, String> {
        self.rest
            .next()
            .ok_or_else(|| format!("the line ends where {what} was expected"))
    }

    fn flag(&mut self, flag: &str) -> bool {
        self.rest.next_if_eq(&flag).is_some()
    }

    fn field(&mut self, name: &str) -> Result<u32, String> {
        let word = self.next(&format!("`{name}=`"))?;
        read_field(word, name)
    }
}

struct Reader {
    graph: Graph,
    open: Option<Open>,
    finished: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(open) = &mut self.open {
            if let Some(solver) = open.line(line)? {
                self.graph.solvers.push(solver);
                self.open = None;
            }
            return Ok(());
        }
        if self.finished {
            return Err("nothing may follow the outputs".into());
        }
        if let Some(rest) = line.strip_prefix("outputs")
            && (rest.is_empty() || rest.starts_with(char::is_whitespace))
        {
            let outputs: Result<Vec<NodeId>, String> = rest
                .split_whitespace()
                .map(|word| self.node(word))
                .collect();
            self.graph.set_outputs(outputs?);
            self.finished = true;
            return Ok(());
        }
        if line.starts_with('%') {
            return self.node_line(line);
        }
        if !self.graph.is_empty() {
            return Err(format!("expected a node or the outputs, found `{line}`"));
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| format!("expected a table, a node or the outputs, found `{line}`"))?;
        self.table(name.trim(), value.trim())
    }

    fn table(&mut self, name: &str, value: &str) -> Result<(), String> {
        let graph = &mut self.graph;
        let expected = |expected: String| {
            if name == expected {
                Ok(())
            } else {
                Err(format!("expected `{expected}`, found `{name}`"))
            }
        };
        if name.starts_with("in") {
            expected(format!("in{}", graph.inputs.len()))?;
            let mut words = Words {
                rest: value.split_whitespace().peekable(),
            };
            let placement = read_placement(words.next("a placement")?)?;
            let shape = read_shape(words.next("a shape")?)?;
            if placement == Placement::Constant || shape.record || words.rest.next().is_some() {
                return Err("an input is `lane [n]` or `shared [n]`".into());
            }
            graph.inputs.push(Input {
                len: shape.len as usize,
                placement,
            });
        } else if name.starts_with('s') {
            expected(SolverId::new(graph.solvers.len()).to_string())?;
            let open = Open::begin(value).ok_or("expected `{` and a body behind a solver")?;
            self.open = Some(open);
        } else if name.starts_with('c') {
            expected(ConstId::new(graph.consts.len()).to_string())?;
            let values = read_list(value, read_number)?;
            graph.push_const(values.into());
        } else if name.starts_with('i') {
            expected(IndexId::new(graph.indices.len()).to_string())?;
            let indices = read_list(value, read_u32)?;
            graph.push_index(indices.into());
        } else if name.starts_with('r') {
            expected(RecordId::new(graph.records.len()).to_string())?;
            let record = read_record(value)?;
            let count = graph.record_count().unwrap_or(record.count());
            if record.count() != count {
                return Err(format!(
                    "a record column has {} records, another {count}",
                    record.count()
                ));
            }
            graph.records.push(record);
        } else {
            return Err(format!("`{name}` is not the name of a table"));
        }
        Ok(())
    }

    fn node_line(&mut self, line: &str) -> Result<(), String> {
        let mut words = Words {
            rest: line.split_whitespace().peekable(),
        };
        let name = words.next("a node")?;
        let id = NodeId::new(self.graph.len());
        if name.strip_suffix(':') != Some(id.to_string().as_str()) {
            return Err(format!("expected `{id}:`, found `{name}`"));
        }
        let shape = read_shape(words.next("a shape")?)?;
        let placement = read_placement(words.next("a placement")?)?;
        match words.next("`=`")? {
            "=" => {}
            other => return Err(format!("expected `=`, found `{other}`")),
        }
        let op_name = words.next("an operation")?;
        let mut op = self.operation(op_name, &mut words)?;
        let mut args: Vec<NodeId> = Vec::new();
        let mut site = 0;
        while let Some(word) = words.rest.next() {
            if let Some(number) = word.strip_prefix('@') {
                site = read_u32(number)?;
                if words.rest.next().is_some() {
                    return Err("the site ends the line".into());
                }
            } else if let Op::Scatter(maps) = &mut op {
                let (map, arg) = word
                    .split_once(':')
                    .ok_or_else(|| format!("expected `map:%node`, found `{word}`"))?;
                let slot = maps
                    .get_mut(args.len())
                    .ok_or_else(|| format!("more than {MAX_SCATTER} sources"))?;
                *slot = self.scatter_map(map)?;
                args.push(self.node(arg)?);
            } else {
                args.push(self.node(word)?);
            }
        }
        self.graph.push_verbatim(op, &args, shape, site);
        verify::verify_node(&self.graph, id)?;
        let derived = self.graph.placement(id);
        if derived == placement {
            Ok(())
        } else {
            Err(format!(
                "`{op_name}` of these arguments is {}, not {}",
                placement_name(derived),
                placement_name(placement)
            ))
        }
    }

    fn operation(&self, name: &str, words: &mut Words<'_>) -> Result<Op, String> {
        Ok(match name {
            "const" => Op::Const(self.constant(words.next("a constant")?)?),
            "input" => {
                Op::Input(
                    self.entry(words.next("an input")?, "in", self.graph.inputs.len())? as u32,
                )
            }
            "record" => Op::Record(self.column(words.next("a record column")?)?),
            "record_count" => Op::RecordCount,
            "broadcast" => Op::Broadcast,
            "gather" => Op::Gather(self.index(words.next("an index list")?)?),
            "gather_record" => Op::GatherRecord(self.column(words.next("a record column")?)?),
            "scatter" => Op::Scatter([ScatterMap::All; MAX_SCATTER]),
            "concat" => Op::Concat,
            "sum" => Op::Sum,
            "max" => Op::Max,
            "cumsum" => Op::CumSum {
                reverse: words.flag("reverse"),
            },
            "lane_sum" => Op::LaneSum,
            "matmul" => Op::MatMul(MatMul {
                m: words.field("m")?,
                k: words.field("k")?,
                n: words.field("n")?,
                left_transposed: words.flag("left_transposed"),
                right_transposed: words.flag("right_transposed"),
            }),
            "cholesky" => Op::Cholesky {
                n: words.field("n")?,
            },
            "tri_solve" => Op::TriSolve {
                n: words.field("n")?,
                cols: words.field("cols")?,
                transposed: words.flag("transposed"),
            },
            "solve" => Op::Solve {
                n: words.field("n")?,
                cols: words.field("cols")?,
                transposed: words.flag("transposed"),
            },
            "determinant" => Op::Determinant {
                n: words.field("n")?,
                log: words.flag("log"),
            },
            "eigen_sym" => Op::EigenSym {
                n: words.field("n")?,
            },
            "eigen" => Op::Eigen {
                n: words.field("n")?,
                hermitian: words.flag("hermitian"),
            },
            "hypergeometric" => Op::Hypergeometric {
                above: words.field("above")?,
                below: words.field("below")?,
                order: words.field("order")?,
            },
            "solver" => {
                let name = words.next("a solver")?;
                let id = self.entry(name, "s", self.graph.solvers.len())?;
                let word = words.next("a pass")?;
                let pass = Pass::ALL.iter().find(|pass| pass.1 == word);
                let pass = pass.ok_or_else(|| format!("no pass is called `{word}`"))?.0;
                Op::Solver(SolverId::new(id), pass)
            }
            _ => Op::Elem(
                ElemOp::by_name(name).ok_or_else(|| format!("no operation is called `{name}`"))?,
            ),
        })
    }

    fn scatter_map(&self, word: &str) -> Result<ScatterMap, String> {
        Ok(match word {
            "all" => ScatterMap::All,
            _ if word.starts_with('r') => ScatterMap::Record(self.column(word)?),
            _ => ScatterMap::Index(self.index(word)?),
        })
    }

    /// Parses the number of a table entry such as `c3`, which must be less than `count`.
    fn entry(&self, word: &str, prefix: &str, count: usize) -> Result<usize, String> {
        let number = word
            .strip_prefix(prefix)
            .ok_or_else(|| format!("expected `{prefix}` and a number, found `{word}`"))
            .and_then(read_u32)? as usize;
        if number < count {
            Ok(number)
        } else {
            Err(format!("there is no `{word}` before this line"))
        }
    }

    fn node(&self, word: &str) -> Result<NodeId, String> {
        self.entry(word, "%", self.graph.len()).map(NodeId::new)
    }

    fn constant(&self, word: &str) -> Result<ConstId, String> {
        self.entry(word, "c", self.graph.consts.len())
            .map(ConstId::new)
    }

    fn index(&self, word: &str) -> Result<IndexId, String> {
        self.entry(word, "i", self.graph.indices.len())
            .map(IndexId::new)
    }

    fn column(&self, word: &str) -> Result<RecordId, String> {
        self.entry(word, "r", self.graph.records.len())
            .map(RecordId::new)
    }
}

fn read_record(value: &str) -> Result<RecordColumn, String> {
    let at = value.find('[').ok_or("expected a list in brackets")?;
    let (head, list) = value.split_at(at);
    let mut words = Words {
        rest: head.split_whitespace().peekable(),
    };
    let record = match words.next("values or indices")? {
        "values" => {
            let width = read_u32(words.next("a width")?)? as usize;
            let values: Arc<[f64]> = read_list(list, read_number)?.into();
            if width == 0 || !values.len().is_multiple_of(width) {
                return Err(format!(
                    "{} numbers are not whole records of {width}",
                    values.len()
                ));
            }
            RecordColumn::Values { width, values }
        }
        "indices" => RecordColumn::Indices(read_list(list, read_u32)?.into()),
        other => return Err(format!("expected values or indices, found `{other}`")),
    };
    match words.rest.next() {
        None => Ok(record),
        Some(word) => Err(format!("unexpected `{word}`")),
    }
}
