//! The figures as a picture: one group of bars per row, readable on light and on dark pages.

use super::report::{Contender, Row};
use super::stats::Summary;

const WIDTH: f64 = 860.0;
const LABELS: f64 = 230.0;
const VALUES: f64 = 130.0;
const BAR: f64 = 16.0;
const STEP: f64 = 24.0;
const GROUP: f64 = 46.0;
/// A bar longer than this many of ours is cut, or ours could not be seen.
const CUT: f64 = 12.0;

pub(crate) fn chart<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut y = 30.0;
    let mut body = String::new();
    for row in rows {
        let bars = measured(row);
        if bars.is_empty() {
            continue;
        }
        body += &format!("<text class=\"title\" x=\"16\" y=\"{y}\">{}</text>\n", escaped(&row.title));
        body += &group(row, &bars, y + 14.0);
        y += GROUP + STEP * bars.len() as f64;
    }
    format!("{}{STYLE}{body}</svg>\n", opening(y))
}

fn opening(height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"zeno beside its peers, medians with intervals\">\n"
    )
}

/// Colours for both kinds of page, inside the picture, because a page cannot style an image it embeds.
const STYLE: &str = "<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #3d4450; }
.title { font-weight: 600; fill: #14181f; }
.value { font-variant-numeric: tabular-nums; }
.ours { fill: #0f766e; }
.peer { fill: #a8b3c2; }
.interval { stroke: #14181f; stroke-width: 1.5; }
.cut { fill: none; stroke: #ffffff; stroke-width: 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6c0cd; }
  .title { fill: #f2f5f9; }
  .ours { fill: #2dd4bf; }
  .peer { fill: #566273; }
  .interval { stroke: #f2f5f9; }
  .cut { stroke: #0d1117; }
}
</style>
";

struct Shown<'a> {
    label: &'a str,
    wall: &'a Summary,
    is_ours: bool,
}

fn measured(row: &Row) -> Vec<Shown<'_>> {
    let shown = |contender| match contender {
        &Contender::Measured { ref label, ref wall, ratio, .. } => {
            Some(Shown { label, wall, is_ours: ratio.is_none() })
        }
        Contender::Absent { .. } => None,
    };
    row.contenders.iter().filter_map(shown).collect()
}

fn group(row: &Row, bars: &[Shown<'_>], top: f64) -> String {
    let ours = bars[0].wall.median.median;
    let longest =
        bars.iter().map(|bar| bar.wall.median.high).filter(|high| *high <= ours * CUT).fold(ours, f64::max);
    let space = WIDTH - LABELS - VALUES;
    let mut text = String::new();
    for (at, bar) in bars.iter().enumerate() {
        let y = top + STEP * at as f64;
        let middle = y + BAR / 2.0;
        let median = bar.wall.median;
        let is_cut = median.median > longest;
        let length = (median.median / longest).min(1.0) * space;
        let class = if bar.is_ours { "ours" } else { "peer" };
        text += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            LABELS - 10.0,
            y + 13.0,
            escaped(bar.label)
        );
        text += &format!(
            "<rect class=\"{class}\" x=\"{LABELS}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\" rx=\"3\"/>\n"
        );
        let mut end = length;
        if is_cut {
            let x = LABELS + length - 24.0;
            text += &format!(
                "<path class=\"cut\" d=\"M{x:.1} {:.1} l6 -{STEP} m6 0 l-6 {STEP}\"/>\n",
                y + BAR + 4.0
            );
        } else {
            let [low, high] =
                [median.low, median.high].map(|value| LABELS + (value / longest).min(1.0) * space);
            text += &format!(
                "<line class=\"interval\" x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\n"
            );
            end = end.max(high - LABELS);
        }
        text += &format!(
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            LABELS + end + 8.0,
            y + 13.0,
            row.unit.show(median.median)
        );
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::Unit;
    use crate::bench::stats::Estimate;

    fn bar(label: &str, seconds: f64, is_ours: bool) -> Contender {
        let median = Estimate { median: seconds, low: seconds * 0.9, high: seconds * 1.1 };
        let wall = Summary { count: 20, median, mean: seconds, p99: seconds * 2.0 };
        Contender::Measured { label: label.to_owned(), wall, cpu: None, ratio: (!is_ours).then_some(median) }
    }

    #[test]
    fn a_row_with_a_peer_a_giant_and_an_absent_one() {
        let row = Row {
            name: "throwaway".to_owned(),
            title: "create & destroy: `zeno run`".to_owned(),
            unit: Unit::Seconds,
            contenders: vec![
                bar("zeno run", 0.004, true),
                bar("bwrap", 0.005, false),
                bar("docker run", 0.4, false),
                Contender::Absent { label: "podman run".to_owned(), why: "not installed".to_owned() },
            ],
            bars: Vec::new(),
            notes: Vec::new(),
        };
        insta::assert_snapshot!(chart(&[row]));
    }
}
