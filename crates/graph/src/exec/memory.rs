//! Assigns each value an offset in the arena by first fit, so that values with disjoint lifetimes can share memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub(crate) struct Slot {
    pub rows: usize,
    pub first: usize,
    pub last: usize,
    pub offset: usize,
}

pub(crate) fn allocate(slots: &mut [Slot]) -> usize {
    let mut order: Vec<usize> = (0..slots.len())
        .filter(|&k| slots[k].first != usize::MAX)
        .collect();
    order.sort_by_key(|&k| (slots[k].first, k));
    // The free gaps, sorted by their start, and the slots, sorted by the step after which they are no longer used.
    let mut free: BTreeMap<usize, usize> = BTreeMap::new();
    let mut dying: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    let mut end = 0;
    for k in order {
        while let Some(&Reverse((last, dead))) = dying.peek() {
            if last >= slots[k].first {
                break;
            }
            dying.pop();
            release(&mut free, slots[dead].offset, slots[dead].rows);
        }
        let rows = slots[k].rows;
        let gap = free
            .iter()
            .find(|(_, len)| **len >= rows)
            .map(|(start, len)| (*start, *len));
        slots[k].offset = match gap {
            Some((start, len)) => {
                free.remove(&start);
                if len > rows {
                    free.insert(start + rows, len - rows);
                }
                start
            }
            None => {
                end += rows;
                end - rows
            }
        };
        dying.push(Reverse((slots[k].last, k)));
    }
    end
}

fn release(free: &mut BTreeMap<usize, usize>, start: usize, rows: usize) {
    let (mut start, mut rows) = (start, rows);
    if rows == 0 {
        return;
    }
    if let Some((&before, &len)) = free.range(..start).next_back()
        && before + len == start
    {
        free.remove(&before);
        start = before;
        rows += len;
    }
    if let Some(&len) = free.get(&(start + rows)) {
        free.remove(&(start + rows));
        rows += len;
    }
    free.insert(start, rows);
}
