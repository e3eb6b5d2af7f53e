//! Session partitions that this broker no longer leads.

/// Return the partitions that this broker no longer leads, with their errors, for a fetch that found nothing.
///
/// The first partition stands for all: a broker that lost only one of them has dropped its leader. If it is not led, all are
/// checked, as the broker may not know any longer what it leads. `check` returns the error of a partition that is not led.
pub fn lost_partitions<K: Copy, R, E>(
    known: impl IntoIterator<Item = K>,
    mut check: impl FnMut(K) -> Result<Option<R>, E>,
) -> Result<Vec<(K, R)>, E> {
    let mut lost = Vec::new();
    for (at, id) in known.into_iter().enumerate() {
        match check(id)? {
            Some(error) => lost.push((id, error)),
            None if at == 0 => break,
            None => {}
        }
    }
    Ok(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lost ones of partitions 1 to 3, and how many were checked.
    fn lost(led: &[u8]) -> (Vec<(u8, &'static str)>, usize) {
        let mut checked = 0;
        let lost = lost_partitions([1, 2, 3], |id| {
            checked += 1;
            Ok::<_, ()>((!led.contains(&id)).then_some("moved"))
        });
        (lost.expect("nothing fails"), checked)
    }

    #[test]
    fn the_first_stands_for_all() {
        assert_eq!(lost(&[1, 2, 3]), (vec![], 1));
        assert_eq!(lost(&[1]), (vec![], 1));
        assert_eq!(
            lost(&[]),
            (vec![(1, "moved"), (2, "moved"), (3, "moved")], 3)
        );
        assert_eq!(lost(&[2]), (vec![(1, "moved"), (3, "moved")], 3));
    }

    #[test]
    fn an_error_of_the_check_ends_it() {
        assert_eq!(
            lost_partitions([1], |_| Err::<Option<()>, _>("stopped")),
            Err("stopped")
        );
        let none: [u8; 0] = [];
        assert_eq!(
            lost_partitions(none, |_| Err::<Option<()>, _>(())),
            Ok(vec![])
        );
    }
}
