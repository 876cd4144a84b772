//! Tests of the recovery table.
