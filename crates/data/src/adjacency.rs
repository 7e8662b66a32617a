//! Graphs of neighbouring regions, for areal data.
//!
//! Files may have one of three formats. The format is determined from the content of the file:
//!
//! - **INLA**: the number of nodes, followed by one entry per node. An entry contains the index of the node, the number
//!   of its neighbours, and the indices of these neighbours.
//! - **BUGS**: JSON with the members `num` and `adj`. `num` lists the number of neighbours of each node. `adj` lists
//!   the indices of the neighbours of the first node, then those of the second node, and so on.
//! - **edge list**: the indices of two nodes per line, separated by a comma or by blanks. A header is skipped.
//!
//! If the index 0 occurs in the file, nodes are numbered from 0. Otherwise, they are numbered from 1.

use std::path::Path;

use crate::dataset::DataSet;
use crate::error::DataError;
use crate::source::Cursor;
use crate::table::read_bytes;

/// An undirected graph without loops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adjacency {
    neighbours: Vec<Vec<usize>>,
}

impl Adjacency {
    /// Builds a graph from edges. Nodes are numbered from 0, and an edge that occurs several times counts once.
    ///
    /// # Errors
    /// Fails if an edge refers to a node that does not exist, or if it connects a node with itself.
    pub fn from_edges(nodes: usize, edges: &[(usize, usize)]) -> Result<Self, DataError> {
        let mut neighbours = vec![Vec::new(); nodes];
        for &(a, b) in edges {
            if a == b || a >= nodes || b >= nodes {
                return Err(DataError::invalid(format!(
                    "the edge between the nodes {a} and {b} is not in the graph, which has {nodes} nodes \
                     numbered from 0"
                )));
            }
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self { neighbours })
    }

