//! Every decision of Backstay as a plain value: no clock, no socket, no lock, no task.
