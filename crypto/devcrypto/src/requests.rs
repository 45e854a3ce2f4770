//! The requests of a program to the device.

use crate::abi::*;
use crate::device::{self, Device};
use crate::session::Session;
use rustix::io::Errno;
use std::ffi::c_int;
use std::sync::Arc;

/// Whether a request may be one to the device: other files have others.
pub fn has_letter(request: u32) -> bool {
    request >> 8 & 0xff == LETTER
}

/// Answers a request, if the descriptor is the device's.
pub fn answer(
    descriptor: Descriptor,
    request: u32,
    argument: Argument,
) -> Option<Result<c_int, Errno>> {
    let device = device::find(descriptor)?;
    Some(answered(&device, descriptor, request, argument).map(|()| 0))
}

fn answered(
    device: &Device,
    descriptor: Descriptor,
    request: u32,
    argument: Argument,
) -> Result<(), Errno> {
    match request {
        CRIOGET => {
            let copy = descriptor.duplicate()?;
            argument.write(copy as u32).inspect_err(|_| close_own(copy))
        }
        CIOCGSESSION => {
            let mut op: SessionOp = argument.read()?;
            op.ses = device.add(Session::open(&op)?)?;
            argument.write(op).inspect_err(|_| {
                // The program does not know its number.
                device.remove(op.ses).inspect(|session| session.close());
            })
        }
        CIOCFSESSION => {
            let session = device.remove(argument.read()?).ok_or(Errno::NOENT)?;
            session.close();
            Ok(())
        }
        CIOCCRYPT => {
            let op: CryptOp = argument.read()?;
            session(device, op.ses)?.crypt(&op)
        }
        CIOCAUTHCRYPT => {
            let mut op: AuthOp = argument.read()?;
            session(device, op.ses)?.authenticated(&mut op)?;
            argument.write(op)
        }
        CIOCGSESSINFO => {
            let mut info: SessionInfo = argument.read()?;
            let [cipher, hash] = session(device, info.ses)?.names();
            cipher.into_iter().for_each(|name| info.cipher_info = named(name));
            hash.into_iter().for_each(|name| info.hash_info = named(name));
            (info.alignmask, info.flags) = (0, SIOP_FLAG_KERNEL_DRIVER_ONLY);
            argument.write(info)
        }
        CIOCCPHASH => {
            let op: CopyHashOp = argument.read()?;
            if op.src_ses == op.dst_ses {
                return Err(Errno::DEADLK);
            }
            let find = |number| device.session(number).ok_or(Errno::NOENT);
            find(op.dst_ses)?.copy_hash(&*find(op.src_ses)?)
        }
        // No arithmetic with numbers (CIOCKEY).
        CIOCASYMFEAT => argument.write(0_u32),
        _ => Err(Errno::INVAL),
    }
}

fn session(device: &Device, number: u32) -> Result<Arc<Session>, Errno> {
    device.session(number).ok_or(Errno::INVAL)
}

/// The kernel's name of an algorithm, and that of a driver for it.
fn named(name: &str) -> AlgorithmName {
    let text = |text: &str| {
        let mut bytes = [0; 64];
        bytes.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        bytes
    };
    AlgorithmName { cra_name: text(name), cra_driver_name: text(&format!("{name}-keyway")) }
}
