//! The tour works with any prompts in any folder, and touches none of the user's files.

use super::*;

#[test]
fn edits_and_shell_commands_of_the_tour_can_be_rewound() {
    let mut sandbox = Sandbox::new();
    sandbox.write("utils.ts", "mine");
    sandbox.write("takeback-tour/notes.md", "mine too");
    let before = sandbox.tree();
    let mut talk = ChatFixture::start(&sandbox, BuiltinOptions::new(ModelSource::Tour));

    let first = talk.turn("hello");
    assert_eq!(ending(&first), &TurnResult::Done);
    assert!(sandbox.read("takeback-tour-2/utils.ts").contains("subtract"));
    let after_first = sandbox.tree();

    let second = talk.turn("?");
    assert!(tools(&second).iter().all(|(_, ok, _)| *ok), "{second:?}");
    assert!(text(&second).contains("press ESC twice"));
    let utils = sandbox.read("takeback-tour-2/utils.ts");
    assert!(utils.contains("subtract") && utils.contains("multiply") && utils.contains("divide"));
    assert!(!sandbox.exists("takeback-tour-2/notes.md"));

    go_to(&mut sandbox, point(&second));
    talk.agent.cut(&message(2)).unwrap();
    assert_eq!(sandbox.tree(), after_first);

    assert_eq!(tools(&talk.turn("again")), tools(&second));
    assert!(text(&talk.turn("and now?")).contains("Goodbye"));
    assert!(text(&talk.turn("still there?")).starts_with("The tour is over"));
    go_to(&mut sandbox, point(&first));
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_resumed_tour_stays_in_its_folder() {
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, BuiltinOptions::new(ModelSource::Tour));
    talk.turn("hello");
    drop(talk);
    let mut talk = ChatFixture::resume(&sandbox, BuiltinOptions::new(ModelSource::Tour), 1);
    let events = talk.turn("go on");
    assert_eq!(tools(&events)[0].0, "Edit takeback-tour/utils.ts");
    assert!(tools(&events).iter().all(|(_, ok, _)| *ok), "{events:?}");
    assert!(!sandbox.exists("takeback-tour-2"));
}
