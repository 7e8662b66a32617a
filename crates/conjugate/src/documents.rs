//! Documents as bags of words, which latent Dirichlet allocation reads one at a time.
//!
//! [`Documents`] is the interface to a corpus, which may for example be a memory-mapped file or a vector in a test.
//! This crate does not depend on where the documents come from. [`Order`] gives a shuffled order that needs few disk
//! reads.

use jensen_math::rng::{Purpose, Stream};

/// One document: its terms and their counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bag {
    /// Indices of the document's terms, without duplicates. Each is below [`Documents::terms`]. Ascending indices give
    /// the best memory access pattern.
    pub terms: Vec<u32>,
    /// The count of each term, which is positive and finite.
    pub counts: Vec<f32>,
}

impl Bag {
    /// Creates an empty bag.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all terms but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.terms.clear();
        self.counts.clear();
    }

    /// Adds a term that the bag does not yet contain.
    pub fn push(&mut self, term: u32, count: f32) {
        self.terms.push(term);
        self.counts.push(count);
    }

    /// Returns the number of distinct terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Returns whether the document has no words.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the number of tokens, which is the sum of the counts.
    pub fn tokens(&self) -> f64 {
        self.counts.iter().map(|&n| f64::from(n)).sum()
    }
}

/// A corpus that several threads can read document by document.
///
/// An implementation checks its data when it is opened, so reading cannot fail. A document may be empty. All algorithms
/// in this crate count empty documents but otherwise ignore them.
pub trait Documents: Sync {
    /// Returns the number of documents.
    fn len(&self) -> usize;

    /// Returns whether there are no documents.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the vocabulary. Every term index is below this number.
    fn terms(&self) -> usize;

    /// Returns the total number of tokens in all documents.
    fn tokens(&self) -> f64;

    /// Replaces the content of `bag` by the document with this index, which must be below [`len`](Self::len).
    fn read(&self, index: usize, bag: &mut Bag);

    /// Returns the number of documents in each shard of a corpus, in order. Shards can be processed separately.
    fn shards(&self) -> Vec<usize> {
        vec![self.len()]
    }

    /// Returns the number of adjacent documents that [`Order`] keeps together. A disk then reads them in one request of
    /// a few hundred kilobytes. The number is 1 if all orders are equally fast.
    fn block(&self) -> usize {
        1
    }
}

/// Documents in memory, stored one after another in a single allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryDocuments {
    terms: usize,
    block: usize,
    starts: Vec<usize>,
    ids: Vec<u32>,
    counts: Vec<f32>,
}

impl MemoryDocuments {
    /// Creates an empty corpus over a vocabulary of `terms` terms.
    pub fn new(terms: usize) -> Self {
        Self {
            terms,
            block: 1,
            starts: vec![0],
            ids: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Groups the documents into blocks of `block` documents. Passes then visit the documents in the same order as in a
    /// file with such blocks.
    pub fn in_blocks(self, block: usize) -> Self {
        Self { block, ..self }
    }

    /// Adds a document.
    ///
    /// # Errors
    /// Fails if a term is not below the size of the vocabulary or occurs twice, if a count is not positive and finite,
    /// or if there are not as many counts as terms. After a failure the corpus is unchanged.
    pub fn push(&mut self, bag: &Bag) -> Result<(), String> {
        let document = self.len() + 1;
        if bag.terms.len() != bag.counts.len() {
            let (terms, counts) = (bag.terms.len(), bag.counts.len());
            return Err(format!(
                "document {document} has {terms} terms but {counts} counts"
            ));
        }
        let mut seen = bag.terms.clone();
        seen.sort_unstable();
        if let Some(&term) = seen.iter().find(|&&t| t as usize >= self.terms) {
            let terms = self.terms;
            return Err(format!(
                "document {document} has the term {term}, but the vocabulary has {terms} terms (numbered from 0)"
            ));
        }
        if let Some(pair) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            let term = pair[0];
            return Err(format!("document {document} lists the term {term} twice"));
        }
        if let Some(count) = bag.counts.iter().find(|n| !(n.is_finite() && **n > 0.0)) {
            return Err(format!(
                "document {document} has the count {count}, but counts must be positive"
            ));
        }
        self.ids.extend_from_slice(&bag.terms);
        self.counts.extend_from_slice(&bag.counts);
        self.starts.push(self.ids.len());
        Ok(())
    }
}

impl Documents for MemoryDocuments {
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn terms(&self) -> usize {
        self.terms
    }

    fn tokens(&self) -> f64 {
        self.counts.iter().map(|&n| f64::from(n)).sum()
    }

    fn read(&self, index: usize, bag: &mut Bag) {
        let range = self.starts[index]..self.starts[index + 1];
        bag.clear();
        bag.terms.extend_from_slice(&self.ids[range.clone()]);
        bag.counts.extend_from_slice(&self.counts[range]);
    }

    fn block(&self) -> usize {
        self.block
    }
}

/// A corpus that consists of the documents `start..end` of another corpus, for example a held-out split.
pub struct DocumentRange<'a> {
    documents: &'a dyn Documents,
    start: usize,
    end: usize,
    tokens: f64,
}

impl<'a> DocumentRange<'a> {
    /// Selects the documents `start..end`, where both limits are clamped to the number of documents. The constructor
    /// reads these documents once to count their tokens.
    pub fn new(documents: &'a dyn Documents, start: usize, end: usize) -> Self {
        let end = end.min(documents.len());
        let start = start.min(end);
        let mut bag = Bag::new();
        let tokens = (start..end)
            .map(|i| {
                documents.read(i, &mut bag);
                bag.tokens()
            })
            .sum();
        Self {
            documents,
            start,
            end,
            tokens,
        }
    }
}

