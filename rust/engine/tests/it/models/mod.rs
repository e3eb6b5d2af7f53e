pub(crate) mod combined;
pub(crate) mod world;
