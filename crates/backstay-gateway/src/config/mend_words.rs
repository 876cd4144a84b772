//! The keys of a route that say what may be done to an answer: `mend`, `align` and `fields`.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// What of a broken answer's JSON is mended. What is valid is never touched, and every edit is
/// named.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MendTable {
    /// What the other keys start from; as the word alone.
    pub(super) policy: PolicyWord,
    /// The only kinds of edit that are made, such as `["fence"]`; the names are in
    /// [edits](edits.md). Default: all.
    pub(super) allow: Option<Vec<String>>,
    /// Kinds of edit that are not made. Default: none.
    pub(super) deny: Vec<String>,
    /// What becomes of an answer that lost something, at a cut or inside: `"refuse"` (a fault like
    /// any other) or `"accept"` (handed on as `partial` if it passes every other check).
    pub(super) partial: PartialWord,
    /// A key that an object has twice: `"same_only"` (one of two equal members goes), `"reject"`,
    /// `"first"` or `"last"`. Default: the policy's; `"last"` if lenient, else `"same_only"`.
    pub(super) dup_keys: Option<DupKeysWord>,
    /// `NaN` and infinities: `"reject"`, `"null"` or `"text"`. Default: the policy's; `"text"` if
    /// lenient, else `"reject"`.
    pub(super) nan: Option<NanWord>,
    /// What looks like a number and is none, as `007`: `"reject"` or `"text"`. Default: the
    /// policy's; `"text"` if lenient, else `"reject"`.
    pub(super) bare_number: Option<BareNumberWord>,
    /// A string at a cut: `"keep"` or `"drop"`. Default: `"keep"`.
    pub(super) trunc_string: Option<AtCutWord>,
    /// A number at a cut, which may lack digits: `"keep"` or `"drop"`. Default: `"drop"`.
    pub(super) trunc_number: Option<AtCutWord>,
    /// Several different documents in one answer: `"only"` (refused, unless the schema fits one
    /// alone and shares no name with the others), `"first"`, `"last"`, `"largest"` or `"array"` (all, as one list). Default: the
    /// policy's; `"array"` if lenient, else `"only"`.
    pub(super) candidates: Option<CandidatesWord>,
}

/// Which values of an answer that breaks its schema are brought to the schema's form. Each change
/// is named. Of arguments of tools only `coerce` and `double_encoded` hold: a call is an effect, and
/// nothing is put into one or left out of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AlignTable {
    /// Types that may become others, where the same text is a value of both: `"str->int"`,
    /// `"str->num"`, `"str->bool"`, `"num->str"`, `"scalar->array"`, `"array1->scalar"`,
    /// `"json_string->object"`. Default: none.
    pub(super) coerce: Vec<CoerceWord>,
    /// A value that is no member of its enum: `"exact"` (an error), `"fold"` (the one member that is
    /// the same but for case, width, `-`, `_` and spaces) or `"fallback"` (the same; else the
    /// fallback that `fields` or the schema's `x-backstay-fallback` declares, at once).
    #[serde(rename = "enum")]
    pub(super) enums: EnumWord,
    /// A key that the schema forbids: `"reject"` or `"drop"`.
    pub(super) extra: ExtraWord,
    /// A required key that is missing: `"reject"` or `"schema_default"` (the schema's `default`).
    pub(super) missing: MissingWord,
    /// An answer that is a JSON text inside a JSON string, where the schema wants none: `"keep"` or
    /// `"decode"`.
    pub(super) double_encoded: EncodedWord,
}

/// A field for which something else holds when it breaks the schema.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldTable {
    /// The JSON pointer to it; `*` stands for any one step, as in `/items/*/status`.
    pub(super) at: String,
    /// `"reask"` (the model is asked again; when that is spent, the field takes its `fallback`),
    /// `"fallback"` (at once), `"reject"` (the call fails) or `"flag"` (it passes, marked).
    /// Default: `"reask"`.
    #[serde(default)]
    pub(super) on_fail: OnFailWord,
    /// The value it takes, marked as such, when nothing better is to be had. Default: none.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(super) fallback: Option<toml::Value>,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident $(= $text:literal)?,)* })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum $name { $($(#[$each])* $(#[serde(rename = $text)])? $variant,)* })*
    };
}

