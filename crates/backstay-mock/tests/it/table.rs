//! Every behaviour, in both dialects, whole and streamed.
