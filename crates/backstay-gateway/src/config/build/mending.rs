//! `mend`, `align` and `fields` of a route.

use std::sync::Arc;

use backstay::policy::{
    Align, Coercion, Encoded, Enums, Extra, Field, FieldPath, Mending, Missing, OnFail, Partial,
    Report, Syntax,
};
use backstay::validate::schema::{Misfit, misfit};
use jsonmend::{AtCut, BareNumber, DupKeys, Kind, KindSet, Nan, Policy, Several};
use serde_json::Value;

use super::rule::json;
use super::{Loading, ticked};
use crate::config::file::RouteTable;
use crate::config::mend_words::{
    AlignTable, AtCutWord, BareNumberWord, CandidatesWord, CoerceWord, DupKeysWord, EncodedWord,
    EnumWord, ExtraWord, FieldTable, MendTable, MissingWord, NanWord, OnFailWord, PartialWord,
    PolicyWord, ReportWord,
};
use crate::config::nearest::nearest;

impl Loading<'_> {
    /// What the route `name` may do to an answer.
    pub(super) fn mending(
        &mut self,
        name: &str,
        table: &RouteTable,
        schema: Option<&Value>,
    ) -> Arc<Mending> {
        let fields = table.fields.iter().enumerate();
        let fields: Vec<Field> =
            fields.filter_map(|(index, field)| self.field(name, index, field, schema)).collect();
        if table.align.enums == EnumWord::Fallback && schema.is_some() && !declares(schema, &fields)
        {
            let message = "no field has a fallback that an enum could take".into();
            let help = "declare one in `fields`, or as `x-backstay-fallback` in the schema";
            self.doubt(&["routes", name, "align", "enum"], "no-fallback", message, help);
        }
        Arc::new(Mending {
            syntax: self.syntax(name, &table.mend),
            align: align(&table.align),
            fields,
            report: match table.report_edits {
                ReportWord::OnRequest => Report::OnRequest,
                ReportWord::Always => Report::Always,
            },
        })
    }

    fn syntax(&mut self, name: &str, table: &MendTable) -> Syntax {
        let base = match table.policy {
            PolicyWord::Strict => Policy::strict(),
            PolicyWord::Standard => Policy::standard(),
            PolicyWord::Lenient => Policy::lenient(),
            PolicyWord::Off => Policy::strict().allowing(&[]),
        };
        let partial = match table.partial {
            PartialWord::Refuse => Partial::Refuse,
            PartialWord::Accept => Partial::Accept,
        };
        let takes = matches!(table.policy, PolicyWord::Standard | PolicyWord::Lenient);
        if partial == Partial::Accept && !takes {
            let message = "this policy never takes what lost something".into();
            let path = ["routes", name, "mend", "partial"];
            self.wrong(&path, "idle-partial", message, "`policy = \"standard\"` does");
        }
        let mut allow = match &table.allow {
            Some(kinds) => self.kinds(name, "allow", kinds),
            None => base.allow,
        };
        for kind in self.kind_list(name, "deny", &table.deny) {
            allow = allow.without(kind);
        }
        let policy = Policy {
            allow,
            dup_keys: table.dup_keys.map_or(base.dup_keys, dup_keys),
            nan: table.nan.map_or(base.nan, nan),
            bare_number: table.bare_number.map_or(base.bare_number, bare_number),
            several: table.candidates.map_or(base.several, several),
            cut_string: table.trunc_string.map_or(base.cut_string, at_cut),
            cut_number: table.trunc_number.map_or(base.cut_number, at_cut),
            ..base
        };
        Syntax::of(policy, partial)
    }

    fn kinds(&mut self, name: &str, key: &str, names: &[String]) -> KindSet {
        KindSet::of(&self.kind_list(name, key, names))
    }

    /// The kinds of these names; a wrong name is noted.
    fn kind_list(&mut self, name: &str, key: &str, names: &[String]) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for (index, wanted) in names.iter().enumerate() {
            if let Some(kind) = Kind::from_name(wanted) {
                kinds.push(kind);
                continue;
            }
            let all = Kind::ALL.iter().map(|kind| kind.name());
            let help = match nearest(wanted, all.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("kinds are {}", ticked(&all.collect::<Vec<_>>())),
            };
            let index = index.to_string();
            let path = ["routes", name, "mend", key, &index];
            let message = format!("`{wanted}` is no kind of edit");
            self.wrong(&path, "unknown-kind", message, &help);
        }
        kinds
    }

    fn field(
        &mut self,
        name: &str,
        index: usize,
        table: &FieldTable,
        schema: Option<&Value>,
    ) -> Option<Field> {
        let index = index.to_string();
        let path = |key| ["routes", name, "fields", index.as_str(), key];
        let Some(at) = FieldPath::parse(&table.at) else {
            let message = "`at` is not a JSON pointer".into();
            self.wrong(&path("at"), "bad-field", message, "such as \"/status\"");
            return None;
        };
        let fallback = match table.fallback.as_ref().map(json) {
            Some(None) => {
                let message = "`fallback` has a date or a number that JSON has not".into();
                self.wrong(&path("fallback"), "bad-field", message, "put it in quotes");
                return None;
            }
            Some(Some(value)) => Some(value),
            None => None,
        };
        let on_fail = on_fail(table.on_fail);
        if on_fail == OnFail::Fallback && fallback.is_none() {
            let message = "`on_fail = \"fallback\"` needs a `fallback`".into();
            self.wrong(&path("on_fail"), "bad-field", message, "add `fallback = …`");
        }
        if matches!(on_fail, OnFail::Reject | OnFail::Flag) && fallback.is_some() {
            let message = "this `fallback` is never taken".into();
            self.doubt(&path("fallback"), "idle-fallback", message, "see `on_fail`");
        }
        if let Some((schema, value)) = schema.zip(fallback.as_ref()) {
            self.misfit(name, &index, misfit(schema, &table.at, value));
        }
        Some(Field { at, on_fail, fallback: fallback.map(Arc::new) })
    }
}

