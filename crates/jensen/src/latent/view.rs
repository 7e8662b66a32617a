//! Access to the columns of a table and to the files to which a specification refers.

use std::borrow::Cow;

use jensen_data::{Adjacency, Cells, Symmetric, Table};
use jensen_latent::prior::{Graph, Inputs, Source};
use jensen_latent::{Dense, Sparse};

use crate::Error;

/// The source of the files to which a prior refers. The implementation determines where the files are read from.
pub trait Files {
    /// Reads a graph of neighbouring regions from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not contain a graph.
    fn graph(&self, file: &str) -> Result<Adjacency, Error>;

    /// Reads a sparse symmetric matrix.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not contain a symmetric matrix.
    fn symmetric(&self, file: &str) -> Result<Symmetric, Error>;

    /// Reads a table from a file. The table is used as a mask.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not contain a table.
    fn table(&self, file: &str) -> Result<Table, Error>;
}

pub(super) struct View<'a> {
    pub(super) table: &'a Table,
    pub(super) files: &'a dyn Files,
    pub(super) taken: &'a [String],
    /// The number of linear predictors of a row.
    pub(super) copies: usize,
}

impl Source for View<'_> {
    fn rows(&self) -> usize {
        self.table.rows()
    }

    fn copies(&self) -> usize {
        self.copies
    }

    fn numbers(&self, column: &str) -> Result<Cow<'_, [f64]>, String> {
        self.table
            .numbers(column)
            .map(Cow::Borrowed)
            .map_err(|e| e.to_string())
    }

    fn words(&self, column: &str) -> Result<Vec<Option<String>>, String> {
        let column = self.table.column(column).map_err(|e| e.to_string())?;
        Ok(match &column.cells {
            Cells::Words(words) => words.clone(),
            Cells::Numbers(numbers) => numbers
                .iter()
                .map(|x| (!x.is_nan()).then(|| x.to_string()))
                .collect(),
        })
    }

    fn holds_words(&self, column: &str) -> Result<bool, String> {
        let column = self.table.column(column).map_err(|e| e.to_string())?;
        Ok(matches!(column.cells, Cells::Words(_)))
    }

    fn inputs(&self) -> Inputs {
        let mut inputs = Inputs::default();
        let free = self.table.columns().iter();
        for column in free.filter(|c| !self.taken.contains(&c.name)) {
            let list = match column.cells {
                Cells::Numbers(_) => &mut inputs.columns,
                Cells::Words(_) => &mut inputs.words,
            };
            list.push(column.name.clone());
        }
        inputs
    }

    fn graph(&self, file: &str) -> Result<Graph, String> {
        let adjacency = self.files.graph(file).map_err(|e| e.to_string())?;
        Graph::new(adjacency.neighbours().to_vec()).map_err(|e| e.to_string())
    }

    fn matrix(&self, file: &str) -> Result<Dense, String> {
        let table = self.files.table(file).map_err(|e| e.to_string())?;
        let (rows, columns) = (table.rows(), table.columns().len());
        if rows != columns {
            return Err(format!(
                "`{file}` has {rows} rows and {columns} columns, but a covariance matrix must be square"
            ));
        }
        let mut data = Vec::with_capacity(rows * rows);
        for (j, column) in table.columns().iter().enumerate() {
            let numbers = column.numbers().map_err(|e| e.to_string())?;
            if let Some(i) = numbers.iter().position(|x| !x.is_finite()) {
                return Err(format!(
                    "`{file}` has {} in row {}, column {}, but the entries of a covariance matrix must be finite",
                    numbers[i],
                    i + 1,
                    j + 1
                ));
            }
            data.extend(numbers);
        }
        Ok(Dense {
            rows,
            cols: rows,
            data,
        })
    }

    fn sparse(&self, file: &str) -> Result<Sparse, String> {
        let Symmetric { size, entries } = self.files.symmetric(file).map_err(|e| e.to_string())?;
        Sparse::from_triplets(size, size, &entries).map_err(|e| e.to_string())
    }

    fn mask(&self, file: &str, rows: usize, columns: usize) -> Result<Vec<bool>, String> {
        let table = self.files.table(file).map_err(|e| e.to_string())?;
        if (table.rows(), table.columns().len()) != (rows, columns) {
            return Err(format!(
                "the mask `{file}` has {} rows and {} columns, but the grid has {rows} and {columns}",
                table.rows(),
                table.columns().len()
            ));
        }
        let mut cells = vec![false; rows * columns];
        for (j, column) in table.columns().iter().enumerate() {
            let numbers = column.numbers().map_err(|e| e.to_string())?;
            for (i, x) in numbers.iter().enumerate() {
                cells[i * columns + j] = *x != 0.0 && !x.is_nan();
            }
        }
        Ok(cells)
    }
}