words! {
    /// What may be mended.
    PolicyWord {
        /// What has one reading; never what lost something.
        Strict,
        /// What has one reading.
        #[default]
        Standard,
        /// Also what is doubtful, by rule.
        Lenient,
        /// Nothing.
        Off,
    }
    /// What becomes of what lost something.
    PartialWord {
        /// A fault.
        #[default]
        Refuse,
        /// An answer, marked.
        Accept,
    }
    /// What becomes of a repeated key.
    DupKeysWord {
        /// Two equal members are one.
        #[default]
        SameOnly,
        /// It is doubtful.
        Reject,
        /// The first counts.
        First,
        /// The last counts.
        Last,
    }
    /// What becomes of `NaN`.
    NanWord {
        /// It is doubtful.
        #[default]
        Reject,
        /// It is `null`.
        Null,
        /// It is its letters.
        Text,
    }
    /// What becomes of `007`.
    BareNumberWord {
        /// It is doubtful.
        #[default]
        Reject,
        /// It is its letters.
        Text,
    }
    /// What becomes of something at a cut.
    AtCutWord {
        /// It stays.
        #[default]
        Keep,
        /// It goes.
        Drop,
    }
    /// Which of several documents counts.
    CandidatesWord {
        /// None, unless the schema fits one alone and the others are plainly no attempts at the
        /// same answer.
        #[default]
        Only,
        /// The first.
        First,
        /// The last.
        Last,
        /// The longest.
        Largest,
        /// All, as one list.
        Array,
    }
    /// A type that may become another.
    CoerceWord {
        /// `"2"` to `2`.
        #[default]
        StrInt = "str->int",
        /// `"2.5"` to `2.5`.
        StrNum = "str->num",
        /// `"true"` to `true`.
        StrBool = "str->bool",
        /// `2` to `"2"`.
        NumStr = "num->str",
        /// `"a"` to `["a"]`.
        ScalarArray = "scalar->array",
        /// `["a"]` to `"a"`.
        ArrayScalar = "array1->scalar",
        /// A document in a string to that document.
        JsonObject = "json_string->object",
    }
    /// What becomes of a value that is no member.
    EnumWord {
        /// It is an error.
        #[default]
        Exact,
        /// The same member in another spelling.
        Fold,
        /// The same, else the declared fallback.
        Fallback,
    }
    /// What becomes of a forbidden key.
    ExtraWord {
        /// It is an error.
        #[default]
        Reject,
        /// It goes.
        Drop,
    }
    /// What becomes of a missing key.
    MissingWord {
        /// It is an error.
        #[default]
        Reject,
        /// It takes the schema's default.
        SchemaDefault,
    }
    /// What becomes of a document in a string.
    EncodedWord {
        /// It is a string.
        #[default]
        Keep,
        /// It is the document.
        Decode,
    }
    /// What happens to a field that breaks the schema.
    OnFailWord {
        /// The model is asked again.
        #[default]
        Reask,
        /// It takes its fallback.
        Fallback,
        /// The call fails.
        Reject,
        /// It passes, marked.
        Flag,
    }
    /// When the edits stand in the body.
    ReportWord {
        /// Where the caller asks.
        #[default]
        OnRequest,
        /// Always.
        Always,
    }
}

impl Default for MendTable {
    fn default() -> Self {
        Self {
            policy: PolicyWord::Standard,
            allow: None,
            deny: Vec::new(),
            partial: PartialWord::Refuse,
            dup_keys: None,
            nan: None,
            bare_number: None,
            trunc_string: None,
            trunc_number: None,
            candidates: None,
        }
    }
}

/// Reads a policy's word alone, or the table.
pub(super) fn word_or_table<'de, D: Deserializer<'de>>(reader: D) -> Result<MendTable, D::Error> {
    reader.deserialize_any(WordOrTable)
}

struct WordOrTable;

impl<'de> Visitor<'de> for WordOrTable {
    type Value = MendTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"strict\", \"standard\", \"lenient\", \"off\" or a table")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<MendTable, E> {
        let policy = PolicyWord::deserialize(StrDeserializer::new(word))?;
        Ok(MendTable { policy, ..MendTable::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<MendTable, A::Error> {
        MendTable::deserialize(MapAccessDeserializer::new(table))
    }
}

/// The schema of both forms.
pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    let word = generator.subschema_for::<PolicyWord>();
    let table = generator.subschema_for::<MendTable>();
    json_schema!({ "anyOf": [word, table], "x-type": "word, or table, below" })
}
