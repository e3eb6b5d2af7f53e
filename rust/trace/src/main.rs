//! `sharecore-trace replay FILE` prints the engine's results, `sharecore-trace bench FILE [RUNS]` its speed.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (mode, path, rest) = match args.as_slice() {
        [mode, path, rest @ ..] => (*mode, *path, rest),
        _ => {
            return Err(io::Error::other(
                "usage: sharecore-trace replay FILE | bench FILE [RUNS]",
            ));
        }
    };
    let ops = sharecore_trace::read(BufReader::new(File::open(path)?))?;
    if mode == "bench" {
        let runs = rest
            .first()
            .map_or(Ok(9), |runs| runs.parse())
            .map_err(io::Error::other)?;
        let timing = sharecore_trace::bench(&ops, 3, runs);
        println!(
            "{{\"ops\":{},\"ms_median\":{:.3},\"ops_per_s\":{:.0},\"records_per_s\":{:.0}}}",
            timing.ops,
            timing.median().as_secs_f64() * 1e3,
            timing.per_second(timing.ops as i64),
            timing.per_second(timing.records)
        );
        return Ok(());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let mut replay = sharecore_trace::Replay::default();
    for op in &ops {
        writeln!(out, "{}", replay.step(op, cfg!(debug_assertions)))?;
    }
    out.flush()
}
