//! Questions about the system's process table.

use rustix::process::Pid;

pub(super) use crate::os::processes::{
    ProcessEntry as Entry, boot_id, command, entry, folder, has_variable, living, name,
    pid_namespace, variable,
};

/// The living processes of the group `group`; `None` if the table cannot be read.
pub(super) fn members(group: u32) -> Option<Vec<Entry>> {
    Some(
        living()?
            .into_iter()
            .filter(|entry| entry.group == group)
            .collect(),
    )
}

/// The process that started `pid`, or looks after it now.
pub(super) fn parent(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(entry(pid)?.parent).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_in_the_table() {
        let own = entry(std::process::id()).unwrap();
        assert!(!own.zombie);
        assert!(own.start_time > 0);
        assert!(members(own.group).unwrap().contains(&own));
    }
}
