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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// A window in plain terms: all numbers that were received, and how far back one may be.
    struct Model {
        highest: u64,
        width: u64,
        received: HashSet<u64>,
    }

    impl Model {
        fn take(&mut self, number: u64) -> bool {
            let left = u128::from(number) + u128::from(self.width) <= u128::from(self.highest);
            if number == 0 || left || !self.received.insert(number) {
                return false;
            }
            self.highest = self.highest.max(number);
            true
        }
    }

    /// A step from the highest number, mostly a small one.
    fn step() -> impl Strategy<Value = i64> {
        prop_oneof![
            8 => -130_i64..70,
            4 => -9_000_i64..9_000,
            2 => Just(1_i64),
            1 => -(1_i64 << 33)..1 << 33,
        ]
    }

    fn width() -> impl Strategy<Value = u32> {
        prop_oneof![32_u32..=8192, 32_u32..=130, Just(64), Just(63), Just(65), Just(8192)]
    }

    proptest! {
        #[test]
        fn it_takes_what_the_set_takes(
            width in width(),
            from in prop_oneof![Just(0), Just(u64::from(u32::MAX) - 40), Just(u64::MAX - 20_000), any::<u64>()],
            steps in prop::collection::vec(step(), 1..400),
        ) {
            let mut window = Window::new(width);
            let mut model = Model { highest: 0, width: width.into(), received: HashSet::new() };
            let mut near = from;
            for step in steps {
                let number = near.saturating_add_signed(step);
                let expected = model.take(number);
                prop_assert_eq!(window.look(number), expected);
                prop_assert_eq!(window.take(number), expected);
                prop_assert!(!window.look(number));
                prop_assert_eq!(window.highest(), model.highest);
                near = model.highest;
            }
            // At the end every number around the window's lower end is as the model says.
            for back in 0..u64::from(width) + 70 {
                let number = model.highest.saturating_sub(back);
                let mut fresh = !model.received.contains(&number) && number != 0;
                fresh &= model.highest - number < model.width;
                prop_assert_eq!(window.look(number), fresh);
            }
        }

        /// A number is found from its lower half if it is in the window, or less than 2^32 above its lower end.
        #[test]
        fn a_whole_number_is_found_from_its_lower_half(
            width in width(),
            highest in prop_oneof![
                any::<u64>(),
                (any::<u32>(), -9_000_i64..9_000)
                    .prop_map(|(high, low)| (u64::from(high) << 32).saturating_add_signed(low)),
                0_u64..9_000,
            ],
            ahead in prop_oneof![-9_000_i64..9_000, -8_192_i64..1 << 32],
        ) {
            let mut window = Window::new(width);
            window.begin_after(highest);
            let number = i128::from(highest) + i128::from(ahead);
            let bottom = i128::from(highest) + 1 - i128::from(width);
            prop_assume!((0..=i128::from(u64::MAX)).contains(&number));
            prop_assume!((bottom..bottom + (1 << 32)).contains(&number));
            let number = number as u64;
            prop_assert_eq!(window.number(number as u32), Some(number));
        }
    }

    #[test]
    fn no_number_is_above_the_last() {
        let mut window = Window::new(64);
        window.begin_after(u64::MAX - 100);
        assert_eq!(window.number(u32::MAX), Some(u64::MAX));
        assert_eq!(window.number(5), None);
        assert!(window.take(u64::MAX) && !window.take(u64::MAX));
        assert_eq!(window.highest(), u64::MAX);
    }

    #[test]
    fn what_was_before_a_beginning_counts_as_received() {
        let mut window = Window::new(100);
        assert!(window.take(7));
        window.begin_after(5);
        assert!(window.look(6) && !window.look(7));
        window.begin_after(500);
        assert!((0..=500).all(|number| !window.look(number)) && window.look(501));
    }
}
