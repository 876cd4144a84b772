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
        let line = raw.get(at + width..)?.split('\n').next()?;
        let language: String = line
            .trim_start_matches([' ', '{', '.'])
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || "+-_#".contains(*letter))
            .collect();
        let skipped = line.find(language.as_str()).unwrap_or(0);
        let is_bracket = |at: usize| matches!(bytes.get(at), Some(b'{' | b'['));
        let named = at + width + skipped + language.len();
        if width < 3 {
            return (mark == b'`' && is_bracket(at + width)).then_some(Self {
                start: at,
                inside: at + width,
                mark,
                width,
                language: String::new(),
            });
        }
        let before = raw.get(..at)?.rsplit('\n').next()?;
        if !before.trim_start_matches(['>', '-', '*', ' ', '\t', '\u{feff}']).is_empty()
            && line.trim().len() != language.len()
            && !is_bracket(at + width)
        {
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
