//! A search for the first of several that is bad, where the first one is good and the last one bad.
//!
//! The good end is tested first, the bad one only where the search ends there. The halves are chosen so that with it no more
//! tests are needed than elsewhere: of 40 at most 7.

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It passes.
    Good,
    /// It fails.
    Bad,
    /// It cannot be tested.
    Skipped,
}

impl Judged {
    /// The exit code of a command that cannot say, as for `git bisect run`.
    pub(crate) const SKIP: i32 = 125;

    /// What an exit code below 128 says.
    pub(crate) fn of(code: i32) -> Self {
        match code {
            0 => Self::Good,
            Self::SKIP => Self::Skipped,
            _ => Self::Bad,
        }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This one is to be tested.
    Test(usize),
    /// This is the first one that is bad; the one before it is good.
    Found(usize),
    /// What lies between was skipped: the first bad one comes after the one and is at the latest the other.
    Unknown {
        /// The last that is known to be good.
        last_good: usize,
        /// The first that is known to be bad.
        first_bad: usize,
    },
}

/// The search.
#[derive(Clone, Debug)]
pub(crate) struct Bisection {
    judged: Vec<Option<Judged>>,
    good: usize,
    bad: usize,
}

impl Bisection {
    /// Among `count`, at least two.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            judged: vec![None; count],
            good: 0,
            bad: count.saturating_sub(1),
        }
    }

    /// Notes what a test said.
    pub(crate) fn judge(&mut self, at: usize, judged: Judged) {
        self.judged[at] = Some(judged);
        match judged {
            Judged::Good => self.good = self.good.max(at),
            Judged::Bad => self.bad = self.bad.min(at),
            Judged::Skipped => {}
        }
    }

    /// How many may still be the first bad one.
    pub(crate) fn left(&self) -> usize {
        self.bad - self.good
    }

    /// What to do now.
    pub(crate) fn next_step(&self) -> Next {
        if self.judged[0].is_none() {
            return Next::Test(0);
        }
        let middle = self.good + self.left().div_ceil(2);
        let between = (self.good + 1..self.bad).filter(|at| self.judged[*at].is_none());
        if let Some(at) = between.min_by_key(|at| at.abs_diff(middle)) {
            return Next::Test(at);
        }
        if self.judged[self.bad].is_none() {
            return Next::Test(self.bad);
        }
        if self.left() == 1 {
            return Next::Found(self.bad);
        }
        Next::Unknown {
            last_good: self.good,
            first_bad: self.bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the search ends where the first bad one is `first`, and how many tests it takes.
    fn search(count: usize, first: usize, skipped: &[usize]) -> (Next, usize) {
        let mut search = Bisection::new(count);
        for tests in 0.. {
            let Next::Test(at) = search.next_step() else {
                return (search.next_step(), tests);
            };
            assert!(search.judged[at].is_none());
            let judged = if at < first {
                Judged::Good
            } else {
                Judged::Bad
            };
            search.judge(
                at,
                if skipped.contains(&at) {
                    Judged::Skipped
                } else {
                    judged
                },
            );
        }
        unreachable!()
    }

    #[test]
    fn the_first_bad_one_is_found_with_few_tests() {
        for count in 2..=70_usize {
            let most = (count - 1).next_power_of_two().ilog2() as usize + 2;
            for first in 1..count {
                let (next, tests) = search(count, first, &[]);
                assert_eq!(next, Next::Found(first), "{count}");
                assert!(tests <= most, "{tests} of {count} for {first}");
                assert!(count > 41 || tests <= 7, "{tests} of {count} for {first}");
            }
        }
    }

    #[test]
    fn what_is_skipped_leaves_several() {
        assert_eq!(
            search(10, 5, &[5]).0,
            Next::Unknown {
                last_good: 4,
                first_bad: 6
            }
        );
        assert_eq!(search(10, 5, &[2, 8]).0, Next::Found(5));
        assert_eq!(
            search(4, 1, &[1, 2]).0,
            Next::Unknown {
                last_good: 0,
                first_bad: 3
            }
        );
    }
}
