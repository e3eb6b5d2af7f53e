//! One thread that serves all clients, and the clock that measures them.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// What the alarm's readiness is known by: behind every client's.
const ALARM: Token = Token(usize::MAX);

/// What an answer has ended.
pub enum Ended {
    /// Nothing that counts: a step of the set-up, or an empty answer.
    Nothing,
    /// A request that counts; its time began with the last `Outgoing::begin`.
    Request,
    /// Several records, each with the time since it was sent.
    Records(Vec<Duration>),
}

/// What a client sends, and when what it measures began.
pub struct Outgoing {
    pub bytes: Vec<u8>,
    pub began: Instant,
}

impl Outgoing {
    /// What is sent next is measured from now on.
    pub fn begin(&mut self) {
        self.began = Instant::now();
    }
}

/// A client: bytes in, bytes out.
pub trait Talk {
    /// Sends the first request.
    fn start(&mut self, out: &mut Outgoing);

    /// Takes one whole answer from the front of `input` and sends what follows it. Gives how many bytes it was long;
    /// `None` when it is not whole yet.
    fn take(&mut self, input: &[u8], out: &mut Outgoing) -> Result<Option<(usize, Ended)>, String>;

    /// Sends what has become due by the clock alone; gives when to come again.
    fn tick(&mut self, _now: Instant, _out: &mut Outgoing) -> Option<Instant> {
        None
    }
}

/// How long, against what.
pub struct Load {
    pub address: SocketAddr,
    pub seconds: f64,
    pub warm_up_seconds: f64,
    /// Ends early after so many.
    pub requests_max: u64,
    /// The processes whose CPU time is read at both ends of the measurement.
    pub broker_pids: Vec<u32>,
}

struct Seat {
    socket: TcpStream,
    talk: Box<dyn Talk>,
    input: Vec<u8>,
    out: Outgoing,
    written: usize,
    waits_to_write: bool,
}

impl Load {
    /// Runs the clients; gives the figures by name.
    pub fn run(&self, clients: Vec<Box<dyn Talk>>) -> Result<Vec<(&'static str, f64)>, String> {
        let mut poll = Poll::new().map_err(|error| error.to_string())?;
        let alarm = Alarm::new(&poll)?;
        let mut seats = self.connect(&poll, clients)?;
        let began = Instant::now();
        let mut measured_from = None;
        let mut cpu_before = (0.0, 0.0);
        let mut times: Vec<u32> = Vec::new();
        let (mut count, mut all) = (0u64, 0u64);
        let mut events = Events::with_capacity(1024);
        let mut input = vec![0; 256 * 1024];
        for seat in &mut seats {
            seat.talk.start(&mut seat.out);
            seat.flush(&poll, 0)?;
        }
        let mut due = vec![Some(began); seats.len()];
        let ends = began + Duration::from_secs_f64(self.warm_up_seconds + self.seconds);
        loop {
            let now = Instant::now();
            if measured_from.is_none() && (now - began).as_secs_f64() >= self.warm_up_seconds {
                measured_from = Some(now);
                cpu_before = (self.broker_cpu(), own_cpu());
            }
            if now >= ends || all >= self.requests_max {
                break;
            }
            let mut next = ends.min(now + Duration::from_millis(50));
            for (number, at) in due.iter_mut().enumerate() {
                if at.is_some_and(|at| at <= now) {
                    let seat = &mut seats[number];
                    *at = seat.talk.tick(now, &mut seat.out);
                    seat.flush(&poll, number)?;
                }
                next = at.map_or(next, |at| at.min(next));
            }
            let wait = next.saturating_duration_since(Instant::now());
            if due.iter().any(Option::is_some) {
                alarm.set(wait)?;
            }
            poll.poll(&mut events, Some(wait)).or_else(passing)?;
            for event in &events {
                if event.token() == ALARM {
                    continue;
                }
                let number = event.token().0;
                let seat = &mut seats[number];
                if event.is_readable() {
                    seat.read(&mut input, &mut |ended, began| {
                        let mut add = |time: Duration| {
                            all += 1;
                            if measured_from.is_some() {
                                count += 1;
                                times.push(time.as_micros() as u32);
                            }
                        };
                        match ended {
                            Ended::Nothing => {}
                            Ended::Request => add(began.elapsed()),
                            Ended::Records(all) => all.into_iter().for_each(&mut add),
                        }
                    })?;
                }
                seat.flush(&poll, number)?;
            }
        }
        let seconds = measured_from
            .map_or(began.elapsed(), |from| from.elapsed())
            .as_secs_f64();
        let broker = self.broker_cpu() - cpu_before.0;
        let own = own_cpu() - cpu_before.1;
        times.sort_unstable();
        let at = |part: f64| {
            times
                .get((times.len() as f64 * part) as usize)
                .map_or(f64::NAN, |time| f64::from(*time) / 1000.0)
        };
        Ok(vec![
            ("requests", count as f64),
            ("requests_s", count as f64 / seconds),
            ("p50_ms", at(0.5)),
            ("p99_ms", at(0.99)),
            ("broker_cpu_us", broker * 1e6 / count.max(1) as f64),
            ("broker_cores", broker / seconds),
            ("generator_cpu_us", own * 1e6 / count.max(1) as f64),
        ])
    }

