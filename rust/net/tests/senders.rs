//! Sockets whose bytes other threads send, on socket pairs in this process.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use proptest::prelude::*;
use sharecore_net::{Output, Poller, SendJob, Senders, Socket};

type Bytes = Vec<u8>;

/// The owner of one socket, and the peer's end.
struct Owner {
    poller: Poller,
    socket: Option<Socket>,
    output: Output<Bytes>,
    senders: Senders<usize, Bytes>,
    theirs: UnixStream,
}

impl Owner {
    fn new(threads_max: usize) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let poller = Poller::new(16).expect("a poller");
        let socket = Socket::new(ours.into()).expect("a socket");
        poller.add(&socket, 7).expect("watched");
        theirs.set_nonblocking(true).expect("set");
        Self {
            senders: Senders::new(threads_max, &poller).expect("a waker"),
            poller,
            socket: Some(socket),
            output: Output::new(1 << 20),
            theirs,
        }
    }

    fn push(&mut self, bytes: Bytes) {
        let size = bytes.len();
        self.output.push(bytes, size);
    }

    /// Hands over what is to be sent; returns whether there was anything.
    fn hand_over(&mut self) -> bool {
        let socket = self.socket.as_mut().expect("open");
        let job = SendJob::new(7, socket, &mut self.output);
        let some = job.is_some();
        if let Some(job) = job {
            self.senders.send(vec![job]);
        }
        some
    }

    /// Waits until the poller is readable.
    fn wait(&self) {
        let mut outer = Poll::new().expect("a poll");
        let descriptor = self.poller.as_raw_fd();
        outer
            .registry()
            .register(&mut SourceFd(&descriptor), Token(0), Interest::READABLE)
            .expect("watched");
        let mut events = Events::with_capacity(1);
        let until = Instant::now() + Duration::from_secs(60);
        while events.is_empty() {
            assert!(Instant::now() < until, "nobody wakes the owner");
            // A signal may end it early
            let _ = outer.poll(&mut events, Some(Duration::from_secs(60)));
        }
    }

    /// One turn of the owner: what the poller reports, and what came back. Returns how many jobs did.
    fn turn(&mut self) -> usize {
        let mut found = Vec::new();
        self.poller.ready(&mut found).expect("a look");
        for ready in &found {
            assert_eq!(ready.key, 7, "a wake-up is not a socket");
            if let Some(socket) = &mut self.socket {
                socket.note(ready.readable, ready.writable, ready.ended);
            }
        }
        let returned = self.senders.sent();
        let count = returned.len();
        for job in returned {
            assert_eq!(job.of, 7);
            if let Some(socket) = &mut self.socket {
                job.settle(socket, &mut self.output).expect("sound");
            }
        }
        count
    }

    fn read(&mut self, most: usize) -> Bytes {
        let mut room = vec![0; most];
        let count = self.theirs.read(&mut room).unwrap_or(0);
        room.truncate(count);
        room
    }
}

#[test]
fn an_awaited_job_always_wakes_its_owner() {
    let mut owner = Owner::new(1);
    owner.turn();
    for _ in 0..20_000 {
        owner.push(b"abc".to_vec());
        assert!(owner.hand_over());
        owner.senders.expect();
        let mut returned = 0;
        while returned == 0 {
            owner.wait();
            returned = owner.turn();
        }
        assert_eq!(owner.output.bytes(), 0);
        assert_eq!(owner.read(100), b"abc");
    }
}

#[test]
fn an_owner_is_woken_until_all_batches_are_back() {
    let mut owner = Owner::new(1);
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let (mut socket, mut output) = (
        Socket::new(ours.into()).expect("a socket"),
        Output::new(100),
    );
    owner.turn();
    for _ in 0..5_000 {
        owner.push(b"abc".to_vec());
        assert!(owner.hand_over());
        output.push(b"de".to_vec(), 2);
        let second = SendJob::new(8, &mut socket, &mut output).expect("something");
        owner.senders.send(vec![second]);
        owner.senders.expect();
        let mut returned = 0;
        while returned < 2 {
            owner.wait();
            owner.poller.ready(&mut Vec::new()).expect("a look");
            for job in owner.senders.sent() {
                returned += 1;
                let settled = match job.of {
                    7 => job.settle(owner.socket.as_mut().expect("open"), &mut owner.output),
                    _ => job.settle(&mut socket, &mut output),
                };
                settled.expect("sound");
            }
        }
        assert_eq!(owner.read(100), b"abc");
        theirs.read_exact(&mut [0; 2]).expect("sent");
    }
}

