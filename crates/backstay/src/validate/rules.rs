//! Layer 3: what must hold of a reply beyond its shape, as CEL expressions. The only file that
//! knows the crate `cel`.
//!
//! A rule sees two variables: `reply`, the JSON value (for a reply in text, the text), and `input`,
//! the text that the reply is about. It must come out true or false. One that cannot be evaluated,
//! because a key is missing, say, has not held: the reply is refused, and the error says so.
//!
//! The evaluator has no budget of its own, so what may make it long is bounded: the expression when
//! it is compiled, the sizes of `reply` and `input` when it is run.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use backstay_decide::fault::Fault;
use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::{Context, Env, Program};
use serde_json::Value;

use super::{Asked, Checked, Layer, Unfit, clipped};

/// The most bytes of an expression. A long rule has 200.
const MAX_CHECK: usize = 2_000;

/// The most brackets open at once in an expression: the parser goes down the stack with each.
const MAX_OPEN: usize = 24;

/// The most loops (`all`, `exists`, `map`, `filter`) inside each other.
const MAX_LOOPS: u32 = 3;

/// The most bytes of `input`, and of a reply in text.
const MAX_TEXT: usize = 1024 * 1024;

/// The most steps of one evaluation, by estimate: the values in the reply to the power of the loops
/// inside each other, each step over `input` once a page. A step takes about a microsecond.
const MAX_STEPS: u64 = 2_000_000;

/// What an expression may call: CEL's standard functions and macros.
static STANDARD: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// The names of types, which an expression may compare `type(x)` with.
const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "optional",
    "string",
    "type",
    "uint",
];

/// Why a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// The expression is too long or too deep.
    #[error("rule '{name}' is too large: {what}")]
    TooLarge {
        /// The rule's name.
        name: String,
        /// Which limit it breaks.
        what: String,
    },
    /// The expression is not CEL.
    #[error("rule '{name}' does not parse at line {line}, column {column}: {problem}")]
    Syntax {
        /// The rule's name.
        name: String,
        /// From 1; 0 where the parser does not say.
        line: usize,
        /// From 1, in characters; 0 where the parser does not say.
        column: usize,
        /// What the parser expected.
        problem: String,
    },
    /// The expression uses a name that no rule knows.
    #[error(
        "rule '{name}' uses '{unknown}' at line {line}, column {column}; a rule sees `reply`, `input` and the functions of CEL"
    )]
    UnknownName {
        /// The rule's name.
        name: String,
        /// The variable or function it uses.
        unknown: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// `input` is not a JSON pointer.
    #[error(
        "rule '{name}' has the input '{pointer}', which is no JSON pointer such as `/messages/0/content`"
    )]
    BadInput {
        /// The rule's name.
        name: String,
        /// What stands there.
        pointer: String,
    },
}

/// One rule, compiled.
pub struct Rule {
    name: String,
    message: String,
    input: Option<String>,
    program: Program,
    loops: u32,
}

impl Rule {
    /// Compiles the rule `name` from the expression `check`, which must come out true.
    ///
    /// `message` is what is told when it does not; `None` names the rule and the expression.
    /// `input` is a JSON pointer into the request; `None` is the last user message.
    ///
    /// # Errors
    ///
    /// See [`RuleFault`]; all of them are for whoever wrote the rule to mend.
    pub fn compile(
        name: &str,
        check: &str,
        message: Option<&str>,
        input: Option<&str>,
    ) -> Result<Self, RuleFault> {
        let too_large = |what: String| RuleFault::TooLarge { name: name.to_owned(), what };
        if check.len() > MAX_CHECK {
            return Err(too_large(format!("{} bytes, {MAX_CHECK} are allowed", check.len())));
        }
        if open_at_once(check) > MAX_OPEN {
            return Err(too_large(format!("more than {MAX_OPEN} brackets or operators nested")));
        }
        if let Some(pointer) =
            input.filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/'))
        {
            return Err(RuleFault::BadInput { name: name.to_owned(), pointer: pointer.to_owned() });
        }
        let program = parsed(name, check)?;
        let walk = Walk::through(program.expression());
        if let Some((unknown, id)) = walk.unknown {
            let offset = program.source_info().offset_for(id).map_or(0, |(start, _)| start);
            let (line, column) = place(check, usize::try_from(offset).unwrap_or(0));
            return Err(RuleFault::UnknownName { name: name.to_owned(), unknown, line, column });
        }
        let loops = walk.loops;
        if loops > MAX_LOOPS {
            return Err(too_large(format!(
                "{loops} loops inside each other, {MAX_LOOPS} are allowed"
            )));
        }
        let message =
            message.map_or_else(|| format!("rule '{name}' does not hold: {check}"), str::to_owned);
        Ok(Self { name: name.to_owned(), message, input: input.map(str::to_owned), program, loops })
    }

