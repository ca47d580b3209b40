//! What a person reads and does after a night: status, report, accept, manual fixes.

pub mod accept;
pub mod accept_own_work;
pub mod browse;
pub mod fix_watch;
pub mod follow;
pub mod manual_fix;
pub mod manual_fix_screen;
pub mod pickers;
pub mod report;
pub mod report_page;
pub mod runs;
pub mod status;
pub mod summary_line;
