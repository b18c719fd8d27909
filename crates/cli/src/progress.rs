//! Signs of life on standard error while something takes longer than half a second. Where standard error is
//! no terminal, nothing is shown.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use model::exec::Progress;
use model::units::Size;
use tokio::time::Instant;

/// Something is waited for. Nothing is drawn, and no thread started, before the half second is over.
#[derive(Debug)]
pub(crate) struct Waiting {
    message: String,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Quiet { until: Instant },
    Shown(ProgressBar),
    Over,
}

impl Waiting {
    pub(crate) fn begin(message: &str) -> Self {
        Self { message: message.to_owned(), phase: Phase::Quiet { until: Instant::now() + PATIENCE } }
    }

    /// Awaits the future, and comes forward if it takes too long. The future is never cancelled.
    pub(crate) async fn watch<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        if let Phase::Quiet { until } = self.phase {
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = tokio::time::sleep_until(until) => self.phase = Phase::Shown(spinner(&self.message)),
            }
        }
        future.await
    }

    pub(crate) fn report(&mut self, progress: &Progress) {
        self.message = describe(progress);
        if let Phase::Shown(bar) = &self.phase {
            bar.set_message(self.message.clone());
        }
    }

    /// The wait is over: leaves no trace on the screen.
    pub(crate) fn end(&mut self) {
        if let Phase::Shown(bar) = std::mem::replace(&mut self.phase, Phase::Over) {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

/// What is done now is shown, and what is through stays on the screen: one thing after the other, or several at once.
#[derive(Debug)]
pub(crate) struct Running {
    bar: ProgressBar,
    names: Vec<String>,
    ended: usize,
    expected: usize,
}

impl Running {
    pub(crate) fn begin(message: &str) -> Self {
        Self { bar: spinner(message), names: Vec::new(), ended: 0, expected: 0 }
    }

    pub(crate) fn now(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }

    /// `line` stays on the screen.
    pub(crate) fn line(&self, line: &str) {
        self.bar.println(line);
    }

    /// Makes room for what is said besides, whether there is a screen or not.
    pub(crate) fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// So many come next, side by side.
    pub(crate) fn expect(&mut self, number: usize) {
        (self.ended, self.expected) = (0, number);
        self.names.clear();
        self.show();
    }

    pub(crate) fn started(&mut self, name: &str) {
        if self.names.iter().all(|known| known != name) {
            self.names.push(name.to_owned());
        }
        self.show();
    }

    /// One of them is through; `line` stays on the screen.
    pub(crate) fn ended(&mut self, name: &str, line: &str) {
        self.names.retain(|known| known != name);
        self.ended += 1;
        self.line(line);
        self.show();
    }

    fn show(&self) {
        let Self { ended, expected, .. } = self;
        self.now(&format!("{ended} of {expected} done, running: {}", self.names.join(", ")));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A table that is drawn again and again: one line for each of several that run side by side.
#[derive(Debug, Default)]
pub(crate) struct Board {
    lines: MultiProgress,
    bars: BTreeMap<String, ProgressBar>,
    checks: u64,
}

impl Board {
    pub(crate) fn begin<'a>(&mut self, names: impl Iterator<Item = &'a str> + Clone, checks: u64) {
        self.checks = checks;
        let width = names.clone().map(|name| name.chars().count()).max().unwrap_or(0);
        for name in names {
            let bar = self.lines.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template("{spinner} {prefix}  {elapsed:>4.dim}  {msg}")
                .expect("the template is constant");
            bar.set_style(style);
            bar.set_prefix(format!("{name:width$}"));
            bar.enable_steady_tick(Duration::from_millis(100));
            self.bars.insert(name.to_owned(), bar);
        }
    }

    /// How many checks each has before it.
    pub(crate) fn checks(&self) -> u64 {
        self.checks
    }

    pub(crate) fn show(&self, name: &str, message: &str) {
        if let Some(bar) = self.bars.get(name) {
            bar.set_message(message.to_owned());
        }
    }

    /// Its line stands still from now on.
    pub(crate) fn end(&self, name: &str, message: &str) {
        if let Some(bar) = self.bars.get(name) {
            bar.abandon_with_message(message.to_owned());
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        for bar in self.bars.values() {
            bar.finish_and_clear();
        }
    }
}

fn spinner(message: &str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}").expect("the template is constant");
    let bar = ProgressBar::new_spinner().with_style(style).with_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn describe(progress: &Progress) -> String {
    match progress {
        Progress::Capturing { files, bytes } => {
            format!("freezing the workspace: {} files, {}", HumanCount(*files), Size(*bytes).rough())
        }
    }
}

const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_shown_before_half_a_second_is_over() {
        let mut waiting = Waiting::begin("waiting");
        waiting.watch(tokio::time::sleep(Duration::from_millis(499))).await;
        assert!(matches!(waiting.phase, Phase::Quiet { .. }));
        waiting.watch(tokio::time::sleep(Duration::from_millis(2))).await;
        assert!(matches!(waiting.phase, Phase::Shown(_)));
        waiting.end();
        waiting.watch(tokio::time::sleep(Duration::from_secs(9))).await;
        assert!(matches!(waiting.phase, Phase::Over));
    }

    #[test]
    fn a_capture_says_how_far_it_is() {
        let shown = describe(&Progress::Capturing { files: 12_345, bytes: 5 << 20 });
        assert_eq!(shown, "freezing the workspace: 12,345 files, 5.0 MiB");
    }
}
