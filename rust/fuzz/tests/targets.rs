//! Each target on random bytes, the same ones every time, so that what a change broke shows before `make fuzz`.

use sharecore_fuzz::{combiner, messages, numbers, operations, records, recovery, share_state};

/// xorshift64*: bytes that are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = (self.next() >> 33) % most;
        (0..length).map(|_| (self.next() >> 56) as u8).collect()
    }
}

fn run(target: fn(&[u8]), inputs: usize, bytes_max: u64) {
    let mut random = Random(0x5eed);
    for _ in 0..inputs {
        target(&random.bytes(bytes_max));
    }
}

#[test]
fn any_operations() {
    run(operations, 500, 1000);
}

#[test]
fn any_numbers() {
    run(numbers, 1000, 1000);
}

/// Found by libFuzzer: a window that ends where offsets do.
#[test]
fn the_last_offset_there_is() {
    numbers(
        b"\x0f\xf6v0000000000\x01\x00\x00\x00\x00\x00\x00\x000000000000000000&0000000000\x01\x00\x00\x00\x00\x00\x00\x00\
        00000000000000000000000\x0f\xf6\xe3\xf0\xf444?",
    );
}

#[test]
fn any_state_batches() {
    run(combiner, 1000, 400);
}

#[test]
fn any_records() {
    run(records, 1000, 400);
}

#[test]
fn any_share_state() {
    run(share_state, 2000, 600);
}

#[test]
fn any_journal() {
    run(recovery, 100, 1000);
}

#[test]
fn any_messages() {
    run(messages, 20_000, 200);
}
