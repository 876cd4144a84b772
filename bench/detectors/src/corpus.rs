//! Normal text of the machine: sources, documentation, tables, JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What is read of a file: about the longest reply there is.
const MOST: usize = 128 << 10;
/// What is read of one kind of files, so that the commonest does not stand for all.
const EACH_KIND: usize = 64 << 20;
/// Shorter files say nothing.
const LEAST: usize = 1 << 10;

const KINDS: [&str; 17] = [
    "md", "rst", "txt", "rs", "py", "js", "c", "h", "json", "html", "sql", "toml", "csv", "yaml",
    "yml", "css", "sh",
];

/// One file.
pub struct Text {
    /// Its name below the folder it was found in.
    pub name: String,
    /// Its ending.
    pub kind: &'static str,
    pub text: String,
}

impl Text {
    /// A short digest of what is read of it.
    pub fn digest(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex()[..16].to_owned()
    }
}

/// The texts below `folders`, each once, in an order that depends on their names only.
pub fn read(folders: &[PathBuf]) -> Vec<Text> {
    let mut paths = Vec::new();
    for folder in folders {
        walk(folder, folder, &mut paths);
    }
    paths.sort_by_key(|(_, name, _)| *blake3::hash(name.as_bytes()).as_bytes());
    let mut read: BTreeMap<&str, usize> = BTreeMap::new();
    let mut seen = std::collections::HashSet::new();
    let mut texts = Vec::new();
    for (path, name, kind) in paths {
        let taken = read.entry(kind).or_default();
        let Some(text) = (*taken < EACH_KIND).then(|| start(&path)).flatten() else { continue };
        let text = Text { name, kind, text };
        if seen.insert(text.digest()) {
            *taken += text.text.len();
            texts.push(text);
        }
    }
    texts
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<(PathBuf, String, &'static str)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() {
            walk(root, &path, paths);
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let Some(ending) = KINDS.into_iter().find(|known| *known == ending) else { continue };
        if kind.is_file() {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            paths.push((path, name, ending));
        }
    }
}

/// The start of a file, if it is text and long enough.
fn start(path: &Path) -> Option<String> {
    let mut bytes = fs::read(path).ok()?;
    bytes.truncate(MOST);
    if let Err(error) = std::str::from_utf8(&bytes) {
        // A character that the cut went through is no reason to leave the file out.
        let valid = error.valid_up_to();
        if bytes.len() - valid > 3 {
            return None;
        }
        bytes.truncate(valid);
    }
    String::from_utf8(bytes).ok().filter(|text| text.len() >= LEAST)
}
