//! Plans as the store keeps them: JSON that is written and read as a stream. A reader of the steps needs
//! the memory of one.

use std::fmt;
use std::io;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

use takeback_store::StoredPlan;

use super::{Plan, Step};

pub(crate) fn write_plan(plan: &Plan) -> io::Result<StoredPlan> {
    StoredPlan::write(|text| Ok(serde_json::to_writer(text, plan)?))
}

/// Reads a plan, or a part of one.
pub(crate) fn read_plan<P: DeserializeOwned>(plan: &StoredPlan) -> Result<P, serde_json::Error> {
    let text = plan.reader().map_err(serde_json::Error::custom)?;
    serde_json::from_reader(text)
}

/// Calls `visit` with each step of a plan, in order.
pub(crate) fn for_each_step(
    plan: &StoredPlan,
    mut visit: impl FnMut(Step),
) -> Result<(), serde_json::Error> {
    let text = plan.reader().map_err(serde_json::Error::custom)?;
    let mut json = serde_json::Deserializer::from_reader(text);
    json.deserialize_map(PlanVisitor(&mut visit))?;
    json.end()
}

struct PlanVisitor<'v, F>(&'v mut F);

impl<'de, F: FnMut(Step)> Visitor<'de> for PlanVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plan")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "steps" => map.next_value_seed(StepsVisitor(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct StepsVisitor<'v, F>(&'v mut F);

impl<'de, F: FnMut(Step)> DeserializeSeed<'de> for StepsVisitor<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Step)> Visitor<'de> for StepsVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the steps of a plan")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut steps: A) -> Result<(), A::Error> {
        while let Some(step) = steps.next_element()? {
            (self.0)(step);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::{Entry, WorkPath};

    use super::super::{NativePath, Plan, Verdict};
    use super::*;

    fn plan() -> Plan {
        let step = |name: &str, verdict| {
            let path = WorkPath::new(name.as_bytes().to_vec()).unwrap();
            Step::new(path, Entry::Absent, verdict)
        };
        let keep = Verdict::Keep { reason: "changed by you".to_owned() };
        let steps = vec![step("a", Verdict::Delete), step("b", keep), step("c", Verdict::Delete)];
        Plan { steps, is_full_scan: true, ..Plan::default() }
    }

    #[test]
    fn every_step_comes_once_and_in_order() {
        let mut steps = Vec::new();
        for_each_step(&write_plan(&plan()).unwrap(), |step| steps.push(step)).unwrap();
        assert_eq!(steps, plan().steps);
    }

    /// They are in `docs/design/journal.md` and in the stores of earlier versions.
    #[test]
    fn the_stored_names_differ_from_those_of_the_fields() {
        let path = WorkPath::new(b"a").unwrap();
        let mut plan = Plan { is_full_scan: true, is_revert: true, ..Plan::default() };
        plan.native_paths = vec![NativePath { path: path.clone(), present: Entry::Absent }];
        let step = Step::new(path.clone(), Entry::Absent, Verdict::Delete);
        plan.steps = vec![Step { hard_link_of: Some(path), ..step }];
        let json = serde_json::to_value(&plan).unwrap();
        assert_eq!(json["surveyed"], true);
        assert_eq!(json["turns_back"], true);
        assert_eq!(json["named"][0]["path"], "a");
        assert_eq!(json["steps"][0]["one_with"], "a");
        assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), plan);
    }

    #[test]
    fn what_is_not_a_whole_plan_is_an_error() {
        let plan = serde_json::to_string(&plan()).unwrap();
        for damaged in ["", "[]", &plan[..plan.len() - 1], &format!("{plan}x")] {
            let stored = StoredPlan::of_text(damaged).unwrap();
            assert!(for_each_step(&stored, |_| {}).is_err(), "{damaged:?}");
            assert!(read_plan::<Plan>(&stored).is_err(), "{damaged:?}");
        }
    }
}
