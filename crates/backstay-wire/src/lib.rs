//! Formats of the model APIs: bytes in, values out, and back.
