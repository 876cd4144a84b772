//! The last calls in memory: for tests, the demo, and hosts without a disk.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::record::Row;

/// A ring of rows; the oldest makes room.
#[derive(Debug)]
pub struct Memory {
    rows: Mutex<VecDeque<Row>>,
    most: usize,
}

impl Memory {
    /// Room for `most` rows, at least 1.
    pub fn new(most: usize) -> Self {
        Self { rows: Mutex::default(), most: most.max(1) }
    }

    /// Adds a row.
    pub fn put(&self, row: Row) {
        let mut rows = self.rows.lock();
        if rows.len() == self.most {
            rows.pop_front();
        }
        rows.push_back(row);
    }

    /// The newest row whose id begins with `id`.
    pub fn find(&self, id: &str) -> Option<Row> {
        self.rows.lock().iter().rev().find(|row| row.call_id.starts_with(id)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::Memory;
    use crate::record::Row;

    #[test]
    fn the_oldest_row_makes_room() {
        let memory = Memory::new(2);
        for id in ["a1", "b1", "c1"] {
            memory.put(Row { call_id: id.into(), ..Row::default() });
        }
        assert!(memory.find("a1").is_none());
        assert_eq!(memory.find("c").map(|row| row.call_id), Some("c1".into()));
    }
}
