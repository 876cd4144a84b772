//! What each provider takes of JSON Schema, as rows of a table.
//!
//! A row is what the provider's documents and SDKs said in 2026-11; docs/reference/lowering.md prints
//! the same table for users. A keyword that is refused, ignored or not documented is not sent.

use super::kinds::{Types, of as type_of};
use serde_json::{Map, Value};

/// The part of JSON Schema that a provider's structured output takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subset {
    /// OpenAI's `strict: true`.
    OpenaiStrict,
    /// Anthropic's `output_config.format` and strict tools.
    Anthropic,
    /// Gemini's `responseJsonSchema`.
    GeminiJsonSchema,
    /// Gemini's `responseSchema`, an `OpenAPI` dialect.
    GeminiResponseSchema,
    /// vLLM with xgrammar.
    Xgrammar,
    /// llama.cpp's grammars.
    LlamaCpp,
    /// Ollama, which uses llama.cpp's grammars.
    Ollama,
    /// Nothing is known: the schema goes as it is.
    Whole,
}

impl Subset {
    /// Every subset, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::OpenaiStrict,
        Self::Anthropic,
        Self::GeminiJsonSchema,
        Self::GeminiResponseSchema,
        Self::Xgrammar,
        Self::LlamaCpp,
        Self::Ollama,
        Self::Whole,
    ];

    /// The name in config, logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenaiStrict => "openai_strict",
            Self::Anthropic => "anthropic",
            Self::GeminiJsonSchema => "gemini_json_schema",
            Self::GeminiResponseSchema => "gemini_response_schema",
            Self::Xgrammar => "xgrammar",
            Self::LlamaCpp => "llama_cpp",
            Self::Ollama => "ollama",
            Self::Whole => "none",
        }
    }

    /// Whether the model reads the descriptions of the schema it is held to. Where it does not, what
    /// the grammar cannot say has to be said in the prompt.
    pub const fn shows_descriptions(self) -> bool {
        !matches!(self, Self::Xgrammar | Self::LlamaCpp | Self::Ollama)
    }

    /// The row of the table. `None`: the schema goes as it is.
    pub(super) fn rules(self) -> Option<&'static Rules> {
        match self {
            Self::OpenaiStrict => Some(&OPENAI),
            Self::Anthropic => Some(&ANTHROPIC),
            Self::GeminiJsonSchema => Some(&GEMINI_JSON),
            Self::GeminiResponseSchema => Some(&GEMINI_OPEN_API),
            Self::Xgrammar => Some(&XGRAMMAR),
            Self::LlamaCpp | Self::Ollama => Some(&LLAMA),
            Self::Whole => None,
        }
    }
}

/// Where a `$ref` may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refs {
    /// Anywhere, recursion too.
    Keep,
    /// Anywhere, but not in a circle.
    NoCycles,
    /// In a circle only where it passes through a property that is not required.
    OptionalCycles,
    /// Nowhere: they are put in.
    Inline,
}

/// What may be beside the named properties of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objects {
    /// `additionalProperties: false` on each.
    Closed,
    /// The keyword is refused.
    Bare,
    /// As the schema says.
    Open,
}

/// How a keyword is taken that is taken at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// As it is.
    Keep,
    /// By a rule of its own: see [`Rules::fate`], and for what holds schemas the walk.
    Ask,
}

/// One provider's row.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of yes and no")]
pub(super) struct Rules {
    /// The root must be an object without a union.
    pub root_object: bool,
    /// Every schema must say its `type`, or be a union or a reference.
    pub typed: bool,
    /// `nullable` stands for the type `null`.
    pub nullable: bool,
    /// Every property must be required.
    pub all_required: bool,
    pub objects: Objects,
    pub refs: Refs,
    /// `oneOf` is taken; it works as `anyOf`.
    pub one_of: bool,
    /// A union may stand beside other keywords. Only with open objects: such a union's branches
    /// are not told apart.
    pub mixed_unions: bool,
    pub tuples: bool,
    pub constant: bool,
    /// Which values an `enum` may hold.
    pub members: Types,
    pub formats: &'static [&'static str],
    /// `propertyOrdering` is written.
    pub ordering: bool,
    /// Annotations that are sent; `description` and `title` always are.
    pub annotations: &'static [&'static str],
    pub keywords: &'static [(&'static str, Take)],
    pub limits: Limits,
}

/// The provider's limits on a schema. `usize::MAX`: none is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub properties: usize,
    /// Objects and arrays inside each other, the root included.
    pub levels: usize,
    /// Characters of names, members of enums and constants.
    pub text: usize,
    /// Members of all enums.
    pub members: usize,
    /// Optional properties of a request.
    pub optional: usize,
    /// Unions of a request.
    pub unions: usize,
    /// Strict tools of a request.
    pub tools: usize,
}

