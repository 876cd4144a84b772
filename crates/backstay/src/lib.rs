//! A checked answer from a model, or a typed failure, inside the caller's deadline.
