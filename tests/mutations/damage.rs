//! Ways to damage bytes, the same in every run.

/// A small generator of numbers that are the same in every run (SplitMix64).
pub struct Seeded(pub u64);

impl Seeded {
    /// From a text and a number.
    pub fn of(name: &str, number: u64) -> Self {
        let hash =
            name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Self(hash ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end`, without it.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// Damages bytes in one to three ways.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Seeded) {
    for _ in 0..=random.below(3) {
        let way = WAYS[random.below(WAYS.len())];
        way(bytes, random);
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
}

const WAYS: &[fn(&mut Vec<u8>, &mut Seeded)] = &[
    cut,
    |bytes, random| flip(bytes, random),
    |bytes, random| extremes(bytes, random),
    |bytes, random| length(bytes, random),
    |bytes, random| swap(bytes, random),
    number,
    delete,
    double,
    nest,
    close,
    repeat,
    newlines,
];

fn place(bytes: &[u8], random: &mut Seeded) -> (usize, usize) {
    let at = random.below(bytes.len());
    let length = random.below(bytes.len().min(4096)) + 1;
    (at, (at + length).min(bytes.len()))
}

fn cut(bytes: &mut Vec<u8>, random: &mut Seeded) {
    bytes.truncate(random.below(bytes.len()));
}

fn flip(bytes: &mut [u8], random: &mut Seeded) {
    for _ in 0..=random.below(16) {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
}

fn extremes(bytes: &mut [u8], random: &mut Seeded) {
    let (at, end) = place(bytes, random);
    bytes[at..end.min(at + 8)].fill([0, 0x7f, 0x80, 0xff][random.below(4)]);
}

/// The length behind an opcode of a pickle becomes an extreme.
fn length(bytes: &mut [u8], random: &mut Seeded) {
    let start = random.below(bytes.len());
    let opcodes = [b'X', b'T', b'B', b'U', 0x8c, 0x8d, 0x8a, 0x8b, b'j', b'r', 0x95];
    let found = bytes[start..].iter().position(|byte| opcodes.contains(byte));
    let Some(at) = found.map(|found| start + found + 1).filter(|&at| at < bytes.len()) else { return };
    let end = bytes.len().min(at + [1, 4, 8][random.below(3)]);
    bytes[at..end].fill([0, 0x7f, 0xff][random.below(3)]);
}

/// A written number becomes one that fits no type.
fn number(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let start = random.below(bytes.len());
    let Some(at) = bytes[start..].iter().position(u8::is_ascii_digit).map(|found| start + found) else {
        return;
    };
    let end =
        bytes[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |found| at + found);
    let extreme = random.pick(&[
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "99999999999999999999999999",
        "1e308",
        "1e-999",
        "NaN",
        "Infinity",
        "4294967296",
        "9999",
        "",
    ]);
    bytes.splice(at..end, extreme.bytes());
}

fn delete(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let (at, end) = place(bytes, random);
    bytes.drain(at..end);
}

fn double(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let (at, end) = place(bytes, random);
    let copy = bytes[at..end].to_vec();
    bytes.splice(at..at, copy);
}

fn swap(bytes: &mut [u8], random: &mut Seeded) {
    let (at, end) = place(bytes, random);
    let other = random.below(bytes.len());
    let count = (end - at).min(bytes.len() - at.max(other));
    for index in 0..count {
        bytes.swap(at + index, other + index);
    }
}

fn nest(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let opening = random.pick(&["[", "{", "(", "]", "}", "{\"a\":", "{\"args\":{", "<a>", "]\u{94}"]);
    let at = random.below(bytes.len());
    bytes.splice(at..at, opening.repeat(20_000).into_bytes());
}

fn close(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let at = random.below(bytes.len());
    let closing = random.pick(&["\"", "}", "]", "]}", ".", "u", "e", "a", "s", "\\", "\0", "\u{feff}", "</"]);
    bytes.splice(at..at, closing.bytes());
}

/// A short piece stands there a thousand times.
fn repeat(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let (at, end) = place(bytes, random);
    let piece = bytes[at..end.min(at + 64)].to_vec();
    bytes.splice(at..at, piece.repeat(1000));
}

/// Lines are joined, or parted where they never are.
fn newlines(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let start = random.below(bytes.len());
    match bytes[start..].iter().position(|&byte| byte == b'\n').map(|found| start + found) {
        Some(at) if random.below(2) == 0 => drop(bytes.remove(at)),
        _ => bytes.insert(start, [b'\n', b'\r'][random.below(2)]),
    }
}
