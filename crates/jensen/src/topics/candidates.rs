//! The scores of all numbers of topics that a run compared.

use jensen_conjugate::contest::Ended;
use jensen_conjugate::lda::LdaSettings;
use jensen_math::sum::Moments;

use super::TopicsCandidate;

/// Returns the scores of all numbers of topics. `settings` contains the starts of each number one after another, `ended`
/// contains their results, and `chosen` is the index of the chosen fit. The scores refer to `words` held-out words.
pub(super) fn rows(
    settings: &[LdaSettings],
    chosen: usize,
    ended: &[Ended],
    words: u64,
) -> Vec<TopicsCandidate> {
    let words = words as f64;
    let score = |ended: &Ended| match ended.scores.is_empty() {
        true => f64::NAN,
        false => ended.scores.iter().sum::<f64>() / words,
    };
    let kept = ended.get(chosen).map_or(&[][..], |best| &best.scores);
    let mut first = 0;
    let groups = settings[..ended.len()].chunk_by(|a, b| a.topics == b.topics);
    let rows = groups.map(|group| {
        let starts: Vec<f64> = ended[first..][..group.len()].iter().map(score).collect();
        let best = (0..group.len()).fold(0, |best, at| match starts[at] > starts[best] {
            true => at,
            false => best,
        });
        let own = &ended[first + best].scores;
        let differences: Vec<f64> = own.iter().zip(kept).map(|(own, kept)| own - kept).collect();
        let documents = differences.len() as f64;
        let moments = Moments::of(&differences);
        let range = first..first + group.len();
        first = range.end;
        TopicsCandidate {
            topics: group[0].topics,
            heldout_log_predictive: starts[best],
            difference: moments.mean() * documents / words,
            difference_se: moments.standard_error() * documents / words,
            chosen: range.contains(&chosen),
            starts,
        }
    });
    rows.collect()
}
