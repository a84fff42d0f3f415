//! Keeps this process harmless: small, undisturbed, and with a plain end when memory runs out.

pub(super) mod abort;
pub(super) mod heap;
pub(super) mod undisturbed;