    /// Reads a graph from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or follows none of the three formats.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::parse(&read_bytes(path)?, &path.display().to_string())
    }

    /// Parses a graph in any of the three formats. `label` is the name of the file in error messages.
    ///
    /// # Errors
    /// Fails if the bytes follow none of the formats. The message contains the position of the error.
    pub fn parse(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        let text = Cursor::text_of(bytes, label)?;
        let content = text.trim_start_matches('\u{feff}').trim_start();
        let graph = Self::parse_text(bytes, text, content, label)?;
        if graph.nodes() == 0 {
            return Err(DataError::invalid(format!(
                "the graph `{label}` has no nodes"
            )));
        }
        Ok(graph)
    }

    fn parse_text(bytes: &[u8], text: &str, content: &str, label: &str) -> Result<Self, DataError> {
        if content.starts_with('{') {
            return bugs(bytes, label);
        }
        let first = content
            .lines()
            .map(|line| line.split('#').next().unwrap_or("").trim())
            .find(|line| !line.is_empty());
        if first.is_some_and(|line| !line.contains([' ', '\t', ',', ';'])) {
            inla(text, label)
        } else {
            edge_list(text, label)
        }
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the number of edges.
    pub fn edges(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// Returns the neighbours of every node. Each list of neighbours is in ascending order.
    pub fn neighbours(&self) -> &[Vec<usize>] {
        &self.neighbours
    }
}

/// The largest number of isolated nodes that an edge list may have. A file with more isolated nodes probably contains a
/// mistyped number.
const MOST_ALONE: usize = 10_000_000;

#[derive(Clone, Copy)]
struct Token {
    value: usize,
    at: usize,
    line: usize,
}

fn tokens(cursor: &Cursor<'_>) -> Result<Vec<Token>, DataError> {
    let mut tokens = Vec::new();
    let mut start = cursor.pos;
    let lines = cursor.text[cursor.pos..].split_inclusive('\n');
    for (number, line) in lines.enumerate() {
        let content = line.split('#').next().unwrap_or("");
        for word in content
            .split([' ', '\t', ',', ';', '\n', '\r'])
            .filter(|w| !w.is_empty())
        {
            let at = start + (word.as_ptr() as usize - line.as_ptr() as usize);
            let value = word.parse().map_err(|_| {
                cursor.error(at, format!("expected the number of a node, found `{word}`"))
            })?;
            tokens.push(Token {
                value,
                at,
                line: number,
            });
        }
        start += line.len();
    }
    Ok(tokens)
}

fn inla(text: &str, label: &str) -> Result<Adjacency, DataError> {
    let cursor = Cursor::new(text, label);
    let tokens = tokens(&cursor)?;
    let mut rest = tokens.iter();
    let end = |what: &str| {
        cursor.error(
            text.trim_end().len(),
            format!("the file ends where {what} is expected"),
        )
    };
    let nodes = rest.next().ok_or_else(|| end("the number of nodes"))?.value;
    let mut lists: Vec<(Token, Vec<Token>)> = Vec::new();
    for _ in 0..nodes {
        let node = *rest
            .next()
            .ok_or_else(|| end(&format!("one of {nodes} nodes")))?;
        let count = *rest.next().ok_or_else(|| end("a number of neighbours"))?;
        if count.value >= nodes {
            return Err(cursor.error(
                count.at,
                format!(
                    "{} neighbours are too many in a graph of {nodes} nodes",
                    count.value
                ),
            ));
        }
        let list: Vec<Token> = rest.by_ref().take(count.value).copied().collect();
        if list.len() < count.value {
            return Err(end("a neighbour"));
        }
        lists.push((node, list));
    }
    if let Some(extra) = rest.next() {
        return Err(cursor.error(
            extra.at,
            format!("the file continues after the last of {nodes} nodes"),
        ));
    }
    let zero = lists
        .iter()
        .any(|(node, list)| node.value == 0 || list.iter().any(|t| t.value == 0));
    let base = usize::from(!zero);
    let index = |token: &Token| {
        token
            .value
            .checked_sub(base)
            .filter(|i| *i < nodes)
            .ok_or_else(|| {
                cursor.error(
                    token.at,
                    format!(
                        "there is no node {}: nodes are numbered from {base} to {}",
                        token.value,
                        (nodes + base).saturating_sub(1)
                    ),
                )
            })
    };
    let mut neighbours: Vec<Option<Vec<usize>>> = vec![None; nodes];
    for (node, list) in &lists {
        let i = index(node)?;
        if neighbours[i].is_some() {
            return Err(cursor.error(
                node.at,
                format!("the node {} appears for the second time", node.value),
            ));
        }
        let mut indices = Vec::with_capacity(list.len());
        for token in list {
            let j = index(token)?;
            if j == i {
                return Err(cursor.error(
                    token.at,
                    format!("the node {} is listed as its own neighbour", token.value),
                ));
            }
            if indices.contains(&j) {
                return Err(cursor.error(
                    token.at,
                    format!("the neighbour {} is listed twice", token.value),
                ));
            }
            indices.push(j);
        }
        neighbours[i] = Some(indices);
    }
    let neighbours: Vec<Vec<usize>> = neighbours.into_iter().flatten().collect();
    for (node, list) in &lists {
        for token in list {
            if !neighbours[token.value - base].contains(&(node.value - base)) {
                return Err(cursor.error(
                    token.at,
                    format!(
                        "the node {} lists {} as a neighbour, but not the other way round",
                        node.value, token.value
                    ),
                ));
            }
        }
    }
    Ok(sorted(neighbours))
}

fn sorted(mut neighbours: Vec<Vec<usize>>) -> Adjacency {
    for list in &mut neighbours {
        list.sort_unstable();
    }
    Adjacency { neighbours }
}

fn edge_list(text: &str, label: &str) -> Result<Adjacency, DataError> {
    let mut cursor = Cursor::new(text, label);
    let first = text[cursor.pos..].lines().next().unwrap_or("");
    if first.chars().any(char::is_alphabetic) && !first.trim_start().starts_with('#') {
        cursor.pos += first.len();
    }
    let mut edges: Vec<(Token, Token)> = Vec::new();
    let all = tokens(&cursor)?;
    for pair in all.chunks(2) {
        match pair {
            [a, b] if a.line == b.line => {
                if a.value == b.value {
                    return Err(cursor.error(a.at, "an edge joins two different nodes"));
                }
                edges.push((*a, *b));
            }
            _ => {
                return Err(cursor.error(pair[0].at, "an edge is two numbers on one line"));
            }
        }
    }
    let values = || edges.iter().flat_map(|(a, b)| [a.value, b.value]);
    let base = usize::from(values().all(|v| v != 0));
    let last = values().max().map_or(0, |v| v - base);
    if last >= MOST_ALONE + all.len() {
        let message = format!(
            "the node number {last} is too large for a graph of {} edges",
            edges.len()
        );
        return Err(DataError::invalid(format!("`{label}`: {message}")));
    }
    let nodes = if edges.is_empty() { 0 } else { last + 1 };
    let pairs: Vec<(usize, usize)> = edges
        .iter()
        .map(|(a, b)| (a.value - base, b.value - base))
        .collect();
    Adjacency::from_edges(nodes, &pairs)
}

fn bugs(bytes: &[u8], label: &str) -> Result<Adjacency, DataError> {
    let data = DataSet::from_json(bytes, label)?;
    let list = |name: &str| -> Result<Vec<usize>, DataError> {
        let entry = data.entry(name, "a list of whole numbers")?;
        let shape = entry.value().shape().to_vec();
        let values = entry.ints(&shape, "a list of whole numbers")?;
        values
            .iter()
            .map(|v| {
                usize::try_from(*v).map_err(|_| {
                    DataError::invalid(format!("{label}: `{name}` has the negative number {v}"))
                })
            })
            .collect()
    };
    let (num, adj) = (list("num")?, list("adj")?);
    let total: usize = num.iter().sum();
    if total != adj.len() {
        return Err(DataError::invalid(format!(
            "{label}: `num` adds up to {total} neighbours, but `adj` lists {}",
            adj.len()
        )));
    }
    let base = usize::from(!adj.contains(&0));
    let mut rest = adj.iter();
    let mut neighbours: Vec<Vec<usize>> = Vec::with_capacity(num.len());
    for (i, count) in num.iter().enumerate() {
        let node = i + base;
        let mut list = Vec::with_capacity(*count);
        for value in rest.by_ref().take(*count) {
            let j = value.wrapping_sub(base);
            if j >= num.len() || j == i || list.contains(&j) {
                return Err(DataError::invalid(format!(
                    "{label}: `adj` lists {value} as a neighbour of the node {node}, but neighbours must be \
                     different nodes from {base} to {}",
                    num.len() + base - 1
                )));
            }
            list.push(j);
        }
        neighbours.push(list);
    }
    for (i, list) in neighbours.iter().enumerate() {
        if let Some(j) = list.iter().find(|j| !neighbours[**j].contains(&i)) {
            return Err(DataError::invalid(format!(
                "{label}: the node {} lists {} as a neighbour, but not the other way round",
                i + base,
                j + base
            )));
        }
    }
    Ok(sorted(neighbours))
}
