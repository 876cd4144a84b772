//! Reads replies and schemas from files, with a bound on both.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use backstay::validate::Schema;
use serde_json::Value;

use crate::print;

/// The largest schema file, in bytes: providers refuse far smaller ones.
const MAX_SCHEMA: usize = 1 << 20;

/// A file that cannot be read, or not as what it should be.
#[derive(Debug)]
pub(crate) struct Unread {
    file: String,
    why: String,
}

impl Unread {
    /// `file` and why it is of no use.
    pub(crate) fn new(file: &str, why: String) -> Self {
        Self { file: file.to_owned(), why }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

/// The bytes of the reply: of `file`, or of standard input. One byte more than `most` at most, so
/// that a reply that is too long can be told from one that is not.
pub(crate) fn reply(file: Option<&Path>, most: usize) -> Result<Vec<u8>, Unread> {
    if let Some(path) = file.filter(|path| *path != Path::new("-")) {
        return at_most(File::open(path), &path.display().to_string(), most);
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        print::talk("reading from the terminal; end with Ctrl-D");
    }
    at_most(Ok(stdin.lock()), "standard input", most)
}

/// A schema's file.
#[derive(Debug)]
pub(crate) struct SchemaFile {
    /// The file, as it was named.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) value: Value,
}

/// The schema in a file, compiled.
pub(crate) fn schema(path: &Path) -> Result<Schema, Unread> {
    let file = schema_file(path)?;
    Schema::compile(&file.value).map_err(|fault| Unread { file: file.name, why: fault.to_string() })
}

/// The schema in a file, which is JSON and may be no schema.
pub(crate) fn schema_file(path: &Path) -> Result<SchemaFile, Unread> {
    let text = schema_text(path)?;
    let name = path.display().to_string();
    match serde_json::from_str(&text) {
        Ok(value) => Ok(SchemaFile { name, text, value }),
        Err(error) => Err(Unread { file: name, why: format!("it is not JSON: {error}") }),
    }
}

/// The text of a schema's file.
fn schema_text(path: &Path) -> Result<String, Unread> {
    let unread = |why: String| Unread { file: path.display().to_string(), why };
    let bytes = at_most(File::open(path), &path.display().to_string(), MAX_SCHEMA)?;
    if bytes.len() > MAX_SCHEMA {
        return Err(unread(format!("a schema may have {MAX_SCHEMA} bytes at most")));
    }
    String::from_utf8(bytes)
        .map_err(|error| unread(format!("not UTF-8 at byte {}", error.utf8_error().valid_up_to())))
}

fn at_most(source: io::Result<impl Read>, name: &str, most: usize) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    match source.and_then(|source| source.take(bound).read_to_end(&mut bytes)) {
        Ok(_) => Ok(bytes),
        Err(error) => {
            Err(Unread { file: name.to_owned(), why: format!("cannot be read: {error}") })
        }
    }
}
