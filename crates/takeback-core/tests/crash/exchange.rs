//! An import and an export, stopped anywhere, are complete or absent.

use std::fs;
use std::path::Path;

use takeback_core::exchange::{
    BundleFile, BundleLimits, ExportError, ExportOptions, IgnoredPaths, ImportMode, Overwrite,
    Selection, export, import, write_file,
};
use takeback_core::look_around;
use takeback_testkit::Sandbox;

use crate::scene::Scene;
use crate::{
    PointTree, assert_intact, assert_nothing_left_behind, assert_same, at_every_stop, go_exactly_to,
};

fn export_to(sandbox: &mut Sandbox, path: &Path, overwrite: Overwrite) {
    let options =
        ExportOptions { selection: Selection::Everything, ignored: IgnoredPaths::LeaveOut };
    write_file(path, overwrite, |sink| export(&mut sandbox.workspace, &options, sink))
        .map_err(|error: ExportError| error)
        .unwrap();
}

fn read(path: &Path) -> BundleFile {
    BundleFile::read(fs::File::open(path).unwrap(), &BundleLimits::default()).unwrap()
}

#[test]
fn an_import_is_complete_or_absent() {
    let scene = Scene::before_a_rewind();
    let mut there = scene.frozen.thaw();
    let file = there.outside().join("bundle");
    export_to(&mut there, &file, Overwrite::No);
    let bundle = read(&file);
    let mut here = Sandbox::new();
    here.write("edit.txt", "mine\n");
    here.write("mine too", "mine\n");
    look_around(&mut here.workspace).unwrap();
    let before = here.tree();
    let here = here.freeze();
    let stops = at_every_stop(|stop| {
        let mut here = here.thaw();
        stop.run(|| {
            import(&mut here.workspace, &bundle, ImportMode::ForReal).unwrap();
        });
        assert_same(&here.tree(), &before);
        assert_nothing_left_behind(&here);
        here.reopen();
        let points = here.workspace.store.points().unwrap();
        if points.is_empty() {
            assert!(stop.reached.is_some());
            assert!(here.workspace.store.sessions().unwrap().is_empty());
            import(&mut here.workspace, &bundle, ImportMode::ForReal).unwrap();
        }
        assert_eq!(here.workspace.store.points().unwrap().len(), scene.listed.len());
        assert_intact(&here, &[]);
        let points = here.workspace.store.points().unwrap();
        for (point, PointTree { tree, .. }) in points.iter().zip(&scene.listed) {
            go_exactly_to(&mut here, point.id);
            let mut found = here.tree();
            assert!(found.remove(Path::new("mine too")).is_some());
            assert_same(&found, tree);
        }
    });
    assert!(stops > 4, "only {stops} points passed");
}

#[test]
fn an_export_replaces_an_older_file_at_once() {
    let scene = Scene::before_a_rewind();
    let mut old = Vec::new();
    at_every_stop(|stop| {
        let mut sandbox = scene.frozen.thaw();
        let file = sandbox.outside().join("bundle");
        export_to(&mut sandbox, &file, Overwrite::No);
        let first = fs::read(&file).unwrap();
        sandbox.write("edit.txt", "more\n");
        look_around(&mut sandbox.workspace).unwrap();
        stop.run(|| export_to(&mut sandbox, &file, Overwrite::Yes));
        drop(read(&file));
        old.push(fs::read(&file).unwrap() == first);
    });
    // The old file, until the new one replaces it.
    assert_eq!(old.first(), Some(&true));
    assert_eq!(old.last(), Some(&false));
    assert!(old.is_sorted_by(|a, b| a >= b), "{old:?}");
}
