//! Walks arrays, objects and enum variants for `serde`.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::Mismatch;
use crate::tape::{Items, Members, Node};

pub(super) struct Elements<'t> {
    items: Items<'t>,
    left: usize,
}

impl<'t> Elements<'t> {
    pub(super) fn new(node: Node<'t>) -> Self {
        Self { items: node.items(), left: node.len() }
    }
}

impl<'t> SeqAccess<'t> for Elements<'t> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'t>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        self.left = self.left.saturating_sub(1);
        self.items.next().map(|item| seed.deserialize(item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

pub(super) struct Entries<'t> {
    members: Members<'t>,
    value: Option<Node<'t>>,
}

impl<'t> Entries<'t> {
    pub(super) fn new(node: Node<'t>) -> Self {
        Self { members: node.members(), value: None }
    }
}

impl<'t> MapAccess<'t> for Entries<'t> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'t>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        let Some((key, value)) = self.members.next() else { return Ok(None) };
        self.value = Some(value);
        match key {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some),
            Cow::Owned(key) => seed.deserialize(key.into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'t>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        match self.value.take() {
            Some(value) => seed.deserialize(value),
            None => Err(serde::de::Error::custom("a value was asked for before its key")),
        }
    }
}

/// `{"Name": content}`.
pub(super) struct Variant<'t> {
    name: Cow<'t, str>,
    content: Node<'t>,
}

impl<'t> Variant<'t> {
    pub(super) fn new(name: Cow<'t, str>, content: Node<'t>) -> Self {
        Self { name, content }
    }
}

impl<'t> EnumAccess<'t> for Variant<'t> {
    type Error = Mismatch;
    type Variant = Content<'t>;

    fn variant_seed<V: DeserializeSeed<'t>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'t>), Mismatch> {
        let name: CowStrDeserializer<'t, Mismatch> = CowStrDeserializer::new(self.name);
        Ok((seed.deserialize(name)?, Content(self.content)))
    }
}

pub(super) struct Content<'t>(Node<'t>);

impl<'t> VariantAccess<'t> for Content<'t> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        <()>::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'t>>(self, seed: T) -> Result<T::Value, Mismatch> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'t>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        serde::Deserializer::deserialize_seq(self.0, visitor)
    }

    fn struct_variant<V: Visitor<'t>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        serde::Deserializer::deserialize_map(self.0, visitor)
    }
}
