//! Counts the entries of a message before decoding it.

use std::borrow::Cow;

use crate::input::{Input, Malformed};
use crate::layout::Layout;
use crate::read::{Build, read};

/// Decodes to nothing.
struct Count {
    found: usize,
    most: usize,
}

impl<'a> Build<'a> for Count {
    type Value = ();
    type Error = Malformed;

    fn int(&mut self, _: i64) -> Result<(), Malformed> {
        Ok(())
    }

    fn uint64(&mut self, _: u64) -> Result<(), Malformed> {
        Ok(())
    }

    fn float64(&mut self, _: f64) -> Result<(), Malformed> {
        Ok(())
    }

    fn boolean(&mut self, _: bool) -> Result<(), Malformed> {
        Ok(())
    }

    fn uuid(&mut self, _: [u8; 16]) -> Result<(), Malformed> {
        Ok(())
    }

    fn string(&mut self, _: &'a str) -> Result<(), Malformed> {
        Ok(())
    }

    fn bytes(&mut self, _: &'a [u8]) -> Result<(), Malformed> {
        Ok(())
    }

    fn array(&mut self, _: Vec<()>) -> Result<(), Malformed> {
        Ok(())
    }

    fn record(&mut self, _: &Layout, _: Vec<()>) -> Result<(), Malformed> {
        Ok(())
    }

    fn null(&mut self) -> Result<(), Malformed> {
        Ok(())
    }

    fn default(&mut self, _: &Layout, _: usize) -> Result<(), Malformed> {
        Ok(())
    }

    fn entries(&mut self, count: usize) -> Result<(), Malformed> {
        self.found = self.found.saturating_add(count);
        if self.found > self.most {
            let text = format!("it has more than {} entries in all", self.most);
            return Err(Malformed(Cow::Owned(text)));
        }
        Ok(())
    }
}

/// Counts the entries of all arrays of a message, except byte arrays; more than `most` make it malformed.
///
/// Allocates nothing, and stops at the first entry too many.
pub fn count_entries(
    layout: &Layout,
    input: &mut Input<'_>,
    most: usize,
) -> Result<usize, Malformed> {
    let mut count = Count { found: 0, most };
    read(layout, input, &mut count)?;
    Ok(count.found)
}
