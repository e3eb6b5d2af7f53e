//! The checked-in header matches the one that cbindgen generates from the sources.

use std::path::Path;

const COMMAND: &str = "make capi-header";

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in [
        "status",
        "handle",
        "types",
        "life",
        "lease",
        "write",
        "dead_letter",
        "inspect",
        "managed",
        "waiting_details",
    ] {
        builder = builder.with_src(root.join("src").join(file).with_extension("rs"));
    }
    let bindings = builder.generate().expect("sources that cbindgen can read");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let path = root.join("include/sharecore.h");
    if std::env::var_os("SHARECORE_WRITE_HEADER").is_some() {
        std::fs::write(&path, made).expect("a writable tree");
        return;
    }
    let there = std::fs::read(&path).unwrap_or_default();
    assert!(
        there == made,
        "include/sharecore.h is not what the sources say: run `{COMMAND}`"
    );
}