#[test]
fn a_peer_that_does_not_read_wakes_the_owner_with_what_is_left() {
    let mut owner = Owner::new(1);
    owner.turn();
    owner.push(vec![1; 8 << 20]);
    assert!(owner.hand_over());
    while owner.turn() == 0 {
        owner.wait();
    }
    let left = owner.output.bytes();
    assert!(0 < left && left < 8 << 20);
    assert!(!owner.hand_over(), "the system takes nothing now");
    let mut read = 0;
    while read < 8 << 20 {
        read += owner.read(1 << 20).len();
        owner.turn();
        owner.hand_over();
        owner.senders.expect();
    }
    while owner.turn() == 0 && owner.output.bytes() > 0 {
        owner.wait();
    }
    assert_eq!(owner.output.bytes(), 0);
}

#[test]
fn what_is_pushed_while_bytes_are_away_waits_and_is_counted() {
    let mut owner = Owner::new(0);
    owner.turn();
    owner.push(b"abc".to_vec());
    let socket = owner.socket.as_mut().expect("open");
    let job = SendJob::new(7, socket, &mut owner.output).expect("something");
    owner.push(b"de".to_vec());
    assert!(owner.output.is_away());
    assert_eq!(owner.output.bytes(), 5);
    let socket = owner.socket.as_mut().expect("open");
    owner.output.send(socket).expect("sound");
    assert!(!owner.hand_over(), "one thread at a time sends");
    assert_eq!(owner.read(100), b"");
    owner.senders.send(vec![job]);
    assert_eq!(owner.turn(), 1, "without threads the owner sends itself");
    assert_eq!(owner.output.bytes(), 2);
    let socket = owner.socket.as_mut().expect("open");
    owner.output.send(socket).expect("sound");
    assert_eq!(owner.read(100), b"abcde");
}

#[test]
fn a_socket_closed_while_its_bytes_are_away_does_not_stay_open() {
    let mut owner = Owner::new(1);
    owner.turn();
    owner.push(b"abc".to_vec());
    assert!(owner.hand_over());
    owner.socket = None;
    owner.output.clear();
    assert_eq!(owner.output.bytes(), 0);
    owner.theirs.set_nonblocking(false).expect("set");
    let mut all = Vec::new();
    owner.theirs.read_to_end(&mut all).expect("an end");
    assert_eq!(all, b"abc");
}

#[test]
fn a_broken_connection_is_an_error_where_the_bytes_come_from() {
    let mut owner = Owner::new(1);
    owner.turn();
    let (spare, _) = UnixStream::pair().expect("a pair");
    drop(std::mem::replace(&mut owner.theirs, spare));
    owner.push(b"abc".to_vec());
    assert!(owner.hand_over());
    let mut returned = Vec::new();
    while returned.is_empty() {
        owner.wait();
        owner.poller.ready(&mut Vec::new()).expect("a look");
        returned = owner.senders.sent();
    }
    let socket = owner.socket.as_mut().expect("open");
    let settled = returned
        .pop()
        .map(|it| it.settle(socket, &mut owner.output));
    assert!(matches!(settled, Some(Err(_))));
}

#[test]
fn threads_that_still_have_work_end_with_their_owner() {
    for _ in 0..200 {
        let mut owner = Owner::new(3);
        for _ in 0..4 {
            owner.push(vec![0; 100]);
            owner.hand_over();
            owner.turn();
        }
    }
}

#[test]
fn no_more_batches_are_taken_than_are_sent_soon() {
    let owner = Owner::new(0);
    assert!(!owner.senders.has_room(), "there is nobody to send them");
    assert!(Owner::new(1).senders.has_room());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bytes_arrive_in_order_whatever_is_pushed_when(
        sizes in prop::collection::vec(1usize..70_000, 1..60),
        reads in prop::collection::vec(1usize..90_000, 1..8),
        threads in 1usize..3,
    ) {
        let mut owner = Owner::new(threads);
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        for (at, size) in sizes.iter().enumerate() {
            let part = vec![at as u8; *size];
            wanted.extend_from_slice(&part);
            owner.push(part);
            if at % 3 == 0 {
                owner.hand_over();
            }
            owner.turn();
        }
        let mut reads = reads.iter().cycle();
        while found.len() < wanted.len() {
            found.extend(owner.read(*reads.next().expect("a cycle")));
            owner.turn();
            owner.hand_over();
        }
        while owner.output.bytes() > 0 {
            owner.senders.expect();
            owner.wait();
            owner.turn();
        }
        prop_assert_eq!(found, wanted);
    }
}
