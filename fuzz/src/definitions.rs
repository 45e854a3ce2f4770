//! Files of schema definitions, in any of their forms.

use keyway_codec::definitions::{File, read};
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};

/// Reads the bytes as a file. An accepted file must be the same after it was written and read again,
/// and a rejected one must be wrong at a line of the file.
pub fn definitions(data: &[u8]) {
    let lines = data.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    match read(&[File { name: "file", bytes: data }]) {
        Err(error) => assert!(error.line <= lines, "{error} is beyond the file"),
        Ok(found) => {
            for one in found.attribute_types {
                let text = one.definition.to_string();
                assert_eq!(AttributeTypeDescription::parse_stored(&text), Ok(one.definition));
                assert!((1..=lines).contains(&one.line) && !text.contains('\n'), "{text}");
            }
            for one in found.object_classes {
                let text = one.definition.to_string();
                assert_eq!(ObjectClassDescription::parse_stored(&text), Ok(one.definition));
                assert!((1..=lines).contains(&one.line) && !text.contains('\n'), "{text}");
            }
        }
    }
}
