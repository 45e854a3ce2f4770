//! Directory entries made of templates.
//!
//! The templates are MakeLDIF's, in the dialects of SLAMD, OpenDS, OpenDJ and Ping. A [`Plan`] is a
//! compiled template; a [`Maker`] makes its entries, each of which is a function of the template,
//! the seed and the entry's number, so that any of them can be made at any time; a [`Job`] writes
//! many of them with several threads, and always the same bytes.
//!
//! ```
//! use keyway_data::{Format, Job, CompileOptions, Plan};
//! use std::sync::Arc;
//!
//! let template = "branch: dc=example\nsubordinateTemplate: person:2\n\n\
//!     template: person\nrdnAttr: uid\nobjectClass: account\nuid: user.<sequential>\n";
//! let plan = Plan::compile("a", template, &CompileOptions::default(), &mut |_| Ok(None))?;
//! let job = Job {
//!     plan: Arc::new(plan), from: 2, count: 1, generation: 0,
//!     formats: vec![Format::Ldif], compress: None, threads: 1,
//! };
//! let text = std::io::read_to_string(job.start()?)?;
//! assert_eq!(text, "dn: uid=user.1,dc=example\nobjectClass: account\nuid: user.1\n\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate has no sockets, no clocks, and no randomness but the seed's. Only [`files`] opens files, and its caller
//! opens connections; the one program that is ever started is `<exec>`'s, if that is allowed.
#![forbid(unsafe_code)]

mod client;
mod compile;
mod compress;
mod cursor;
mod dn;
mod entry;
mod error;
mod exec;
mod faults;
pub mod files;
pub mod filters;
mod format;
mod letters;
pub mod limits;
mod list;
mod lists;
mod make;
mod maker;
mod names;
mod number;
mod piece;
mod plan;
mod random;
mod reference;
mod shape;
mod stream;
pub mod tags;
mod template;
mod time;
mod value;

pub use client::{Added, Client, ClientError};
pub use compress::Compress;
pub use error::{MakeError, TemplateError};
pub use faults::EntryFaults;
pub use format::Format;
pub use list::Table;
pub use maker::{Maker, View};
pub use plan::{CompileOptions, Lookup, Plan, Template};
pub use stream::{Job, Part, Stream};
pub use template::Place;

/// Templates that are built in: a name, and the text.
pub const TEMPLATES: [(&str, &str); 2] = [
    ("example.template", include_str!("templates/example.template")),
    ("people_and_groups.template", include_str!("templates/people_and_groups.template")),
];
