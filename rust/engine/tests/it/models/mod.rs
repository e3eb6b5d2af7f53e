pub(crate) mod combined;
pub(crate) mod steps;
pub(crate) mod world;