    /// The rule's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong, if the rule does not hold.
    fn broken(&self, reply: &Measured, asked: &Asked<'_>) -> Option<String> {
        let cannot =
            |why: &str| Some(format!("rule '{}' could not be evaluated: {why}", self.name));
        let input = (asked.input)(self.input.as_deref());
        if input.len() > MAX_TEXT {
            return cannot("the input is too long");
        }
        let pages = 1 + u64::try_from((input.len() + reply.bytes) / 4096).unwrap_or(u64::MAX);
        if reply.nodes.saturating_pow(self.loops).saturating_mul(pages) > MAX_STEPS {
            return cannot("the reply is too large for it");
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut names = Context::with_env(Arc::clone(&STANDARD));
            names.add_variable_from_value("reply", reply.value.clone());
            names.add_variable_from_value("input", input);
            self.program.execute(&names)
        }));
        match outcome {
            Ok(Ok(cel::Value::Bool(true))) => None,
            Ok(Ok(cel::Value::Bool(false))) => Some(self.message.clone()),
            Ok(Ok(other)) => cannot(&format!("it gives {}, not true or false", other.type_of())),
            Ok(Err(error)) => cannot(&clipped(&error.to_string(), 160)),
            Err(_) => cannot("the evaluator failed"),
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A reply as the rules see it.
struct Measured {
    value: cel::Value,
    nodes: u64,
    bytes: usize,
}

/// Checks every rule, in order.
pub(super) fn check(rules: &[Rule], checked: &Checked, asked: &Asked<'_>) -> Result<(), Unfit> {
    if rules.is_empty() {
        return Ok(());
    }
    let mut nodes = 0;
    let value = match &checked.value {
        Some(value) => seen(value, &mut nodes),
        None => checked.text.clone().into(),
    };
    let reply = Measured { value, nodes: nodes.max(1), bytes: checked.text.len() };
    let errors: Vec<String> = if reply.bytes > MAX_TEXT {
        vec!["the reply is too long for the rules".to_owned()]
    } else {
        rules.iter().filter_map(|rule| rule.broken(&reply, asked)).collect()
    };
    if errors.is_empty() {
        return Ok(());
    }
    Err(Unfit::new(Fault::SemanticError, Layer::Rules, errors))
}

/// A JSON value as CEL has it. Whole numbers become `int`, or `uint` past its range, so that
/// `reply.priority == 1` compares the same kind.
fn seen(value: &Value, nodes: &mut u64) -> cel::Value {
    *nodes += 1;
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => {
            let whole = number.as_i64().map(cel::Value::Int);
            let whole = whole.or_else(|| number.as_u64().map(cel::Value::UInt));
            whole.unwrap_or_else(|| cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)))
        }
        Value::String(text) => text.clone().into(),
        Value::Array(items) => {
            cel::Value::List(Arc::new(items.iter().map(|item| seen(item, nodes)).collect()))
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.clone(), seen(member, nodes)));
            members.collect::<HashMap<String, cel::Value>>().into()
        }
    }
}