impl Documents for DocumentRange<'_> {
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn terms(&self) -> usize {
        self.documents.terms()
    }

    fn tokens(&self) -> f64 {
        self.tokens
    }

    fn read(&self, index: usize, bag: &mut Bag) {
        self.documents.read(self.start + index, bag);
    }

    fn block(&self) -> usize {
        self.documents.block()
    }
}

const BLOCKS_MIXED: usize = 64;

/// A shuffled order of `0..len` for one pass.
///
/// The order first shuffles blocks of adjacent points. It then takes each run of 64 consecutive blocks of this order
/// and shuffles all points in the run together. A pass therefore reads from 64 contiguous regions of the disk at a
/// time, and the order needs one word of memory per block instead of one per point. If `block` is 1, the order is a
/// uniformly random permutation.
///
/// The order depends only on the seed, the pass, `len` and `block`.
#[derive(Clone, Debug)]
pub struct Order {
    seed: u64,
    pass: u64,
    len: usize,
    block: usize,
    blocks: Vec<u32>,
    group: Option<usize>,
    mixed: Vec<usize>,
}

const BLOCKS: Purpose = Purpose::new("order of blocks");
const WITHIN: Purpose = Purpose::new("order within blocks");

impl Order {
    /// Creates the order for pass number `pass`. The first pass has the number 0.
    pub fn new(seed: u64, pass: u64, len: usize, block: usize) -> Self {
        let block = block.clamp(1, len.max(1));
        let mut blocks: Vec<u32> = (0..len.div_ceil(block) as u32).collect();
        // The last block may be short. It remains last, so that dividing a position by the block size gives its block.
        let whole = len / block;
        Stream::new(seed, BLOCKS, pass, 0).shuffle(&mut blocks[..whole]);
        Self {
            seed,
            pass,
            len,
            block,
            blocks,
            group: None,
            mixed: Vec::new(),
        }
    }

    /// Returns the number of the pass.
    pub fn pass(&self) -> u64 {
        self.pass
    }

    /// Returns the index of the point at a position below `len`.
    pub fn at(&mut self, position: usize) -> usize {
        if self.block == 1 {
            return self.blocks[position] as usize;
        }
        let span = self.block * BLOCKS_MIXED;
        let group = position / span;
        if self.group != Some(group) {
            self.mix(group);
        }
        self.mixed[position - group * span]
    }

    fn mix(&mut self, group: usize) {
        let first = group * BLOCKS_MIXED;
        let last = (first + BLOCKS_MIXED).min(self.blocks.len());
        self.mixed.clear();
        for &block in &self.blocks[first..last] {
            let start = block as usize * self.block;
            self.mixed.extend(start..(start + self.block).min(self.len));
        }
        Stream::new(self.seed, WITHIN, self.pass, group as u64).shuffle(&mut self.mixed);
        self.group = Some(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_visits_every_point_once_and_can_be_entered_anywhere() {
        for (len, block) in [
            (0, 4),
            (1, 1),
            (10, 1),
            (1000, 1),
            (1000, 7),
            (5000, 16),
            (3, 8),
        ] {
            let mut order = Order::new(3, 2, len, block);
            let visited: Vec<usize> = (0..len).map(|p| order.at(p)).collect();
            let mut sorted = visited.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..len).collect::<Vec<_>>(), "{len} {block}");
            let mut again = Order::new(3, 2, len, block);
            for position in (0..len).rev() {
                assert_eq!(again.at(position), visited[position]);
            }
        }
        let first: Vec<usize> = (0..100).map(|p| Order::new(3, 0, 100, 1).at(p)).collect();
        let second: Vec<usize> = (0..100).map(|p| Order::new(3, 1, 100, 1).at(p)).collect();
        assert_ne!(first, second);
    }

    #[test]
    fn a_group_reads_whole_blocks() {
        let block = 16;
        let mut order = Order::new(1, 0, 100 * block * BLOCKS_MIXED, block);
        let span = block * BLOCKS_MIXED;
        let mut blocks: Vec<usize> = (0..span).map(|p| order.at(p) / block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), BLOCKS_MIXED);
    }

    #[test]
    fn documents_are_checked() {
        let mut documents = MemoryDocuments::new(3);
        let bag = |terms: &[u32], counts: &[f32]| Bag {
            terms: terms.to_vec(),
            counts: counts.to_vec(),
        };
        documents.push(&bag(&[0, 2], &[1.0, 3.0])).unwrap();
        documents.push(&bag(&[], &[])).unwrap();
        assert!(
            documents
                .push(&bag(&[3], &[1.0]))
                .unwrap_err()
                .contains("vocabulary")
        );
        assert!(
            documents
                .push(&bag(&[1, 1], &[1.0, 1.0]))
                .unwrap_err()
                .contains("twice")
        );
        assert!(
            documents
                .push(&bag(&[1], &[0.0]))
                .unwrap_err()
                .contains("positive")
        );
        assert!(
            documents
                .push(&bag(&[1], &[]))
                .unwrap_err()
                .contains("counts")
        );
        assert_eq!((documents.len(), documents.tokens()), (2, 4.0));
        let mut read = Bag::new();
        let part = DocumentRange::new(&documents, 0, 1);
        assert_eq!((part.len(), part.tokens(), part.terms()), (1, 4.0, 3));
        part.read(0, &mut read);
        assert_eq!(read, bag(&[0, 2], &[1.0, 3.0]));
    }
}
