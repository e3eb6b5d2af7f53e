//! Runs each target on the same random bytes every time, so that a broken one is noticed before `make fuzz`.

use sharecore_fuzz::{
    bucket, combiner, messages, numbers, operations, records, recovery, share_state, typed,
};

/// xorshift64*: the same bytes on every machine.
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

/// Found by libFuzzer: a window that ends at the highest offset.
#[test]
fn the_last_offset_there_is() {
    numbers(
        b"\x0f\xf6v0000000000\x01\x00\x00\x00\x00\x00\x00\x000000000000000000&0000000000\x01\x00\x00\x00\x00\x00\x00\x00\
        00000000000000000000000\x0f\xf6\xe3\xf0\xf444?",
    );
}

/// Found by libFuzzer: a log that returns records before the start offset.
#[test]
fn a_log_that_goes_back() {
    numbers(
        b"\x00\x00\x00* !\x96\x17@$\xf544444444'\x00\x00\xff\xff\x0a\x02\x0a\x00\x00\x00\x044444\x00\x00\x00;\
        \xf5\x02*|\xff\xff\xff\xff\xff\xff\xffo+\xff=\x02||eeee\xabeeeeeeeeeeeeeeeee+\xff4\x02||eeee\xabeeee\
        e\x9d=\x02||eeee\xabeeeeeeeeeee\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff;\xff\xffeeee\
        eeeee%ee\x00\x00\x00eee?\x09\x00\x00eeee!e\x00)\xec\xec\xec\xac\xec\xec\xec\xec))))))])\xf54\x00\x0a\
        \x00))q1)))))4\x0a.\x00\xb5%",
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

#[test]
fn any_typed_messages() {
    run(typed, 20_000, 200);
}

#[test]
fn any_objects_of_a_bucket() {
    run(bucket, 20_000, 400);
}