    fn connect(&self, poll: &Poll, clients: Vec<Box<dyn Talk>>) -> Result<Vec<Seat>, String> {
        let mut seats = Vec::with_capacity(clients.len());
        for (number, talk) in clients.into_iter().enumerate() {
            // connected before it stops blocking: a thousand at once would overflow the other side's queue
            let socket = std::net::TcpStream::connect(self.address)
                .map_err(|error| format!("{}: {error}", self.address))?;
            socket
                .set_nodelay(true)
                .and_then(|()| socket.set_nonblocking(true))
                .map_err(|error| error.to_string())?;
            let mut socket = TcpStream::from_std(socket);
            poll.registry()
                .register(&mut socket, Token(number), Interest::READABLE)
                .map_err(|error| error.to_string())?;
            let out = Outgoing {
                bytes: Vec::new(),
                began: Instant::now(),
            };
            seats.push(Seat {
                socket,
                talk,
                input: Vec::new(),
                out,
                written: 0,
                waits_to_write: false,
            });
        }
        Ok(seats)
    }

    fn broker_cpu(&self) -> f64 {
        let pids = self.broker_pids.iter();
        pids.map(|pid| cpu(&format!("/proc/{pid}/stat"))).sum()
    }
}

/// Wakes to the microsecond, as epoll counts whole milliseconds. Looking at the clock instead would take one of the
/// CPUs that broker and clients share.
struct Alarm(OwnedFd);

impl Alarm {
    fn new(poll: &Poll) -> Result<Self, String> {
        let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
            .map_err(|error| error.to_string())?;
        poll.registry()
            .register(&mut SourceFd(&alarm.as_raw_fd()), ALARM, Interest::READABLE)
            .map_err(|error| error.to_string())?;
        Ok(Self(alarm))
    }

    /// Rings after `wait`, once; what was set before is forgotten.
    fn set(&self, wait: Duration) -> Result<(), String> {
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: wait.as_secs() as i64,
                // nothing at all would turn it off
                tv_nsec: i64::from(wait.subsec_nanos().max(1)),
            },
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

impl Seat {
    fn read(
        &mut self,
        buffer: &mut [u8],
        count: &mut dyn FnMut(Ended, Instant),
    ) -> Result<(), String> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return Err("the broker closed a connection".into()),
                Ok(size) => self.input.extend_from_slice(&buffer[..size]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut used = 0;
        loop {
            let began = self.out.began;
            let Some((size, ended)) = self.talk.take(&self.input[used..], &mut self.out)? else {
                break;
            };
            used += size;
            count(ended, began);
        }
        self.input.drain(..used);
        Ok(())
    }

    fn flush(&mut self, poll: &Poll, number: usize) -> Result<(), String> {
        while self.written < self.out.bytes.len() {
            match self.socket.write(&self.out.bytes[self.written..]) {
                Ok(size) => self.written += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let waits = self.written < self.out.bytes.len();
        if !waits {
            self.out.bytes.clear();
            self.written = 0;
        }
        if waits != self.waits_to_write {
            self.waits_to_write = waits;
            let interest = if waits {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            poll.registry()
                .reregister(&mut self.socket, Token(number), interest)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn passing(error: std::io::Error) -> Result<(), String> {
    if error.kind() == ErrorKind::Interrupted {
        Ok(())
    } else {
        Err(error.to_string())
    }
}

fn own_cpu() -> f64 {
    cpu("/proc/self/stat")
}

/// User and system seconds of a process; the kernel tells them in hundredths.
fn cpu(path: &str) -> f64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let fields = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
