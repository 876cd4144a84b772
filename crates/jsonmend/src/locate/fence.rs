//! Markdown fences: which open, what language they name, and where they close.

/// A fence, or inline code ticks around a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    /// Where its line starts to be fence.
    pub(crate) start: usize,
    /// Where its content starts.
    pub(crate) inside: usize,
    mark: u8,
    width: usize,
    language: String,
}

/// Languages whose block may hold the document.
const JSON: [&str; 6] = ["json", "json5", "jsonc", "jsonl", "ndjson", "geojson"];

impl Fence {
    /// The fence that opens at `at`. Three marks or more at the start of a line, or any number of
    /// ticks right before a bracket.
    pub(crate) fn open(raw: &str, at: usize) -> Option<Self> {
        let bytes = raw.as_bytes();
        let mark = *bytes.get(at)?;
        let rest = bytes.get(at..)?;
        let width = rest.iter().take_while(|byte| **byte == mark).count();
        let is_bracket = |at: usize| matches!(bytes.get(at), Some(b'{' | b'['));
        if width < 3 {
            return (mark == b'`' && is_bracket(at + width)).then_some(Self {
                start: at,
                inside: at + width,
                mark,
                width,
                language: String::new(),
            });
        }
        // No line is looked at further than needed: one may hold many fences.
        let behind = raw.get(at + width..)?;
        let text = behind.trim_start_matches([' ', '{', '.']);
        let is_letter = |letter: char| letter.is_alphanumeric() || "+-_#".contains(letter);
        let rest = text.trim_start_matches(is_letter);
        let language = text.get(..text.len() - rest.len())?.to_owned();
        let named = raw.len() - rest.len();
        let skipped = behind.get(..behind.len() - text.len())?;
        let is_space = |letter: char| letter.is_whitespace() && letter != '\n';
        let rest = rest.trim_start_matches(is_space);
        let is_alone = skipped.trim().is_empty() && (rest.is_empty() || rest.starts_with('\n'));
        let before = raw.get(..at)?.trim_end_matches(['>', '-', '*', ' ', '\t', '\u{feff}']);
        let is_first = before.is_empty() || before.ends_with('\n');
        if !is_first && !is_alone && !is_bracket(at + width) {
            return None;
        }
        let (language, inside) =
            if is_bracket(at + width) { (String::new(), at + width) } else { (language, named) };
        Some(Self { start: at, inside, mark, width, language: language.to_lowercase() })
    }

    /// Says whether the language is not JSON's: the block is something else.
    pub(crate) fn is_foreign(&self) -> bool {
        !self.language.is_empty() && !self.is_tagged()
    }

    pub(crate) fn is_tagged(&self) -> bool {
        JSON.contains(&self.language.as_str())
    }

    /// Where the closing fence ends that stands at `at`, if one does: as many marks or more.
    pub(crate) fn close(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let rest = bytes.get(at..)?;
        let width = rest.iter().take_while(|byte| **byte == self.mark).count();
        (width >= self.width).then_some(at + width)
    }

    /// Where the block ends: behind the closing fence on a line of its own, or with the text.
    pub(crate) fn end_of(&self, bytes: &[u8]) -> usize {
        let mut at = self.inside;
        while let Some(length) = memchr::memchr(b'\n', bytes.get(at..).unwrap_or_default()) {
            at += length + 1;
            let rest = bytes.get(at..).unwrap_or_default();
            let indent = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            if let Some(end) = self.close(bytes, at + indent) {
                return end;
            }
        }
        bytes.len()
    }
}
