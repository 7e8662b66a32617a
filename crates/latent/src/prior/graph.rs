//! Graphs of Markov fields: paths, rings, lattices with holes, and neighbourhoods of regions.

use crate::Error;

/// An undirected graph, stored as the neighbours of every node in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    /// Creates a graph from the neighbours of every node. Nodes are numbered from 0.
    ///
    /// # Errors
    /// Fails if a node lists itself, a node that does not exist, or the same node twice. Also fails if a node is a
    /// neighbour of another node but not the reverse.
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

    /// Creates a path of nodes, or a ring if `cyclic` is true. A ring needs at least three nodes.
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

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the neighbours of a node.
    pub fn neighbours(&self, node: usize) -> &[usize] {
        &self.neighbours[node]
    }

    /// Returns every edge once, with the lower-numbered node first.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.neighbours
            .iter()
            .enumerate()
            .flat_map(|(i, list)| list.iter().filter(move |j| **j > i).map(move |j| (i, *j)))
    }

    /// Returns the connected component of every node, and the number of components. Components are numbered in the
    /// order of their first nodes.
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

/// A rectangular grid of cells, stored row by row. Some cells may be holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The node of cell `row · columns + column`, or `None` in a hole.
    node: Vec<Option<usize>>,
    cell: Vec<usize>,
}

impl Lattice {
    /// Creates a grid. If there is a mask, cells for which it is false are holes. The mask is stored row by row.
    ///
    /// # Errors
    /// Fails if the mask does not have one element per cell, or if it omits all cells.
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

    /// Returns the number of nodes, which are the cells that are not holes.
    pub fn nodes(&self) -> usize {
        self.cell.len()
    }

    /// Whether the grid has no holes.
    pub fn is_full(&self) -> bool {
        self.cell.len() == self.node.len()
    }

    /// Returns the node of a cell, or `None` in a hole or outside the grid.
    pub fn node(&self, row: usize, column: usize) -> Option<usize> {
        (row < self.rows && column < self.columns)
            .then(|| self.node[row * self.columns + column])
            .flatten()
    }

    /// Returns the row and the column of a node.
    pub fn position(&self, node: usize) -> (usize, usize) {
        (
            self.cell[node] / self.columns,
            self.cell[node] % self.columns,
        )
    }

    /// Returns the graph in which cells that share a side are neighbours.
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
