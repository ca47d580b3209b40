//! Where the tasks of a run stand: each is an iteration with its own budget, and begins once those that it needs have passed.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Iteration, IterationStatus, Run, RunSpec, Task, TaskList};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStatus {
    /// It passed.
    Done,
    /// It was given up.
    GivenUp,
    /// Its last attempt failed.
    Failed,
    /// Its last attempt was interrupted.
    Cancelled,
    /// It is being worked on.
    InProgress,
    /// A task that it needs has not passed.
    Waiting,
    /// It is to come.
    Pending,
    /// An attempt added it to the file: a person decides whether it is run.
    ToReview,
}

/// A task as documents show it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TaskLine {
    pub id: String,
    /// `null` for one that is not run.
    pub iteration: Option<u32>,
    pub status: TaskStatus,
    /// The tasks that it needs and that have not passed.
    pub waits_for: Vec<String>,
    /// How many attempts were made.
    pub attempts: usize,
    /// Why it was given up, or failed last.
    pub reason: Option<String>,
}

impl Run {
    /// The terms of the iteration that is under way or comes next; once all are over, of the one that the failure is about.
    pub fn terms(&self) -> Cow<'_, RunSpec> {
        let failed = self.failure.as_ref().and_then(|failure| failure.iteration);
        let is_over = self.spec.task(self.current_iteration).is_none();
        let at = failed.filter(|_| is_over);
        self.spec.terms(at.unwrap_or(self.current_iteration))
    }

    /// The tasks that an iteration waits for: those that its own needs, and that neither passed nor were accepted as they are.
    pub fn waits_for(&self, iteration: u32) -> impl Iterator<Item = &String> {
        let list = self.spec.tasks.as_ref();
        let needs = self
            .spec
            .task(iteration)
            .map_or(&[][..], |task| &task.needs);
        needs.iter().filter(move |id| {
            let needed = list.and_then(|list| list.iteration_of(id));
            // What is no task of the run was done before it.
            needed.is_some_and(|number| {
                self.iterations.status(number) != Some(IterationStatus::Completed)
                    && !self.accepted.contains(&number)
            })
        })
    }

    /// The iteration that comes after `number` in a list: the first whose needs are met and that is not over, else the one
    /// after the last.
    pub(super) fn task_after(&self, list: &TaskList, number: u32) -> u32 {
        let is_over = |other: u32| {
            let status = self.iterations.status(other);
            matches!(
                status,
                Some(IterationStatus::Completed | IterationStatus::Skipped)
            )
        };
        let is_next = |other: &u32| {
            *other != number && !is_over(*other) && self.waits_for(*other).next().is_none()
        };
        let count = list.count();
        (1..=count).find(is_next).unwrap_or(count.saturating_add(1))
    }

    /// Its tasks, those to review last; none where it does not work through a list.
    pub(crate) fn task_lines(&self) -> Vec<TaskLine> {
        let Some(list) = &self.spec.tasks else {
            return Vec::new();
        };
        let run = (1..)
            .zip(&list.tasks)
            .map(|(number, task)| self.task_line(number, task));
        let to_review = list.to_review.iter().map(|id| TaskLine {
            id: id.clone(),
            iteration: None,
            status: TaskStatus::ToReview,
            waits_for: Vec::new(),
            attempts: 0,
            reason: None,
        });
        run.chain(to_review).collect()
    }

    fn task_line(&self, number: u32, task: &Task) -> TaskLine {
        let iteration = self.iterations.get(number);
        let waits_for: Vec<String> = self.waits_for(number).cloned().collect();
        let status = match iteration.map(|iteration| iteration.status) {
            Some(IterationStatus::Completed) => TaskStatus::Done,
            Some(IterationStatus::Skipped) => TaskStatus::GivenUp,
            Some(IterationStatus::Failed) => TaskStatus::Failed,
            Some(IterationStatus::Cancelled) => TaskStatus::Cancelled,
            Some(IterationStatus::InProgress) => TaskStatus::InProgress,
            _ if waits_for.is_empty() => TaskStatus::Pending,
            _ => TaskStatus::Waiting,
        };
        let is_bad = matches!(status, TaskStatus::GivenUp | TaskStatus::Failed);
        let reason = |iteration: &Iteration| {
            let last = iteration.attempts.last();
            let failure = last.and_then(|attempt| attempt.failure.as_ref());
            let said = failure.map(|failure| failure.message.clone());
            said.or_else(|| iteration.reason.clone())
        };
        TaskLine {
            id: task.id.clone(),
            iteration: Some(number),
            status,
            waits_for,
            attempts: iteration.map_or(0, |iteration| iteration.attempts.len()),
            reason: iteration.filter(|_| is_bad).and_then(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::run::{RunDetails, RunKey};

    fn run(tasks: &[(&str, &[&str])]) -> Run {
        let task = |(id, needs): &(&str, &[&str])| Task {
            id: (*id).to_owned(),
            prompt: format!("Do {id}."),
            needs: needs.iter().map(|id| (*id).to_owned()).collect(),
            ..Task::default()
        };
        let list = TaskList {
            tasks: tasks.iter().map(task).collect(),
            ..TaskList::default()
        };
        let spec = RunSpec {
            iterations_total: Some(list.count()),
            tasks: Some(list),
            ..RunSpec::default()
        };
        let details = RunDetails {
            spec,
            current_iteration: 1,
            ..RunDetails::default()
        };
        Run {
            key: RunKey::new("r", None, None),
            details: details.into(),
            ..Run::default()
        }
    }

    fn set(run: &mut Run, number: u32, status: IterationStatus) {
        run.iterations.get_or_pending(number).status = status;
    }

    #[test]
    fn what_needs_a_task_that_was_given_up_waits_and_the_rest_goes_on() {
        let mut run = run(&[
            ("a", &[]),
            ("b", &["a"]),
            ("c", &["b"]),
            ("d", &[]),
            ("e", &["before"]),
        ]);
        assert_eq!(run.iteration_after(0), 1);
        set(&mut run, 1, IterationStatus::Skipped);
        assert_eq!(run.iteration_after(1), 4);
        set(&mut run, 4, IterationStatus::Completed);
        assert_eq!(run.iteration_after(4), 5, "what was done before is met");
        set(&mut run, 5, IterationStatus::Completed);
        assert_eq!(run.iteration_after(5), 6, "none is left");
        let lines = run.task_lines();
        let status: Vec<TaskStatus> = lines.iter().map(|line| line.status).collect();
        let (waiting, done) = (TaskStatus::Waiting, TaskStatus::Done);
        assert_eq!(status, [TaskStatus::GivenUp, waiting, waiting, done, done]);
        assert_eq!(lines[2].waits_for, ["b"]);
        // A person accepts it as it is.
        run.accepted.insert(1);
        assert_eq!(run.iteration_after(5), 2);
        set(&mut run, 2, IterationStatus::Completed);
        assert_eq!(run.iteration_after(2), 3);
    }

    #[test]
    fn a_task_has_its_own_terms_and_the_runs_prompt_in_front() {
        let mut run = run(&[("a", &[])]);
        run.spec.prompt = Some("Be brief.\n".to_owned());
        run.spec.attempts = Some(4);
        if let Some(list) = &mut run.spec.tasks {
            list.tasks[0].timeout_ms = Some(5);
        }
        let terms = run.spec.terms(1);
        assert_eq!(terms.prompt.as_deref(), Some("Be brief.\n\nDo a."));
        assert_eq!((terms.attempts, terms.timeout_ms), (Some(4), Some(5)));
        assert_eq!(run.spec.terms(2).timeout_ms, None);
    }
}