const NO_LIMITS: Limits = Limits {
    properties: usize::MAX,
    levels: usize::MAX,
    text: usize::MAX,
    members: usize::MAX,
    optional: usize::MAX,
    unions: usize::MAX,
    tools: usize::MAX,
};

const OPENAI: Rules = Rules {
    root_object: true,
    typed: true,
    nullable: false,
    all_required: true,
    objects: Objects::Closed,
    refs: Refs::Keep,
    one_of: false,
    mixed_unions: false,
    tuples: false,
    constant: true,
    members: Types::SCALARS,
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    ordering: false,
    annotations: &["$schema"],
    keywords: &[
        ("minimum", Take::Keep),
        ("maximum", Take::Keep),
        ("exclusiveMinimum", Take::Keep),
        ("exclusiveMaximum", Take::Keep),
        ("multipleOf", Take::Keep),
        ("pattern", Take::Keep),
        ("minItems", Take::Keep),
        ("maxItems", Take::Keep),
    ],
    limits: Limits { properties: 5_000, levels: 10, text: 120_000, members: 1_000, ..NO_LIMITS },
};

const ANTHROPIC: Rules = Rules {
    root_object: true,
    typed: true,
    nullable: false,
    all_required: false,
    objects: Objects::Closed,
    refs: Refs::NoCycles,
    one_of: false,
    mixed_unions: false,
    tuples: false,
    constant: true,
    members: Types::SCALARS,
    formats: &[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ],
    ordering: false,
    annotations: &["default"],
    keywords: &[("pattern", Take::Ask), ("minItems", Take::Ask)],
    limits: Limits { optional: 24, unions: 16, tools: 20, ..NO_LIMITS },
};

const GEMINI_JSON: Rules = Rules {
    root_object: false,
    typed: false,
    nullable: false,
    all_required: false,
    objects: Objects::Open,
    refs: Refs::OptionalCycles,
    one_of: true,
    mixed_unions: true,
    tuples: true,
    constant: false,
    members: Types::NUMBER.or(Types::INTEGER).or(Types::STRING),
    formats: &["date-time", "date", "time"],
    ordering: false,
    annotations: &[],
    keywords: &[
        ("minimum", Take::Keep),
        ("maximum", Take::Keep),
        ("minItems", Take::Keep),
        ("maxItems", Take::Keep),
    ],
    limits: NO_LIMITS,
};

const GEMINI_OPEN_API: Rules = Rules {
    root_object: false,
    typed: true,
    nullable: true,
    all_required: false,
    objects: Objects::Bare,
    refs: Refs::Inline,
    one_of: false,
    mixed_unions: false,
    tuples: false,
    constant: false,
    members: Types::STRING,
    formats: &["enum", "date-time"],
    ordering: true,
    annotations: &["default"],
    keywords: &[
        ("minimum", Take::Keep),
        ("maximum", Take::Keep),
        ("minItems", Take::Keep),
        ("maxItems", Take::Keep),
    ],
    limits: NO_LIMITS,
};

const XGRAMMAR: Rules = Rules {
    root_object: false,
    typed: false,
    nullable: false,
    all_required: false,
    objects: Objects::Open,
    refs: Refs::Keep,
    one_of: true,
    mixed_unions: true,
    tuples: true,
    constant: true,
    members: Types::ANY,
    formats: &[
        "email",
        "date",
        "time",
        "date-time",
        "duration",
        "ipv4",
        "ipv6",
        "hostname",
        "uuid",
        "uri",
        "uri-reference",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
    ],
    ordering: false,
    annotations: &["default", "$schema", "$id", "$comment", "examples"],
    keywords: &[
        ("minimum", Take::Keep),
        ("maximum", Take::Keep),
        ("exclusiveMinimum", Take::Keep),
        ("exclusiveMaximum", Take::Keep),
        ("minLength", Take::Ask),
        ("maxLength", Take::Ask),
        ("pattern", Take::Keep),
        ("minItems", Take::Keep),
        ("maxItems", Take::Keep),
        ("minProperties", Take::Keep),
        ("maxProperties", Take::Keep),
        ("propertyNames", Take::Ask),
        ("patternProperties", Take::Ask),
    ],
    limits: NO_LIMITS,
};

const LLAMA: Rules = Rules {
    root_object: false,
    typed: false,
    nullable: false,
    all_required: false,
    objects: Objects::Open,
    refs: Refs::Inline,
    one_of: true,
    mixed_unions: false,
    tuples: false,
    constant: true,
    members: Types::ANY,
    formats: &["date", "time", "date-time", "uuid"],
    ordering: false,
    annotations: &["default", "$schema", "$id", "$comment", "examples"],
    keywords: &[
        ("minimum", Take::Ask),
        ("maximum", Take::Ask),
        ("exclusiveMinimum", Take::Ask),
        ("exclusiveMaximum", Take::Ask),
        ("minLength", Take::Ask),
        ("maxLength", Take::Ask),
        ("pattern", Take::Ask),
        ("minItems", Take::Keep),
        ("maxItems", Take::Keep),
    ],
    limits: NO_LIMITS,
};