impl Loading<'_> {
    /// Notes a fallback that no answer could hold.
    fn misfit(&mut self, name: &str, index: &str, found: Option<Misfit>) {
        let path = |key| ["routes", name, "fields", index, key];
        match found {
            None => {}
            Some(Misfit::Nowhere(place)) => {
                let message = format!("nothing that fits the route's schema has `{place}`");
                let help = "a `fallback` is put where `at` leads; check it against the schema";
                self.wrong(&path("at"), "bad-field", message, help);
            }
            Some(Misfit::Value(error)) => {
                let message = format!("`fallback` does not fit the route's schema there: {error}");
                let help = "what is handed out in its place must be valid too";
                self.wrong(&path("fallback"), "bad-field", message, help);
            }
        }
    }
}

/// Whether anything declares a fallback.
fn declares(schema: Option<&Value>, fields: &[Field]) -> bool {
    let in_schema = schema.is_some_and(|schema| schema.to_string().contains("x-backstay-fallback"));
    in_schema || fields.iter().any(|field| field.fallback.is_some())
}

fn align(table: &AlignTable) -> Align {
    Align {
        coerce: table.coerce.iter().map(|word| coercion(*word)).collect(),
        enums: match table.enums {
            EnumWord::Exact => Enums::Exact,
            EnumWord::Fold => Enums::Fold,
            EnumWord::Fallback => Enums::Fallback,
        },
        extra: match table.extra {
            ExtraWord::Reject => Extra::Reject,
            ExtraWord::Drop => Extra::Drop,
        },
        missing: match table.missing {
            MissingWord::Reject => Missing::Reject,
            MissingWord::SchemaDefault => Missing::SchemaDefault,
        },
        encoded: match table.double_encoded {
            EncodedWord::Keep => Encoded::Keep,
            EncodedWord::Decode => Encoded::Decode,
        },
    }
}

fn coercion(word: CoerceWord) -> Coercion {
    match word {
        CoerceWord::StrInt => Coercion::StrInt,
        CoerceWord::StrNum => Coercion::StrNum,
        CoerceWord::StrBool => Coercion::StrBool,
        CoerceWord::NumStr => Coercion::NumStr,
        CoerceWord::ScalarArray => Coercion::ScalarArray,
        CoerceWord::ArrayScalar => Coercion::ArrayScalar,
        CoerceWord::JsonObject => Coercion::JsonObject,
    }
}

fn on_fail(word: OnFailWord) -> OnFail {
    match word {
        OnFailWord::Reask => OnFail::Reask,
        OnFailWord::Fallback => OnFail::Fallback,
        OnFailWord::Reject => OnFail::Reject,
        OnFailWord::Flag => OnFail::Flag,
    }
}

fn dup_keys(word: DupKeysWord) -> DupKeys {
    match word {
        DupKeysWord::SameOnly => DupKeys::SameOnly,
        DupKeysWord::Reject => DupKeys::Reject,
        DupKeysWord::First => DupKeys::First,
        DupKeysWord::Last => DupKeys::Last,
    }
}

fn nan(word: NanWord) -> Nan {
    match word {
        NanWord::Reject => Nan::Reject,
        NanWord::Null => Nan::Null,
        NanWord::Text => Nan::Text,
    }
}

fn bare_number(word: BareNumberWord) -> BareNumber {
    match word {
        BareNumberWord::Reject => BareNumber::Reject,
        BareNumberWord::Text => BareNumber::Text,
    }
}

fn several(word: CandidatesWord) -> Several {
    match word {
        CandidatesWord::Only => Several::Only,
        CandidatesWord::First => Several::First,
        CandidatesWord::Last => Several::Last,
        CandidatesWord::Largest => Several::Largest,
        CandidatesWord::Array => Several::Array,
    }
}

fn at_cut(word: AtCutWord) -> AtCut {
    match word {
        AtCutWord::Keep => AtCut::Keep,
        AtCutWord::Drop => AtCut::Drop,
    }
}
