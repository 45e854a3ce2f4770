//! The packet room of processors for which there is no kernel: message by message in aws-lc.

use crate::packet::{AeadForm, HeaderForm, HeaderKey, Open, Room, SAMPLE_BYTES, Seal};
use aws_lc_rs::aead::{Aad, Nonce};

/// The room that leaves the work to the library.
#[derive(Clone, Copy)]
pub(crate) struct Library;

impl Room for Library {
    fn seal(self, messages: &mut [Seal<'_>]) {
        for Seal { key, nonce, aad, data, tag } in messages {
            #[allow(irrefutable_let_patterns)]
            let AeadForm::Library(key) = &key.0 else { continue };
            let nonce = Nonce::assume_unique_for_key(*nonce);
            match key.seal_in_place_separate_tag(nonce, Aad::from(&**aad), data) {
                Ok(made) => tag.copy_from_slice(made.as_ref()),
                // It fails past 64 GiB only, which was refused; never let a plaintext out.
                Err(_) => data.fill(0),
            }
        }
    }

    fn open(self, messages: &mut [Open<'_>]) {
        for Open { key, nonce, aad, data, tag, authentic } in messages {
            #[allow(irrefutable_let_patterns)]
            let AeadForm::Library(key) = &key.0 else { continue };
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let opened = key.open_in_place_separate_tag(nonce, Aad::from(&**aad), tag, data);
            *authentic = opened.is_ok();
            if !*authentic {
                data.fill(0);
            }
        }
    }

    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
        for (key, sample) in samples {
            #[allow(irrefutable_let_patterns)]
            let HeaderForm::Library(key) = &key.0 else { continue };
            let Ok(mask) = key.new_mask(&*sample) else { continue };
            for (to, from) in sample.iter_mut().zip(mask) {
                *to = from;
            }
        }
    }
}
