//! A guide over a JSON Schema held as a `serde_json::Value`: as much of it as the cases need.

use jsonmend::{Guide, Listed, Member, Place, Types};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Schema {
    places: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    types: Types,
    members: Vec<(String, Place)>,
    is_closed: bool,
    items: Option<Place>,
    required: Vec<String>,
    names: Option<Vec<String>>,
}

impl Schema {
    pub(crate) fn new(schema: &Value) -> Self {
        let mut guide = Self { places: Vec::new() };
        guide.add(schema);
        guide
    }

    fn add(&mut self, schema: &Value) -> Place {
        let place = Place(u32::try_from(self.places.len()).unwrap());
        let names = schema["enum"]
            .as_array()
            .map(|list| list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect());
        self.places.push(Node {
            types: types(&schema["type"]),
            members: Vec::new(),
            is_closed: schema["additionalProperties"] == false,
            items: None,
            required: schema["required"]
                .as_array()
                .map(|list| list.iter().map(|key| key.as_str().unwrap().to_owned()).collect())
                .unwrap_or_default(),
            names,
        });
        for (key, member) in schema["properties"].as_object().into_iter().flatten() {
            let member = self.add(member);
            self.node_mut(place).members.push((key.clone(), member));
        }
        if schema["items"].is_object() {
            let items = self.add(&schema["items"]);
            self.node_mut(place).items = Some(items);
        }
        place
    }

    fn node(&self, at: Place) -> &Node {
        &self.places[at.0 as usize]
    }

    fn node_mut(&mut self, at: Place) -> &mut Node {
        &mut self.places[at.0 as usize]
    }
}

fn types(named: &Value) -> Types {
    let one = |name: &Value| match name.as_str() {
        Some("null") => Types::NULL,
        Some("boolean") => Types::BOOLEAN,
        Some("integer") => Types::INTEGER,
        Some("number") => Types::NUMBER,
        Some("string") => Types::STRING,
        Some("array") => Types::ARRAY,
        Some("object") => Types::OBJECT,
        _ => Types::ANY,
    };
    match named {
        Value::Array(names) => names.iter().fold(Types::NONE, |all, name| all.or(one(name))),
        name => one(name),
    }
}

impl Guide for Schema {
    fn root(&self) -> Place {
        Place(0)
    }

    fn types(&self, at: Place) -> Types {
        self.node(at).types
    }

    fn member(&self, at: Place, key: &str) -> Member {
        match self.node(at).members.iter().find(|(name, _)| name == key) {
            Some((_, place)) => Member::Known(*place),
            None if self.node(at).is_closed => Member::Forbidden,
            None => Member::Open,
        }
    }

    fn element(&self, at: Place, _: usize) -> Option<Place> {
        self.node(at).items
    }

    fn required(&self, at: Place) -> &[String] {
        &self.node(at).required
    }

    fn listed(&self, at: Place, text: &str) -> Listed {
        match &self.node(at).names {
            None => Listed::Unsaid,
            Some(names) if names.iter().any(|name| name == text) => Listed::Yes,
            Some(_) => Listed::No,
        }
    }
}
