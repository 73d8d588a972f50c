use crate::user::User;

#[test]
fn the_demo_takes_back_the_agents_work_and_keeps_the_persons() {
    let answer = User::new().takeback(&["demo"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(!answer.out.contains('\x1b'), "plain when piped");
    let told = [
        "  merged    shop/cart.py  only the agent's part is taken out",
        "  deleted   report.txt    did not exist then",
        "  restored  tests/        and 1 in it",
        "-    # retuns True for an empty cart\n+    # returns True for an empty cart",
        "Everything is as the agent left it, your edit included.",
    ];
    for line in told {
        assert!(answer.out.contains(line), "{line:?} in\n{}", answer.out);
    }
}

#[test]
fn the_demo_leaves_nothing_behind() {
    let user = User::new();
    user.takeback(&["demo"]);
    let left: Vec<_> = std::fs::read_dir(user.home()).expect("it can be read").collect();
    assert!(left.is_empty(), "{left:?}");
}
