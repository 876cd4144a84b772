//! The lowered schema as the undo reads it: what a place in a reply may be, and what was changed
//! there.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::kinds::{self, Types};
use super::{EXTRA, MAP, OPTIONAL, TUPLE, WRAPPED};

/// What stands at one place of the lowered schema. Places are named by their index.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent marks of one place")]
pub(super) struct Form {
    /// Types that may stand here. `None`: any.
    pub types: Option<Types>,
    /// The only values that may. `None`: any.
    pub values: Option<Vec<Value>>,
    pub members: Vec<Member>,
    /// Position of each member by its name.
    pub names: HashMap<String, usize>,
    pub required: Vec<String>,
    /// Whether other members than those may not stand here.
    pub closed: bool,
    /// The form of further members.
    pub rest: Option<usize>,
    pub prefix: Vec<usize>,
    pub items: Option<usize>,
    /// One of these fits, besides what is said above.
    pub branches: Vec<usize>,
    /// Stands for a map.
    pub map: bool,
    /// The member whose entries belong to the object itself.
    pub extra: Option<String>,
    /// The member `value` is the whole.
    pub wrapped: bool,
    /// Whether something is to be undone here or below.
    pub acts: bool,
}

/// A named member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub form: usize,
    /// A `null` here stands for no member.
    pub optional: bool,
}

/// Every place of a lowered schema that still has its marks; the root is the first. Empty when there
/// is nothing to undo.
pub(super) fn forms(marked: &Value) -> Arc<[Form]> {
    let mut maker = Maker { root: marked, forms: Vec::new(), known: HashMap::new() };
    maker.form(marked);
    let mut forms = maker.forms;
    spread_acts(&mut forms);
    if forms.first().is_some_and(|root| root.acts) { forms.into() } else { Arc::default() }
}

struct Maker<'v> {
    root: &'v Value,
    forms: Vec<Form>,
    /// Definitions that have a form, by their reference.
    known: HashMap<&'v str, usize>,
}

impl<'v> Maker<'v> {
    fn form(&mut self, schema: &'v Value) -> usize {
        let Value::Object(map) = schema else { return self.place(Form::default()) };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.referred(reference);
        }
        let at = self.place(Form::default());
        if std::ptr::eq(schema, self.root) {
            self.known.insert("#", at);
        }
        let form = self.filled(map);
        if let Some(place) = self.forms.get_mut(at) {
            *place = form;
        }
        at
    }

    fn place(&mut self, form: Form) -> usize {
        self.forms.push(form);
        self.forms.len() - 1
    }

    fn referred(&mut self, reference: &'v str) -> usize {
        if let Some(at) = self.known.get(reference) {
            return *at;
        }
        let Some(schema) = self.root.pointer(reference.trim_start_matches('#')) else {
            return self.place(Form::default());
        };
        // A definition that is only a reference is followed; a circle of those says nothing.
        let at = self.place(Form::default());
        self.known.insert(reference, at);
        match schema {
            Value::Object(map) if !map.contains_key("$ref") => {
                let form = self.filled(map);
                if let Some(place) = self.forms.get_mut(at) {
                    *place = form;
                }
            }
            other => {
                let branch = self.form(other);
                if let Some(place) = self.forms.get_mut(at) {
                    place.branches.push(branch);
                }
            }
        }
        at
    }

    fn filled(&mut self, map: &'v Map<String, Value>) -> Form {
        let mut form = Form { types: kinds::of(map), ..Form::default() };
        form.values = match (map.get("const"), map.get("enum")) {
            (Some(value), _) => Some(vec![value.clone()]),
            (None, Some(Value::Array(values))) => Some(values.clone()),
            (None, _) => None,
        };
        if let Some(Value::Object(named)) = map.get("properties") {
            let optional = map.get(OPTIONAL).and_then(Value::as_array);
            for (name, schema) in named {
                let is_optional = optional.is_some_and(|names| names.iter().any(|n| n == name));
                let inner = self.form(schema);
                form.names.insert(name.clone(), form.members.len());
                form.members.push(Member { form: inner, optional: is_optional });
            }
        }
        let names = map.get("required").and_then(Value::as_array).into_iter().flatten();
        form.required = names.filter_map(Value::as_str).map(str::to_owned).collect();
        form.closed = map.get("additionalProperties") == Some(&Value::Bool(false));
        if let Some(rest @ Value::Object(_)) = map.get("additionalProperties") {
            form.rest = Some(self.form(rest));
        }
        if let Some(Value::Array(prefix)) = map.get("prefixItems") {
            form.prefix = prefix.iter().map(|schema| self.form(schema)).collect();
        }
        if let Some(items @ Value::Object(_)) = map.get("items") {
            form.items = Some(self.form(items));
        }
        if let (Some(Value::Array(places)), Some(items)) = (map.get(TUPLE), form.items) {
            self.tuple(places, items, &mut form);
        }
        let branches = map.get("anyOf").or(map.get("oneOf")).and_then(Value::as_array);
        form.branches = branches.into_iter().flatten().map(|schema| self.form(schema)).collect();
        form.map = map.contains_key(MAP);
        form.extra = map.get(EXTRA).and_then(Value::as_str).map(str::to_owned);
        form.wrapped = map.contains_key(WRAPPED);
        form.acts = form.map
            || form.extra.is_some()
            || form.wrapped
            || form.members.iter().any(|member| member.optional);
        form
    }
}

impl Maker<'_> {
    /// A tuple that is lowered to a list of any of its items, by the places it was made of.
    fn tuple(&self, places: &[Value], items: usize, form: &mut Form) {
        let branches = self.forms.get(items).map(|form| form.branches.as_slice());
        let place = |place: &Value| match place.as_u64().and_then(|at| usize::try_from(at).ok()) {
            Some(at) => branches.and_then(|branches| branches.get(at).copied()).or(Some(items)),
            None if place.is_null() => Some(items),
            None => None,
        };
        if let [prefix @ .., rest] = places {
            form.prefix = prefix.iter().filter_map(place).collect();
            form.items = place(rest);
        }
    }
}

/// Carries [`Form::acts`] up to every place that holds one that acts.
fn spread_acts(forms: &mut [Form]) {
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); forms.len()];
    for (at, form) in forms.iter().enumerate() {
        let members = form.members.iter().map(|member| member.form);
        let others = form.rest.into_iter().chain(form.items);
        let lists = form.prefix.iter().chain(&form.branches).copied();
        for inner in members.chain(others).chain(lists) {
            if let Some(above) = above.get_mut(inner) {
                above.push(at);
            }
        }
    }
    let mut open: Vec<usize> =
        forms.iter().enumerate().filter(|(_, form)| form.acts).map(|(at, _)| at).collect();
    while let Some(at) = open.pop() {
        for above in above.get(at).into_iter().flatten() {
            if let Some(form) = forms.get_mut(*above).filter(|form| !form.acts) {
                form.acts = true;
                open.push(*above);
            }
        }
    }
}
