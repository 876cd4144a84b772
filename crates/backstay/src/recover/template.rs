//! The wording of a re-ask: a Jinja template, compiled and tried once before it is used.
//!
//! | variable | what it is |
//! |---|---|
//! | `errors` | what is wrong, a list of 1 to 20; each prints as a sentence with its place and has `pointer` (a JSON pointer into the reply, empty for all of it), `rule` and `message` |
//! | `reply` | the reply, or the part of it that is sent back |
//! | `shortened` | whether only a part is sent back |
//! | `schema` | the JSON Schema as text; empty where none is asked for |
//! | `request` | the last user message, at most 4,096 bytes of it |
//! | `number` | which re-ask of this target it is, from 1 |
//!
//! A name that is not here is refused when the template is compiled, also where no trial would come
//! by. What a template may take is bounded: 16 KiB of source, 64 KiB written, 100,000 steps.

use std::io::{self, Write};
use std::sync::Arc;

use minijinja::value::Value;
use minijinja::{Environment, UndefinedBehavior, context};

use super::Complaint;

/// The most bytes of a template.
const MAX_TEMPLATE: usize = 16 * 1024;

/// The most bytes it may write.
const MAX_ASKED: usize = 64 * 1024;

/// The most steps it may take: some 50 for each of the errors there can be, a hundred times over.
const FUEL: u64 = 100_000;

/// The most bytes of the last user message.
const MAX_REQUEST: usize = 4 * 1024;

/// The wording where no template is given.
const DEFAULT: &str = include_str!("reask_template.txt");

/// The one name templates go by.
const NAME: &str = "reask";

/// What a template sees.
const NAMES: [&str; 6] = ["errors", "reply", "shortened", "schema", "request", "number"];

/// Functions of the language that are left in.
const FUNCTIONS: [&str; 2] = ["dict", "namespace"];

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// Too many bytes.
    #[error("it has {bytes} bytes, {most} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// It uses a name that is not set.
    #[error("it uses `{name}`, which is not set; there are {}", listed())]
    UnknownName {
        /// The name.
        name: String,
    },
    /// It does not parse, or fails on an ordinary reply.
    #[error("it fails at line {line}: {problem}")]
    Invalid {
        /// From 1; 0 where it is not known.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// With three short errors it already writes more than may be sent.
    #[error("it writes more than {most} bytes")]
    Endless {
        /// The limit.
        most: usize,
    },
    /// With three short errors it already takes more steps than it may.
    #[error("it takes more than {most} steps")]
    Slow {
        /// The limit.
        most: u64,
    },
    /// It writes nothing but white space.
    #[error("it writes nothing")]
    Blank,
}

fn listed() -> String {
    NAMES.map(|name| format!("`{name}`")).join(", ")
}

/// The wording of a re-ask. The module says what it sees.
#[derive(Clone, Debug)]
pub struct Template {
    compiled: Arc<Environment<'static>>,
}

/// What a template is told of one re-ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) errors: &'a [Complaint],
    pub(super) reply: &'a str,
    pub(super) shortened: bool,
    pub(super) schema: &'a str,
    pub(super) request: &'a str,
    pub(super) number: u32,
}

impl Template {
    /// Compiles `source` and tries it once.
    ///
    /// # Errors
    /// See [`TemplateFault`]; all of them are for whoever wrote the template to mend.
    pub fn compile(source: &str) -> Result<Self, TemplateFault> {
        if source.len() > MAX_TEMPLATE {
            return Err(TemplateFault::TooLarge { bytes: source.len(), most: MAX_TEMPLATE });
        }
        let mut compiled = Environment::new();
        compiled.set_undefined_behavior(UndefinedBehavior::Strict);
        compiled.set_fuel(Some(FUEL));
        // One makes long lists of its own, the other prints everything there is.
        compiled.remove_global("range");
        compiled.remove_global("debug");
        compiled.add_template_owned(NAME, source.to_owned()).map_err(|error| invalid(&error))?;
        let template = Self { compiled: Arc::new(compiled) };
        template.knows_its_names()?;
        let said = template.render(&trial(&trial_errors())).map_err(|failed| match failed {
            Failed::Full => TemplateFault::Endless { most: MAX_ASKED },
            Failed::Slow => TemplateFault::Slow { most: FUEL },
            Failed::Template(error) => invalid(&error),
        })?;
        if said.trim().is_empty() { Err(TemplateFault::Blank) } else { Ok(template) }
    }

    /// Whether every name it uses is set, also in branches that no trial takes.
    fn knows_its_names(&self) -> Result<(), TemplateFault> {
        let template = self.compiled.get_template(NAME).map_err(|error| invalid(&error))?;
        let known = |name: &str| NAMES.contains(&name) || FUNCTIONS.contains(&name);
        let used = template.undeclared_variables(false);
        // The first by name, so that the same template always gets the same answer.
        match used.into_iter().filter(|name| !known(name)).min() {
            Some(name) => Err(TemplateFault::UnknownName { name }),
            None => Ok(()),
        }
    }

