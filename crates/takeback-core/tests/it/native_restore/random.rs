//! Random agents and random restores: the result is always that of a plain rewind.

use super::*;

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }

    fn one_of<'a>(&mut self, things: &[&'a str]) -> &'a str {
        things[self.below(things.len())]
    }
}

const PATHS: [&str; 6] = ["a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt", "new/e.txt", "sub/f"];
const TEXTS: [&str; 4] = ["1\n2\n3\n", "1\n2\n3\n4\n", "0\n1\n2\n3\n", "else\n"];

fn play_anything(sandbox: &mut Sandbox, dice: &mut Dice) -> PointId {
    // The store must have every text.
    for (n, text) in TEXTS.iter().enumerate() {
        sandbox.write(&format!("text-{n}"), text);
    }
    for name in &PATHS[..4] {
        sandbox.write(name, dice.one_of(&TEXTS));
    }
    sandbox.start("s");
    let point = sandbox.prompt("s", "go");
    for _ in 0..8 {
        let (name, text) = (dice.one_of(&PATHS), dice.one_of(&TEXTS));
        match dice.below(6) {
            0 | 1 => sandbox.agent_writes("s", name, text),
            2 => sandbox.agent_runs("s", "./run", |sandbox| sandbox.write(name, text)),
            3 if sandbox.exists(name) => {
                sandbox.agent_runs("s", "rm", |sandbox| sandbox.remove(name));
            }
            4 => {
                sandbox.turn_end("s");
                sandbox.write(name, text);
                sandbox.prompt("s", "go on");
            }
            5 if sandbox.exists(name) => {
                let mode = [0o600, 0o755][dice.below(2)];
                sandbox.agent_runs("s", "chmod", |sandbox| sandbox.set_mode(name, mode));
            }
            _ => {}
        }
    }
    sandbox.turn_end("s");
    sandbox.write(dice.one_of(&PATHS), dice.one_of(&TEXTS));
    point
}

fn restore_anything(root: &Path, dice: &mut Dice, names: &[&str]) {
    for _ in 0..6 {
        let name = dice.one_of(names);
        let at = root.join(name);
        match dice.below(5) {
            0 | 1 if !at.is_dir() => {
                // It may be read-only.
                if at.exists() {
                    fs::remove_file(at).unwrap();
                }
                write(root, name, dice.one_of(&TEXTS));
            }
            2 if at.is_file() => fs::remove_file(at).unwrap(),
            3 if at.is_file() => {
                let mode = [0o600, 0o755, 0o444][dice.below(3)];
                fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
            }
            4 if !at.exists() => fs::create_dir_all(at).unwrap(),
            _ => {}
        }
    }
}

#[test]
fn a_random_restore_makes_no_difference() {
    let runs = match std::env::var_os("TAKEBACK_TEST_RUNS") {
        Some(runs) => runs.to_str().unwrap().parse().unwrap(),
        None => 30,
    };
    let mut done = 0;
    for seed in 1..=runs {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut sandbox = Sandbox::new();
        let point = play_anything(&mut sandbox, &mut dice);
        let frozen = sandbox.freeze();
        let mut alone = frozen.thaw();
        let before = alone.tree();
        let expected = alone.rewind_to(point);

        let mut sandbox = frozen.thaw();
        let root = sandbox.root();
        let names: Vec<&str> = PATHS.into_iter().filter(|_| dice.below(4) > 0).collect();
        if names.is_empty() || !expected.changed_something() {
            continue;
        }
        let paths = names.iter().map(|name| path(name)).collect();
        let mut run = || {
            restore_anything(&root, &mut dice, &names);
            if dice.below(2) == 0 { Ok(()) } else { Err("no".to_owned()) }
        };
        let mut native = NativeRestore { paths, run: &mut run };
        let (receipt, outcome) =
            rewind_with(&mut sandbox.workspace, &to(point), None, &mut native).unwrap();
        assert!(!matches!(outcome, NativeOutcome::Skipped(_)), "seed {seed}: {outcome:?}");
        assert_eq!(report(&receipt), report(&expected), "seed {seed}");
        assert_eq!(sandbox.tree(), alone.tree(), "seed {seed}");
        assert!(!sandbox.exists(".takeback"), "seed {seed}");
        sandbox.undo();
        assert_eq!(sandbox.tree(), before, "seed {seed}");
        assert_consistent(&sandbox);
        done += 1;
    }
    assert!(done > runs / 2, "{done} of {runs}");
}
