//! Graphs of Markov fields: paths, cycles, lattices with holes, neighbourhoods of regions.

use crate::Error;

/// An undirected graph, stored as the neighbours of every node in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    /// A graph from the neighbours of every node, numbered from 0.
    ///
    /// # Errors
    /// Fails if a neighbour does not exist, is the node itself, is listed twice or does not list the node in return.
    pub fn new(mut neighbours: Vec<Vec<usize>>) -> Result<Self, Error> {
        let nodes = neighbours.len();
        for list in &mut neighbours {
            list.sort_unstable();
        }
        for (i, list) in neighbours.iter().enumerate() {
            let twice = list.windows(2).any(|pair| pair[0] == pair[1]);
            let lost = list
                .iter()
                .find(|j| **j >= nodes || **j == i || neighbours[**j].binary_search(&i).is_err());
            if let Some(j) = lost {
                return Err(Error::Prior(format!(
                    "graph: node {i} lists {j} as a neighbour, but neighbours must be other nodes below \
                     {nodes} that list it too"
                )));
            }
            if twice {
                return Err(Error::Prior(format!(
                    "graph: node {i} lists a neighbour twice"
                )));
            }
        }
        Ok(Self { neighbours })
    }

    /// A path of nodes, or a ring if `cyclic`, which requires at least three nodes.
    pub fn path(nodes: usize, cyclic: bool) -> Self {
        let ring = cyclic && nodes > 2;
        let neighbours = (0..nodes)
            .map(|i| {
                let before = (i + nodes - 1) % nodes.max(1);
                let after = (i + 1) % nodes.max(1);
                let mut list = Vec::new();
                if i > 0 || ring {
                    list.push(before);
                }
                if i + 1 < nodes || ring {
                    list.push(after);
                }
                list.sort_unstable();
                list
            })
            .collect();
        Self { neighbours }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// The neighbours of a node.
    pub fn neighbours(&self, node: usize) -> &[usize] {
        &self.neighbours[node]
    }

    /// Every edge once, the lower node first.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.neighbours
            .iter()
            .enumerate()
            .flat_map(|(i, list)| list.iter().filter(move |j| **j > i).map(move |j| (i, *j)))
    }

    /// The number of the connected component of every node, and the number of components. Components are numbered by
    /// their first nodes.
    pub fn components(&self) -> (Vec<usize>, usize) {
        let mut label = vec![usize::MAX; self.nodes()];
        let mut count = 0;
        for start in 0..self.nodes() {
            if label[start] != usize::MAX {
                continue;
            }
            let mut open = vec![start];
            label[start] = count;
            while let Some(i) = open.pop() {
                for &j in &self.neighbours[i] {
                    if label[j] == usize::MAX {
                        label[j] = count;
                        open.push(j);
                    }
                }
            }
            count += 1;
        }
        (label, count)
    }
}

/// Cells of a rectangle, row by row, some of which may be omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The node of cell `row · columns + column`; `None` in a hole.
    node: Vec<Option<usize>>,
    /// The cell of every node.
    cell: Vec<usize>,
}

impl Lattice {
    /// All cells, or those with `mask` true (row by row).
    ///
    /// # Errors
    /// Fails if the mask has another number of cells, or omits all of them.
    pub fn new(rows: usize, columns: usize, mask: Option<&[bool]>) -> Result<Self, Error> {
        let cells = rows * columns;
        if mask.is_some_and(|m| m.len() != cells) || cells == 0 {
            return Err(Error::Prior(format!(
                "the grid has {rows} × {columns} cells, but its mask has {}",
                mask.map_or(0, <[bool]>::len)
            )));
        }
        let cell: Vec<usize> = (0..cells).filter(|i| mask.is_none_or(|m| m[*i])).collect();
        if cell.is_empty() {
            return Err(Error::Prior("every cell of the grid is a hole".to_owned()));
        }
        let mut node = vec![None; cells];
        for (i, c) in cell.iter().enumerate() {
            node[*c] = Some(i);
        }
        Ok(Self {
            rows,
            columns,
            node,
            cell,
        })
    }

    /// Number of nodes: cells that are not holes.
    pub fn nodes(&self) -> usize {
        self.cell.len()
    }

    /// Whether the grid has no holes.
    pub fn is_full(&self) -> bool {
        self.cell.len() == self.node.len()
    }

    /// The node of a cell; `None` in a hole or outside.
    pub fn node(&self, row: usize, column: usize) -> Option<usize> {
        (row < self.rows && column < self.columns)
            .then(|| self.node[row * self.columns + column])
            .flatten()
    }

    /// Row and column of a node.
    pub fn position(&self, node: usize) -> (usize, usize) {
        (
            self.cell[node] / self.columns,
            self.cell[node] % self.columns,
        )
    }

    /// Neighbours share a side.
    pub fn graph(&self) -> Graph {
        let neighbours = (0..self.nodes())
            .map(|node| {
                let (r, c) = self.position(node);
                let around = [
                    (r.wrapping_sub(1), c),
                    (r, c.wrapping_sub(1)),
                    (r, c + 1),
                    (r + 1, c),
                ];
                around
                    .iter()
                    .filter_map(|(r, c)| self.node(*r, *c))
                    .collect()
            })
            .collect();
        Graph { neighbours }
    }
}