    /// What it says in `scene`.
    pub(super) fn render(&self, scene: &Scene<'_>) -> Result<String, Failed> {
        let template = self.compiled.get_template(NAME).map_err(Failed::Template)?;
        let mut page = Page { text: Vec::new(), full: false };
        let errors: Vec<Value> = scene.errors.iter().cloned().map(Value::from_object).collect();
        let request = scene.request.floor_char_boundary(MAX_REQUEST);
        let names = context! {
            errors => errors,
            reply => scene.reply,
            shortened => scene.shortened,
            schema => scene.schema,
            request => scene.request.get(..request).unwrap_or_default(),
            number => scene.number,
        };
        match template.render_captured_to(names, &mut page) {
            Ok(_) => Ok(String::from_utf8_lossy(&page.text).into_owned()),
            Err(_) if page.full => Err(Failed::Full),
            Err(error) if error.kind() == minijinja::ErrorKind::OutOfFuel => Err(Failed::Slow),
            Err(error) => Err(Failed::Template(error)),
        }
    }
}

/// The default wording, or the bare errors should it fail.
pub(super) fn standard(scene: &Scene<'_>) -> String {
    let rendered = Template::compile(DEFAULT).ok().and_then(|t| t.render(scene).ok());
    rendered.unwrap_or_else(|| {
        let lines: Vec<&str> = scene.errors.iter().map(|error| error.message.as_str()).collect();
        lines.join("\n")
    })
}

/// Three errors as models make them.
fn trial_errors() -> [Complaint; 3] {
    let error = |pointer: &str, message: &str| Complaint {
        pointer: (!pointer.is_empty()).then(|| pointer.to_owned()),
        rule: "schema".to_owned(),
        message: message.to_owned(),
    };
    [error("", "missing 'a'"), error("/b", "'b' should be int"), error("/c", "c 'x' not in enum")]
}

fn trial(errors: &[Complaint]) -> Scene<'_> {
    Scene { errors, reply: "{}", shortened: true, schema: "{}", request: "…", number: 1 }
}

/// Why a template said nothing.
#[derive(Debug)]
pub(super) enum Failed {
    Full,
    Slow,
    Template(minijinja::Error),
}

fn invalid(error: &minijinja::Error) -> TemplateFault {
    let problem = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateFault::Invalid { line: error.line().unwrap_or(0), problem }
}

/// Takes at most [`MAX_ASKED`] bytes.
struct Page {
    text: Vec<u8>,
    full: bool,
}

impl Write for Page {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.text.len() + piece.len() > MAX_ASKED {
            self.full = true;
            return Err(io::Error::other("the page is full"));
        }
        self.text.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(source: &str) -> String {
        Template::compile(source).unwrap().render(&trial(&trial_errors())).unwrap()
    }

    #[test]
    fn a_template_sees_every_documented_name() {
        assert_eq!(
            said("{{ errors | length }}: {{ errors | join(', ') }}"),
            "3: missing 'a', /b: 'b' should be int, /c: c 'x' not in enum"
        );
        assert_eq!(
            said("{% for e in errors %}{{ e.pointer }}|{{ e.rule }}|{{ e.message }};{% endfor %}"),
            "|schema|missing 'a';/b|schema|'b' should be int;/c|schema|c 'x' not in enum;"
        );
        assert_eq!(
            said("{{ reply }}{{ schema }}{{ request }}{{ number }}{% if shortened %}!{% endif %}"),
            "{}{}…1!"
        );
        for name in NAMES {
            assert!(include_str!("template.rs").contains(&format!("//! | `{name}` |")));
        }
    }

    #[test]
    fn a_template_that_cannot_work_is_refused_when_it_is_compiled() {
        let fault = |source: &str| Template::compile(source).unwrap_err();
        let unknown = |name: &str| TemplateFault::UnknownName { name: name.to_owned() };
        assert_eq!(fault("a\n{{ ticket }}"), unknown("ticket"));
        assert_eq!(fault("x{% if not shortened %}{{ ticket }}{% endif %}"), unknown("ticket"));
        assert_eq!(fault("{{ range(100000) }}"), unknown("range"));
        assert_eq!(fault("{{ debug() }}"), unknown("debug"));
        assert_eq!(
            unknown("ticket").to_string(),
            "it uses `ticket`, which is not set; there are `errors`, `reply`, `shortened`, \
             `schema`, `request`, `number`"
        );
        let field = fault("a\n{% for e in errors %}{{ e.line }}{% endfor %}");
        assert!(matches!(field, TemplateFault::Invalid { line: 2, .. }), "{field}");
        assert!(matches!(fault("{% for e in errors %}"), TemplateFault::Invalid { .. }));
        assert!(matches!(fault("{% include 'x' %}"), TemplateFault::Invalid { .. }));
        assert!(matches!(fault(&"x".repeat(MAX_TEMPLATE + 1)), TemplateFault::TooLarge { .. }));
        let most = "{% for a in errors %}".repeat(9) + &"x".repeat(200) + &"{% endfor %}".repeat(9);
        assert_eq!(fault(&most), TemplateFault::Endless { most: MAX_ASKED });
        let slow = "{% for a in errors %}".repeat(11) + &"{% endfor %}".repeat(11);
        assert_eq!(fault(&format!("x{slow}")), TemplateFault::Slow { most: FUEL });
        assert_eq!(fault(" {% if shortened and number > 9 %}x{% endif %}\n"), TemplateFault::Blank);
    }

    #[test]
    fn a_macro_of_its_own_cannot_go_on_for_ever() {
        let fault = Template::compile("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
        assert!(fault.is_err());
    }

    #[test]
    fn a_long_request_is_cut_at_a_character() {
        let errors = trial_errors();
        let request = "é".repeat(MAX_REQUEST);
        let scene = Scene { request: &request, ..trial(&errors) };
        let said = Template::compile("{{ request }}").unwrap().render(&scene).unwrap();
        assert_eq!(said, "é".repeat(MAX_REQUEST / 2));
    }
}
