//! The template language: from the text of a file to branches and templates with their lines, still
//! as they were written.
//!
//! Both dialects of MakeLDIF are read as they are, SLAMD's and that of OpenDS, OpenDJ and Ping. A
//! constant is replaced first, wherever it is; what a line then says is taken apart into text,
//! `{attribute}` and `<tag>`.

mod sections;
mod text;
mod value;

pub(crate) use sections::{Kid, Line, Section, SectionKind, Sections, read};
pub use text::Place;
pub(crate) use text::Text;
pub(crate) use value::{Part, parts, split};
