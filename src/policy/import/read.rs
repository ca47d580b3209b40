//! Reading documents that somebody else wrote: every complaint names its place.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::time::Timestamp;

/// Lists and objects within one another: more than any of these documents has, and half of what can be read again.
pub(super) const MAX_DEPTH: usize = 64;
/// More iterations than any run has.
const MAX_ITERATION: u32 = 100_000;

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error, JsonSchema)]
#[error("{place}: {message}")]
#[schemars(rename = "import_problem")]
pub struct Problem {
    /// A JSON pointer (`/iterations/2/number`; `/` is the document).
    pub place: String,
    /// What.
    pub message: String,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub value: &'a Value,
    path: String,
}

impl<'a> Place<'a> {
    /// The whole document.
    pub(super) fn root(value: &'a Value) -> Self {
        Self {
            value,
            path: String::new(),
        }
    }

    /// What is wrong here.
    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        let place = if self.path.is_empty() {
            "/".to_owned()
        } else {
            self.path.clone()
        };
        Problem {
            place,
            message: message.into(),
        }
    }

    /// Refuses what is nested deeper than any of these documents is: one that the ledger could not read again inside
    /// an event of its own, say.
    pub(super) fn no_deeper_than(&self, levels: usize) -> Result<(), Problem> {
        let inner: Vec<Self> = match self.value {
            Value::Array(_) => self.items()?,
            Value::Object(fields) => fields.keys().filter_map(|name| self.field(name)).collect(),
            _ => return Ok(()),
        };
        let Some(left) = levels.checked_sub(1) else {
            return Err(self.problem(format!("it is nested more than {MAX_DEPTH} levels deep")));
        };
        inner.iter().try_for_each(|one| one.no_deeper_than(left))
    }

    fn is_not(&self, what: &str) -> Problem {
        let found = match self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(_) => "text".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
        };
        self.problem(format!("{what} belongs here, not {found}"))
    }

    /// The fields of an object.
    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, Problem> {
        self.value
            .as_object()
            .ok_or_else(|| self.is_not("an object"))
    }

    /// A field; `None` where it is missing or null.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self {
            value,
            path: format!("{}/{escaped}", self.path),
        })
    }

    /// A field that must be there.
    pub(super) fn required(&self, name: &str) -> Result<Self, Problem> {
        self.field(name)
            .ok_or_else(|| self.problem(format!("it has no '{name}'")))
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Result<Vec<Self>, Problem> {
        let list = self.value.as_array().ok_or_else(|| self.is_not("a list"))?;
        let item = |(at, value)| Self {
            value,
            path: format!("{}/{at}", self.path),
        };
        Ok(list.iter().enumerate().map(item).collect())
    }

    /// The items of a field's list; none where it is missing.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Self>, Problem> {
        self.field(name).map_or(Ok(Vec::new()), |list| list.items())
    }

    /// Text.
    pub(super) fn text(&self) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.is_not("text"))
    }

    /// A name of something: text that is not empty and has nothing unprintable in it.
    pub(super) fn name(&self) -> Result<&'a str, Problem> {
        let text = self.text()?;
        if text.trim().is_empty() || text.chars().any(char::is_control) || text.len() > 500 {
            return Err(self.problem("it is empty, too long or not printable"));
        }
        Ok(text)
    }

    /// A field's text.
    pub(super) fn text_of(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        self.field(name).map(|field| field.text()).transpose()
    }

    /// A whole number that is not negative.
    pub(super) fn number(&self) -> Result<u32, Problem> {
        let number = self
            .value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.is_not("a whole number from 0"))
    }

    /// A field's number.
    pub(super) fn number_of(&self, name: &str) -> Result<Option<u32>, Problem> {
        self.field(name).map(|field| field.number()).transpose()
    }

    /// A field's number of an iteration. One that nothing can follow would never end.
    pub(super) fn iteration_of(&self, name: &str) -> Result<Option<u32>, Problem> {
        let Some(field) = self.field(name) else {
            return Ok(None);
        };
        match field.number()? {
            number if number > MAX_ITERATION => Err(field.problem(format!(
                "iterations beyond {MAX_ITERATION} are not taken over"
            ))),
            number => Ok(Some(number)),
        }
    }

    /// A field's yes or no.
    pub(super) fn flag_of(&self, name: &str) -> Result<Option<bool>, Problem> {
        let flag = |field: Self| {
            field
                .value
                .as_bool()
                .ok_or_else(|| field.is_not("true or false"))
        };
        self.field(name).map(flag).transpose()
    }

    /// A time in ISO 8601.
    pub(super) fn time(&self) -> Result<Timestamp, Problem> {
        let text = self.text()?;
        text.parse()
            .map_err(|error| self.problem(format!("'{text}' is not a time: {error}")))
    }

    /// A field's time.
    pub(super) fn time_of(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        self.field(name).map(|field| field.time()).transpose()
    }
}