fn parsed(name: &str, check: &str) -> Result<Program, RuleFault> {
    let syntax = |line, column, problem: &str| RuleFault::Syntax {
        name: name.to_owned(),
        line,
        column,
        problem: clipped(problem, 200),
    };
    // The generated parser has panicked on odd input before.
    let outcome = catch_unwind(AssertUnwindSafe(|| STANDARD.compile(check)));
    let errors = match outcome {
        Ok(Ok(program)) => return Ok(program),
        Ok(Err(errors)) => errors.errors,
        Err(_) => Vec::new(),
    };
    let number = |at: isize| usize::try_from(at).unwrap_or(0);
    let first = errors.first();
    Err(first.map_or_else(
        || syntax(0, 0, "not an expression"),
        |error| syntax(number(error.pos.0), number(error.pos.1), &error.msg),
    ))
}

/// The line and column, from 1, of the character `offset` characters into `text`.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before: String = text.chars().take(offset).collect();
    let line = before.matches('\n').count() + 1;
    (line, before.chars().rev().take_while(|letter| *letter != '\n').count() + 1)
}

/// How deep the parser would have to go: brackets, and prefix operators or `?` in a row.
fn open_at_once(check: &str) -> usize {
    let (mut open, mut row, mut most) = (0_usize, 0_usize, 0_usize);
    for letter in check.chars() {
        match letter {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            '!' | '-' | '?' => row += 1,
            _ => {}
        }
        most = most.max(open);
    }
    // Operators are counted over the whole expression: few rules have any in a row.
    most.max(row / 4)
}

/// What one walk over an expression finds.
#[derive(Default)]
struct Walk {
    /// The most loops inside each other.
    loops: u32,
    /// The first name nobody knows, and the id of the node that has it.
    unknown: Option<(String, u64)>,
    /// Loops around the node, and the variables they bind.
    around: u32,
    bound: Vec<String>,
}

impl Walk {
    fn through(expression: &IdedExpr) -> Self {
        let mut walk = Self::default();
        walk.visit(expression);
        walk
    }

    fn visit(&mut self, node: &IdedExpr) {
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.meet(name, node.id),
            Expr::Select(select) => self.visit(&select.operand),
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(made) => made.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Call(call) => {
                if !callable(&call.func_name) {
                    self.note(&call.func_name, node.id);
                }
                call.target.iter().for_each(|target| self.visit(target));
                call.args.iter().for_each(|argument| self.visit(argument));
            }
            Expr::Comprehension(each) => {
                self.visit(&each.iter_range);
                self.visit(&each.accu_init);
                let before = self.bound.len();
                self.bound.push(each.iter_var.clone());
                self.bound.push(each.accu_var.clone());
                self.bound.extend(each.iter_var2.clone());
                self.around += 1;
                self.loops = self.loops.max(self.around);
                self.visit(&each.loop_cond);
                self.visit(&each.loop_step);
                self.visit(&each.result);
                self.around -= 1;
                self.bound.truncate(before);
            }
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key);
                self.visit(&entry.value);
            }
        }
    }

    fn meet(&mut self, name: &str, id: u64) {
        let known = matches!(name, "reply" | "input") || TYPES.contains(&name);
        if !known && !self.bound.iter().any(|bound| bound == name) {
            self.note(name, id);
        }
    }

    fn note(&mut self, name: &str, id: u64) {
        if self.unknown.is_none() {
            self.unknown = Some((clipped(name, 60), id));
        }
    }
}

/// Whether CEL has a function or operator of that name. The crate says so only by refusing to let
/// one be added again.
fn callable(name: &str) -> bool {
    let is_word = name.starts_with(|first: char| first.is_alphabetic());
    let mut names = Context::with_env(Arc::clone(&STANDARD));
    !is_word || names.add_function(name, || true).is_err()
}