/// What becomes of a keyword in one schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// Sent as it is.
    Keep,
    /// Sent with another value; what it said is told in words.
    Weaker(Value),
    /// Sent in another notation that admits nothing more.
    Other(Value),
    /// Not sent; told in words.
    Drop,
}

impl Rules {
    /// Whether the subset has some use for `keyword`.
    pub(super) fn knows(&self, keyword: &str) -> bool {
        self.keywords.iter().any(|(known, _)| *known == keyword)
    }

    /// What becomes of `keyword`, a plain constraint, beside the other keywords of `schema`.
    pub(super) fn fate(&self, keyword: &str, value: &Value, schema: &Map<String, Value>) -> Fate {
        if keyword == "format" {
            let known = value.as_str().is_some_and(|format| self.formats.contains(&format));
            return if known { Fate::Keep } else { Fate::Drop };
        }
        match self.keywords.iter().find(|(name, _)| *name == keyword).map(|(_, take)| *take) {
            Some(Take::Keep) => Fate::Keep,
            None => Fate::Drop,
            Some(Take::Ask) => self.asked(keyword, value, schema),
        }
    }

    fn asked(&self, keyword: &str, value: &Value, schema: &Map<String, Value>) -> Fate {
        let is_anchored = self.refs == Refs::Inline;
        match keyword {
            // Anthropic: 0 and 1 only.
            "minItems" => match value.as_u64() {
                Some(0 | 1) => Fate::Keep,
                _ => Fate::Weaker(Value::from(1)),
            },
            "pattern" => match value.as_str() {
                Some(pattern) if is_anchored => anchored(pattern),
                Some(pattern) if !needs_more_than_a_language(pattern) => Fate::Keep,
                _ => Fate::Drop,
            },
            // The grammar takes a length, or a pattern or format, and not both.
            "minLength" | "maxLength" => {
                let beside = schema.contains_key("pattern") || schema.contains_key("format");
                if beside { Fate::Drop } else { Fate::Keep }
            }
            // llama.cpp: the bounds of integers only.
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                let of_integers = type_of(schema)
                    .is_some_and(|types| types.has(Types::INTEGER) && !types.has(Types::NUMBER));
                if of_integers && value.as_i64().is_some() { Fate::Keep } else { Fate::Drop }
            }
            _ => Fate::Drop,
        }
    }
}

/// Whether a pattern has what no automaton has: looks around, back-references, word boundaries.
pub(super) fn needs_more_than_a_language(pattern: &str) -> bool {
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let next = letters.next();
                if next.is_none_or(|c| matches!(c, 'b' | 'B' | 'k' | '1'..='9')) {
                    return true;
                }
            }
            '(' if letters.peek() == Some(&'?') => {
                letters.next();
                let kind = letters.next();
                let after = letters.peek().copied();
                let looks = matches!(kind, Some('=' | '!'))
                    || (kind == Some('<') && matches!(after, Some('=' | '!')));
                if looks {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// A pattern as llama.cpp takes it, from `^` to `$`. What is left out at an end is `.*`.
fn anchored(pattern: &str) -> Fate {
    let odd = |c: char| matches!(c, 'S' | 'W' | 'D' | 'p' | 'P' | 'x' | 'u' | 'c');
    let mut after_slash = false;
    let has_odd = pattern.chars().any(|c| {
        let found = after_slash && odd(c);
        after_slash = !after_slash && c == '\\';
        found
    });
    if has_odd || needs_more_than_a_language(pattern) || pattern.contains("(?") {
        return Fate::Drop;
    }
    let begins = pattern.strip_prefix('^');
    let inner = begins.unwrap_or(pattern);
    let ends = inner
        .strip_suffix('$')
        .filter(|rest| rest.chars().rev().take_while(|c| *c == '\\').count() % 2 == 0);
    let inner = ends.unwrap_or(inner);
    // An anchor further inside means something only an engine with anchors can do.
    let mut slashed = false;
    let mut in_class = false;
    let inside = inner.chars().any(|c| {
        let found = !slashed && !in_class && matches!(c, '^' | '$');
        match c {
            '[' if !slashed => in_class = true,
            ']' if !slashed => in_class = false,
            _ => {}
        }
        slashed = !slashed && c == '\\';
        found
    });
    match (begins.is_some(), ends.is_some()) {
        _ if inside => Fate::Drop,
        (true, true) => Fate::Keep,
        (begins, ends) => {
            let (before, after) = (if begins { "" } else { ".*" }, if ends { "" } else { ".*" });
            Fate::Other(Value::from(format!("^{before}({inner}){after}$")))
        }
    }
}
