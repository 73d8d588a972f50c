//! `fork` of a whole workspace, next to `cp -a` and `git worktree add`; and next to `cp -a --reflink=always` on a
//! file system that shares blocks, if one can be mounted here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::driver::takeback::{Takeback, build};
use crate::measure::{Commands, flush_disk, output_of};
use crate::report::{Goal, Row, comparison};
use crate::results::Results;
use crate::rounds::Rounds;
use crate::scratch::{Scratch, fill};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Files in the workspace
    #[arg(long, default_value_t = 30_000)]
    files: usize,
    /// An empty folder on a file system that shares blocks (XFS, btrfs), to measure there as well
    #[arg(long, value_name = "DIR")]
    reflink: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, results: &Results) -> Result<()> {
    let scratch = Scratch::new()?;
    let program = build(scratch.path())?;
    let mut rows = measure(args, &program, scratch.path(), "auto")?;
    println!("`fork`, {} files, {} rounds:\n", args.files, args.rounds);
    println!("{}", comparison("everything is in memory", &rows));
    match &args.reflink {
        Some(folder) => {
            let shared = measure(args, &program, folder, "always")?;
            println!("{}", comparison("blocks are shared", &shared));
            rows.extend(shared);
        }
        None => println!(
            "`cp -a --reflink=always`: not measured. Mount XFS or btrfs, and name a folder there with --reflink."
        ),
    }
    results.finish("fork", rows).map(drop)
}

fn measure(args: &Args, program: &Path, folder: &Path, reflink: &str) -> Result<Vec<Row>> {
    let (project, home) = (folder.join("forked/project"), folder.join("forked/home"));
    fs::create_dir_all(&project)?;
    fs::create_dir_all(&home)?;
    fill(&project.join("src"), args.files, 50)?;
    let work = Work::new(program, &project, &home, reflink)?;
    let rounds = Rounds { count: args.rounds, warm_up: 1, group: Work::CASES };
    let times = rounds.run(Work::CASES, |case, _| work.measure(case));
    fs::remove_dir_all(folder.join("forked"))?;
    let times = times?;
    let (cp, most) = match reflink {
        "always" => ("`cp -a --reflink=always`", 1.0),
        _ => ("`cp -a`", 1.2),
    };
    Ok(vec![
        Row::new(format!("`fork`, {cp}"), &times[0], cp, &times[1]).goal(Goal::AtMost(most)),
        Row::new("`fork`, `git worktree add`", &times[0], "`git worktree add`", &times[2])
            .goal(Goal::Below(1.0)),
    ])
}

/// The same tree, copied in three ways. The repository is beside it, so that no way copies it.
struct Work {
    takeback: Takeback,
    project: PathBuf,
    repository: PathBuf,
    copy: PathBuf,
    reflink: String,
}

impl Work {
    const CASES: usize = 3;

    fn new(program: &Path, project: &Path, home: &Path, reflink: &str) -> Result<Self> {
        let takeback = Takeback::new(program, project, home);
        // The second one finds file times that are old enough to be trusted.
        for label in ["first", "start"] {
            takeback.run(&["checkpoint", label, "--quiet"]).time("")?;
        }
        let work = Self {
            takeback,
            project: project.to_owned(),
            repository: project.with_file_name("repository"),
            copy: project.with_file_name("copy"),
            reflink: reflink.to_owned(),
        };
        work.git(&["init", "-q"])?;
        work.git(&["add", "-A"])?;
        work.git(&["-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-qm", "all"])?;
        Ok(work)
    }

    fn git(&self, words: &[&str]) -> Result<()> {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(&self.repository).arg("--work-tree").arg(&self.project);
        output_of(git.args(words).current_dir(&self.project)).map(drop)
    }

    fn measure(&self, case: usize) -> Result<f64> {
        flush_disk()?;
        let copy = self.copy.to_string_lossy();
        let repository = self.repository.to_string_lossy();
        let run = |program: &str, words: &[&str]| {
            Commands::new(Path::new(program), &self.project, []).run(words).time("")
        };
        let cost = match case {
            0 => self.takeback.run(&["fork", "start", &copy, "--quiet"]).time("")?,
            1 => {
                let reflink = format!("--reflink={}", self.reflink);
                run("cp", &["-a", &reflink, &self.project.to_string_lossy(), &copy])?
            }
            _ => {
                let words = ["--git-dir", &repository, "worktree", "add", "-q", "--detach", &copy];
                run("git", &words)?
            }
        };
        let made = fs::read_dir(self.copy.join("src"))?.count();
        if made == 0 {
            return Err("the copy is empty".into());
        }
        fs::remove_dir_all(&self.copy)?;
        match case {
            0 => drop(self.takeback.run(&["forget", &copy, "-y", "--quiet"]).time("")?),
            2 => self.git(&["worktree", "prune"])?,
            _ => {}
        }
        Ok(cost.wall_ms)
    }
}
