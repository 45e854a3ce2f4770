//! The packet backend of processors for which there is no other: message by message in aws-lc.

use super::aead::{Open, Seal};
use super::backend::Backend;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
use super::chacha::{self, Scalar};
use super::key::{AeadForm, HeaderForm, HeaderKey};
use super::sizes::SAMPLE_BYTES;
use aws_lc_rs::aead::{Aad, Nonce};
use std::slice;

/// The backend that leaves the work to the library.
#[derive(Clone, Copy)]
pub(crate) struct Library;

impl Backend for Library {
    fn seal(self, messages: &mut [Seal<'_>]) {
        for message in messages {
            let key = match &message.key.0 {
                AeadForm::Library(key) => key,
                #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
                AeadForm::Gcm(_) => {
                    own().seal(slice::from_mut(message));
                    continue;
                }
            };
            let Seal { nonce, aad, data, tag, .. } = message;
            let nonce = Nonce::assume_unique_for_key(*nonce);
            match key.seal_in_place_separate_tag(nonce, Aad::from(&**aad), data) {
                Ok(made) => tag.copy_from_slice(made.as_ref()),
                // It fails past 64 GiB only, which was refused; never let a plaintext out.
                Err(_) => data.fill(0),
            }
        }
    }

    fn open(self, messages: &mut [Open<'_>]) {
        for message in messages {
            let key = match &message.key.0 {
                AeadForm::Library(key) => key,
                #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
                AeadForm::Gcm(_) => {
                    own().open(slice::from_mut(message));
                    continue;
                }
            };
            let Open { nonce, aad, data, tag, authentic, .. } = message;
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let opened = key.open_in_place_separate_tag(nonce, Aad::from(&**aad), tag, data);
            *authentic = opened.is_ok();
            if !*authentic {
                data.fill(0);
            }
        }
    }

    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]) {
        for sample in samples {
            let key = match &sample.0.0 {
                HeaderForm::Library(key) => key,
                #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
                HeaderForm::ChaCha(_) => {
                    chacha::masks(Scalar, slice::from_mut(sample));
                    continue;
                }
                #[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
                HeaderForm::Aes(_) => {
                    own().masks(slice::from_mut(sample));
                    continue;
                }
            };
            let Ok(mask) = key.new_mask(&sample.1) else { continue };
            for (to, from) in sample.1.iter_mut().zip(mask) {
                *to = from;
            }
        }
    }
}

/// The backend for keys that only our own backends make, so that there is one.
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
fn own() -> impl Backend {
    super::detected::Width128::detect().expect("the key was made in such a backend")
}
