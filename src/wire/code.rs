//! The pairing code: 80 random bits, written for people, the key of the control connection.

use std::fmt;
use std::str::FromStr;

/// Crockford's base 32: no I, L, O or U, so that a code can be read aloud.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// 16 characters of 5 bits: 80 bits.
const LEN: usize = 16;

/// The secret that both ends share.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode([u8; LEN]);

impl PairingCode {
    /// A code from random bytes, one for each character.
    pub fn from_random(bytes: [u8; LEN]) -> Self {
        Self(bytes.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }

    /// The number of random bytes that a code needs.
    pub const RANDOM: usize = LEN;

    /// The pre-shared key of the Noise handshake. The code has 80 random bits, so one hash is enough.
    pub fn key(&self) -> [u8; 32] {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        context.update(b"weaklink pairing code 1\0");
        context.update(&self.0);
        let mut key = [0; 32];
        key.copy_from_slice(context.finish().as_ref());
        key
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if i > 0 && i % 4 == 0 {
                f.write_str("-")?;
            }
            write!(f, "{}", char::from(*byte))?;
        }
        Ok(())
    }
}

impl fmt::Debug for PairingCode {
    /// Never the secret itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode(…)")
    }
}

/// A text that is no pairing code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a pairing code: it has 16 letters and digits in four groups, such as 7K2M-…; `weaklink serve` prints it")]
pub struct CodeError;

impl FromStr for PairingCode {
    type Err = CodeError;

    /// Reads a code as people type it: any case, any grouping, O for 0 and I or L for 1.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut code = [0; LEN];
        let mut len = 0;
        for c in text.chars().filter(|c| !c.is_whitespace() && *c != '-') {
            let c = match c.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                c => c,
            };
            let known = u8::try_from(c).ok().filter(|byte| ALPHABET.contains(byte)).ok_or(CodeError)?;
            *code.get_mut(len).ok_or(CodeError)? = known;
            len += 1;
        }
        if len == LEN { Ok(Self(code)) } else { Err(CodeError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_back_however_it_is_typed() {
        let code = PairingCode::from_random(*b"0123456789abcdef");
        let text = code.to_string();
        assert_eq!(text.len(), 19);
        for typed in [text.clone(), text.to_lowercase(), text.replace('-', ""), text.replace('-', " "), text.replace('0', "o")] {
            assert_eq!(typed.parse(), Ok(code.clone()), "{typed}");
        }
    }

    #[test]
    fn what_is_no_code_is_refused() {
        for bad in ["", "ABCD", "ABCD-EFGH-JKMN-PQR", "ABCD-EFGH-JKMN-PQRST", "ABCD-EFGH-JKMN-PQR!", "ÄBCD-EFGH-JKMN-PQRS"] {
            assert_eq!(bad.parse::<PairingCode>(), Err(CodeError), "{bad}");
        }
    }

    #[test]
    fn debug_output_never_shows_the_code() {
        assert_eq!(format!("{:?}", PairingCode::from_random([7; 16])), "PairingCode(…)");
    }
}
