//! Signs of life on standard error while something takes longer than half a second. Where standard error is
//! no terminal, nothing is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use model::exec::Progress;
use model::units::Size;
use tokio::time::Instant;

/// Something is waited for. Nothing is drawn, and no thread started, before the half second is over.
#[derive(Debug)]
pub(crate) struct Waiting {
    message: String,
    meter: Option<Meter>,
    phase: Phase,
}

/// How much is done of what there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meter {
    done: u64,
    total: u64,
}

#[derive(Debug)]
enum Phase {
    Quiet { until: Instant },
    Shown(ProgressBar),
    Over,
}

impl Waiting {
    pub(crate) fn begin(message: &str) -> Self {
        let phase = Phase::Quiet { until: Instant::now() + PATIENCE };
        Self { message: message.to_owned(), meter: None, phase }
    }

    /// Awaits the future, and comes forward if it takes too long. The future is never cancelled.
    pub(crate) async fn watch<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        if let Phase::Quiet { until } = self.phase {
            tokio::select! {
                biased;
                output = &mut future => return output,
                () = tokio::time::sleep_until(until) => {
                    let bar = spinner(&self.message);
                    self.show(&bar);
                    self.phase = Phase::Shown(bar);
                }
            }
        }
        future.await
    }

    pub(crate) fn report(&mut self, progress: &Progress) {
        (self.message, self.meter) = describe(progress);
        if let Phase::Shown(bar) = &self.phase {
            self.show(bar);
        }
    }

    fn show(&self, bar: &ProgressBar) {
        bar.set_message(self.message.clone());
        let Some(Meter { done, total }) = self.meter else {
            if bar.length().is_some() {
                bar.unset_length();
                bar.set_style(plain());
            }
            return;
        };
        let is_new = bar.length().is_none();
        bar.set_length(total);
        bar.set_position(done);
        if is_new {
            bar.set_style(metered());
            // What was done before it could be seen says nothing of how fast it goes.
            bar.reset_eta();
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
    let bar = ProgressBar::new_spinner().with_style(plain()).with_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn plain() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}").expect("the template is constant")
}

fn metered() -> ProgressStyle {
    ProgressStyle::with_template(
        "{spinner} {msg} [{wide_bar}] {human_pos}/{human_len} files, {rate}/s, {eta} left",
    )
    .expect("the template is constant")
    .progress_chars("=> ")
    .with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
        write!(text, "{}", HumanCount(state.per_sec() as u64)).expect("it is written to memory")
    })
}

fn describe(progress: &Progress) -> (String, Option<Meter>) {
    match progress {
        Progress::Capturing { files, bytes, total: None } => {
            let files = HumanCount(*files);
            (format!("freezing the workspace: {files} files, {}", Size(*bytes).rough()), None)
        }
        Progress::Capturing { files, bytes, total: Some(total) } => {
            let meter = Meter { done: *files, total: *total.max(files) };
            (format!("freezing the workspace: {}", Size(*bytes).rough()), Some(meter))
        }
    }
}

const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

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

    /// What is on the screen after these reports.
    fn shown(reports: &[(u64, Option<u64>)]) -> String {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 255);
        let bar = ProgressBar::with_draw_target(None, target).with_style(plain());
        let mut waiting = Waiting::begin("waiting");
        for (files, total) in reports {
            waiting.report(&Progress::Capturing { files: *files, bytes: 5 << 20, total: *total });
            waiting.show(&bar);
        }
        bar.force_draw();
        let lines = paper.0.lock().unwrap();
        lines.last().unwrap().clone()
    }

    #[test]
    fn a_capture_says_how_far_it_is() {
        let line = shown(&[(12_345, None)]);
        assert!(line.contains("freezing the workspace: 12,345 files, 5.0 MiB 0s"), "{line}");
        // The rate and the time that is left are the clock's.
        let line = shown(&[(12, None), (5000, Some(20_000))]);
        let (head, tail) = line.split_once("] ").unwrap();
        let (told, bar) = head.split_once(" [").unwrap();
        assert!(told.ends_with("freezing the workspace: 5.0 MiB"), "{line}");
        let (done, rest) = bar.split_once('>').unwrap();
        assert!(done.bytes().all(|c| c == b'=') && rest.bytes().all(|c| c == b' '), "{line}");
        assert!(done.len().abs_diff(bar.len() / 4) <= 1, "a quarter: {line}");
        assert!(tail.starts_with("5,000/20,000 files, ") && tail.contains("/s, "), "{line}");
        assert!(tail.trim_end().ends_with(" left"), "{line}");
        // More than were counted, and another capture that nobody counts.
        assert!(shown(&[(30_000, Some(20_000))]).contains("] 30,000/30,000 files, "));
        let line = shown(&[(9, Some(10)), (2, None)]);
        assert!(line.contains("freezing the workspace: 2 files, 5.0 MiB"), "{line}");
        assert!(!line.contains('['), "{line}");
    }

    /// A terminal that keeps every line.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<Vec<String>>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            120
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            if !text.trim().is_empty() {
                self.0.lock().unwrap().push(text.to_owned());
            }
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }
}
