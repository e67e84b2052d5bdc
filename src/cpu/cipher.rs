//! What one core gives with the ciphers of SSH, measured in process.
//!
//! One packet of 32 KiB, the usual one of SSH's file transfer, is encrypted and authenticated in place
//! again and again. That is an upper bound for a copy: OpenSSH moves every byte through several
//! buffers and system calls besides. Two things bend it: with AES in counter mode on a processor without
//! instructions for AES this program's portable code and OpenSSL's differ, so it is an estimate there; and
//! a build without optimisation gives a fraction of the rates in counter mode.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aes::cipher::{KeyIvInit, StreamCipher};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;

use crate::model::Outcome;
use crate::model::cpu::CipherCeiling;
use crate::sys::Stop;
use crate::units::{ByteRate, ByteSize};

/// The payload of one packet: what OpenSSH's sftp and scp put into one, and near to a channel's largest.
const PACKET: usize = 32 * 1024;

/// The shortest part of the time that is rated by itself. The best part counts, for a ceiling is what
/// a core gives when nothing interrupts it; on a crowded machine programs take turns every few milliseconds.
const SLICE: Duration = Duration::from_millis(2);

/// A key that encrypts one packet after another.
type Seal = Box<dyn FnMut(&mut [u8]) -> bool>;

/// Measures every cipher of SSH for about `per_cipher`, on the calling thread.
///
/// Each rate is in bytes of payload a second. After `stop` the rest is skipped.
pub fn ciphers(per_cipher: Duration, stop: &Stop) -> Vec<CipherCeiling> {
    suites()
        .into_iter()
        .map(|(cipher, seal)| {
            let rate = match seal {
                Some(seal) => rate(seal, per_cipher, stop),
                None => Outcome::failed("the cipher's library refused the key; please report this"),
            };
            CipherCeiling { cipher: cipher.to_owned(), rate }
        })
        .collect()
}

/// Whether this processor has instructions for AES.
pub fn aes_instructions() -> Outcome<bool> {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        Outcome::Measured(std::arch::is_x86_feature_detected!("aes"))
    }
    #[cfg(target_arch = "aarch64")]
    {
        Outcome::Measured(std::arch::is_aarch64_feature_detected!("aes"))
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Outcome::skipped("weaklink cannot ask this kind of processor for AES instructions; the measured rates tell all the same")
    }
}

/// Every cipher by the field's name. The keys are constant: nothing that is encrypted with them leaves this function.
fn suites() -> [(&'static str, Option<Seal>); 5] {
    [
        ("aes128-gcm", authenticated(&aead::AES_128_GCM)),
        ("aes256-gcm", authenticated(&aead::AES_256_GCM)),
        ("chacha20-poly1305", authenticated(&aead::CHACHA20_POLY1305)),
        ("aes128-ctr+hmac-sha2-256", Some(counter(ctr::Ctr128BE::<aes::Aes128>::new(&[1; 16].into(), &[2; 16].into())))),
        ("aes256-ctr+hmac-sha2-256", Some(counter(ctr::Ctr128BE::<aes::Aes256>::new(&[1; 32].into(), &[2; 16].into())))),
    ]
}

/// A cipher that authenticates as well; the packet's length goes along in the clear, as SSH has it.
fn authenticated(algorithm: &'static aead::Algorithm) -> Option<Seal> {
    let bytes = [1; 32];
    let key = LessSafeKey::new(UnboundKey::new(algorithm, bytes.get(..algorithm.key_len())?).ok()?);
    let mut count = 0u64;
    Some(Box::new(move |packet| {
        count = count.wrapping_add(1);
        let mut nonce = [0; aead::NONCE_LEN];
        nonce[4..].copy_from_slice(&count.to_be_bytes());
        let length = (packet.len() as u32).to_be_bytes();
        let tag = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(length), packet);
        tag.map(black_box).is_ok()
    }))
}

/// AES in counter mode and HMAC over the encrypted packet and its number (`hmac-sha2-256-etm`).
fn counter(mut cipher: impl StreamCipher + 'static) -> Seal {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[3; 32]);
    let mut count = 0u32;
    Box::new(move |packet| {
        count = count.wrapping_add(1);
        let encrypted = cipher.try_apply_keystream(packet).is_ok();
        let mut code = hmac::Context::with_key(&key);
        code.update(&count.to_be_bytes());
        code.update(packet);
        black_box(code.sign());
        encrypted
    })
}

/// The best slice of `time`.
fn rate(mut seal: Seal, time: Duration, stop: &Stop) -> Outcome<ByteRate> {
    let mut packet = vec![0; PACKET];
    let begin = Instant::now();
    let (mut best, mut slice, mut bytes) = (ByteRate(0), Instant::now(), 0);
    loop {
        if stop.is_set() {
            return Outcome::skipped("the run was stopped before this cipher was measured");
        }
        if !seal(black_box(&mut packet)) {
            return Outcome::failed("the cipher's library refused a packet; please report this");
        }
        bytes += PACKET as u64;
        let elapsed = slice.elapsed();
        if elapsed >= SLICE.min(time) {
            best = best.max(ByteRate::of(ByteSize(bytes), elapsed));
            if begin.elapsed() >= time {
                return Outcome::Measured(best);
            }
            (slice, bytes) = (Instant::now(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cipher_is_measured_under_its_name() {
        let found = ciphers(Duration::from_millis(30), &Stop::new());
        let names: Vec<_> = found.iter().map(|ceiling| ceiling.cipher.as_str()).collect();
        let expected = ["aes128-gcm", "aes256-gcm", "chacha20-poly1305", "aes128-ctr+hmac-sha2-256", "aes256-ctr+hmac-sha2-256"];
        assert_eq!(names, expected);
        for ceiling in &found {
            assert!(ceiling.rate.measured().is_some_and(|rate| rate.0 > 0), "{ceiling:?}");
        }
    }

    #[test]
    fn a_stopped_run_measures_nothing_and_says_so() {
        let stop = Stop::new();
        stop.set();
        for ceiling in ciphers(Duration::from_secs(3600), &stop) {
            assert!(matches!(ceiling.rate, Outcome::Skipped(_)), "{ceiling:?}");
        }
    }

    #[test]
    fn no_time_still_rates_one_packet() {
        assert!(ciphers(Duration::ZERO, &Stop::new()).iter().all(|ceiling| ceiling.rate.measured().is_some()));
    }

    #[test]
    fn packets_are_really_encrypted() {
        for (name, seal) in suites() {
            let mut seal = seal.expect(name);
            let mut packet = vec![0; PACKET];
            assert!(seal(&mut packet), "{name}");
            let first = packet.clone();
            assert!(first.iter().filter(|byte| **byte != 0).count() > PACKET / 2, "{name}");
            packet.fill(0);
            assert!(seal(&mut packet), "{name}");
            assert_ne!(packet, first, "{name}: no key stream is used twice");
        }
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn the_processor_is_asked() {
        assert!(aes_instructions().measured().is_some());
    }
}
