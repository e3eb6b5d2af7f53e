//! Sockets, their poller and their output, on socket pairs in this process.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use sharecore_net::{Mark, Output, Poller, Ready, Received, Socket};

/// Our socket, watched by a poller with key 7, and the peer's end.
fn pair() -> (Poller, Socket, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let poller = Poller::new(16).expect("a poller");
    let socket = Socket::new(ours.into()).expect("a socket");
    poller.add(&socket, 7).expect("watched");
    (poller, socket, theirs)
}

fn look(poller: &mut Poller, socket: &mut Socket) -> Vec<Ready> {
    let mut found = Vec::new();
    poller.ready(&mut found).expect("a look");
    for ready in &found {
        assert_eq!(ready.key, 7);
        socket.note(ready.readable, ready.writable, ready.ended);
    }
    found
}

fn receive(socket: &mut Socket, most: usize) -> (Received, Vec<u8>) {
    let mut room = vec![MaybeUninit::uninit(); most];
    let received = socket.receive(&mut room).expect("a sound connection");
    let count = match received {
        Received::Bytes { count, .. } => count,
        Received::Nothing | Received::End => 0,
    };
    // SAFETY: the socket has written `count` bytes
    let bytes = room[..count]
        .iter()
        .map(|byte| unsafe { byte.assume_init() });
    (received, bytes.collect())
}

#[test]
fn nothing_is_received_before_the_poller_reports_it() {
    let (mut poller, mut socket, mut theirs) = pair();
    look(&mut poller, &mut socket);
    theirs.write_all(b"abc").expect("sent");
    assert!(!socket.is_readable());
    assert_eq!(receive(&mut socket, 8).0, Received::Nothing);
    look(&mut poller, &mut socket);
    assert!(socket.is_readable());
    let (received, bytes) = receive(&mut socket, 8);
    let whole = Received::Bytes {
        count: 3,
        more: false,
    };
    assert_eq!((received, bytes.as_slice()), (whole, &b"abc"[..]));
    assert!(look(&mut poller, &mut socket).is_empty());
}

#[test]
fn what_did_not_fit_is_there_without_another_report() {
    let (mut poller, mut socket, mut theirs) = pair();
    theirs.write_all(b"abcde").expect("sent");
    look(&mut poller, &mut socket);
    let first = receive(&mut socket, 4);
    assert_eq!(
        first.0,
        Received::Bytes {
            count: 4,
            more: true
        }
    );
    let rest = receive(&mut socket, 4);
    assert_eq!(rest.1, b"e");
    assert_eq!(receive(&mut socket, 4).0, Received::Nothing);
}

#[test]
fn an_end_follows_the_last_bytes() {
    let (mut poller, mut socket, mut theirs) = pair();
    theirs.write_all(b"abc").expect("sent");
    theirs.shutdown(Shutdown::Write).expect("shut");
    let found = look(&mut poller, &mut socket);
    assert!(found.iter().any(|ready| ready.ended));
    assert_eq!(receive(&mut socket, 8).1, b"abc");
    assert_eq!(receive(&mut socket, 8).0, Received::End);
}

#[test]
fn a_broken_connection_is_an_error() {
    let (mut poller, mut socket, theirs) = pair();
    drop(theirs);
    look(&mut poller, &mut socket);
    let mut output = Output::new(100);
    output.push(b"abc".to_vec(), 3);
    assert!(output.send(&mut socket).is_err());
}

#[test]
fn a_removed_socket_is_not_reported() {
    let (mut poller, mut socket, mut theirs) = pair();
    look(&mut poller, &mut socket);
    poller.remove(&socket).expect("removed");
    theirs.write_all(b"abc").expect("sent");
    assert!(look(&mut poller, &mut socket).is_empty());
}

#[test]
fn a_peer_that_does_not_read_passes_the_high_mark_and_later_the_low_one() {
    let (mut poller, mut socket, mut theirs) = pair();
    let mut output = Output::new(4000);
    let mut pushed = 0;
    while output.bytes() <= 4000 {
        output.push(vec![1u8; 1000], 1000);
        pushed += 1000;
        output.send(&mut socket).expect("sound");
    }
    assert_eq!(output.passed(), Some(Mark::High));
    assert_eq!(output.passed(), None);
    let mut read = 0;
    let mut room = vec![0; 1 << 16];
    theirs.set_nonblocking(true).expect("set");
    while read < pushed {
        read += theirs.read(&mut room).unwrap_or(0);
        look(&mut poller, &mut socket);
        output.send(&mut socket).expect("sound");
    }
    assert_eq!(output.passed(), Some(Mark::Low));
    assert_eq!((output.bytes(), output.passed()), (0, None));
}

proptest! {
    #[test]
    fn bytes_arrive_in_order_whatever_the_sizes(
        sizes in prop::collection::vec(0usize..70_000, 1..60),
        reads in prop::collection::vec(1usize..90_000, 1..8),
    ) {
        let (mut poller, mut socket, mut theirs) = pair();
        theirs.set_nonblocking(true).expect("set");
        let mut output = Output::new(1 << 20);
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        for (at, size) in sizes.iter().enumerate() {
            let part = vec![at as u8; *size];
            wanted.extend_from_slice(&part);
            output.push(part, *size);
            output.send(&mut socket).expect("sound");
        }
        let mut reads = reads.iter().cycle();
        while found.len() < wanted.len() {
            let mut room = vec![0; *reads.next().expect("a cycle")];
            let count = theirs.read(&mut room).unwrap_or(0);
            found.extend_from_slice(&room[..count]);
            look(&mut poller, &mut socket);
            output.send(&mut socket).expect("sound");
        }
        prop_assert_eq!(output.bytes(), 0);
        prop_assert_eq!(found, wanted);
    }
}
