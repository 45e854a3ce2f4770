//! Writes changes to standard output, in the form that was asked for.

use super::reading::Refusal;
use super::showing::Form;
use super::{json, text};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_schema::Schema;
use keyway_server::DescribedChange;
use serde_json::{Value, json};

/// Writes changes.
pub struct Printer {
    form: Form,
}

impl Printer {
    /// In this form.
    pub fn new(form: Form) -> Printer {
        Printer { form }
    }

    /// A change.
    ///
    /// # Errors
    /// The output's.
    pub fn change(&self, change: &DescribedChange, schema: &Schema) -> Result<(), Failure> {
        match self.form {
            Form::Text => output::text(text::of(change, schema)),
            Form::Json => output::json(&json::of(change)),
            Form::Ldif => {
                let mut out = Vec::new();
                change.write_ldif(&mut out);
                // All that is not ASCII is in comments.
                let text = String::from_utf8_lossy(&out);
                output::text(text.strip_suffix('\n').unwrap_or(&text))
            }
        }
    }

    /// A remark on what comes.
    ///
    /// # Errors
    /// The output's.
    pub fn remark(&self, words: &str, value: &Value) -> Result<(), Failure> {
        match self.form {
            Form::Text => output::text(words),
            Form::Json => output::json(value),
            Form::Ldif => output::text(format_args!("# {words}\n")),
        }
    }

    /// Why the feed cannot be read on, and what to do. Programs get a line that tells what there is.
    pub fn refuse(&self, why: Refusal) -> Failure {
        let value = match &why {
            Refusal::Other(_) => None,
            Refusal::Trimmed { position, first } => {
                let wanted = position.saturating_add(1);
                Some(json!({ "event": "trimmed", "position": wanted, "first": first }))
            }
            Refusal::Ahead { position, last } => {
                let wanted = position.saturating_add(1);
                Some(json!({ "event": "ahead", "position": wanted, "last": last }))
            }
        };
        let told =
            value.filter(|_| self.form == Form::Json).map_or(Ok(()), |value| output::json(&value));
        told.err().unwrap_or_else(|| why.into())
    }
}
