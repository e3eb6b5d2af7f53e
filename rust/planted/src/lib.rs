//! Bugs that tests plant in a crate, to prove that they would be found.
#![forbid(unsafe_code)]

/// Declare the bugs of a crate, in a module of their own: the enum `Bug`, `is_planted`, and `plant`.
///
/// The crate's feature `planted` compiles the bugs in. Without it there is no `plant`, and `is_planted` is false for the
/// compiler, so that a release has nothing of them.
#[macro_export]
macro_rules! bugs {
    ($(#[$about:meta])* enum Bug { $($(#[$effect:meta])* $bug:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[$effect])* $bug,)+
        }

        impl Bug {
            /// All of them, by their names.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($name, Self::$bug)),+];
        }

        #[cfg(feature = "planted")]
        mod switch {
            use std::sync::atomic::{AtomicU8, Ordering};

            use super::Bug;

            static PLANTED: AtomicU8 = AtomicU8::new(0);

            /// Plant a bug in this process; `None` removes it.
            pub fn plant(bug: Option<Bug>) {
                PLANTED.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::Relaxed);
            }

            /// Whether a bug is planted.
            pub fn is_planted(bug: Bug) -> bool {
                PLANTED.load(Ordering::Relaxed) == bug as u8 + 1
            }
        }

        #[cfg(not(feature = "planted"))]
        mod switch {
            use super::Bug;

            /// Whether a bug is planted: never.
            #[inline]
            pub const fn is_planted(_: Bug) -> bool {
                false
            }
        }

        pub use switch::is_planted;
        #[cfg(feature = "planted")]
        pub use switch::plant;
    };
}
