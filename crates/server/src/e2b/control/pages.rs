//! Long lists, a page at a time.
//!
//! A token is the key of the last item that was told. Items that come or go meanwhile move nothing: who removes what a page
//! holds, page by page, sees them all.

use crate::e2b::failure::Failure;

#[derive(Clone, Copy, Debug)]
pub(super) struct Paging<'a> {
    pub(super) limit: Option<usize>,
    pub(super) after: Option<&'a str>,
    pub(super) order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    Asc,
    Desc,
}

/// The items of a page in their order, and the token of the next if there is one. Keys sort as their items do.
pub(super) fn page<T>(
    mut all: Vec<T>,
    paging: Paging<'_>,
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, Option<String>), Failure> {
    let limit = match paging.limit {
        Some(limit @ 1..=MOST) => limit,
        None => MOST,
        Some(limit) => return Err(Failure::bad_request(format!("`limit` is {limit}: 1 to {MOST}"))),
    };
    all.sort_by_cached_key(&key);
    if paging.order == Order::Desc {
        all.reverse();
    }
    let is_told = |item: &T| {
        paging.after.is_some_and(|after| match paging.order {
            Order::Asc => key(item).as_str() <= after,
            Order::Desc => key(item).as_str() >= after,
        })
    };
    let mut rest: Vec<T> = all.into_iter().skip_while(is_told).collect();
    let more = rest.len() > limit;
    rest.truncate(limit);
    let next = if more { rest.last().map(key) } else { None };
    Ok((rest, next))
}

const MOST: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_end_whatever_is_removed_meanwhile() {
        let page = |all: &[u32], after, order| {
            page(all.to_vec(), Paging { limit: Some(2), after, order }, ToString::to_string).unwrap()
        };
        assert_eq!(page(&[1, 2, 3, 4, 5], None, Order::Desc), (vec![5, 4], Some("4".to_owned())));
        assert_eq!(page(&[1, 2, 3], Some("4"), Order::Desc), (vec![3, 2], Some("2".to_owned())));
        assert_eq!(page(&[1], Some("2"), Order::Desc), (vec![1], None));
        assert_eq!(page(&[1, 2, 3], Some("1"), Order::Asc), (vec![2, 3], None));
        for limit in [0, MOST + 1] {
            let paging = Paging { limit: Some(limit), after: None, order: Order::Asc };
            assert!(super::page(vec![1], paging, ToString::to_string).is_err());
        }
    }
}
