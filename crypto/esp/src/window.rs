//! The window of received numbers (RFC 4303 § 3.4.3 and appendix A).
//!
//! It has a bit for each number from the highest back, exactly as many as its width says, in a ring. The bit of a
//! number is at the number modulo the ring's size. A move forward clears the bits of the numbers that it enters.

/// Bits of a word.
const WORD: u64 = u64::BITS as u64;

/// The numbers of one security association that were received.
pub(crate) struct Window {
    highest: u64,
    width: u64,
    /// A power of two of bits, at least `width`.
    bits: Box<[u64]>,
}

impl Window {
    /// Nothing received yet.
    pub fn new(width: u32) -> Self {
        let width = u64::from(width.max(1));
        let bits = width.next_power_of_two().max(WORD);
        Window { highest: 0, width, bits: vec![0; (bits / WORD) as usize].into() }
    }

    /// The highest number received; 0 before the first.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// The whole number of a packet that has these lower 32 bits, with extended numbers (appendix A2). `None` if there is
    /// no such number.
    pub fn number(&self, low: u32) -> Option<u64> {
        let (top_high, top_low) = (self.highest >> 32, self.highest & u64::from(u32::MAX));
        let low = u64::from(low);
        let high = if top_low >= self.width - 1 {
            // The whole window has one upper half.
            if low + self.width > top_low { top_high } else { top_high + 1 }
        } else {
            // Its lower end has the upper half before, if there is one.
            let bottom = (1 << 32) + top_low + 1 - self.width;
            if low >= bottom { top_high.saturating_sub(1) } else { top_high }
        };
        (high <= u64::from(u32::MAX)).then_some(high << 32 | low)
    }

    /// Whether a packet of this number would be new.
    #[inline]
    pub fn look(&self, number: u64) -> bool {
        if number > self.highest {
            return true;
        }
        let (word, bit) = self.place(number);
        number != 0 && self.highest - number < self.width && self.bits[word] & bit == 0
    }

    /// Notes an authentic packet of this number. Returns whether it was new.
    #[inline]
    pub fn take(&mut self, number: u64) -> bool {
        if !self.look(number) {
            return false;
        }
        if number > self.highest {
            self.clear_to(number);
            self.highest = number;
        }
        let (word, bit) = self.place(number);
        self.bits[word] |= bit;
        true
    }

    /// From now on all numbers up to this one count as received, if it is above all that were.
    pub fn begin_after(&mut self, number: u64) {
        if number > self.highest {
            self.highest = number;
            self.bits.fill(u64::MAX);
        }
    }

    #[inline]
    fn place(&self, number: u64) -> (usize, u64) {
        ((number / WORD) as usize & (self.bits.len() - 1), 1 << (number % WORD))
    }

    /// Clears the bits of all numbers above the highest, up to this one.
    fn clear_to(&mut self, number: u64) {
        let first = self.highest + 1;
        if number - first >= self.bits.len() as u64 * WORD - 1 {
            self.bits.fill(0);
            return;
        }
        let (first_word, last_word) = (first / WORD, number / WORD);
        for word in first_word..=last_word {
            let from = if word == first_word { first % WORD } else { 0 };
            let to = if word == last_word { number % WORD } else { WORD - 1 };
            let mask = (u64::MAX << from) & (u64::MAX >> (WORD - 1 - to));
            let at = word as usize & (self.bits.len() - 1);
            self.bits[at] &= !mask;
        }
    }
}
