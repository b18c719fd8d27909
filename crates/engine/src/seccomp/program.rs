//! From answers to BPF: a binary search over ranges of numbers.
//!
//! The search reads nothing but architecture and number, so the kernel can work out beforehand which calls
//! are always allowed and skip the program for them.

use std::collections::BTreeMap;

use libc::sock_filter;

use super::rules::{Answer, Errno, Question, Test};

pub(super) fn assemble(rules: &BTreeMap<u32, Answer>) -> Vec<sock_filter> {
    let mut program =
        vec![load(ARCHITECTURE), jump(libc::BPF_JEQ, AUDIT_ARCH, 1, 0), refuse(Errno::NoSys), load(NUMBER)];
    program.extend(search(&ranges(rules)));
    program
}

/// Numbers from `start` up to the next range all get the same answer.
#[derive(Clone, Copy)]
struct Range {
    start: u32,
    answer: Answer,
}

/// The whole number space, gaps filled with ENOSYS. x32 numbers (bit 30) lie in the last gap.
fn ranges(rules: &BTreeMap<u32, Answer>) -> Vec<Range> {
    let unknown = Answer::Refuse(Errno::NoSys);
    let mut ranges = vec![Range { start: 0, answer: unknown }];
    let mut begin = |start, answer| {
        if ranges.last().is_some_and(|last| last.answer != answer) {
            ranges.push(Range { start, answer });
        }
    };
    let mut next = 0;
    for (&number, &answer) in rules {
        if number > next {
            begin(next, unknown);
        }
        begin(number, answer);
        next = number + 1;
    }
    begin(next, unknown);
    ranges
}

fn search(ranges: &[Range]) -> Vec<sock_filter> {
    if let [only] = ranges {
        return match only.answer {
            Answer::Allow => vec![allow()],
            Answer::Refuse(errno) => vec![refuse(errno)],
            Answer::Ask(question) => ask(question),
        };
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let below = search(low);
    let mut block = match u8::try_from(below.len()) {
        Ok(over) => vec![jump(libc::BPF_JGE, high[0].start, over, 0)],
        // A conditional jump reaches 255 instructions; an unconditional one any number.
        Err(_too_far) => vec![jump(libc::BPF_JGE, high[0].start, 0, 1), jump_over(below.len())],
    };
    block.extend(below);
    block.extend(search(high));
    block
}

fn ask(question: Question) -> Vec<sock_filter> {
    let (allow, refuse) = (allow(), refuse(question.refusal));
    let mut block = vec![load(low_half_of(question.argument))];
    match question.test {
        Test::NoBits(bits) => block.extend([jump(libc::BPF_JSET, bits, 0, 1), refuse, allow]),
        Test::NoneOf(values) => {
            block.extend(values.iter().flat_map(|value| [jump(libc::BPF_JEQ, *value, 0, 1), refuse]));
            block.push(allow);
        }
        Test::OnlyOf(values) => {
            block.extend(values.iter().flat_map(|value| [jump(libc::BPF_JEQ, *value, 0, 1), allow]));
            block.push(refuse);
        }
    }
    block
}

fn allow() -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0)
}

fn refuse(errno: Errno) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0)
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

fn jump(test: u32, value: u32, when_true: u8, when_false: u8) -> sock_filter {
    instruction(libc::BPF_JMP | test | libc::BPF_K, value, when_true, when_false)
}

fn jump_over(instructions: usize) -> sock_filter {
    let distance = u32::try_from(instructions).expect("the kernel takes 4096 instructions at most");
    instruction(libc::BPF_JMP | libc::BPF_JA, distance, 0, 0)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

// Offsets into `struct seccomp_data`: number, architecture, instruction pointer, six arguments of 64 bits.
pub(super) const NUMBER: u32 = 0;
pub(super) const ARCHITECTURE: u32 = 4;

/// Both architectures of ours are little-endian: the low half comes first.
pub(super) const fn low_half_of(argument: u32) -> u32 {
    16 + 8 * argument
}

/// AUDIT_ARCH_X86_64: the ELF machine, 64 bit, little-endian.
#[cfg(target_arch = "x86_64")]
pub(super) const AUDIT_ARCH: u32 = libc::EM_X86_64 as u32 | 0xC000_0000;
/// AUDIT_ARCH_AARCH64: the ELF machine, 64 bit, little-endian.
#[cfg(target_arch = "aarch64")]
pub(super) const AUDIT_ARCH: u32 = libc::EM_AARCH64 as u32 | 0xC000_0000;
